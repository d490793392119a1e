/** Snapshots of the history as the JSON that is sold, in blocks, and pages that are put together from them. */
import { lowerBound } from '../lib/quant/sorted-window.ts'
import { formatSeconds } from '../lib/time/timestamps.ts'
import type { RegimeHistoryItem } from '../../schemas/types.d.ts'
import { BACKFILL, ORIGINS, type Snapshot, type SnapshotRange } from './snapshots.ts'

/** Columns of a snapshot that the history needs. */
export const SOLD_COLUMNS = [
  'as_of',
  'volatile',
  'confidence',
  'position_scalar',
  'forecast_vol',
  'forecast_vol_mean',
  'boundary_vol',
  'realized_vol_1h',
  'known_at',
  'origin',
  'model',
] as const
export type SoldSnapshot = Pick<Snapshot, (typeof SOLD_COLUMNS)[number]>

const HOUR = 3600
/** Seconds per block. A page reads whole blocks, and they are short so that a short page stays cheap. */
export const BLOCK_SECONDS = HOUR

/** The rows of one stretch of time, oldest first. */
export interface Block {
  readonly times: Float64Array
  /** When each row became known. */
  readonly knownAt: Float64Array
  readonly lastKnownAt: number
  /** The rows as JSON, each after a comma, and where each of them ends. */
  readonly text: Buffer
  readonly ends: Uint32Array
  /** The same text without its first comma. */
  readonly withoutComma: Buffer
}

/** Rows of the history. */
export interface HistoryRows {
  /** JSON of the rows, separated by commas, in pieces. */
  readonly text: readonly Buffer[]
  readonly count: number
  /** Time of the first row that the limit cut off; null if there is none. */
  readonly next: number | null
}

/** What is the same in every row. */
export interface HistoryLabel {
  readonly symbol: string
  /** Whether the rows say how they came about. */
  readonly hasOrigin: boolean
}

/**
 * A snapshot as the history shows it. One whose origin was not recorded counts as back-filled. Those of the first model are
 * shown as they have always been, without what grades them.
 */
export function historyItem(snapshot: SoldSnapshot, { symbol, hasOrigin }: HistoryLabel): RegimeHistoryItem {
  const { model, forecast_vol, forecast_vol_mean, boundary_vol, realized_vol_1h } = snapshot
  return {
    as_of: formatSeconds(snapshot.as_of),
    symbol,
    regime: snapshot.volatile === 1 ? 'VOLATILE' : 'STABLE',
    confidence: snapshot.confidence,
    position_scalar: snapshot.position_scalar,
    ...(model === null
      ? {}
      : { forecast_vol, forecast_vol_mean: forecast_vol_mean ?? forecast_vol, boundary_vol, realized_vol_1h }),
    ...(hasOrigin ? { origin: ORIGINS[snapshot.origin ?? BACKFILL] } : {}),
  }
}

/** Two digits of minutes and seconds. */
const DIGITS = Array.from({ length: 60 }, (_, number) => String(number).padStart(2, '0'))

/**
 * Writes rows as JSON.stringify writes their `historyItem`, in a third of the time: the rows of an hour share most of their
 * text.
 */
export function writeRows(rows: readonly SoldSnapshot[], { symbol, hasOrigin }: HistoryLabel): string[] {
  const named = `Z","symbol":${JSON.stringify(symbol)},"regime":"`
  let hour = NaN
  let start = ''
  return rows.map((row) => {
    const { as_of, volatile, confidence, position_scalar, origin } = row
    const second = as_of % HOUR
    if (as_of - second !== hour) {
      hour = as_of - second
      start = `{"as_of":"${formatSeconds(hour).slice(0, -'00:00Z'.length)}`
    }
    const time = `${start}${DIGITS[Math.floor(second / 60)]}:${DIGITS[second % 60]}`
    const regime = volatile === 1 ? 'VOLATILE' : 'STABLE'
    const end = hasOrigin ? `,"origin":"${ORIGINS[origin ?? BACKFILL]}"}` : '}'
    const sold = `"confidence":${confidence},"position_scalar":${position_scalar}${gradedBy(row)}`
    return `${time}${named}${regime}",${sold}${end}`
  })
}

/** What grades a row. */
function gradedBy({ model, forecast_vol, forecast_vol_mean, boundary_vol, realized_vol_1h }: SoldSnapshot): string {
  if (model === null) return ''
  const forecasts = `,"forecast_vol":${forecast_vol},"forecast_vol_mean":${forecast_vol_mean ?? forecast_vol}`
  return `${forecasts},"boundary_vol":${boundary_vol},"realized_vol_1h":${realized_vol_1h}`
}

/** Writes the rows of a block, which come in order of their times. */
export function blockOf(rows: readonly SoldSnapshot[], label: HistoryLabel): Block {
  const texts = writeRows(rows, label)
  const times = new Float64Array(rows.length)
  const knownAt = new Float64Array(rows.length)
  const ends = new Uint32Array(rows.length)
  let [lastKnownAt, end] = [-Infinity, 0]
  for (const [i, { as_of, known_at }] of rows.entries()) {
    times[i] = as_of
    knownAt[i] = known_at
    lastKnownAt = Math.max(lastKnownAt, known_at)
    end += 1 + Buffer.byteLength(texts[i]!)
    ends[i] = end
  }
  const text = Buffer.from(texts.map((row) => `,${row}`).join(''))
  return { times, knownAt, lastKnownAt, text, ends, withoutComma: text.subarray(1) }
}

/** A block with further rows, which are later than those it has. */
export function extendBlock(block: Block, rows: readonly SoldSnapshot[], label: HistoryLabel): Block {
  if (block.ends.length === 0) return blockOf(rows, label)
  const more = blockOf(rows, label)
  const start = block.text.length
  const text = Buffer.concat([block.text, more.text])
  return {
    times: Float64Array.of(...block.times, ...more.times),
    knownAt: Float64Array.of(...block.knownAt, ...more.knownAt),
    lastKnownAt: Math.max(block.lastKnownAt, more.lastKnownAt),
    text,
    ends: Uint32Array.of(...block.ends, ...more.ends.map((end) => start + end)),
    withoutComma: text.subarray(1),
  }
}

/** Memory that a block takes, in bytes. */
export function sizeOf({ text, ends }: Block): number {
  return text.length + ends.length * BYTES_PER_ROW + BYTES_PER_BLOCK
}

/** Two times and an end. */
const BYTES_PER_ROW = 8 + 8 + 4
/** The object, its arrays and its place among the others, roughly. */
const BYTES_PER_BLOCK = 800

/** Collects the rows of a range from blocks, which are added in order of time. */
export class RowCollector {
  readonly #range: SnapshotRange
  readonly #pieces: Buffer[] = []
  #count = 0
  #next: number | null = null

  constructor(range: SnapshotRange) {
    this.#range = range
  }

  /** Rows that are still wanted, with one after the limit. */
  get wanted(): number {
    return this.#next === null ? this.#range.limit + 1 - this.#count : 0
  }

  add({ times, knownAt, lastKnownAt, text, ends, withoutComma }: Block): void {
    const { from, to, asOf } = this.#range
    const first = lowerBound(times, times.length, from)
    const end = lowerBound(times, times.length, Math.min(to, asOf + 1))
    for (let row = first; row < end && this.#next === null;) {
      if (knownAt[row]! > asOf) {
        row += 1
        continue
      }
      if (this.#count === this.#range.limit) {
        this.#next = times[row]!
        return
      }
      // Rows of a hole in the data became known later. All others can be taken at once.
      const taken = lastKnownAt <= asOf ? Math.min(end - row, this.#range.limit - this.#count) : 1
      const isFirst = this.#pieces.length === 0
      const start = (row === 0 ? 0 : ends[row - 1]!) + (isFirst ? 1 : 0)
      // The same buffer each time: the gateway keeps what it has made of it.
      const whole = isFirst ? withoutComma : text
      this.#pieces.push(taken === times.length ? whole : text.subarray(start, ends[row + taken - 1]))
      this.#count += taken
      row += taken
    }
  }

  rows(): HistoryRows {
    return { text: this.#pieces, count: this.#count, next: this.#next }
  }
}
