/** Files that several processes share: written atomically, and guarded by a lock file. */
import { randomBytes } from 'node:crypto'
import { open, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { setTimeout as pause } from 'node:timers/promises'
import { isAlive, startOf } from './processes.ts'

const TAKEOVER_MS = 50
const WRITE_MS = 2_000

/** Replaces a file atomically (mode 0600): a reader or a crash sees either the old content or the new. */
export async function writeAtomically(path: string, content: string | Uint8Array): Promise<void> {
  const draft = `${path}.${randomBytes(4).toString('hex')}.tmp`
  try {
    const file = await open(draft, 'wx', 0o600)
    try {
      await file.writeFile(content)
      await file.datasync()
    } finally {
      await file.close()
    }
    await rename(draft, path)
  } catch (error) {
    await rm(draft, { force: true })
    throw error
  }
}

/** Returns the parsed content; null if the file is missing or is not JSON. */
export async function readJson<Content>(path: string): Promise<Content | null> {
  try {
    return JSON.parse(await readFile(path, 'utf8')) as Content
  } catch (error) {
    if (error instanceof SyntaxError || (error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error
  }
}

/**
 * Runs `work` while no other process, and no other call of this one, holds the same lock file. A lock whose holder was
 * killed is taken over.
 */
export async function withLock<Result>(lock: string, work: () => Promise<Result>): Promise<Result> {
  const holder = `${process.pid} ${await startOf(process.pid)} ${randomBytes(8).toString('hex')}`
  while (!(await tryLock(lock, holder))) await pause(20)
  try {
    return await work()
  } finally {
    await rm(lock, { force: true })
  }
}

async function tryLock(lock: string, holder: string): Promise<boolean> {
  try {
    await writeFile(lock, holder, { flag: 'wx', mode: 0o600 })
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
  if (await isLocked(lock)) return false
  // Several processes may find the same dead holder. Each writes its own name over it, and the last one written wins.
  const draft = `${lock}.${holder.slice(-16)}`
  await writeFile(draft, holder, { mode: 0o600 })
  await rename(draft, lock)
  await pause(TAKEOVER_MS)
  return (await readFile(lock, 'utf8').catch(() => '')) === holder
}

async function isLocked(lock: string): Promise<boolean> {
  const [pid = '', start = ''] = (await readFile(lock, 'utf8').catch(() => '')).split(' ')
  if (pid !== '') return (await isAlive(Number(pid))) && (await startOf(Number(pid))) === start
  // Empty: the holder is between creating and writing the file, or was killed there. Missing: it was just released.
  const { mtimeMs } = await stat(lock).catch(() => ({ mtimeMs: Date.now() }))
  return Date.now() - mtimeMs < WRITE_MS
}
