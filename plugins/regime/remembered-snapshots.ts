/**
 * Keeps in memory what most calls need of the snapshots, so that they cost no query. A stored snapshot never changes, and
 * the number of stored ones tells whether there are more of them now; it is read at most once a second.
 */
import { LRUCache } from 'lru-cache'
import type { Database } from 'tollgate/plugin'
import { ChangeCheck } from '../lib/change-check.ts'
import { lowerBound } from '../lib/quant/sorted-window.ts'
import {
  type Block,
  BLOCK_SECONDS,
  blockOf,
  extendBlock,
  type HistoryLabel,
  type HistoryRows,
  RowCollector,
  sizeOf,
  SOLD_COLUMNS,
  type SoldSnapshot,
} from './history-blocks.ts'
import {
  HELD,
  type HeldSnapshot,
  type SeriesState,
  type Snapshot,
  SNAPSHOT_COLUMNS,
  type SnapshotRange,
  type Snapshots,
  type Span,
  writesTo,
} from './snapshots.ts'

export interface RememberedOptions {
  readonly db: Database
  readonly stored: Snapshots
  /** What every row of the history says. */
  readonly label: HistoryLabel
  /** How long a process may serve what it remembers before it looks for changes. */
  readonly checkMs?: number
  /** Memory for the history. Default: about three months of minutes. */
  readonly blockBytes?: number
}

/** Moments up to this long before the newest snapshot are answered from memory: more than the delay of the sample. */
const REMEMBERED_SECONDS = 26 * 3600
/** More new snapshots than this are read as if they were the first. */
const MAX_ADDED = 600
const EVER = Number.MAX_SAFE_INTEGER
/** How often a read is repeated because somebody wrote meanwhile. */
const MAX_READS = 3

const HOUR = 3600

/** Pages that are kept for callers who ask for the same one. */
const MAX_PAGES = 16

const MAX_BLOCK_BYTES = 32 * 2 ** 20

/** What was stored when there were `state.count` snapshots. */
interface Memory {
  readonly state: SeriesState
  /** Time of the first snapshot; null if there are none. */
  readonly first: number | null
  /** The newest snapshots, ascending. */
  readonly newest: readonly Snapshot[]
  /** Their times. */
  readonly times: Float64Array
  readonly held: RememberedHeld
}

/** What was sold for held minutes since the first of the newest snapshots. */
interface RememberedHeld {
  /** Minutes from this time on, ascending. */
  readonly from: number
  readonly rows: readonly HeldSnapshot[]
  /** From this time on, no held snapshot of an earlier minute counts. */
  readonly earlierUntil: number
}

/** Rows of the history, and the minutes that were still being computed when they were read. */
export interface HistoryPage extends HistoryRows {
  readonly missing: Span | null
}

/** The snapshots of one series. Its answers equal those of the database, at every moment and for every delay. */
export class RememberedSnapshots {
  readonly #db: Database
  readonly #stored: Snapshots
  readonly #label: HistoryLabel
  readonly #check: ChangeCheck
  #memory: Memory | null = null
  /** Blocks of the history by number, with all the rows that are stored according to `#memory`. */
  readonly #blocks: LRUCache<number, Block>
  /** Pages by their range, with the memory that they were made of. */
  readonly #pages = new LRUCache<string, { readonly memory: Memory; readonly page: HistoryPage }>({ max: MAX_PAGES })
  /** Reads of blocks that are under way. Callers of one page after the other miss the same block at once. */
  readonly #reading = new Map<string, Promise<readonly Block[] | null>>()
  #writes = -1

  constructor({ db, stored, label, checkMs, blockBytes = MAX_BLOCK_BYTES }: RememberedOptions) {
    this.#blocks = new LRUCache({ maxSize: blockBytes, sizeCalculation: sizeOf })
    this.#db = db
    this.#stored = stored
    this.#label = label
    this.#check = new ChangeCheck(() => this.#refresh(), checkMs)
  }

  /** The newest snapshot known at `asOf`. */
  async latest(asOf: number): Promise<Snapshot | HeldSnapshot | null> {
    await this.#refreshIfDue()
    const known = this.#latestInMemory(asOf)
    if (known !== undefined) return known
    const found = await this.#stored.latest(asOf)
    const held = await this.#stored.held({ from: (found?.as_of ?? -1) + 1, to: asOf + 1 })
    return newestHeld(held, asOf) ?? found
  }

  /** What `latest` resolves with, at once; undefined if it has to be read. */
  recallLatest(asOf: number): Snapshot | HeldSnapshot | null | undefined {
    return this.#isCurrent() ? this.#latestInMemory(asOf) : undefined
  }

  #latestInMemory(asOf: number): Snapshot | HeldSnapshot | null | undefined {
    if (!this.#memory) return undefined
    const { newest, times, held } = this.#memory
    if (newest.length === 0) return null
    for (let i = lowerBound(times, times.length, asOf + 1) - 1; i >= 0; i -= 1) {
      const snapshot = newest[i]!
      if (snapshot.known_at <= asOf) return newestHeld(held.rows, asOf, snapshot.as_of) ?? snapshot
    }
    return undefined
  }

  /**
   * The share of the minutes that have a bar, 0 to 1, in the hour up to a snapshot, as known at `asOf`. Held minutes have
   * none, and minutes before the first snapshot do not count. A promise if the hour is not in memory.
   *
   * @param interval seconds from one bar to the next
   */
  barCoverage(last: Snapshot, asOf: number, interval: number): number | Promise<number> {
    const from = last.as_of - HOUR + 1
    const { newest, times, first } = this.#memory ?? NOTHING
    if (first === null || !(times[0]! <= Math.max(first, from))) return this.#storedCoverage(last, asOf, interval)
    const hour = newest.slice(lowerBound(times, times.length, from), lowerBound(times, times.length, last.as_of + 1))
    return coverageOf(hour, asOf, barsDue(first, last, interval))
  }

  async #storedCoverage(last: Snapshot, asOf: number, interval: number): Promise<number> {
    const { first } = await this.#stored.extent()
    const hour = { from: last.as_of - HOUR + 1, to: last.as_of + 1, asOf, limit: HOUR }
    const rows = await this.#stored.between(['origin', 'known_at'], hour)
    return coverageOf(rows, asOf, barsDue(first ?? last.as_of, last, interval))
  }

  /** The rows of the history in a range, oldest first: the same object for the same range until more is known. */
  async page(range: SnapshotRange): Promise<HistoryPage> {
    await this.#refreshIfDue()
    const memory = this.#memory
    if (!memory || mayHold(memory.held, range)) return this.#storedPage(range)
    const key = `${range.from} ${range.to} ${range.asOf} ${range.limit}`
    const known = this.#pages.get(key)
    if (known?.memory === memory) return known.page
    const page = await this.#pageOf(memory, range)
    if (!page) return this.#storedPage(range)
    this.#pages.set(key, { memory, page })
    return page
  }

  /** Looks for changes before the next answer. */
  expire(): void {
    this.#check.expire()
  }

  async #storedPage(range: SnapshotRange): Promise<HistoryPage> {
    // Read first: what is missing now may be stored while the page is read, but not the other way round.
    const { missing, heldChanges } = await this.#stored.state()
    const found = await this.#stored.between(SOLD_COLUMNS, { ...range, limit: range.limit + 1 })
    const held = heldChanges === 0 ? [] : await this.#stored.held(range)
    const collector = new RowCollector(range)
    collector.add(blockOf(withHeld(found, held, range), this.#label))
    return { ...collector.rows(), missing }
  }

  /** A page from blocks; null if somebody wrote meanwhile, or if the rows lie further apart than the newest. */
  async #pageOf(memory: Memory, range: SnapshotRange): Promise<HistoryPage | null> {
    const { state, first, times } = memory
    const last = times.at(-1)
    const from = Math.max(range.from, first ?? Infinity)
    const until = Math.min(range.to, range.asOf + 1, (last ?? -Infinity) + 1)
    const collector = new RowCollector(range)
    if (from >= until) return { ...collector.rows(), missing: state.missing }
    const end = blockAt(until - 1) + 1
    const spacing = times.length > 1 ? last! - times.at(-2)! : BLOCK_SECONDS
    let number = blockAt(from)
    /** The end of the blocks that have the wanted rows, if they follow each other like the newest. */
    const reach = (): number => {
      const next = Math.max(from, number * BLOCK_SECONDS)
      return Math.min(end, blockAt(next + collector.wanted * spacing) + 1)
    }
    for (const to = reach(); number < to && collector.wanted > 0; number += 1) {
      const block = this.#blocks.get(number)
      if (!block) {
        const blocks = await this.#blocksOf(number, reach(), state.count)
        if (!blocks) return null
        for (const read of blocks) collector.add(read)
        number += blocks.length
        break
      }
      collector.add(block)
    }
    return number < end && collector.wanted > 0 ? null : { ...collector.rows(), missing: state.missing }
  }

  /** Blocks [from, to): one read for all who ask meanwhile. Null if somebody wrote since there were `count` snapshots. */
  #blocksOf(from: number, to: number, count: number): Promise<readonly Block[] | null> {
    const key = `${from} ${to} ${count}`
    let read = this.#reading.get(key)
    if (!read) {
      read = this.#readBlocks(from, to, count).finally(() => this.#reading.delete(key))
      this.#reading.set(key, read)
    }
    return read
  }

  /** Reads blocks [from, to) and remembers them; null if somebody wrote since there were `count` snapshots. */
  async #readBlocks(from: number, to: number, count: number): Promise<readonly Block[] | null> {
    const range = { from: from * BLOCK_SECONDS, to: to * BLOCK_SECONDS, asOf: EVER, limit: EVER }
    const rows = rowsByBlock(await this.#stored.between(SOLD_COLUMNS, range))
    if ((await this.#stored.state()).count !== count) return null
    const blocks: Block[] = []
    for (let number = from; number < to; number += 1) blocks.push(blockOf(rows.get(number) ?? [], this.#label))
    if (this.#memory?.state.count === count)
      for (const [i, block] of blocks.entries()) this.#blocks.set(from + i, block)
    return blocks
  }

  #isCurrent(): boolean {
    const writes = writesTo(this.#db)
    if (writes !== this.#writes) this.#check.expire()
    this.#writes = writes
    return this.#check.isCurrent
  }

  async #refreshIfDue(): Promise<void> {
    if (!this.#isCurrent()) await this.#check.run()
  }

  async #refresh(): Promise<void> {
    for (let reads = 0; reads < MAX_READS; reads += 1) {
      const state = await this.#stored.state()
      if (this.#memory?.state.count === state.count) {
        const { newest, held, state: before } = this.#memory
        const isSame = before.heldChanges === state.heldChanges
        this.#memory = { ...this.#memory, state, held: isSame ? held : await this.#heldSince(newest[0]) }
        return
      }
      const newer = this.#memory && (await this.#newer(this.#memory, state.count))
      const loaded = newer ? null : await this.#load(state)
      // What was read is all that is stored with this number of snapshots only if nobody wrote meanwhile.
      if ((await this.#stored.state()).count !== state.count) continue
      if (newer) await this.#extend(newer, state)
      else this.#replace(loaded)
      return
    }
    this.#replace(null)
  }

  /** The snapshots after the last one in memory; null if others were added before that, or too many. */
  async #newer({ state, times }: Memory, count: number): Promise<readonly Snapshot[] | null> {
    const last = times.at(-1)
    const added = count - state.count
    if (last === undefined || added < 0 || added > MAX_ADDED) return null
    const range = { from: last + 1, to: EVER, asOf: EVER, limit: added + 1 }
    const newer = await this.#stored.between(SNAPSHOT_COLUMNS, range)
    return newer.length === added ? newer : null
  }

  async #extend(newer: readonly Snapshot[], state: SeriesState): Promise<void> {
    const { first, held, state: before } = this.#memory!
    const kept = withTimes([...this.#memory!.newest, ...newer])
    const isSame = before.heldChanges === state.heldChanges
    this.#memory = { state, first, held: isSame ? held : await this.#heldSince(kept.newest[0]), ...kept }
    for (const [number, rows] of rowsByBlock(newer)) {
      const block = this.#blocks.peek(number)
      if (block) this.#blocks.set(number, extendBlock(block, rows, this.#label))
    }
  }

  #replace(memory: Memory | null): void {
    this.#memory = memory
    this.#blocks.clear()
  }

  async #load(state: SeriesState): Promise<Memory> {
    const all = { from: 0, to: EVER, asOf: EVER }
    const [first] = await this.#stored.between(['as_of'], { ...all, limit: 1 })
    const last = await this.#stored.latest(EVER)
    if (!first || !last) return { state, first: null, newest: [], times: new Float64Array(), held: NONE_HELD }
    const from = last.as_of - REMEMBERED_SECONDS
    const newest = await this.#stored.between(SNAPSHOT_COLUMNS, { ...all, from, limit: EVER })
    const held = state.heldChanges === 0 ? NONE_HELD : await this.#heldSince(newest[0])
    return { state, first: first.as_of, held, ...withTimes(newest) }
  }

  /** The held snapshots that the newest snapshots, of which this is the first, may be replaced by. */
  async #heldSince(first: Snapshot | undefined): Promise<RememberedHeld> {
    const from = first?.as_of ?? 0
    const rows = await this.#stored.held({ from, to: EVER })
    return { from, rows, earlierUntil: await this.#stored.heldUntil(from) }
  }
}

/** The snapshots that are kept in memory of these, with their times. */
function withTimes(snapshots: readonly Snapshot[]): Pick<Memory, 'newest' | 'times'> {
  const from = snapshots.at(-1)!.as_of - REMEMBERED_SECONDS
  const newest = snapshots.filter(({ as_of }) => as_of >= from)
  return { newest, times: Float64Array.from(newest, ({ as_of }) => as_of) }
}

/** How many bars the hour up to a snapshot should have, of a series that begins at `first`. */
function barsDue(first: number, { as_of: last }: Snapshot, interval: number): number {
  return Math.min(HOUR, last - first + interval) / interval
}

/** The share of the bars due in an hour that its snapshots rest on. */
function coverageOf(hour: readonly Pick<Snapshot, 'origin' | 'known_at'>[], asOf: number, due: number): number {
  return Math.min(1, hour.filter((row) => row.origin !== HELD && row.known_at <= asOf).length / due)
}

const NONE_HELD: RememberedHeld = { from: 0, rows: [], earlierUntil: -Infinity }
const NOTHING = { newest: [], times: new Float64Array(), first: null } as const

/** True if a held snapshot was the one sold for its minute at `asOf`. */
function isSold({ known_at, superseded_at }: HeldSnapshot, asOf: number): boolean {
  return known_at <= asOf && (superseded_at === null || superseded_at > asOf)
}

/** The newest of these, in ascending order, that was sold at `asOf` for a minute after `after`. */
function newestHeld(held: readonly HeldSnapshot[], asOf: number, after = -Infinity): HeldSnapshot | undefined {
  for (let i = held.length - 1; i >= 0 && held[i]!.as_of > after; i -= 1) if (isSold(held[i]!, asOf)) return held[i]
  return undefined
}

function isWithin(held: HeldSnapshot, { from, to, asOf }: SnapshotRange): boolean {
  return held.as_of >= from && held.as_of < to && isSold(held, asOf)
}

/** True if a held snapshot may have been sold for a minute of the range. */
function mayHold({ from, rows, earlierUntil }: RememberedHeld, range: SnapshotRange): boolean {
  return (range.from < from && range.asOf < earlierUntil) || rows.some((one) => isWithin(one, range))
}

/** Rows of a range with the minutes that were held at its `asOf`, oldest first, at most one more than its limit. */
export function withHeld<Row extends { readonly as_of: number }>(
  rows: readonly Row[],
  held: readonly (HeldSnapshot & Row)[],
  range: SnapshotRange,
): Row[] {
  const times = new Set(rows.map(({ as_of }) => as_of))
  const added: Row[] = held.filter((one) => isWithin(one, range) && !times.has(one.as_of))
  if (added.length === 0) return [...rows]
  return [...rows, ...added].toSorted((a, b) => a.as_of - b.as_of).slice(0, range.limit + 1)
}

const blockAt = (time: number): number => Math.floor(time / BLOCK_SECONDS)

function rowsByBlock<Row extends SoldSnapshot>(rows: readonly Row[]): ReadonlyMap<number, Row[]> {
  const blocks = new Map<number, Row[]>()
  for (const row of rows) {
    const number = blockAt(row.as_of)
    const block = blocks.get(number)
    if (block) block.push(row)
    else blocks.set(number, [row])
  }
  return blocks
}
