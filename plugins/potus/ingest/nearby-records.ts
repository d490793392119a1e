/**
 * Records around the times of older items. A back-fill compares an item with what was published near it, and not with the
 * records of the present. Only what lies around the last items is in memory.
 */
import type { Database } from 'tollgate/plugin'
import type { Item } from '../sources/source.ts'
import type { EventRow } from '../store/tables.ts'
import { type Candidate, candidateOf, type Compared, REMEMBERED_MS, SIMILAR_MS } from './clusters.ts'

/** The columns that a record is compared by, of `potus_events as e` joined with `potus_versions as v`. */
export const COMPARED_COLUMNS = [
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
] as const
export type ComparedRow = Compared & Pick<EventRow, 'seq' | 'cluster' | 'source' | 'available_at'>

/** Rows per query by number. */
const BATCH = 200

export class NearbyRecords {
  readonly #publisherOf: (source: string) => string
  readonly #range: { readonly first: number; readonly last: number }
  /** By number, with their texts. */
  readonly #near = new Map<number, Candidate>()
  /** Records with the same post or document number, and documents signed within a month: without their texts. */
  #others: Candidate[] = []

  constructor(publisherOf: (source: string) => string, range: { readonly first: number; readonly last: number }) {
    this.#publisherOf = publisherOf
    this.#range = range
  }

  /** The records of the last `load`, and those that were added since. */
  *[Symbol.iterator](): Generator<Candidate> {
    for (const candidate of this.#near.values()) yield candidate
    for (const candidate of this.#others) yield candidate
  }

  add(candidate: Candidate): void {
    this.#near.set(candidate.seq, candidate)
  }

  /** Reads the records around these items that are not in memory yet, and forgets those that are further away. */
  async load(db: Database, items: readonly Item[]): Promise<void> {
    const times = items.map(({ publishedAt }) => publishedAt)
    const [first, last] = [Math.min(...times), Math.max(...times)]
    const [from, to] = [first - SIMILAR_MS, last + SIMILAR_MS]
    for (const [seq, { at }] of this.#near) if (at < from || at > to) this.#near.delete(seq)
    const found = (await db('potus_events')
      .whereBetween('available_at', [from, to])
      .whereBetween('seq', [this.#range.first, this.#range.last])
      .select('seq')) as { seq: number }[]
    const missing = found.map(({ seq }) => seq).filter((seq) => !this.#near.has(seq))
    for (let at = 0; at < missing.length; at += BATCH) {
      const rows = await this.#rows(db).whereIn('e.seq', missing.slice(at, at + BATCH))
      for (const row of rows as unknown as ComparedRow[]) this.#near.set(row.seq, this.#candidate(row))
    }
    this.#others = await this.#further(db, items, [first - REMEMBERED_MS, last + REMEMBERED_MS])
  }

  /** Copies of the same posts, and documents signed around the same days, outside of the days that are in memory. */
  async #further(db: Database, items: readonly Item[], days: [number, number]): Promise<Candidate[]> {
    const posts = items.flatMap(({ post }) => (post === null ? [] : [post]))
    const rows: ComparedRow[] = []
    for (let at = 0; at < posts.length; at += BATCH) {
      const same = await this.#rows(db).whereIn('e.post', posts.slice(at, at + BATCH))
      rows.push(...(same as unknown as ComparedRow[]))
    }
    if (items.some(({ signedOn }) => signedOn !== null)) {
      const signed = this.#rows(db).whereBetween('e.available_at', days).whereNotNull('e.signed_on')
      rows.push(...((await signed) as unknown as ComparedRow[]))
    }
    const unseen = new Map(rows.filter(({ seq }) => !this.#near.has(seq)).map((row) => [row.seq, row]))
    return [...unseen.values()].map((row) => this.#candidate({ ...row, text: '' }))
  }

  #rows(db: Database) {
    return db('potus_events as e')
      .join('potus_versions as v', 'v.seq', 'e.seq')
      .where('v.version', 1)
      .whereBetween('e.seq', [this.#range.first, this.#range.last])
      .orderBy('e.seq')
      .select(...COMPARED_COLUMNS)
  }

  #candidate({ seq, cluster, source, available_at: at, ...compared }: ComparedRow): Candidate {
    return candidateOf(compared, { id: source, publisher: this.#publisherOf(source) }, at, seq, cluster)
  }
}
