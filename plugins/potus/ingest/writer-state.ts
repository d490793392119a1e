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

export interface WriterState {
  /** Records of the last 30 days in order of appearance, including what other processes have written since. */
  recent(db: Database, range: SequenceRange, at: number): Promise<readonly Candidate[]>
  add(candidate: Candidate): void
  /** Records around the times of older items, to compare them with. Added ones are among the next. */
  nearby(db: Database, range: SequenceRange, items: readonly Item[]): Promise<NearbyRecords>
  /** The highest sequence number in a range, or the number before its first if the range is empty. */
  lastSeq(db: Database, range: SequenceRange): Promise<number>
  /** When the newest live record of a range became available; 0 if there is none. Call it while holding the lock. */
  lastAppearance(db: Database, range: SequenceRange): Promise<number>
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
  #nearby: NearbyRecords | null = null
  #chains = new Map<string, string | null>()
  /** Number of the last lock that this process held. */
  #lastLock = NaN

  constructor(publisherOf: (source: string) => string) {
    this.#publisherOf = publisherOf
  }

  async recent(db: Database, range: SequenceRange, at: number): Promise<readonly Candidate[]> {
    this.#enter(range)
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
    const stale = this.#candidates.findIndex((candidate) => candidate.at >= at - REMEMBERED_MS)
    if (stale > 0) this.#candidates.splice(0, stale)
    return this.#candidates
  }

  add(candidate: Candidate): void {
    this.#candidates.push(candidate)
  }

  async nearby(db: Database, range: SequenceRange, items: readonly Item[]): Promise<NearbyRecords> {
    this.#enter(range)
    this.#nearby ??= new NearbyRecords(this.#publisherOf, range)
    await this.#nearby.load(db, items)
    return this.#nearby
  }

  async lastSeq(db: Database, { first: from, last: to }: SequenceRange): Promise<number> {
    const row = (await db('potus_events').whereBetween('seq', [from, to]).max('seq as seq').first()) as {
      seq: number | null
    }
    return row.seq ?? from - 1
  }

  async lastAppearance(db: Database, { first: from, last: to }: SequenceRange): Promise<number> {
    const row = (await db('potus_events')
      .where({ ingest: 'live' })
      .whereBetween('seq', [from, to])
      .orderBy('seq', 'desc')
      .first('available_at as at')) as { at: number } | undefined
    return row?.at ?? 0
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
