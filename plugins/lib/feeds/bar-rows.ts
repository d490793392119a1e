/**
 * Checks rows of bars from other services before anything is stored. A bad row is set aside with its reason and never
 * stops the others.
 */
import type { PriceBar } from '../quant/agreeing-bars.ts'

/** A row as it was sent: numbers, or numbers as text. Times are epoch seconds. */
export interface SentBar extends Readonly<Record<keyof BarRow, unknown>> {
  /** The whole row, for the record of rows that were set aside. */
  readonly row: unknown
}

export interface BarRow extends PriceBar {
  /** Open, epoch seconds. */
  readonly time: number
}

const ROW_FAULTS = [
  'not_a_number',
  'not_positive',
  'negative_volume',
  'high_below_low',
  'outside_high_low',
  'off_the_minute',
  'in_the_future',
  'contradicts_itself',
] as const

/** Why a row was set aside. */
export type RowFault = (typeof ROW_FAULTS)[number]

export interface RejectedRow {
  /** Open that the row states, epoch seconds; null if it cannot be read. */
  readonly time: number | null
  readonly reason: RowFault
  /** The row as JSON, at most MAX_ROW_TEXT characters. */
  readonly row: string
}

export interface CheckedBars {
  /** Good rows in order of time, one for each bar. */
  readonly rows: readonly BarRow[]
  readonly rejected: readonly RejectedRow[]
}

export interface BarRules {
  /** Rows that open outside [from, to), epoch seconds, are dropped: nobody asked for them. */
  readonly from: number
  readonly to: number
  readonly intervalSeconds: number
  /** The clock of the service when it answered, epoch seconds. A bar that closes later is still forming and is dropped. */
  readonly servedAt: number
}

/** The longest text that is kept of a row. */
const MAX_ROW_TEXT = 300

/**
 * Sorts rows into good and bad ones. A good row has finite, positive prices with low ≤ open, close ≤ high, a volume of
 * zero or more, and a time on the grid of its interval that is not in the future. Rows of one time with different prices
 * contradict each other, and none of them counts.
 *
 * @example checkBars([{ time: 60, open: '1', high: '2', low: '1', close: null, … }], rules).rejected[0].reason // "not_a_number"
 */
export function checkBars(sent: readonly SentBar[], rules: BarRules): CheckedBars {
  const good = new Map<number, BarRow>()
  const rejected: RejectedRow[] = []
  const contradicted = new Set<number>()
  for (const one of sent) {
    const bar = barOf(one)
    const { time } = bar
    if (time < rules.from || time >= rules.to) continue
    const reason = faultOf(bar, rules)
    if (reason) rejected.push(rejectedRow(time, reason, one.row))
    else if (time + rules.intervalSeconds <= rules.servedAt) {
      const other = good.get(time)
      if (other && !isSame(other, bar)) {
        contradicted.add(time)
        rejected.push(rejectedRow(time, 'contradicts_itself', one.row))
      } else good.set(time, bar)
    }
  }
  for (const time of contradicted) {
    rejected.push(rejectedRow(time, 'contradicts_itself', good.get(time)))
    good.delete(time)
  }
  return { rows: [...good.values()].toSorted((a, b) => a.time - b.time), rejected }
}

function barOf({ time, open, high, low, close, volume }: SentBar): BarRow {
  return {
    time: numberOf(time),
    open: numberOf(open),
    high: numberOf(high),
    low: numberOf(low),
    close: numberOf(close),
    volume: numberOf(volume),
  }
}

/** A number, or a number as text; NaN for everything else. `Number` alone would read null and '' as zero. */
export function numberOf(value: unknown): number {
  if (typeof value === 'number') return value
  return typeof value === 'string' && value.trim() !== '' ? Number(value) : NaN
}

/** What is wrong with a row wherever it comes from; null if nothing is. */
export function rowFault({ time, open, high, low, close, volume }: BarRow): RowFault | null {
  if (![time, open, high, low, close, volume].every(Number.isFinite)) return 'not_a_number'
  if (Math.min(open, high, low, close) <= 0) return 'not_positive'
  if (volume < 0) return 'negative_volume'
  if (high < low) return 'high_below_low'
  return Math.min(open, close) < low || Math.max(open, close) > high ? 'outside_high_low' : null
}

function faultOf(bar: BarRow, { intervalSeconds, servedAt }: BarRules): RowFault | null {
  const { time } = bar
  const fault = rowFault(bar)
  if (fault) return fault
  if (time % intervalSeconds !== 0) return 'off_the_minute'
  return time > servedAt ? 'in_the_future' : null
}

function isSame(a: BarRow, b: BarRow): boolean {
  return a.open === b.open && a.high === b.high && a.low === b.low && a.close === b.close
}

function rejectedRow(time: number, reason: RowFault, row: unknown): RejectedRow {
  const text = JSON.stringify(row) ?? 'undefined'
  return { time: Number.isSafeInteger(time) ? time : null, reason, row: text.slice(0, MAX_ROW_TEXT) }
}
