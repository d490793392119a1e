/** The answer: records, and how each source is doing. */
import type { Knex } from 'tollgate/plugin'
import type { DataMode } from '../lib/deployment.ts'
import type { Directory, DirectoryQuery, DirectorySource } from '../../schemas/types.d.ts'
import { formatSeconds } from '../lib/time/timestamps.ts'
import { find } from './query.ts'
import type { Store } from './store.ts'

export interface Asked {
  readonly query: DirectoryQuery
  readonly asOf: Date
  readonly dataMode: DataMode
  readonly shiftSeconds: number | null
  readonly sources: readonly { readonly id: string; readonly enabled: boolean }[]
}

export async function answer(db: Knex, store: Store, asked: Asked): Promise<Directory> {
  const { query, dataMode, shiftSeconds } = asked
  const { asOf, total, records, nextCursor } = await find(db, query, asked.asOf.getTime() / 1000)
  const sources = await Promise.all(
    asked.sources.map(async ({ id, enabled }): Promise<DirectorySource> => {
      const { last, good } = await store.sweeps(id, asOf)
      const status = !enabled ? 'off' : last === null ? 'waiting' : last.error === null ? 'ok' : 'degraded'
      return {
        id,
        status,
        fetched_at: good ? formatSeconds(good.known_at) : null,
        age_seconds: good ? Math.max(0, Math.floor(asOf - good.known_at)) : null,
        rows: good?.rows ?? null,
        dropped: good ? (JSON.parse(good.dropped) as Record<string, number>) : {},
        error: last?.error ?? null,
      }
    }),
  )
  return {
    as_of: formatSeconds(asOf),
    data_mode: dataMode,
    ...(shiftSeconds === null ? {} : { replay: { shift_seconds: shiftSeconds } }),
    count: records.length,
    total,
    next_cursor: nextCursor,
    records: [...records],
    sources,
  }
}
