/**
 * `npm run bench:heap`: does the gateway keep memory? Sends mixed calls in ten stages to the built
 * gateway: unpaid, free, documents, pages, tokens, paid, and over MCP. After each stage it collects garbage and prints
 * the heap and the resident set. Fails if the heap of the last stage is more than 5 % above that of the third: by then
 * every cache is full.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { readFlags, readNumber } from '../command-line.ts'
import { type Case, openCases } from './calls/cases.ts'
import { sendLoad } from './calls/load.ts'
import { Servers } from './calls/servers.ts'

const USAGE = `Usage: npm run bench:heap [-- --calls N]

  --calls N  calls in all stages together (default 300000)`
const STAGES = 10
const WARM_STAGE = 2
const MAX_GROWTH = 1.05
const CONNECTIONS = 32
const MIXED = ['402', 'free: /v1/x', 'free: /health', 'document', 'page', 'token: live', 'paid', 'mcp: paid']

/** Sends a number of calls of one case, each once. */
async function sendCalls({ name, server, expected, prepare }: Case, count: number): Promise<void> {
  const next = prepare(count)
  let remaining = count
  const take = (): Buffer | null => (remaining-- > 0 ? next() : null)
  const sent = await sendLoad({ port: server.port, connections: CONNECTIONS, seconds: 3_600, expected, next: take })
  if (sent !== count) throw new Error(`${name}: ${sent} of ${count} calls were answered`)
}

/** Asks the gateway to collect garbage, and returns the megabytes of its heap and of its resident set. */
async function memoryOf(pid: number, log: string): Promise<{ readonly heap: number; readonly resident: number }> {
  const linesBefore = heapLines(log).length
  process.kill(pid, 'SIGUSR2')
  for (let tries = 0; heapLines(log).length === linesBefore; tries++) {
    if (tries > 200) throw new Error('the gateway did not report its heap')
    await sleep(100)
  }
  const [, kilobytes = '0'] = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
  return { heap: Number(heapLines(log).at(-1)) / 1e6, resident: Number(kilobytes) / 1e3 }
}

const heapLines = (log: string): readonly string[] =>
  [...readFileSync(log, 'utf8').matchAll(/^heap \d+ (\d+)$/gm)].map(([, bytes = '']) => bytes)

const { values } = readFlags(USAGE, { options: { calls: { type: 'string', default: '300000' } } })
const calls = readNumber('--calls', values.calls, 1)
const folder = mkdtempSync(join(tmpdir(), 'tollgate-heap-'))
const servers = new Servers(folder)
try {
  const opened = await openCases(servers, folder, MIXED)
  const cases = opened.filter(({ server }) => server.name === 'gateway')
  const [{ server }] = cases as [Case]
  const perCase = Math.ceil(calls / STAGES / cases.length)
  const heaps: number[] = []
  console.log(`${cases.map(({ name }) => name).join(', ')}\n     calls   heap MB  resident MB`)
  for (let stage = 1; stage <= STAGES; stage++) {
    for (const each of cases) await sendCalls(each, perCase)
    const { heap, resident } = await memoryOf(server.pid, join(folder, `gateway-${server.port}.log`))
    heaps.push(heap)
    const columns = [String(stage * perCase * cases.length).padStart(10), heap.toFixed(1).padStart(9)]
    console.log([...columns, resident.toFixed(0).padStart(12)].join(' '))
  }
  const growth = (heaps.at(-1) ?? 0) / (heaps[WARM_STAGE] ?? 1)
  console.log(`heap of the last stage: ${growth.toFixed(3)} of the third`)
  if (growth > MAX_GROWTH) process.exitCode = 1
} finally {
  await servers.stop()
  rmSync(folder, { recursive: true, force: true })
}
