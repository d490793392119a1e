/** Other processes of this machine: whether they are alive, what they run, and how to end them. */
import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { setTimeout as pause } from 'node:timers/promises'
import { promisify } from 'node:util'

const GRACE_MS = 5_000

/** Returns false once a process has ended, even if its parent has not collected it yet (a zombie). */
export async function isAlive(pid: number): Promise<boolean> {
  if (!takesSignals(pid)) return false
  const status = await statusOf(pid)
  // Without /proc the signal decides. With it, the process may have been collected a moment ago.
  if (status === null) return takesSignals(pid)
  return status[0] !== 'Z'
}

/**
 * Returns when a process was started, in clock ticks since the machine was, or "" if that cannot be read. A pid alone does
 * not name a process for good: a container that is started again gives out the same ones.
 */
export async function startOf(pid: number): Promise<string> {
  return (await statusOf(pid))?.[19] ?? ''
}

/** The fields of /proc/PID/stat from the state on, which is field 3 (proc_pid_stat(5)); null if it cannot be read. */
async function statusOf(pid: number): Promise<readonly string[] | null> {
  const status = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => null)
  // The format is `pid (name) state …`; the name may contain anything, also brackets.
  return status?.slice(status.lastIndexOf(')') + 2).split(' ') ?? null
}

/** True if the process exists, whether or not it is ours. */
function takesSignals(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

/** Returns the command line with its arguments separated by spaces, or "" if it cannot be read. */
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

/** Ends a process with SIGTERM, or with SIGKILL if it does not end in time. Resolves when it is gone. */
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
  throw new Error(`Process ${pid} could not be killed.`)
}
