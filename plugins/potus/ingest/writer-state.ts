/** What the writer remembers between polls: recent records to compare with, and the ends of the hash chains. */
import type { Database } from 'tollgate/plugin'
import type { Item } from '../sources/source.ts'
import { type Candidate, candidateOf, REMEMBERED_MS } from './clusters.ts'
import { type ComparedRow, COMPARED_COLUMNS, NearbyRecords } from './nearby-records.ts'
import { raiseCounter, TURN } from '../store/change-counters.ts'

/** A range of sequence numbers. Each day of the sample has its own, so that days can be written in any order. */
export interface SequenceRange {
  readonly first: number
  readonly last: number
}

export const FULL_RANGE: SequenceRange = { first: 1, last: Number.MAX_SAFE_INTEGER }

/** The last records of a range. */
export interface RangeEnd {
  /** The highest sequence number, or the number before the first of the range if it is empty. */
  readonly seq: number
  /** When the newest live record became available; 0 if there is none. */
  readonly appeared: number
}

/** What a writer remembers. It is read from the database once, and again after another process has written. */
export interface WriterState {
  /** Records of the last 30 days in order of appearance, including what other processes have written since. */
  recent(db: Database, range: SequenceRange, at: number): Promise<readonly Candidate[]>
  add(candidate: Candidate): void
  /** Records around the times of older items, to compare them with. Added ones are among the next. */
  nearby(db: Database, range: SequenceRange, items: readonly Item[]): Promise<NearbyRecords>
  /** The end of a range. Call it while holding the lock. */
  rangeEnd(db: Database, range: SequenceRange): Promise<RangeEnd>
  setRangeEnd(end: RangeEnd): void
  /** Hash of the last record of a source, or null. */
  chainEnd(db: Database, source: string, range: SequenceRange): Promise<string | null>
  setChainEnd(source: string, hash: string): void
  /**
   * Locks the store for writing until the transaction ends, so that the numbers of several processes only rise. Returns
   * false if another process has written since this process last held the lock: earlier reads may be outdated.
   */
  lockForWriting(tx: Database): Promise<boolean>
  /** Forgets everything, as is necessary after a failed write. */
  reset(): void
}

/** Creates an empty state. It reads what it needs from the database and keeps it. */
export function createWriterState(publisherOf: (source: string) => string): WriterState {
  return new StoredWriterState(publisherOf)
}

class StoredWriterState implements WriterState {
  readonly #publisherOf: (source: string) => string
  /** First number of the range that the state belongs to; -1 for none. */
  #first = -1
  #candidates: Candidate[] = []
  /** True while nobody can have stored a record of the last 30 days that is not among the candidates. */
  #hasAllRecent = false
  #end: RangeEnd | null = null
  #nearby: NearbyRecords | null = null
  #chains = new Map<string, string | null>()
  /** Number of the last lock that this process held. */
  #lastLock = NaN

  constructor(publisherOf: (source: string) => string) {
    this.#publisherOf = publisherOf
  }

  async recent(db: Database, range: SequenceRange, at: number): Promise<readonly Candidate[]> {
    this.#enter(range)
    if (!this.#hasAllRecent) await this.#readRecent(db, range, at)
    this.#hasAllRecent = true
    const stale = this.#candidates.findIndex((candidate) => candidate.at >= at - REMEMBERED_MS)
    if (stale > 0) this.#candidates.splice(0, stale)
    return this.#candidates
  }

  async #readRecent(db: Database, range: SequenceRange, at: number): Promise<void> {
    const last = this.#candidates.at(-1)?.seq ?? range.first - 1
    const rows = (await db('potus_events as e')
      .join('potus_versions as v', 'v.seq', 'e.seq')
      .where('v.version', 1)
      .where('e.seq', '>', last)
      .where('e.seq', '<=', range.last)
      .where('e.available_at', '>=', at - REMEMBERED_MS)
      .orderBy('e.seq')
      .select(...COMPARED_COLUMNS)) as ComparedRow[]
    for (const { seq, cluster, source, available_at: at, ...compared } of rows)
      this.#candidates.push(
        candidateOf(compared, { id: source, publisher: this.#publisherOf(source) }, at, seq, cluster),
      )
  }

  add(candidate: Candidate): void {
    this.#candidates.push(candidate)
  }

  async nearby(db: Database, range: SequenceRange, items: readonly Item[]): Promise<NearbyRecords> {
    this.#enter(range)
    // Older items are added to those nearby, and not to the candidates.
    this.#hasAllRecent = false
    this.#nearby ??= new NearbyRecords(this.#publisherOf, range)
    await this.#nearby.load(db, items)
    return this.#nearby
  }

  async rangeEnd(db: Database, range: SequenceRange): Promise<RangeEnd> {
    this.#enter(range)
    if (this.#end) return this.#end
    const numbers: [number, number] = [range.first, range.last]
    const newest = (await db('potus_events').whereBetween('seq', numbers).max('seq as seq').first()) as {
      seq: number | null
    }
    const live = (await db('potus_events')
      .where({ ingest: 'live' })
      .whereBetween('seq', numbers)
      .orderBy('seq', 'desc')
      .first('available_at as at')) as { at: number } | undefined
    this.#end = { seq: newest.seq ?? range.first - 1, appeared: live?.at ?? 0 }
    return this.#end
  }

  setRangeEnd(end: RangeEnd): void {
    this.#end = end
  }

  async chainEnd(db: Database, source: string, range: SequenceRange): Promise<string | null> {
    this.#enter(range)
    if (!this.#chains.has(source)) {
      const row = (await db('potus_versions')
        .where({ source })
        .whereBetween('seq', [range.first, range.last])
        .orderBy('id', 'desc')
        .first('record_hash')) as { record_hash: string } | undefined
      this.#chains.set(source, row?.record_hash ?? null)
    }
    return this.#chains.get(source) ?? null
  }

  setChainEnd(source: string, hash: string): void {
    this.#chains.set(source, hash)
  }

  async lockForWriting(tx: Database): Promise<boolean> {
    const before = this.#lastLock
    this.#lastLock = await raiseCounter(tx, TURN)
    if (this.#lastLock === before + 1) return true
    this.reset()
    return false
  }

  reset(): void {
    this.#first = -1
    this.#candidates = []
    this.#hasAllRecent = false
    this.#end = null
    this.#nearby = null
    this.#chains = new Map()
  }

  /** Forgets everything if the state belongs to another range. */
  #enter(range: SequenceRange): void {
    if (this.#first === range.first) return
    this.reset()
    this.#first = range.first
  }
}
