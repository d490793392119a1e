/** The page on using the products together, with examples that the service computes as of a day ago. */
import type { Call, Catalog } from 'tollgate/plugin'
import type { AuditReport, BarQualityReport, CostEstimate, Method, Preflight, Snapshot } from '../../schemas/types.d.ts'
import { askIfAvailable, routeParts } from './page-data.ts'
import type { Read } from './cached-read.ts'
import { formatTable } from './methodology.ts'

const POSITION_USD = 100_000
/** Positions of days are sized by the day. */
const HORIZON = '1d'

/** Reads the examples. Each is null if its product is not in the catalog or fails. */
export async function examples(call: Call) {
  const [snapshot, method, cost, quality, report, preflight] = await Promise.all([
    askIfAvailable<Snapshot>(call, 'getRegimeSample', { query: { horizon: HORIZON } }),
    askIfAvailable<Method>(call, 'getRegimeMethod'),
    askIfAvailable<CostEstimate>(call, 'estimateExecutionCost', exampleOf(call.catalog, 'estimateExecutionCost')),
    askIfAvailable<BarQualityReport>(call, 'checkBarQuality', exampleOf(call.catalog, 'checkBarQuality')),
    askIfAvailable<AuditReport>(call, 'getAuditReport', { query: { rid: 'sample' } }),
    askIfAvailable<Preflight>(call, 'getPreflightDemo'),
  ])
  const sized = method?.tables?.find(({ id }) => id === 'sizing')
  return {
    position: snapshot && positionOf(snapshot),
    sizing: sized ? formatTable(sized) : null,
    cost: cost && { ...cost, steps: stepsOf(cost) },
    quality,
    report: report && { ...report, verdict: report.verdict.replaceAll('_', ' ') },
    preflight,
  }
}

/** Returns a usual position at the size of a snapshot, and the sizes between which it would be left alone. */
function positionOf({ position_scalar: scalar, no_trade_band: band, ...snapshot }: Snapshot) {
  const sized = (by: number): number => Math.round(POSITION_USD * by)
  return {
    ...snapshot,
    scalar,
    usual: POSITION_USD,
    sized: sized(scalar),
    band: band ? { low: sized(band.low), high: sized(band.high), turns: band.turns_per_year } : null,
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
