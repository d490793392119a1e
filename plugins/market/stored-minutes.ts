/** Stores agreed minutes: each is published once, and what is learnt of it later is a correction. */
import type { Database } from 'tollgate/plugin'
import type { AgreedMinutes } from './agreed-minutes.ts'
import { badPrints, createColumns, REVISED, type Columns } from './bars.ts'
import { createBarStore, type Series } from './bar-store.ts'

/** The bad-print filter warms up on this much history before new bars. */
const CONTEXT_SECONDS = 7200
/**
 * How far behind new bars bad prints are looked for. Back-fill goes from the newest window to the oldest, so the bar that
 * proves the last print of a window is stored already, and the first bars of the next window had no history until now.
 */
const AFTER_SECONDS = 3600

export interface StoreMinutesOptions {
  readonly db: Database
  readonly series: Series
  /** When a bar that opens at a time became known, epoch seconds. */
  readonly knownAt: (time: number) => number
  /** Epoch seconds. */
  readonly now: number
  /** True for minutes that had been given up: their bars are stored as corrections. */
  readonly isLate: boolean
}

/** Adds the minutes that are not stored yet, and corrects bad prints that the new ones prove wrong. */
export async function storeMinutes(
  { bars, sources, notes }: AgreedMinutes,
  { db, series, knownAt, now, isLate }: StoreMinutesOptions,
): Promise<void> {
  if (bars.count === 0) return
  const store = createBarStore(db)
  const first = bars.time[0]!
  const end = bars.time[bars.count - 1]! + 60
  const known = new Set((await store.read(series, first, end, Number.MAX_SAFE_INTEGER)).time)
  const kept = [...bars.time.keys()].filter((i) => !known.has(bars.time[i]!))
  const out = createColumns(kept.length + 1)
  const { time, open, high, low, close, volume, state } = bars
  for (const i of kept)
    out.add(time[i]!, open[i]!, high[i]!, low[i]!, close[i]!, volume[i]!, isLate ? REVISED : state[i]!)
  const keptSources = {
    venues: Uint32Array.from(kept, (i) => sources.venues[i]!),
    spread_bps: Float32Array.from(kept, (i) => sources.spread_bps[i]!),
  }
  await store.add(series, out.end(), { knownAt: isLate ? now : knownAt, sources: keptSources })
  await store.noteQuality(series, notes)
  await correctBadPrints(db, series, first, end)
}

/**
 * Corrects bad prints around new bars, which open in [first, end). A correction is known from when the bars up to its proof
 * were, so that a back-fill corrects the past as it would have been corrected then.
 */
async function correctBadPrints(db: Database, series: Series, first: number, end: number): Promise<void> {
  const store = createBarStore(db)
  const [from, to] = [first - CONTEXT_SECONDS, end + AFTER_SECONDS]
  const around: Columns = await store.read(series, from, to, Number.MAX_SAFE_INTEGER)
  for (const { index, price, provedBy } of badPrints(around)) {
    const [time, proof, volume] = [around.time[index]!, around.time[provedBy]!, around.volume[index]!]
    const proved = await store.lastKnownAt(series, Math.min(time, first), proof + 60)
    // A print that was fetched together with its proof stays stored as it was first published.
    const knownAt = Math.max(proved, (await store.lastKnownAt(series, time, time + 60)) + 1)
    await store.revise(series, { time, open: price, high: price, low: price, close: price, volume }, knownAt)
  }
}
