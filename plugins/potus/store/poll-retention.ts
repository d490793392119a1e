/** How long the log of polls is kept. Records and their versions are kept for good. */
import type { Database } from 'tollgate/plugin'
import { noteRemoval } from './change-counters.ts'

/** Times in milliseconds since the epoch. */
export interface PollRetention {
  /** Polls without a body are deleted before this. */
  readonly before: number
  /** Polls with a body, from which a feed can be replayed, are deleted before this; null if they are kept for good. */
  readonly bodiesBefore: number | null
}

/** Rows that are deleted in one statement. */
const BATCH = 500

/** Deletes the polls that are no longer kept. Those with a body go in batches. */
export async function prunePolls(
  db: Database,
  { before, bodiesBefore }: PollRetention,
  signal: AbortSignal,
): Promise<void> {
  await db.transaction(async (tx) => {
    await noteRemoval(tx)
    await tx('potus_polls').where('at', '<', before).whereNull('body').delete()
  })
  while (bodiesBefore !== null && !signal.aborted) {
    const old = db<{ at: number }>('potus_polls').where('at', '<', bodiesBefore).orderBy('at').limit(BATCH)
    const last = (await old.select('at')).at(-1)
    if (!last) return
    await db.transaction(async (tx) => {
      await noteRemoval(tx)
      await tx('potus_polls').where('at', '<=', last.at).delete()
    })
  }
}
