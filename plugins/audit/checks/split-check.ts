import { type Ask, ServiceError } from 'tollgate/plugin'
import type { Findings } from '../findings.ts'
import { DAY, dayOf, type Trade } from '../trade-ledger.ts'
import type { Reference } from '../reference/reference-bars.ts'
import { joinDays, type ReferenceSeries } from '../reference/bar-series.ts'
import type { CheckCoverage } from './check-coverage.ts'

interface Split {
  /** Open of the first bar after the split, epoch milliseconds. */
  readonly time: number
  /** 7 for a 7:1 split, 0.1 for a reverse split of 1:10. */
  readonly factor: number
}

/** Smaller gaps are not splits. */
const MIN_GAP = Math.log(1.17)
/** Maximum number of bars in one call of the bar-quality product. */
const MAX_BARS = 50_000

interface SplitParts {
  readonly findings: Findings
  readonly coverage: CheckCoverage
  readonly ask: Ask
}

/** Finds trades held across a split at unadjusted prices. Their profit or loss never happened. */
export async function checkSplits(
  trades: readonly Trade[],
  { series, why }: Reference,
  { findings, coverage, ask }: SplitParts,
): Promise<void> {
  const held = trades.filter(({ entryTime, exitTime }) => Math.floor(exitTime / DAY) > Math.floor(entryTime / DAY))
  if (held.length === 0) return
  const splits = series ? await splitsOf(series, ask) : null
  if (!splits)
    return coverage.addSkipped('split', series ? 'the bar-quality product is not available' : why, held.length)
  coverage.addChecked('split', held.length)
  for (const { row, entryTime, exitTime, entryPrice, exitPrice } of held)
    for (const { time, factor } of splits) {
      const isOver = entryTime < time && exitTime >= time
      const isRaw = Math.abs(Math.log(entryPrice / exitPrice / factor)) <= Math.abs(Math.log(factor)) / 2
      if (isOver && isRaw)
        findings.add({ row, code: 'split_not_adjusted', severity: 'error', factor, day: dayOf(time) })
    }
}

/**
 * The splits in a series: those that the bars state, otherwise those that the bar-quality product finds. It is called only
 * if an overnight gap is wide enough. Null if it cannot be called.
 */
async function splitsOf(series: ReferenceSeries, ask: Ask): Promise<readonly Split[] | null> {
  const { time, split } = series
  if (split) return Array.from(split, (factor, i) => ({ time: time[i]!, factor })).filter(({ factor }) => factor !== 1)
  if (!hasGap(series)) return []
  try {
    const { splits } = await ask('checkBarQuality', { body: { bars: barsOf(joinDays(series)) } })
    return splits.map(({ timestamp, factor }) => ({ time: Date.parse(timestamp), factor }))
  } catch (error) {
    if (error instanceof ServiceError) return null
    throw error
  }
}

function hasGap({ open, close }: ReferenceSeries): boolean {
  for (let i = 1; i < open.length; i += 1) if (Math.abs(Math.log(open[i]! / close[i - 1]!)) >= MIN_GAP) return true
  return false
}

/** The last bars in the form that the bar-quality product reads: epoch seconds, prices, volume. */
function barsOf({ time, open, high, low, close, volume }: ReferenceSeries): (number | null)[][] {
  const first = Math.max(0, time.length - MAX_BARS)
  return Array.from({ length: time.length - first }, (_, index) => {
    const i = first + index
    return [time[i]! / 1000, open[i]!, high[i]!, low[i]!, close[i]!, Number.isNaN(volume[i]!) ? null : volume[i]!]
  })
}
