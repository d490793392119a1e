/**
 * A filter that removes bad prints from a stream of bars. It holds back a bar whose return exceeds 8 local scales until
 * the next bar confirms it, so a spike that reverts never counts. It cuts wicks beyond the limit down to the limit.
 *
 * The local scale is the exponentially weighted mean absolute return, converted to a standard deviation. Suspicious
 * returns enter it winsorised at the limit. The state is plain data, so callers can store and restore it.
 */
export interface PrintFilter {
  /** Last accepted close; NaN before the first bar. */
  close: number
  /** Local scale of one bar's return. */
  scale: number
  /** Bars seen so far, at most the length of the memory. */
  seen: number
  /** Number of bars held back in a row, and the return of the latest of them against `close`. */
  held: number
  change: number
}

/**
 * `held`: the bar is suspicious and waits for the next one. `confirmed` and `reverted` judge the bars held before this
 * bar; this bar itself is good.
 */
export type Verdict = 'good' | 'held' | 'confirmed' | 'reverted'

export interface FilteredBar {
  open: number
  high: number
  low: number
  close: number
  verdict: Verdict
}

/** A return beyond this many local scales is suspicious. */
const LIMIT = 8
/** The least local scale of one bar's return. */
const FLOOR = 0.0003
/** Length of the memory of the local scale, in bars. */
const MEMORY = 90
/** The first bars, which only set the scale. */
const WARMING = 30
/** A bar is accepted after this many held ones in a row, whatever its return. */
const LONGEST_HOLD = 3
/** A spike has reverted when less than this share of it remains. */
const REVERTED = 0.4
/** Standard deviation over mean absolute value of a normal variable. */
const ABSOLUTE_TO_DEVIATION = Math.sqrt(Math.PI / 2)

/** Creates the state of a filter that has seen no bars. */
export function createPrintFilter(): PrintFilter {
  return { close: NaN, scale: FLOOR, seen: 0, held: 0, change: 0 }
}

/**
 * Passes one bar through the filter and writes the filtered bar into `out`. A held bar comes out flat at the last good
 * close. Prices must be positive.
 *
 * Source: the rule of 8 deviations over a local window follows Brownlees and Gallo, "Financial econometric analysis at
 * ultra-high frequency", Computational Statistics & Data Analysis 51 (2006), section 3.
 *
 * @example closes 100, 100.02, 105, 100.01 come out as 100, 100.02, 100.02, 100.01 after 30 bars of warm-up
 */
export function filterPrint(
  filter: PrintFilter,
  out: FilteredBar,
  open: number,
  high: number,
  low: number,
  close: number,
): void {
  const before = Number.isNaN(filter.close) ? open : filter.close
  const change = Math.log(close / before)
  const warm = filter.seen >= WARMING
  const limit = warm ? LIMIT * filter.scale : Infinity
  const suspicious = Math.abs(change) > limit
  const same = Math.sign(change) === Math.sign(filter.change)
  const waited = filter.held > 0

  filter.seen = Math.min(filter.seen + 1, MEMORY)
  const deviation = ABSOLUTE_TO_DEVIATION * Math.min(Math.abs(change), limit)
  filter.scale = Math.max(FLOOR, filter.scale + (deviation - filter.scale) / filter.seen)

  if (suspicious && !(waited && same) && filter.held < LONGEST_HOLD) {
    filter.change = change
    filter.held += 1
    filter.close = before
    out.open = out.high = out.low = out.close = before
    out.verdict = 'held'
    return
  }
  out.verdict = !waited ? 'good' : Math.abs(change) < REVERTED * Math.abs(filter.change) ? 'reverted' : 'confirmed'
  filter.held = 0
  filter.close = close
  // A bar that returns from a misprint still opened at it, so its extremes cannot be trusted.
  const reach = out.verdict === 'reverted' ? limit / LIMIT : limit
  const top = Math.max(before, close) * Math.exp(reach)
  const bottom = Math.min(before, close) * Math.exp(-reach)
  out.open = Math.min(Math.max(open, bottom), top)
  out.high = Math.min(high, top)
  out.low = Math.max(low, bottom)
  out.close = close
}
