import { type Book, walkBook } from '../../../plugins/lib/quant/book.ts'
import { squareRootImpact } from '../../../plugins/lib/quant/impact.ts'
import { atMost, type Measure } from './measure.ts'
import { readRecorded, recordedNames } from './recorded.ts'

const PART = 'books'
const MODEL_RANGE = { from: 250_000, to: 5_000_000 }

interface Recording {
  readonly meta: {
    readonly notionals_usd: readonly number[]
    readonly traded_usd_per_minute: number
    readonly sigma_1min_bps: number
  }
  readonly snapshots: readonly (Book & {
    readonly expected: { readonly walk_bps: Readonly<Record<'buy' | 'sell', readonly (number | null)[]>> }
  })[]
}

/** The walk against the recorded costs, and the square-root law against the walk. */
export function measureBooks(): Measure[] {
  const recordings = recordedNames('l2', '.json.gz').map((name) => JSON.parse(readRecorded(`l2/${name}`)) as Recording)
  const errors: number[] = []
  const factors: number[] = []
  let mismatches = 0
  for (const { meta, snapshots } of recordings) {
    for (const snapshot of snapshots) {
      for (const [index, notional] of meta.notionals_usd.entries()) {
        const costs = (['buy', 'sell'] as const).map((side) => {
          const [walk, expected] = [walkBook(snapshot, side, notional), snapshot.expected.walk_bps[side][index] ?? null]
          if ((walk === null) !== (expected === null)) mismatches += 1
          if (walk && expected !== null) errors.push(Math.abs(walk.costBps - expected))
          return walk?.costBps ?? NaN
        })
        const cost = (costs[0]! + costs[1]!) / 2
        if (notional < MODEL_RANGE.from || notional > MODEL_RANGE.to || Number.isNaN(cost)) continue
        const order = { quantity: notional, dailyVolume: meta.traded_usd_per_minute }
        const law = squareRootImpact({ ...order, dailyVolatility: meta.sigma_1min_bps })
        factors.push(Math.abs(Math.log(law / cost)))
      }
    }
  }
  const typical = Math.exp(factors.sort((a, b) => a - b)[factors.length >> 1] ?? NaN)
  return [
    // The recorded costs are written to six decimals.
    atMost(PART, `walk of ${errors.length} orders, largest error in bps`, Math.max(...errors), 1e-6, 7),
    atMost(PART, 'books too thin on one side of the comparison only', mismatches, 0, 0),
    atMost(PART, 'square-root law against the walk, 250k to 5M, median factor', typical, 2, 2),
  ]
}
