/** CPU time of a process. Unlike wall time, it does not grow when other programs use the machine. */
import { readdirSync, readFileSync } from 'node:fs'

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

/** The CPU time that another process has used so far, in microseconds, from both of the kernel's accounts. */
export interface ProcessCpu {
  /** All threads, also those that have ended, rounded to ticks of 10 ms. */
  readonly process: number
  /** Each running thread by its id, to the nanosecond. */
  readonly threads: ReadonlyMap<string, number>
}

/** Reads the CPU time of another process. Needs Linux. */
export function readProcessCpu(pid: number): ProcessCpu {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
  const ticks = Number(fields[11]) + Number(fields[12])
  return { process: (ticks / TICKS_PER_SECOND) * 1e6, threads: readThreads(pid) }
}

function readThreads(pid: number): ReadonlyMap<string, number> {
  const threads = new Map<string, number>()
  for (const id of readdirSync(`/proc/${pid}/task`))
    try {
      const [nanoseconds] = readFileSync(`/proc/${pid}/task/${id}/schedstat`, 'utf8').split(' ')
      threads.set(id, Number(nanoseconds) / 1000)
    } catch (error) {
      // The thread has ended, or the kernel does not count.
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    }
  return threads
}

/** User and system time are each rounded down to a tick, at the start and at the end. */
const ROUNDING = (2 / TICKS_PER_SECOND) * 1e6

/**
 * Returns the microseconds of CPU that a process used between two readings. Sums its threads to the nanosecond, because
 * a tick of 10 ms is a percent of a short measurement. If a thread ended in between, its time is missing in that sum;
 * then the ticks of the whole process say more.
 */
export function cpuBetween(start: ProcessCpu, end: ProcessCpu): number {
  const ofProcess = end.process - start.process
  let ofThreads = 0
  for (const [id, micros] of end.threads) ofThreads += micros - (start.threads.get(id) ?? 0)
  return ofProcess - ofThreads > ROUNDING ? ofProcess : ofThreads
}

/**
 * Returns the microseconds of CPU that the first thread of a process used between two readings. In Node it runs the
 * event loop.
 */
export function loopCpuBetween(pid: number, start: ProcessCpu, end: ProcessCpu): number {
  const id = String(pid)
  return (end.threads.get(id) ?? 0) - (start.threads.get(id) ?? 0)
}
