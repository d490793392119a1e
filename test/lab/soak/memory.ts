/** Asks processes that have loaded heap-on-signal.mjs for their heap. Needs Linux. */
import { closeSync, openSync, readFileSync, readSync, statSync } from 'node:fs'
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
        const { size } = statSync(output)
        process.kill(pid, 'SIGUSR2')
        let heap = heapOf(pid, output, size)
        for (let tries = 0; heap === null; tries++) {
          if (tries > TRIES) return null
          await delay(PAUSE_MS)
          heap = heapOf(pid, output, size)
        }
        const [, kilobytes = '0'] = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
        return { pid, minute, heap: heap / 1e6, resident: Number(kilobytes) / 1e3 }
      } catch {
        return null
      }
    }),
  )
  return points.filter((point) => point !== null)
}

/** The bytes that a process has printed after this position; null if it has not. */
function heapOf(pid: number, output: string, position: number): number | null {
  const [, bytes] = new RegExp(`^heap ${pid} (\\d+)$`, 'm').exec(textAfter(output, position)) ?? []
  return bytes === undefined ? null : Number(bytes)
}

/** All that was printed in a long run would take seconds to read, in which the load would stand still. */
function textAfter(file: string, position: number): string {
  const bytes = Buffer.alloc(statSync(file).size - position)
  const descriptor = openSync(file, 'r')
  readSync(descriptor, bytes, 0, bytes.length, position)
  closeSync(descriptor)
  return bytes.toString()
}
