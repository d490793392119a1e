/** CPU time of a process. Unlike wall time, it does not grow when other programs use the machine. */
import { readFileSync } from 'node:fs'

/** /proc counts CPU time in kernel clock ticks. */
const TICKS_PER_SECOND = 100

/** Returns the microseconds of user and system time that all threads of this process have used so far. */
export function cpuMicros(): number {
  const { user, system } = process.cpuUsage()
  return user + system
}

/** Returns the CPU seconds of the fastest of three runs of `work`. */
export async function bestCpuSeconds(work: () => unknown): Promise<number> {
  const seconds: number[] = []
  for (let run = 0; run < 3; run += 1) {
    const start = cpuMicros()
    await work()
    seconds.push((cpuMicros() - start) / 1e6)
  }
  return Math.min(...seconds)
}

/** Returns the microseconds of user and system time that another process has used so far. Needs Linux. */
export function processCpuMicros(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
  return ((Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND) * 1e6
}
