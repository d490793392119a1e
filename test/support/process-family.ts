/** The processes that a process has started. Needs Linux. */
import { readFileSync } from 'node:fs'

/** A process, its children, and theirs; those that have ended are left out. */
export function familyOf(pid: number): readonly number[] {
  try {
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean).map(Number)
    return [pid, ...children.flatMap(familyOf)]
  } catch {
    return []
  }
}

/** The command line of a process, with NUL between the arguments; '' if it has ended. */
export function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8')
  } catch {
    return ''
  }
}
