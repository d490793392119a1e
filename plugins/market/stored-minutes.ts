/** Stores agreed minutes. Each is published once; one that comes after it was given up is a correction. */
import type { Database } from 'tollgate/plugin'
import type { AgreedMinutes } from './agreed-minutes.ts'
import { createColumns, REVISED } from './bars.ts'
import { createBarStore, type Series } from './bar-store.ts'

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

/** Adds the minutes that are not stored yet. Two venues agree on each, so a price that comes back at once is no bad print. */
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
}
