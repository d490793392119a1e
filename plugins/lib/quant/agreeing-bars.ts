/** One bar from what several venues report of the same interval. */
import { quantileSorted } from './descriptive-statistics.ts'

export interface PriceBar {
  readonly open: number
  readonly high: number
  readonly low: number
  readonly close: number
  readonly volume: number
}

/** What one venue says of an interval. */
export interface BarReport<Venue> {
  readonly venue: Venue
  /** Null if the venue answered and nothing traded there. */
  readonly bar: PriceBar | null
  /** The venue's last price before the interval; null if it is not known. */
  readonly last: number | null
}

export interface AgreementRules {
  /** Venues agree if their closes, and their opens, differ by no more than this (log ratio). */
  readonly tolerance: number
  /** The close of the interval before; null if it is not known. */
  readonly before: number | null
}

/**
 * `agreed`: at least two venues support the bar. `disagreed`: at least two answered, and no two of them support one bar.
 * `too_few`: fewer than two answered.
 */
export type Agreement<Venue> =
  | {
      readonly outcome: 'agreed'
      readonly bar: PriceBar
      /** True if nothing traded: the bar is flat at the close before. */
      readonly isQuiet: boolean
      readonly venues: readonly Venue[]
      /** Venues that traded at other prices. */
      readonly dissenting: readonly Venue[]
      /** The greatest difference between closes of agreeing venues, basis points. */
      readonly spreadBps: number
    }
  | { readonly outcome: 'disagreed'; readonly dissenting: readonly Venue[] }
  | { readonly outcome: 'too_few' }

/** In a moving market honest venues differ: by no more than this share of what they moved in the interval. */
const SHARE_OF_RANGE = 0.5

/**
 * Makes one bar from the largest group of venues that agree. Two groups of the same size are a disagreement, unless they
 * share a venue: then the one whose prices lie closest together counts, and of equally close ones the one nearest to the
 * median of all venues. Open, close and volume are the medians of the group. High and low are the levels that more than
 * half of the group reached: the median, and of an even number the middle one nearer to the body, so that a wick at one
 * venue alone never counts. The bar is widened to hold its open and close.
 *
 * If one venue traded and others were quiet, one of these must have its last price within the tolerance of the close.
 *
 * @example agreeOnBar([100, 100.1, 105].map(flatBarAt), { tolerance: 0.005, before: 100 }) // agreed at 100.05
 */
export function agreeOnBar<Venue>(reports: readonly BarReport<Venue>[], rules: AgreementRules): Agreement<Venue> {
  if (reports.length < 2) return { outcome: 'too_few' }
  const traded = reports.filter((report): report is Traded<Venue> => report.bar !== null && report.bar.volume > 0)
  if (traded.length === 0) return quietBar(reports, rules)
  if (traded.length === 1) return confirmedBar(traded[0]!, reports, rules)
  const ranges = traded.map(({ bar }) => Math.log(bar.high / bar.low)).toSorted((a, b) => a - b)
  // The range that at least half of the venues had: one wick widens nothing.
  const tolerance = Math.max(rules.tolerance, SHARE_OF_RANGE * ranges[Math.ceil(ranges.length / 2) - 1]!)
  const closes = largestGroup(traded, ({ bar }) => bar.close, tolerance)
  const group = largestGroup(closes, ({ bar }) => bar.open, tolerance)
  if (group.length < 2) return { outcome: 'disagreed', dissenting: traded.map(({ venue }) => venue) }
  return {
    outcome: 'agreed',
    bar: medianBar(group.map(({ bar }) => bar)),
    isQuiet: false,
    venues: group.map(({ venue }) => venue),
    dissenting: traded.filter((one) => !group.includes(one)).map(({ venue }) => venue),
    spreadBps: spreadOf(group.map(({ bar }) => bar.close)),
  }
}

type Traded<Venue> = BarReport<Venue> & { readonly bar: PriceBar }

function quietBar<Venue>(reports: readonly BarReport<Venue>[], { before }: AgreementRules): Agreement<Venue> {
  const last = reports.flatMap((report) => lastOf(report) ?? [])
  const price = before ?? (last.length > 0 ? median(last) : null)
  if (price === null) return { outcome: 'too_few' }
  return {
    outcome: 'agreed',
    bar: { open: price, high: price, low: price, close: price, volume: 0 },
    isQuiet: true,
    venues: reports.map(({ venue }) => venue),
    dissenting: [],
    spreadBps: 0,
  }
}

/** The bar of the only venue that traded, if a quiet one stands near its close. Its wicks are nobody else's. */
function confirmedBar<Venue>(
  { venue, bar }: Traded<Venue>,
  reports: readonly BarReport<Venue>[],
  { tolerance, before }: AgreementRules,
): Agreement<Venue> {
  const near = reports.filter((report) => {
    const last = report.venue === venue ? null : (lastOf(report) ?? before)
    return last !== null && Math.abs(Math.log(bar.close / last)) <= tolerance
  })
  if (near.length === 0) return { outcome: 'disagreed', dissenting: [venue] }
  const [top, bottom] = [Math.max(bar.open, bar.close), Math.min(bar.open, bar.close)]
  return {
    outcome: 'agreed',
    bar: {
      ...bar,
      high: Math.min(bar.high, top * Math.exp(tolerance)),
      low: Math.max(bar.low, bottom * Math.exp(-tolerance)),
    },
    isQuiet: false,
    venues: [venue, ...near.map((report) => report.venue)],
    dissenting: [],
    spreadBps: spreadOf([bar.close, ...near.map((report) => lastOf(report) ?? before!)]),
  }
}

/** The price at which a quiet venue stands. */
function lastOf<Venue>({ bar, last }: BarReport<Venue>): number | null {
  return bar?.close ?? last
}

/**
 * The largest group whose values differ by no more than `tolerance` (log ratio); empty if there are two that have no item
 * in common.
 */
function largestGroup<Item>(items: readonly Item[], valueOf: (item: Item) => number, tolerance: number): Item[] {
  const sorted = items.toSorted((a, b) => valueOf(a) - valueOf(b))
  let groups: Item[][] = []
  for (let from = 0, to = 0; from < sorted.length; from += 1) {
    while (to < sorted.length && Math.log(valueOf(sorted[to]!) / valueOf(sorted[from]!)) <= tolerance) to += 1
    const group = sorted.slice(from, to)
    const largest = groups[0]?.length ?? 0
    if (group.length > largest) groups = [group]
    else if (group.length === largest) groups.push(group)
  }
  // Groups that overlap are one crowd that is spread out; groups that do not contradict each other.
  const [first, ...others] = groups
  if (!first || others.some((group) => !group.some((item) => first.includes(item)))) return []
  // Not simply the first: that would be the one with the lowest prices.
  const center = median(sorted.map(valueOf))
  const width = (group: readonly Item[]): number => valueOf(group.at(-1)!) / valueOf(group[0]!)
  const distance = (group: readonly Item[]): number => Math.abs(Math.log(median(group.map(valueOf)) / center))
  const [best] = groups.toSorted((a, b) => width(a) - width(b) || distance(a) - distance(b))
  return items.filter((item) => best!.includes(item))
}

function medianBar(bars: readonly PriceBar[]): PriceBar {
  const of = (name: keyof PriceBar): number[] => bars.map((bar) => bar[name])
  const [open, close] = [median(of('open')), median(of('close'))]
  const beyondHalf = Math.floor(bars.length / 2)
  const high = of('high').toSorted((a, b) => b - a)[beyondHalf]!
  const low = of('low').toSorted((a, b) => a - b)[beyondHalf]!
  return {
    open,
    high: Math.max(high, open, close),
    low: Math.min(low, open, close),
    close,
    volume: median(of('volume')),
  }
}

function median(values: readonly number[]): number {
  return quantileSorted(
    values.toSorted((a, b) => a - b),
    0.5,
  )
}

function spreadOf(prices: readonly number[]): number {
  return 10_000 * Math.log(Math.max(...prices) / Math.min(...prices))
}
