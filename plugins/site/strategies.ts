/** How the products work together: examples that the service computes itself, as of a day ago. */
import type { Call, Catalog } from 'tollgate/plugin'
import { askIfThere, routeParts } from './asking.ts'
import type { Read } from './kept.ts'
import type { Past } from './past.ts'
import { sizing } from './sizing.ts'

interface Snapshot {
  readonly as_of: string
  readonly symbol: string
  readonly regime: string
  readonly confidence: number
  readonly position_scalar: number
}

interface Cost {
  readonly symbol: string
  readonly side: string
  readonly order_type: string
  readonly notional_usd: number
  readonly as_of: string
  readonly total_bps: number
  readonly cost_usd: number
  readonly components: { readonly half_spread_bps: number; readonly impact_bps: number; readonly fee_bps: number }
  readonly range_bps: { readonly p10: number; readonly p90: number }
}

interface Quality {
  readonly symbol?: string
  readonly bars: number
  readonly grade: string
  readonly usable: boolean
  readonly findings: readonly { readonly code: string; readonly index: number; readonly explanation: string }[]
}

interface Report {
  readonly verdict: string
  readonly summary: string
  readonly report_url: string
}

interface Preflight {
  readonly decision: string
  readonly recommended_notional_usd: number
  readonly request: { readonly symbol: string; readonly side: string; readonly notional_usd: number }
  readonly checks: readonly { readonly check: string; readonly status: string; readonly detail: string }[]
  readonly signature?: { readonly signer?: string }
}

const POSITION_USD = 100_000
/** Charged for a change of size where no estimate can be had. */
const SUPPOSED_COST_BPS = 10

/** The page's examples; each is null where the product behind it is not sold or cannot answer. */
export function createExamples(readPast: Read<Past>): Read<Awaited<ReturnType<typeof examples>>> {
  return (call) => examples(call, readPast)
}

async function examples(call: Call, readPast: Read<Past>) {
  const [past, snapshot, cost, quality, report, preflight] = await Promise.all([
    readPast(call),
    askIfThere<Snapshot>(call, 'getRegimeSample'),
    askIfThere<Cost>(call, 'estimateExecutionCost', exampleOf(call.catalog, 'estimateExecutionCost')),
    askIfThere<Quality>(call, 'checkBarQuality', exampleOf(call.catalog, 'checkBarQuality')),
    askIfThere<Report>(call, 'getAuditReport', { query: { rid: 'sample' } }),
    askIfThere<Preflight>(call, 'getPreflightDemo'),
  ])
  const position = snapshot && {
    ...snapshot,
    tone: snapshot.regime.toLowerCase(),
    usual: POSITION_USD,
    sized: Math.round(POSITION_USD * snapshot.position_scalar),
  }
  return {
    position,
    sizing: past && sizing(past, cost?.total_bps ?? SUPPOSED_COST_BPS),
    cost: cost && { ...cost, steps: stepsOf(cost) },
    quality,
    report: report && { ...report, verdict: report.verdict.replaceAll('_', ' ') },
    preflight,
  }
}

/** The request that a product's document gives as its example. */
function exampleOf(catalog: Catalog, operation: string) {
  return { body: catalog.operations.get(operation)?.example?.request.body }
}

function stepsOf({ components, total_bps: total }: Cost) {
  return [
    { label: 'Half the spread', amount: components.half_spread_bps },
    { label: 'Market impact', amount: components.impact_bps },
    { label: 'Fees', amount: components.fee_bps },
    { label: 'Expected cost', amount: total, total: true },
  ]
}

export async function strategies(call: Call, readExamples: Read<Awaited<ReturnType<typeof examples>>>) {
  return { ...(await readExamples(call)), budget: budget(call.catalog) }
}

/** An agent that looks every quarter of an hour and trades twenty times a day, for a month of 30 days. */
const HABITS = [
  { operation: 'getRegimeCurrent', often: 'every 15 minutes', calls: 2880n },
  { operation: 'estimateExecutionCost', often: 'before each of 20 trades a day', calls: 600n },
  { operation: 'preflightTrade', often: 'before each of 20 trades a day', calls: 600n },
  { operation: 'checkBarQuality', often: 'once a day, on the bars it trades from', calls: 30n },
  { operation: 'auditBacktest', often: 'once a month, on its own trades', calls: 1n },
] as const

function budget({ operations }: Catalog) {
  const rows = HABITS.flatMap(({ operation: id, often, calls }) => {
    const operation = operations.get(id)
    if (!operation || operation.price === null || !operation.listed || operation.retired) return []
    const { price } = operation
    return [{ ...routeParts(operation), href: `/docs/${id}`, often, calls: Number(calls), price, total: price * calls }]
  })
  return { rows, total: rows.reduce((sum, { total }) => sum + total, 0n) }
}
