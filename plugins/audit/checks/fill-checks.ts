import { isMultiple } from '../../lib/quant/tick-size.ts'
import { nyseClosed } from '../../lib/time/nyse-calendar.ts'
import type { Code, Finding, Findings } from '../findings.ts'
import type { Reference } from '../reference/reference-bars.ts'
import { barAt, dayStart, type ReferenceSeries } from '../reference/bar-series.ts'
import { dayOf, type Fill, type TradeLedger } from '../trade-ledger.ts'
import type { CheckCoverage } from './check-coverage.ts'
import type { BiasDetector } from './bias-flags.ts'

interface FillChecker {
  check(fill: Fill, standard: Reference): void
  /** Writes down what is judged all together. */
  finish(): void
  /** `judged` are those held against bars or, without bars, against the calendar. */
  readonly counts: { checked: number; missed: number; judged: number; impossible: number }
}

/** Prices may be rounded: beyond half a basis point outside the bar a fill is impossible. */
const SLACK = 0.5e-4
const MUCH_VOLUME = 0.1
/** When more fills than this are off the tick it is how the file writes prices, not a mistake of rows. */
const COMMON = 0.1

export function createFillChecker(
  ledger: TradeLedger,
  findings: Findings,
  tally: CheckCoverage,
  witness: BiasDetector,
): FillChecker {
  const { zoned, daily, hasQty, symbols } = ledger
  const counts = { checked: 0, missed: 0, judged: 0, impossible: 0 }
  const grids = new Map<ReferenceSeries, ReturnType<typeof priceStepOf>>()
  const offTick: { readonly fill: Fill; readonly step: number }[] = []
  let onGrid = 0

  function add(fill: Fill, code: Code, severity: Finding['severity'], figures: Record<string, unknown> = {}): void {
    const { row, leg, price } = fill
    const symbol = symbols[fill.symbol]
    findings.add({ row, code, severity, leg, ...(symbol ? { symbol } : {}), price, ...figures })
  }

  function found(
    fill: Fill,
    code: 'outside_range' | 'closed_market' | 'before_listing' | 'after_delisting',
    figures = {},
  ) {
    counts.impossible += 1
    add(fill, code, 'error', figures)
  }

  function missed(why: string): void {
    counts.missed += 1
    for (const check of ['outside_range', 'volume', 'tick', 'listing'] as const) tally.addSkipped(check, why)
  }

  /** Sessions by the calendar alone, where there are no bars. */
  function bySession(fill: Fill, { isNyse, why }: Reference): void {
    missed(why)
    if (!isNyse) return tally.addSkipped('session', why)
    const day = dayOf(dayStart(fill.time, zoned && !daily))
    const reason = nyseClosed(day)
    tally.addChecked('session')
    counts.judged += 1
    if (reason !== null) found(fill, 'closed_market', { day, reason })
  }

  function byBar(fill: Fill, series: ReferenceSeries, bar: number): void {
    const [low, high, volume] = [series.low[bar]!, series.high[bar]!, series.volume[bar]!]
    tally.addChecked('outside_range')
    const excess = Math.max(fill.price / high - 1, 1 - fill.price / low)
    if (excess > SLACK) return found(fill, 'outside_range', { low, high, excess_bps: excess * 1e4 })
    witness.observe(fill, series, bar)
    if (!hasQty || Number.isNaN(fill.qty)) tally.addSkipped('volume', 'the file has no quantity')
    else if (!(volume > 0)) tally.addSkipped('volume', 'the bars have no volume')
    else {
      tally.addChecked('volume')
      if (fill.qty > MUCH_VOLUME * volume) {
        const severity = fill.qty > volume ? 'error' : 'warning'
        if (severity === 'error') counts.impossible += 1
        add(fill, 'exceeds_volume', severity, { qty: fill.qty, volume })
      }
    }
    const grid = grids.get(series) ?? priceStepOf(series)
    grids.set(series, grid)
    const step = grid(fill.price, fill.time)
    if (step === null) return tally.addSkipped('tick', 'the bars are on no grid')
    tally.addChecked('tick')
    // A price of the bar itself is a price of the market.
    const prints = [series.open[bar], high, low, series.close[bar]]
    if (isMultiple(fill.price, step) || prints.includes(fill.price)) onGrid += 1
    else offTick.push({ fill, step })
  }

  return {
    counts,
    check(fill, standard) {
      const { series } = standard
      if (!series) return bySession(fill, standard)
      const bar = barAt(series, fill.time, zoned, daily)
      if (bar === 'unknown' || (typeof bar === 'number' && series.idle?.[bar] === 1)) return bySession(fill, standard)
      tally.addChecked('session')
      counts.judged += 1
      counts.checked += 1
      if (series.isWhole) tally.addChecked('listing')
      else tally.addSkipped('listing', 'our own bars do not say when a symbol was listed')
      if (typeof bar === 'number') return byBar(fill, series, bar)
      found(fill, bar, { day: dayOf(fill.time), ...(bar === 'closed_market' ? {} : extentOf(series)) })
    },
    finish() {
      if (offTick.length > COMMON * (offTick.length + onGrid)) return
      for (const { fill, step } of offTick) add(fill, 'off_tick', 'warning', { tick: step })
    },
  }
}

function extentOf({ time }: ReferenceSeries) {
  return { first: dayOf(time[0]!), last: dayOf(time.at(-1)!) }
}

const CENT = 0.01
/** US exchanges quoted in fractions before. */
const DECIMAL_SINCE = Date.UTC(2001, 3, 9)
const MAX_SAMPLED = 5000

/**
 * The step that prices of a symbol come in: a cent for a US equity at or above 1 USD, unless most of its bars are off
 * the cent as adjusted prices are; else the greatest power of ten that 99.5% of the bars' prices are multiples of. Null
 * where there is none.
 */
function priceStepOf(series: ReferenceSeries): (price: number, time: number) => number | null {
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
