import { setImmediate } from 'node:timers/promises'
import { aggregateBars, type Bars, type BarSources, type Columns } from './bars.ts'
import { createSampleBars, SAMPLE_START, type SampleBars, type SampleSymbol } from './sample-bars.ts'
import type { Extent, Series, BarStore } from './bar-store.ts'

const DAY = 86_400

/** Where bars are read from. Sample, replay and online implement it alike. */
export interface BarSource {
  /** Every series that can be read, preferred ones first. */
  series(): Promise<readonly Series[]>
  /** Bars of the series that open in [from, to), as known at `asOf`; epoch seconds. */
  read(series: Series, from: number, to: number, asOf: number): Promise<Columns>
  /** As `read`, but each bar as it was first published, with the venues behind it where they are known. */
  readFirst(series: Series, from: number, to: number, asOf: number): Promise<Columns & Partial<BarSources>>
  /** First and last open known at `asOf`; null if there was none. */
  extent(series: Series, asOf: number): Promise<Extent | null>
  /** Last open known at `asOf`; null if there was none. */
  last(series: Series, asOf: number): Promise<number | null>
}

/**
 * Sample minute bars, computed on request. `walk` computes every symbol up to a time in advance, two weeks at a step, so
 * that no request has to wait for it, and notes how far it came, so that a later process continues there.
 */
export async function openSampleBars(
  symbols: readonly SampleSymbol[],
  notes: Pick<BarStore, 'note' | 'setNote'>,
): Promise<BarSource & { walk(to: number, signal: AbortSignal): Promise<void> }> {
  const samples = new Map<string, SampleBars>()
  for (const symbol of symbols) {
    const walked = await notes.note(noteOf(symbol.symbol))
    samples.set(symbol.symbol, createSampleBars(symbol, walked === null ? undefined : Buffer.from(walked, 'base64')))
  }
  const series = symbols.map(({ symbol }, id) => ({ id, symbol, venue: 'sample', interval_seconds: 60 }))
  const read: BarSource['read'] = async ({ symbol }, from, to, asOf) =>
    samples.get(symbol)!.read(from, Math.min(to, asOf - 59))
  async function extent({ symbol }: Series, asOf: number): Promise<Extent | null> {
    const [sample, oldest] = [samples.get(symbol)!, asOf - 7 * DAY]
    // A day is computed as a whole, and the newest one usually has a bar.
    for (let to = asOf - 59; to > oldest;) {
      const from = Math.max(oldest, Math.floor((to - 1) / DAY) * DAY)
      const { count, time } = sample.read(from, to)
      if (count > 0) return { first: SAMPLE_START, last: time[count - 1]! }
      to = from
    }
    return null
  }
  return {
    series: async () => series,
    read,
    readFirst: read,
    async walk(to, signal) {
      for (const [symbol, sample] of samples) {
        while (sample.walkedTo() < to && !signal.aborted) {
          const next = Math.min(sample.walkedTo() + 14 * DAY, to)
          sample.read(next - 60, next)
          await setImmediate()
        }
        await notes.setNote(noteOf(symbol), sample.midnights().toString('base64'))
      }
    },
    extent,
    last: async (entry, asOf) => (await extent(entry, asOf))?.last ?? null,
  }
}

const noteOf = (symbol: string): string => `sample walk ${symbol}`

/** Bars of the database: of one venue, or of all. */
export function storedBarSource(store: BarStore, venue?: string): BarSource {
  return {
    series: async () => (await store.allSeries()).filter((series) => venue === undefined || series.venue === venue),
    read: (series, from, to, asOf) => store.read(series, from, to, asOf),
    readFirst: (series, from, to, asOf) =>
      store.readFirst(series, from, Math.min(to, asOf - series.interval_seconds + 1)),
    extent: (series, asOf) => store.extent(series, asOf),
    last: (series, asOf) => store.last(series, asOf),
  }
}

/**
 * Reads the bars of a symbol at an interval that open in [from, to). Without a series of that interval, it aggregates the
 * coarsest one that divides it. Returns null if the symbol has neither. Leaves out a bar that is still forming.
 */
export async function readBars(
  source: BarSource,
  want: { symbol: string; from: number; to: number; interval: number; asOf: number; first?: boolean },
): Promise<(Bars & Partial<BarSources>) | null> {
  const { symbol, interval, asOf, first = false } = want
  const series = (await source.series())
    .filter((series) => series.symbol === symbol && interval % series.interval_seconds === 0)
    .toSorted((a, b) => b.interval_seconds - a.interval_seconds)[0]
  if (!series) return null
  const from = Math.ceil(want.from / interval) * interval
  // A bar that opens before the end of the range counts as a whole, so all of its minutes are read.
  const to = Math.min(Math.ceil(want.to / interval), Math.floor(asOf / interval)) * interval
  const bars = await (first ? source.readFirst(series, from, to, asOf) : source.read(series, from, to, asOf))
  const columns = series.interval_seconds === interval ? bars : aggregateBars(bars, interval)
  return { symbol, venue: series.venue, interval_seconds: interval, ...columns }
}
