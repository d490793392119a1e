import type { RepairedBars } from '../../schemas/types.d.ts'
import { roundWritten } from '../lib/quant/rounding.ts'
import { type Bars, PRICES } from './bar-input.ts'
import { NUMBERS, type NumberField } from './bar-places.ts'
import { formatBarTime } from './bar-times.ts'
import { type CheckedBars, type CheckOptions, checkBars } from './check-bars.ts'
import { FAMILIES, type Finding } from './finding-codes.ts'

type Change = RepairedBars['changes'][number]
type Dropped = RepairedBars['dropped'][number]

/** A repair may uncover another defect of its row, but seldom a third one. */
const MAX_ROUNDS = 3

/**
 * Repairs what the findings of severity error say, and nothing else: values are replaced by the expected ones, rows without a
 * better value and repeated rows are dropped, rows are put in order of time, and prices before a split are divided by its
 * factor. Every change and every dropped row is named by its row and code.
 *
 * @param checked the findings of `bars`
 */
export function repairBars(bars: Bars, checked: CheckedBars, options: CheckOptions): RepairedBars {
  const repair = new Repair(bars)
  let latest = checked
  for (let round = 0; round < MAX_ROUNDS && repair.apply(latest); round += 1) latest = checkBars(repair.bars(), options)
  if (repair.dropImpossible(latest)) latest = checkBars(repair.bars(), options)
  return repair.end(latest, options)
}

/** The bars of a request while they are repaired. Rows are those of the request. */
class Repair {
  readonly #sent: Bars
  readonly #columns: Record<NumberField, Float64Array>
  /** The rows that are left, in order of the request. */
  #rows: Int32Array
  readonly #changes: Change[] = []
  readonly #dropped: Dropped[] = []

  constructor(bars: Bars) {
    this.#sent = bars
    const { open, high, low, close, volume, count } = bars
    const copies = [open, high, low, close, volume ?? new Float64Array(count).fill(NaN)].map((column) => column.slice())
    const [o, h, l, c, v] = copies as [Float64Array, Float64Array, Float64Array, Float64Array, Float64Array]
    this.#columns = { open: o, high: h, low: l, close: c, volume: v }
    this.#rows = Int32Array.from({ length: count }, (_, row) => row)
  }

  /** The bars that are left. */
  bars(): Bars {
    const take = (column: Float64Array): Float64Array => Float64Array.from(this.#rows, (row) => column[row]!)
    const { open, high, low, close, volume } = this.#columns
    const prices = { open: take(open), high: take(high), low: take(low), close: take(close) }
    return {
      count: this.#rows.length,
      time: take(this.#sent.time),
      ...prices,
      volume: this.#sent.volume && take(volume),
    }
  }

  /** Applies the findings on the bars that are left. Returns whether a value or the number of rows changed. */
  apply({ findings, tick }: CheckedBars): boolean {
    const before = this.#changes.length + this.#dropped.length
    const dropped = new Map<number, Finding>()
    for (const finding of findings) {
      if (finding.severity !== 'error') continue
      const row = this.#rows[finding.index]!
      if (!this.#repairRow(row, finding, tick)) dropped.set(row, finding)
    }
    this.#drop(dropped)
    return this.#changes.length + this.#dropped.length > before
  }

  /** Drops the rows that are still impossible. Returns whether there were any. */
  dropImpossible({ findings }: CheckedBars): boolean {
    const impossible = findings.filter(({ code, severity }) => FAMILIES[code] === 'impossible' && severity === 'error')
    this.#drop(new Map(impossible.map((finding) => [this.#rows[finding.index]!, finding])))
    return impossible.length > 0
  }

  #drop(dropped: ReadonlyMap<number, Finding>): void {
    if (dropped.size === 0) return
    this.#rows = this.#rows.filter((row) => !dropped.has(row))
    for (const [index, { code }] of dropped) this.#dropped.push({ index, code })
  }

  /** False if the row has to be dropped. */
  #repairRow(row: number, { code, field, observed, expected }: Finding, tick: number | null): boolean {
    if (code === 'duplicate_timestamp') return false
    if (code === 'decimal_shift') {
      for (const name of PRICES)
        this.#set(row, code, name, this.#columns[name][row]! * (Number(expected) / Number(observed)))
      return true
    }
    if (code === 'high_lt_low') return this.#swap(row)
    const family = FAMILIES[code]
    if ((family !== 'impossible' && family !== 'bad_print') || field === 'bar' || field === 'timestamp') return true
    if (typeof expected !== 'number') return false
    const value = tick === null || field === 'volume' ? expected : Math.round(expected / tick) * tick
    this.#set(row, code, field, value > 0 ? value : expected)
    return true
  }

  /** Exchanges high and low if open and close then lie between them. */
  #swap(row: number): boolean {
    const [high, low] = [this.#columns.high[row]!, this.#columns.low[row]!]
    const isBetween = [this.#columns.open[row]!, this.#columns.close[row]!].every(
      (price) => price >= high && price <= low,
    )
    if (!isBetween) return false
    this.#set(row, 'high_lt_low', 'high', low)
    this.#set(row, 'high_lt_low', 'low', high)
    return true
  }

  #set(index: number, code: Finding['code'], field: NumberField, value: number): void {
    const column = this.#columns[field]
    const to = roundWritten(value)
    if (Object.is(column[index], to)) return
    this.#changes.push({ index, code, field, from: shown(column[index]!), to })
    column[index] = to
  }

  /** Puts the rows in order of time and adjusts them for splits. */
  end(checked: CheckedBars, options: CheckOptions): RepairedBars {
    const { time } = this.#sent
    const splits = checked.splits.map(({ index, split }) => ({ row: this.#rows[index]!, ratio: split.ratio }))
    const sorted = this.#rows.toSorted((a, b) => time[a]! - time[b]! || a - b)
    const isBackwards = sorted.length > 1 && sorted.every((row, place) => row === this.#rows[sorted.length - 1 - place])
    if (!isBackwards) this.#nameMoved(checked)
    this.#rows = sorted
    const adjusted = splits.map(({ row, ratio }) => {
      const earlier = sorted.filter((other) => time[other]! < time[row]!)
      for (const other of earlier)
        for (const field of NUMBERS) {
          const column = this.#columns[field]
          column[other] = roundWritten(
            field === 'volume' ? column[other]! * ratio.factor : column[other]! / ratio.factor,
          )
        }
      const timestamp = formatBarTime(time[row]!)
      return { index: row, timestamp, ratio: ratio.name, factor: roundWritten(ratio.factor), bars: earlier.length }
    })
    const remaining: Record<string, number> = {}
    if (sorted.length > 2)
      for (const { code } of checkBars(this.bars(), options).findings) remaining[code] = (remaining[code] ?? 0) + 1
    return {
      columns: ['timestamp', ...NUMBERS, 'index'],
      rows: Array.from(sorted, (row) => [
        formatBarTime(time[row]!),
        ...NUMBERS.map((field) => shown(this.#columns[field][row]!)),
        row,
      ]),
      changes: this.#changes.toSorted((a, b) => a.index - b.index),
      dropped: this.#dropped.toSorted((a, b) => a.index - b.index),
      splits: adjusted,
      turned_around: isBackwards,
      remaining,
    }
  }

  /** Rows that were out of order, which are now in their places. */
  #nameMoved({ findings }: CheckedBars): void {
    for (const { code, index, observed } of findings)
      if (code === 'out_of_order_timestamp')
        this.#changes.push({ index: this.#rows[index]!, code, field: 'timestamp', from: observed, to: observed })
  }
}

const shown = (value: number): number | null => (Number.isNaN(value) ? null : value)
