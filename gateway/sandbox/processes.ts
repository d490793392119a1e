/** Other processes of this machine: whether they live, what they are, how they end. */
import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { setTimeout as pause } from 'node:timers/promises'
import { promisify } from 'node:util'

const GRACE_MS = 5_000

/** False for a process that has ended, also where nobody has collected it yet. */
export async function isAlive(pid: number): Promise<boolean> {
  try {
    process.kill(pid, 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
  const status = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '')
  // pid (name) state …; the name may hold anything, brackets too.
  return status.slice(status.lastIndexOf(')') + 2)[0] !== 'Z'
}

/** The command line, words joined by spaces; "" where it cannot be told. */
export async function commandOf(pid: number): Promise<string> {
  try {
    return (await readFile(`/proc/${pid}/cmdline`, 'utf8')).split('\0').join(' ').trim()
  } catch {
    return promisify(execFile)('ps', ['-p', String(pid), '-o', 'args=']).then(
      ({ stdout }) => stdout.trim(),
      () => '',
    )
  }
}

/** Asks a process to end, waits, and kills it where it does not. Resolves when it is gone. */
export async function endProcess(pid: number): Promise<void> {
  for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
    try {
      process.kill(pid, signal)
    } catch {
      return
    }
    const deadline = Date.now() + GRACE_MS
    while (Date.now() < deadline) {
      if (!(await isAlive(pid))) return
      await pause(10)
    }
  }
  throw new Error(`Process ${pid} does not end, not even when killed.`)
}
