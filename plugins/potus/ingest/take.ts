/** Items into the store: compared, described, and written a hundred at a time. */
import { setImmediate as breathe } from 'node:timers/promises'
import type { Knex } from 'tollgate/plugin'
import type { Item } from '../item.ts'
import type { Source } from '../sources/source.ts'
import { applyChanges } from './changes.ts'
import { describe, type Description } from './describe.ts'
import { insertEvents } from './insert.ts'
import type { Memory } from './memory.ts'
import { changesOf } from './revise.ts'
import type { Raw } from './versions.ts'
import type { Sight, Stretch, Written } from './writer.ts'

export interface Taking {
  readonly source: Source
  /** Oldest first. */
  readonly items: readonly Item[]
  /** Nothing in the body was left out, so what is not there is missing. */
  readonly isWhole: boolean
  readonly sight: Sight
  readonly raw: Raw
  readonly memory: Memory
  readonly stretch: Stretch
}

/** Told in the last transaction, which also keeps the poll. */
export interface Taken {
  /** Nothing was left for a later look. */
  readonly complete: boolean
  readonly fresh: number
}

const PORTION = 100

/**
 * Takes what is due. An item dated ahead of the clock stays where it is until its time comes, so that numbers and times
 * of appearance rise together.
 */
export async function take(
  db: Knex,
  { source, items, isWhole, sight, raw, memory, stretch }: Taking,
  finish: (tx: Knex, taken: Taken) => Promise<void>,
): Promise<Written> {
  const due = items.filter((item) => item.precision === 'day' || item.publishedAt <= sight.now)
  const complete = due.length === items.length
  const within = { complete: complete && isWhole, stretch, at: sight.now }
  let change = await changesOf(db, source, due, within)
  const descriptions = await described(source, [...change.fresh, ...change.revised.map(({ item }) => item)])
  const shared = { source, raw, memory, stretch, descriptions }
  let pending = change.fresh
  let [fresh, joined] = [0, 0]
  for (;;) {
    const result = await db.transaction(async (tx) => {
      if (!(await memory.takeTurn(tx))) {
        change = await changesOf(tx, source, due, within)
        pending = change.fresh
      }
      const portion = pending.slice(0, PORTION)
      const inserted = await insertEvents(tx, { ...shared, items: portion, sight })
      if (pending.length > PORTION) return { ...inserted, count: portion.length, applied: null }
      const applied = await applyChanges(tx, { ...shared, change, now: sight.now })
      await finish(tx, { complete, fresh: fresh + portion.length })
      return { ...inserted, count: portion.length, applied }
    })
    pending = pending.slice(PORTION)
    fresh += result.count
    joined += result.joined
    if (result.applied) return { outcome: 'new', items: items.length, fresh, joined, ...result.applied }
  }
}

/** Worked out before the transaction, with room for others in between: a long order takes tens of milliseconds. */
async function described(source: Source, items: readonly Item[]): Promise<Map<Item, Description>> {
  const descriptions = new Map<Item, Description>()
  for (const item of items) {
    descriptions.set(item, describe(item, source))
    await breathe()
  }
  return descriptions
}
