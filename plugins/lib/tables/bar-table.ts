/** Reads CSV files of bars, with or without a header, as every vendor writes them. */
import { InvalidInput } from 'tollgate/plugin'
import { separateRepeatedHour, utcOf } from '../time/wall-clock.ts'
import { createZone, type Zone } from '../time/time-zones.ts'
import {
  type BarField,
  type BarPlan,
  isBarRow,
  planBars,
  type ReadColumn,
  timeText,
  zoneNameIn,
} from './bar-columns.ts'
import type { PriceBar } from '../quant/agreeing-bars.ts'
import { type CellFormat, type CellPlace, cellError, isMissing, readNumber } from './cell-values.ts'
import { assertDistinctNames } from './column-names.ts'
import { readCsv, type TableHandler, type TableLimits } from './csv-table.ts'
import { createTimeReader, type TimeReader } from './time-cells.ts'

/** One row of a table of bars. A missing number is NaN, and so is the volume without a column. */
export interface BarRow extends PriceBar {
  /** 0-based data row. */
  readonly row: number
  /** Epoch milliseconds. If the file names no zone, they are the written clock as if it were UTC. */
  readonly time: number
  /** As written; empty if the file has no symbols. */
  readonly symbol: string
  /** Without a column, 1. */
  readonly split: number
}

/** How a file of bars was read. */
export interface BarTable {
  readonly rows: number
  /** One entry for each column of the file, in its order. */
  readonly columns: readonly ReadColumn[]
  readonly hasHeader: boolean
  /** Rows after the header that belong to it. */
  readonly headerRows: number
  readonly has: (field: BarField) => boolean
  /** Whether the times name their zone, or their column says that they are UTC. */
  readonly zoned: boolean
  /** The zone that every time names, such as "US/Eastern", in which they are still to be read; null if they name none. */
  readonly zoneName: string | null
  /** Whether every time is a bare date or midnight. */
  readonly daily: boolean
  /** The order that was assumed for dates such as 1/2/2024; null if nothing was assumed. */
  readonly assumedOrder: 'day' | 'month' | null
}

/** Rows that decide what the columns are. */
const SAMPLE = 1000

/**
 * Reads bars from a CSV file and hands them on, one by one. Throws InvalidInput for columns that cannot be told, unreadable times
 * and cells that no table of prices has, and ServiceError body_too_large beyond `maxRows`.
 */
export async function readBarTable(
  bytes: Buffer,
  limits: TableLimits,
  onBar: (bar: BarRow) => void,
): Promise<BarTable> {
  const reader = new BarTableReader(limits.file, onBar)
  const rows = await readCsv(withoutPreamble(bytes), limits, reader)
  return reader.end(rows)
}

/** Some vendors write their address above the header: a line without a second cell. */
function withoutPreamble(bytes: Buffer): Buffer {
  const end = bytes.indexOf(10)
  const line = bytes.subarray(0, end).toString('utf8')
  return end > 0 && /\p{L}/u.test(line) && !/[,;\t\0]/.test(line) ? bytes.subarray(end + 1) : bytes
}

class BarTableReader implements TableHandler {
  readonly #file: TableLimits['file']
  readonly #onBar: (bar: BarRow) => void
  #names: readonly string[] | null = null
  #format: CellFormat = { decimal: 'point', dayFirst: null }
  #times: TimeReader = createTimeReader(null)
  #plan: BarPlan | null = null
  /** The first rows, until the plan is made. */
  #first: (readonly string[])[] = []
  /** Rows before those that the parser counts: the first one, if there is no header. */
  #before = 0
  /** The zone that all times name; undefined before the first. */
  #zoneName: string | null | undefined

  constructor(file: TableLimits['file'], onBar: (bar: BarRow) => void) {
    this.#file = file
    this.#onBar = onBar
  }

  header(cells: readonly string[], format: CellFormat): void {
    this.#format = format
    this.#times = createTimeReader(format.dayFirst)
    if (isBarRow(cells)) {
      this.#first.push(cells)
      this.#before = 1
      return
    }
    assertDistinctNames(cells, this.#file === 'bars' ? 'bars' : 'file')
    this.#names = cells
  }

  row(cells: readonly string[], row: number): void {
    if (this.#plan) return this.#read(this.#plan, cells, row + this.#before)
    this.#first.push(cells)
    if (this.#first.length === SAMPLE) this.#decide()
  }

  end(rows: number): BarTable {
    const plan = this.#plan ?? this.#decide()
    return {
      rows: rows + this.#before - plan.headerRows,
      columns: plan.columns,
      hasHeader: this.#names !== null,
      headerRows: plan.headerRows,
      has: (field) => plan.places[field] !== undefined,
      zoned: plan.isUtc || this.#times.hasZone(),
      zoneName: this.#zoneName ?? null,
      daily: this.#times.isDaily(),
      assumedOrder: this.#times.assumedOrder(),
    }
  }

  #decide(): BarPlan {
    const plan = planBars(this.#names, this.#first, this.#format)
    if ('msg' in plan) {
      const { type, msg } = plan
      throw new InvalidInput([{ loc: ['body', this.#file, 'header'], msg, type }])
    }
    this.#plan = plan
    for (const [row, cells] of this.#first.entries()) if (row >= plan.headerRows) this.#read(plan, cells, row)
    this.#first = []
    return plan
  }

  /** Throws InvalidInput if a time names another zone than the first. */
  #checkZone(text: string, place: CellPlace): void {
    // Names of zones end with a small letter, as hardly any other time does: codes from 97 on.
    const name = text.charCodeAt(text.length - 1) >= 97 ? zoneNameIn(text) : null
    if (this.#zoneName === undefined) this.#zoneName = name
    if (name === this.#zoneName) return
    const [here, others] = [name, this.#zoneName].map((zone) => (zone === null ? 'no zone' : `the zone ${zone}`))
    throw cellError(place, `The time names ${here}, others ${others}.`, 'mixed_time_zones')
  }

  #read({ places, columns }: BarPlan, cells: readonly string[], row: number): void {
    const text = (field: BarField): string => cells[places[field] ?? -1] ?? ''
    const place = (field: BarField): CellPlace => {
      return { file: this.#file, row, column: columns[places[field] ?? -1]?.name ?? field }
    }
    const number = (field: BarField): number => readNumber(text(field), place(field), this.#format.decimal)
    const when = timeText(text('time'), places.clock === undefined ? null : text('clock'))
    const time = isMissing(text('time')) ? null : this.#times.read(when, place('time'))
    if (time === null) {
      const msg = `Row ${row} has no readable time.`
      const loc = ['body', this.#file, row, place('time').column]
      throw new InvalidInput([{ loc, msg, type: 'unparseable_time' }])
    }
    this.#checkZone(text('time'), place('time'))
    this.#onBar({
      row,
      time,
      symbol: text('symbol'),
      open: number('open'),
      high: number('high'),
      low: number('low'),
      close: number('close'),
      volume: places.volume === undefined ? Number.NaN : readVolume(text('volume'), () => number('volume')),
      split: places.split === undefined ? 1 : number('split'),
    })
  }
}

const THOUSANDS: Readonly<Record<string, number>> = { K: 1e3, M: 1e6, B: 1e9 }

/** Investing.com writes volumes as "1.23M". */
function readVolume(text: string, otherwise: () => number): number {
  const [, digits = '', unit = ''] = /^([\d.]+)\s*([KMB])$/i.exec(text) ?? []
  const factor = THOUSANDS[unit.toUpperCase()]
  return factor === undefined ? otherwise() : Number(digits) * factor
}

/**
 * The zone in which the times of a table are still to be read: the one that they name, otherwise `zone` if they name none. Null
 * if they are exact, or days. Throws InvalidInput for a zone that does not exist.
 */
export function zoneToRead(
  { zoned, daily, zoneName }: BarTable,
  file: TableLimits['file'],
  zone: Zone | null,
): Zone | null {
  if (zoneName === null) return zoned || daily ? null : zone
  const named = createZone(zoneName)
  if (named) return named
  throw new InvalidInput([{ loc: ['body', file], msg: `${zoneName} is not a time zone.`, type: 'time_zone' }])
}

/** Reads clocks without a zone in a zone. Changes `times`, epoch milliseconds in the order of the rows, in place. */
export function readInZone(times: Float64Array, zone: Zone): void {
  const seconds = times.map((time) => utcOf(time / 1000, zone))
  separateRepeatedHour(seconds, () => true, zone)
  for (let row = 0; row < times.length; row += 1) times[row] = seconds[row]! * 1000
}
