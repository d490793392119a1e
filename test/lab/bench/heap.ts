/**
 * `npm run lab -- heap`: does the gateway keep memory? Sends mixed calls in ten stages to the built
 * gateway: unpaid, free, documents, pages, tokens, paid, and over MCP. After each stage it collects garbage and prints
 * the heap and the resident set. Fails if the heap of the last stage is more than 5 % above that of the third: by then
 * every cache is full.
 */
import { number, readOptions, say, sayTable } from '../experiment.ts'
import { readMemory } from '../soak/memory.ts'
import { type Case, openCases } from './calls/cases.ts'
import { sendLoad } from './calls/load.ts'
import { Servers } from './calls/servers.ts'

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

const { calls } = readOptions({ calls: number('N', 'calls in all stages together', 300_000, 1) }).values
const opened = await openCases(new Servers(), MIXED)
const cases = opened.filter(({ server }) => server.name === 'gateway')
const [{ server }] = cases as [Case]
const perCase = Math.ceil(calls / STAGES / cases.length)
const rows: [string, string, string][] = [['calls', 'heap MB', 'resident MB']]
const heaps: number[] = []
for (let stage = 1; stage <= STAGES; stage++) {
  for (const each of cases) await sendCalls(each, perCase)
  const [memory] = await readMemory([server.pid], server.log, stage)
  if (memory === undefined) throw new Error('the gateway did not report its heap')
  heaps.push(memory.heap)
  rows.push([String(stage * perCase * cases.length), memory.heap.toFixed(1), memory.resident.toFixed(0)])
}
say(cases.map(({ name }) => name).join(', '))
sayTable(rows, [])
const growth = (heaps.at(-1) ?? 0) / (heaps[WARM_STAGE] ?? 1)
say(`heap of the last stage: ${growth.toFixed(3)} of the third`)
if (growth > MAX_GROWTH) process.exitCode = 1
