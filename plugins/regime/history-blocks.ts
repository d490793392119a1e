/** Snapshots of the history as the JSON that is sold, in blocks, and pages that are put together from them. */
import { lowerBound } from '../lib/quant/sorted-window.ts'
import { formatSeconds } from '../lib/time/timestamps.ts'
import type { RegimeHistoryItem } from '../../schemas/types.d.ts'
import { BACKFILL, ORIGINS, type Snapshot, type SnapshotRange } from './snapshots.ts'

/** Columns of a snapshot that the history needs. */
export const SOLD_COLUMNS = ['as_of', 'volatile', 'confidence', 'position_scalar', 'known_at', 'origin'] as const
export type SoldSnapshot = Pick<Snapshot, (typeof SOLD_COLUMNS)[number]>

/** Seconds per block. A page reads whole blocks, and they are short so that a short page stays cheap. */
export const BLOCK_SECONDS = 3600

/** The rows of one stretch of time, oldest first. */
export interface Block {
  readonly times: Float64Array
  /** When each row became known. */
  readonly knownAt: Float64Array
  readonly lastKnownAt: number
  /** The rows as JSON, separated by commas, and where each of them ends. */
  readonly text: Buffer
  readonly ends: Uint32Array
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

/** A snapshot as the history shows it. One whose origin was not recorded counts as back-filled. */
export function historyItem(snapshot: SoldSnapshot, { symbol, hasOrigin }: HistoryLabel): RegimeHistoryItem {
  return {
    as_of: formatSeconds(snapshot.as_of),
    symbol,
    regime: snapshot.volatile === 1 ? 'VOLATILE' : 'STABLE',
    confidence: snapshot.confidence,
    position_scalar: snapshot.position_scalar,
    ...(hasOrigin ? { origin: ORIGINS[snapshot.origin ?? BACKFILL] } : {}),
  }
}

/** Writes the rows of a block, which come in order of their times. */
export function blockOf(rows: readonly SoldSnapshot[], label: HistoryLabel): Block {
  const texts = rows.map((row) => JSON.stringify(historyItem(row, label)))
  const ends = new Uint32Array(rows.length)
  let end = -1
  for (const [i, text] of texts.entries()) {
    end += 1 + Buffer.byteLength(text)
    ends[i] = end
  }
  const knownAt = Float64Array.from(rows, ({ known_at }) => known_at)
  return {
    times: Float64Array.from(rows, ({ as_of }) => as_of),
    knownAt,
    lastKnownAt: Math.max(-Infinity, ...knownAt),
    text: Buffer.from(texts.join(',')),
    ends,
  }
}

/** A block with further rows, which are later than those it has. */
export function extendBlock(block: Block, rows: readonly SoldSnapshot[], label: HistoryLabel): Block {
  if (block.ends.length === 0) return blockOf(rows, label)
  const more = blockOf(rows, label)
  const start = block.text.length + 1
  return {
    times: Float64Array.of(...block.times, ...more.times),
    knownAt: Float64Array.of(...block.knownAt, ...more.knownAt),
    lastKnownAt: Math.max(block.lastKnownAt, more.lastKnownAt),
    text: Buffer.concat([block.text, COMMA, more.text]),
    ends: Uint32Array.of(...block.ends, ...more.ends.map((end) => start + end)),
  }
}

/** Memory that a block takes, in bytes. */
export function sizeOf({ text, ends }: Block): number {
  return text.length + ends.length * BYTES_PER_ROW + BYTES_PER_BLOCK
}

const COMMA = Buffer.from(',')
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

  add({ times, knownAt, lastKnownAt, text, ends }: Block): void {
    const { from, to, asOf } = this.#range
    const first = lowerBound(times, times.length, from)
    const end = lowerBound(times, times.length, Math.min(to, asOf + 1))
    const startOf = (row: number): number => (row === 0 ? 0 : ends[row - 1]! + 1)
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
      this.#pieces.push(COMMA, text.subarray(startOf(row), ends[row + taken - 1]))
      this.#count += taken
      row += taken
    }
  }

  rows(): HistoryRows {
    return { text: this.#pieces.slice(1), count: this.#count, next: this.#next }
  }
}
