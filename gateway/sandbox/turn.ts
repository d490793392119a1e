/** One process at a time. */
import { randomBytes } from 'node:crypto'
import { readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { setTimeout as pause } from 'node:timers/promises'
import { isAlive } from './processes.ts'

const SETTLE_MS = 50
const WRITE_MS = 2_000

/**
 * Runs `work` while no other process (and no other call) works under the same lock file. The lock of a holder that was
 * killed is taken over.
 */
export async function inTurn<Result>(lock: string, work: () => Promise<Result>): Promise<Result> {
  const mine = `${process.pid} ${randomBytes(8).toString('hex')}`
  while (!(await take(lock, mine))) await pause(20)
  try {
    return await work()
  } finally {
    await rm(lock, { force: true })
  }
}

async function take(lock: string, mine: string): Promise<boolean> {
  try {
    await writeFile(lock, mine, { flag: 'wx', mode: 0o600 })
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
  if (await isHeld(lock)) return false
  // Several may find the same dead holder. Each puts its name over it; the last name that stays has the turn.
  const draft = `${lock}.${mine.slice(-16)}`
  await writeFile(draft, mine, { mode: 0o600 })
  await rename(draft, lock)
  await pause(SETTLE_MS)
  return (await readFile(lock, 'utf8').catch(() => '')) === mine
}

async function isHeld(lock: string): Promise<boolean> {
  const holder = Number((await readFile(lock, 'utf8').catch(() => '')).split(' ')[0])
  if (holder) return isAlive(holder)
  // Empty: its maker is between creating and writing, or was killed there. Gone: try again.
  const { mtimeMs } = await stat(lock).catch(() => ({ mtimeMs: Date.now() }))
  return Date.now() - mtimeMs < WRITE_MS
}
