/** The page on using the products together, with examples that the service computes as of a day ago. */
import type { Call, Catalog } from 'tollgate/plugin'
import type { AuditReport, BarQualityReport, CostEstimate, Preflight, Snapshot } from '../../schemas/types.d.ts'
import { askIfAvailable, routeParts } from './page-data.ts'
import type { Read } from './cached-read.ts'
import type { MarketHistory } from './regime-history.ts'
import { sizing } from './position-sizing.ts'

const POSITION_USD = 100_000
/** Used if no cost estimate is available. */
const FALLBACK_COST_BPS = 10

/** Creates a function that reads the examples. Each is null if its product is not in the catalog or fails. */
export function createExamples(readHistory: Read<MarketHistory>): Read<Awaited<ReturnType<typeof examples>>> {
  return (call) => examples(call, readHistory)
}

async function examples(call: Call, readHistory: Read<MarketHistory>) {
  const [history, snapshot, cost, quality, report, preflight] = await Promise.all([
    readHistory(call),
    askIfAvailable<Snapshot>(call, 'getRegimeSample'),
    askIfAvailable<CostEstimate>(call, 'estimateExecutionCost', exampleOf(call.catalog, 'estimateExecutionCost')),
    askIfAvailable<BarQualityReport>(call, 'checkBarQuality', exampleOf(call.catalog, 'checkBarQuality')),
    askIfAvailable<AuditReport>(call, 'getAuditReport', { query: { rid: 'sample' } }),
    askIfAvailable<Preflight>(call, 'getPreflightDemo'),
  ])
  const position = snapshot && {
    ...snapshot,
    tone: snapshot.regime.toLowerCase(),
    usual: POSITION_USD,
    sized: Math.round(POSITION_USD * snapshot.position_scalar),
  }
  return {
    position,
    sizing: history && sizing(history, cost?.total_bps ?? FALLBACK_COST_BPS),
    cost: cost && { ...cost, steps: stepsOf(cost) },
    quality,
    report: report && { ...report, verdict: report.verdict.replaceAll('_', ' ') },
    preflight,
  }
}

/** Returns the example request in the catalog document of an operation. */
function exampleOf(catalog: Catalog, operation: string) {
  return { body: catalog.operations.get(operation)?.example?.request.body }
}

function stepsOf({ components, market_bps: market, total_bps: total }: CostEstimate) {
  return [
    { label: 'Half the spread', amount: components.half_spread_bps },
    { label: 'Market impact', amount: components.impact_bps },
    { label: 'Cost of the market', amount: market, total: true },
    { label: 'Fees', amount: components.fee_bps },
    { label: 'Expected cost', amount: total, total: true },
  ]
}

/** Returns the examples and the monthly budget. */
export async function strategies(call: Call, readExamples: Read<Awaited<ReturnType<typeof examples>>>) {
  return { ...(await readExamples(call)), budget: budget(call.catalog) }
}

/** The calls in 30 days of an agent that checks the regime every 15 minutes and trades 20 times a day. */
const HABITS = [
  { operation: 'getRegimeCurrent', often: 'every 15 minutes', calls: 2880n },
  { operation: 'estimateExecutionCost', often: 'before each of 20 trades a day', calls: 600n },
  { operation: 'preflightTrade', often: 'before each of 20 trades a day', calls: 600n },
  { operation: 'checkBarQuality', often: 'once a day, on its bars', calls: 30n },
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
