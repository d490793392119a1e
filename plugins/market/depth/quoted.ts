/** Quotes that stand beside the recorded minutes of trades. */
import type { Knex } from 'tollgate/plugin'
import Papa from 'papaparse'
import type { Columns } from '../bars.ts'
import { parseRecording, recognise, seconds } from '../recording.ts'
import type { Bar, Series, Store } from '../store.ts'
import type { Quotes } from './depth.ts'

/**
 * Best bid and offer at the close of each minute of a file with the columns bid_close and ask_close, moved in time as
 * its bars were. Null for a file without them, and for one whose bars are not in the store.
 */
export async function readQuotes(
  file: string,
  text: string,
  db: Knex,
  store: Store,
): Promise<(Quotes & { symbol: string }) | null> {
  const name = recognise(file)
  if (!name?.symbol) return null
  const { symbol, venue, interval_seconds } = name
  const series = (await store.all()).find(
    (one) => one.venue === venue && one.symbol === symbol && one.interval_seconds === interval_seconds,
  )
  const bars = parseRecording(text, name).get(symbol)
  const shift = series && bars?.count ? await shiftOf(series, bars, db, store) : null
  if (shift === null) return null
  const [header = [], ...rows] = Papa.parse<string[]>(text, { skipEmptyLines: true }).data
  const [at, bid, ask] = ['timestamp', 'bid_close', 'ask_close'].map((column) => header.indexOf(column))
  if ([at, bid, ask].includes(-1)) return null
  const sound = rows
    .map((row) => ({
      time: seconds(row[at!] ?? '', name.clock) + interval_seconds + shift,
      bid: Number(row[bid!]),
      ask: Number(row[ask!]),
    }))
    .filter((quote) => quote.bid > 0 && quote.ask > quote.bid)
  const column = (name: 'time' | 'bid' | 'ask'): Float64Array => Float64Array.from(sound, (quote) => quote[name])
  return { symbol, venue, time: column('time'), bid: column('bid'), ask: column('ask') }
}

/** How far the bars of a file were moved in time when they were stored: its first and its last are looked for. */
async function shiftOf(series: Series, bars: Columns, db: Knex, store: Store): Promise<number | null> {
  const [first, last] = [barOf(bars, 0), barOf(bars, bars.count - 1)]
  const { time, ...prices } = first
  const twins = (await db('market_bars')
    .where({ series: series.id, ...prices })
    .select('t_open')) as { t_open: number }[]
  for (const { t_open } of twins) {
    const shift = t_open - time
    if (await store.has(series, { ...last, time: last.time + shift })) return shift
  }
  return null
}

function barOf({ time, open, high, low, close, volume }: Columns, i: number): Bar {
  return { time: time[i]!, open: open[i]!, high: high[i]!, low: low[i]!, close: close[i]!, volume: volume[i]! }
}

/** Quotes of one symbol from two files, in order. */
export function joinQuotes(known: Quotes | undefined, { venue, time, bid, ask }: Quotes): Quotes {
  if (!known) return { venue, time, bid, ask }
  const [first, second] = known.time[0]! <= time[0]! ? [known, { time, bid, ask }] : [{ time, bid, ask }, known]
  const column = (name: 'time' | 'bid' | 'ask'): Float64Array => {
    const joined = new Float64Array(first.time.length + second.time.length)
    joined.set(first[name])
    joined.set(second[name], first.time.length)
    return joined
  }
  return { venue, time: column('time'), bid: column('bid'), ask: column('ask') }
}
