/** Reads the pairs of order books that the market keeps, and learns the errors of estimates from them as they come. */
import type { Ask } from 'tollgate/plugin'
import { LRUCache } from 'lru-cache'
import { WalkErrors } from './walk-errors.ts'

/** The errors of an asset at a venue, as they were known at `at` (epoch seconds). */
export type ErrorHistory = (
  ask: Ask,
  market: { readonly symbol: string; readonly venue: string },
  at: number,
) => Promise<WalkErrors>

/** New pairs are looked for this often. */
const EVERY_SECONDS = 60

interface Learnt {
  readonly errors: WalkErrors
  /** When pairs were last asked for, and from when on they are again, epoch seconds. */
  asked: number
  due: number
  /** Time of the first book of the last pair. */
  after: number
}

/**
 * Keeps what was learnt in memory, for each market and each delay of the caller: a delayed answer knows only what was known
 * then. A caller from before the last pair begins anew. After a start the first call reads what is kept.
 */
export function createErrorHistory(now: () => number): ErrorHistory {
  const cache = new LRUCache<string, Learnt>({ max: 256 })
  const running = new Map<string, Promise<WalkErrors>>()

  async function learn(ask: Ask, { symbol, venue }: { symbol: string; venue: string }, key: string, at: number) {
    const cached = cache.get(key)
    if (cached && at >= cached.asked && at < cached.due) return cached.errors
    const learnt = cached && at >= cached.asked ? cached : { errors: new WalkErrors(), asked: at, due: at, after: 0 }
    // If this caller gives up, the next one goes on where it stopped.
    cache.set(key, learnt)
    learnt.asked = at
    for (;;) {
      const { pairs } = await ask('getBookPairs', { query: { symbol, venue, after: learnt.after } })
      for (const pair of pairs) learnt.errors.learn(pair)
      const last = pairs.at(-1)
      if (!last) break
      learnt.after = last.first.time
    }
    learnt.due = at + EVERY_SECONDS
    return learnt.errors
  }

  return async (ask, market, at) => {
    const key = `${market.symbol} ${market.venue} ${Math.round((now() - at) / 3600)}`
    // One at a time, because callers share what is learnt.
    const before = running.get(key)
    const own = (async () => {
      await before?.catch(() => undefined)
      return learn(ask, market, key, at)
    })()
    running.set(key, own)
    try {
      return await own
    } finally {
      if (running.get(key) === own) running.delete(key)
    }
  }
}
