import { isMultiple } from '../../lib/quant/tick-size.ts'
import { nyseClosed } from '../../lib/time/nyse-calendar.ts'
import type { Code, Finding, Findings } from '../findings.ts'
import type { Reference } from '../reference/reference-bars.ts'
import { barAt, dayStart, type ReferenceSeries } from '../reference/bar-series.ts'
import { dayOf, type Fill, type TradeLedger } from '../trade-ledger.ts'
import type { CheckCoverage } from './check-coverage.ts'
import type { BiasDetector } from './bias-flags.ts'

/** Allows for rounded prices. A fill more than half a basis point outside its bar is impossible. */
const SLACK = 0.5e-4
/**
 * Venues differ by some basis points, dollars and dollar tokens by more, and a median has the extremes of none of them. No fill of
 * any venue is further outside than this.
 */
const MEDIAN_SLACK = 0.01
const LARGE_VOLUME_SHARE = 0.1
/** If more fills are off the tick size, the file writes prices that way and the rows are not wrong. */
const MAX_OFF_TICK_SHARE = 0.1

interface FillCheckParts {
  readonly ledger: TradeLedger
  readonly findings: Findings
  readonly coverage: CheckCoverage
  readonly bias: BiasDetector
}

const OWN_BARS = 'the bars of this service do not show when a symbol was listed'
const LONG_BARS = 'bars of weeks and months do not show when a symbol was listed'
const MEDIAN_BARS = 'the bars of this service are the median of several venues'

type ImpossibleCode = 'outside_range' | 'closed_market' | 'before_listing' | 'after_delisting'

/** Checks fills one at a time against the bar that each falls in, or against the trading calendar if there are no bars. */
export class FillChecker {
  /** `judged` counts fills checked against bars or, without bars, against the calendar. */
  readonly counts = { checked: 0, notChecked: 0, judged: 0, impossible: 0 }
  readonly #parts: FillCheckParts
  readonly #tickSizes = new Map<ReferenceSeries, ReturnType<typeof tickSizeOf>>()
  readonly #offTick: { readonly fill: Fill; readonly step: number }[] = []
  #onTick = 0

  constructor(parts: FillCheckParts) {
    this.#parts = parts
  }

  check(fill: Fill, reference: Reference): void {
    const { ledger, coverage } = this.#parts
    const { series } = reference
    if (!series) return this.#checkCalendar(fill, reference)
    const bar = barAt(series, fill.time, ledger.zoned, ledger.daily)
    const isIdle = typeof bar === 'number' && series.idle?.[bar] === 1
    if (bar === 'unknown' || isIdle) return this.#checkCalendar(fill, reference)
    coverage.addChecked('session')
    this.counts.judged += 1
    this.counts.checked += 1
    if (series.isWhole) coverage.addChecked('listing')
    else coverage.addSkipped('listing', series.hasEveryDay ? OWN_BARS : LONG_BARS)
    if (typeof bar === 'number') return this.#checkBar(fill, series, bar)
    this.#addImpossible(fill, bar, {
      day: dayOf(fill.time),
      ...(bar === 'closed_market' ? {} : extentOf(series)),
    })
  }

  /** Reports the findings that need all fills. Call it after the last fill. */
  finish(): void {
    const offTick = this.#offTick
    if (offTick.length > MAX_OFF_TICK_SHARE * (offTick.length + this.#onTick)) return
    for (const { fill, step } of offTick) this.#add(fill, 'off_tick', 'warning', { tick: step })
  }

  /** Checks only the session, because there is no bar for the fill. */
  #checkCalendar(fill: Fill, { isNyse, why }: Reference): void {
    const { ledger, coverage } = this.#parts
    this.counts.notChecked += 1
    for (const check of ['outside_range', 'volume', 'tick', 'listing'] as const) coverage.addSkipped(check, why)
    if (!isNyse) return coverage.addSkipped('session', why)
    const day = dayOf(dayStart(fill.time, ledger.zoned && !ledger.daily))
    const reason = nyseClosed(day)
    coverage.addChecked('session')
    this.counts.judged += 1
    if (reason !== null) this.#addImpossible(fill, 'closed_market', { day, reason })
  }

  #checkBar(fill: Fill, series: ReferenceSeries, bar: number): void {
    const { coverage, bias } = this.#parts
    const [low, high] = [series.low[bar]!, series.high[bar]!]
    coverage.addChecked('outside_range')
    const excess = Math.max(fill.price / high - 1, 1 - fill.price / low)
    if (excess > (series.isMedian ? MEDIAN_SLACK : SLACK))
      return this.#addImpossible(fill, 'outside_range', { low, high, excess_bps: excess * 1e4 })
    if (series.isMedian) {
      coverage.addSkipped('volume', MEDIAN_BARS)
      coverage.addSkipped('tick', MEDIAN_BARS)
      return
    }
    bias.observe(fill, series, bar)
    this.#checkVolume(fill, series.volume[bar]!)
    this.#checkTick(fill, series, bar)
  }

  #checkVolume(fill: Fill, volume: number): void {
    const { ledger, coverage } = this.#parts
    if (!ledger.hasQty || Number.isNaN(fill.qty)) return coverage.addSkipped('volume', 'the file has no quantity')
    if (!(volume > 0)) return coverage.addSkipped('volume', 'the bars have no volume')
    coverage.addChecked('volume')
    if (fill.qty <= LARGE_VOLUME_SHARE * volume) return
    const severity = fill.qty > volume ? 'error' : 'warning'
    if (severity === 'error') this.counts.impossible += 1
    this.#add(fill, 'exceeds_volume', severity, { qty: fill.qty, volume })
  }

  #checkTick(fill: Fill, series: ReferenceSeries, bar: number): void {
    const { coverage } = this.#parts
    const tickSize = this.#tickSizes.get(series) ?? tickSizeOf(series)
    this.#tickSizes.set(series, tickSize)
    const step = tickSize(fill.price, fill.time)
    if (step === null) return coverage.addSkipped('tick', 'the bars have no tick size')
    coverage.addChecked('tick')
    // The prices of the bar itself are prices of the market.
    const prices = [series.open[bar], series.high[bar], series.low[bar], series.close[bar]]
    if (isMultiple(fill.price, step) || prices.includes(fill.price)) this.#onTick += 1
    else this.#offTick.push({ fill, step })
  }

  #addImpossible(fill: Fill, code: ImpossibleCode, figures: Record<string, unknown>): void {
    this.counts.impossible += 1
    this.#add(fill, code, 'error', figures)
  }

  #add(fill: Fill, code: Code, severity: Finding['severity'], figures: Record<string, unknown>): void {
    const { ledger, findings } = this.#parts
    const { row, leg, price } = fill
    const symbol = ledger.symbols[fill.symbol]
    findings.add({ row, code, severity, leg, ...(symbol ? { symbol } : {}), price, ...figures })
  }
}

function extentOf({ time }: ReferenceSeries) {
  return { first: dayOf(time[0]!), last: dayOf(time.at(-1)!) }
}

const CENT = 0.01
/** US exchanges quoted prices in fractions before this date. */
const DECIMAL_SINCE = Date.UTC(2001, 3, 9)
const MAX_SAMPLED = 5000

/**
 * Returns a function that gives the tick size of a symbol at a price and time; null if unknown. For US equities it is a
 * cent at or above 1 USD, unless most bars are off the cent because their prices are adjusted. For other symbols it is
 * the largest power of ten of which 99.5% of the prices of the bars are multiples.
 */
function tickSizeOf(series: ReferenceSeries): (price: number, time: number) => number | null {
  const prices = sampled(series)
  const share = (step: number): number => prices.filter((price) => isMultiple(price, step)).length / prices.length
  const own = [1, 0.1, CENT, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8].find((step) => share(step) >= 0.995) ?? null
  const isCents = share(CENT) > 0.5
  return (price, time) => {
    if (!series.isNyse) return own
    return isCents && price >= 1 && time >= DECIMAL_SINCE ? CENT : null
  }
}

function sampled({ open, high, low, close }: ReferenceSeries): number[] {
  const stride = Math.max(1, Math.floor(close.length / MAX_SAMPLED))
  const prices: number[] = []
  for (let i = 0; i < close.length; i += stride) prices.push(open[i]!, high[i]!, low[i]!, close[i]!)
  return prices
}
