/** CPU time of this process. Unlike wall time, it does not grow when other programs use the machine. */

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
