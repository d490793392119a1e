/** What the writer remembers between polls: recent records to compare with, and the ends of the hash chains. */
import type { Database } from 'tollgate/plugin'
import { type Candidate, candidateOf, type Compared, REMEMBERED_MS } from './clusters.ts'
import type { EventRow } from '../store/tables.ts'

/** A stretch of sequence numbers. Made-up days each have their own, so that they can be written in any order. */
export interface SequenceRange {
  readonly first: number
  readonly last: number
}

export const FULL_RANGE: SequenceRange = { first: 1, last: Number.MAX_SAFE_INTEGER }

export interface WriterState {
  /** Records of the last month, in order of appearance; what another process wrote is read first. */
  recent(db: Database, stretch: SequenceRange, at: number): Promise<readonly Candidate[]>
  add(candidate: Candidate): void
  /** The newest sequence number of a stretch, 0 or the number before its first where it is empty. */
  lastSeq(db: Database, stretch: SequenceRange): Promise<number>
  /** When the newest live record of a stretch appeared; 0 where there is none. Within a transaction of our turn. */
  lastAppearance(db: Database, stretch: SequenceRange): Promise<number>
  /** Hash of the last record written of a source, or null. */
  chainEnd(db: Database, source: string, stretch: SequenceRange): Promise<string | null>
  setChainEnd(source: string, hash: string): void
  /**
   * Waits for the writer's turn, in a transaction: those of several processes follow each other, so numbers only rise.
   * False where another process has written since our last turn: what was read before it is no longer certain.
   */
  takeTurn(tx: Database): Promise<boolean>
  /** After a failed write nothing remembered is certain. */
  forget(): void
}

type Row = Compared & Pick<EventRow, 'seq' | 'cluster' | 'source' | 'available_at'>

export function createWriterState(publisherOf: (source: string) => string): WriterState {
  let first = -1
  let candidates: Candidate[] = []
  let chains = new Map<string, string | null>()
  /** Number of our last turn. */
  let turn = NaN

  const forget = (): void => {
    first = -1
    candidates = []
    chains = new Map()
  }
  const enter = (stretch: SequenceRange): void => {
    if (first === stretch.first) return
    forget()
    first = stretch.first
  }

  return {
    async recent(db, stretch, at) {
      enter(stretch)
      const last = candidates.at(-1)?.seq ?? stretch.first - 1
      const rows = (await db('potus_events as e')
        .join('potus_versions as v', 'v.seq', 'e.seq')
        .where('v.version', 1)
        .where('e.seq', '>', last)
        .where('e.seq', '<=', stretch.last)
        .where('e.available_at', '>=', at - REMEMBERED_MS)
        .orderBy('e.seq')
        .select(
          'e.seq',
          'e.cluster',
          'e.source',
          'e.available_at',
          'e.published_at as publishedAt',
          'e.occurred_at as occurredAt',
          'e.post',
          'e.signed_on as signedOn',
          'v.kind',
          'v.title',
          'v.text',
        )) as Row[]
      for (const { seq, cluster, source, available_at: at, ...said } of rows)
        candidates.push(candidateOf(said, { id: source, publisher: publisherOf(source) }, at, seq, cluster))
      const stale = candidates.findIndex((candidate) => candidate.at >= at - REMEMBERED_MS)
      if (stale > 0) candidates.splice(0, stale)
      return candidates
    },
    add: (candidate) => void candidates.push(candidate),
    async lastSeq(db, { first: from, last: to }) {
      const row = (await db('potus_events').whereBetween('seq', [from, to]).max('seq as seq').first()) as {
        seq: number | null
      }
      return row.seq ?? from - 1
    },
    async lastAppearance(db, { first: from, last: to }) {
      const row = (await db('potus_events')
        .where({ ingest: 'live' })
        .whereBetween('seq', [from, to])
        .orderBy('seq', 'desc')
        .first('available_at as at')) as { at: number } | undefined
      return row?.at ?? 0
    },
    async chainEnd(db, source, stretch) {
      enter(stretch)
      if (!chains.has(source)) {
        const row = (await db('potus_versions')
          .where({ source })
          .whereBetween('seq', [stretch.first, stretch.last])
          .orderBy('id', 'desc')
          .first('record_hash')) as { record_hash: string } | undefined
        chains.set(source, row?.record_hash ?? null)
      }
      return chains.get(source) ?? null
    },
    setChainEnd: (source, hash) => void chains.set(source, hash),
    async takeTurn(tx) {
      const next = tx.raw('cast(cast(potus_notes.value as bigint) + 1 as text)')
      const [row] = (await tx('potus_notes')
        .insert({ name: 'turn', value: '1' })
        .onConflict('name')
        .merge({ value: next })
        .returning('value')) as { value: string }[]
      const before = turn
      turn = Number(row?.value)
      if (turn === before + 1) return true
      forget()
      return false
    },
    forget,
  }
}
