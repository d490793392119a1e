/** Asks processes that have loaded heap-on-signal.mjs for their heap. Needs Linux. */
import { readFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import type { Memory } from './measures.ts'

const TRIES = 100
const PAUSE_MS = 100

/**
 * Lets each process collect garbage, and returns its heap and its resident set. Processes that end meanwhile, or do not
 * answer within ten seconds, are left out.
 *
 * @param output the file that has what the processes print
 */
export async function readMemory(pids: readonly number[], output: string, minute: number): Promise<readonly Memory[]> {
  const points = await Promise.all(
    pids.map(async (pid): Promise<Memory | null> => {
      try {
        const before = heapsOf(pid, output).length
        process.kill(pid, 'SIGUSR2')
        for (let tries = 0; heapsOf(pid, output).length === before; tries++) {
          if (tries > TRIES) return null
          await delay(PAUSE_MS)
        }
        const [, kilobytes = '0'] = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
        return { pid, minute, heap: (heapsOf(pid, output).at(-1) as number) / 1e6, resident: Number(kilobytes) / 1e3 }
      } catch {
        return null
      }
    }),
  )
  return points.filter((point) => point !== null)
}

function heapsOf(pid: number, output: string): readonly number[] {
  const lines = readFileSync(output, 'utf8').matchAll(new RegExp(`^heap ${pid} (\\d+)$`, 'gm'))
  return [...lines].map(([, bytes]) => Number(bytes))
}
