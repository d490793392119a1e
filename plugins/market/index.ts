/** The market plugin: bars, order books and quotes of every covered symbol for other products. It has no route. */
import { definePlugin, InvalidInput, type Job, NotFound } from 'tollgate/plugin'
import { dataSettings } from '../lib/feeds/data-settings.ts'
import { createSymbolIndex, type SymbolIndex } from '../lib/symbol-names.ts'
import type { Bars, BarSources } from './bars.ts'
import { openOnlineBooks, type PublishedMinutes } from './order-books/online-books.ts'
import type { OrderBookSource } from './order-books/order-book-source.ts'
import { openRecordedBooks } from './order-books/recorded-books.ts'
import { openSampleBooks } from './order-books/sample-books.ts'
import { openOnlineBars, PUBLISHED } from './online-bars.ts'
import { BarReplay } from './bar-replay.ts'
import { barFreshness } from './market-freshness.ts'
import { sessionAt } from './trading-session.ts'
import { readBars, openSampleBars, storedBarSource, type BarSource } from './bar-source.ts'
import { createBarStore, migrations } from './bar-store.ts'
import { sampledSymbols, settingsSchema, type CoveredSymbol } from './symbols.ts'
import { VenuePaces } from './venue-pace.ts'

const seconds = (moment: Date): number => Math.floor(moment.getTime() / 1000)

export default definePlugin({
  name: 'market',
  migrations,
  settings: settingsSchema,
  async setup(context) {
    const { settings } = context
    const store = createBarStore(context.db)
    const { dataMode } = dataSettings(context)
    const paces = new VenuePaces()
    const online = dataMode === 'online' ? await openOnlineBars(context, settings, store, paces) : null
    const replay = dataMode === 'replay' ? new BarReplay(context, store) : null
    const sampled = sampledSymbols(settings.symbols)
    const sample = dataMode === 'sample' ? await openSampleBars(sampled, store) : null
    const source: BarSource = sample ?? storedBarSource(store, online ? PUBLISHED : undefined)
    const polled = online
      ? openOnlineBooks(
          context,
          { ...settings, symbols: online.symbols },
          { minutes: publishedMinutes(source, () => seconds(context.now())), paces, notes: store },
        )
      : null
    const openDepth = async () =>
      polled ?? (sample ? openSampleBooks(sampled, sample) : await openRecordedBooks(context, store))
    const walk: Job = {
      name: 'walk',
      everySeconds: 86_400,
      run: async ({ signal }) => sample?.walk(seconds(context.now()), signal),
    }
    const open = async (origin: string): Promise<Market> => {
      const [covered, depth] = [await coverage(source, settings.symbols), await openDepth()]
      return { origin, covered, directory: createSymbolIndex(covered), depth }
    }
    let opened: Promise<Market> | null = null
    if (!replay) await (opened = open(dataMode))
    /** Rejects with Unavailable while recordings are being loaded. */
    const market = async (): Promise<Market> => {
      const origin = replay ? await replay.origin() : dataMode
      opened ??= open(origin).catch((error: unknown) => {
        opened = null
        throw error
      })
      return opened
    }

    return {
      handlers: {
        async getBars({ input, asOf }): Promise<Bars & Partial<BarSources>> {
          const { from, to = seconds(asOf), interval, first } = input.query
          if (from > to) throw new InvalidInput('from is after to; swap them', ['query', 'from'])
          const symbol = (await market()).directory.resolve(input.query.symbol)
          const bars = await readBars(source, { symbol, from, to, interval, first, asOf: seconds(asOf) })
          if (!bars) throw new NotFound(`interval: ${symbol} has no bars of ${interval} seconds`)
          return bars
        },
        async getSymbols() {
          const { origin, covered } = await market()
          return { origin, symbols: covered }
        },
        async getBook({ input, asOf }) {
          const { directory, depth } = await market()
          const symbol = directory.resolve(input.query.symbol)
          return { symbol, book: await depth.book(symbol, asOf.getTime() / 1000) }
        },
        async getBookPairs({ input, asOf }) {
          const { directory, depth } = await market()
          const { symbol: name, venue, after } = input.query
          const symbol = directory.resolve(name)
          return { symbol, pairs: await depth.pairs(symbol, { venue, after }, asOf.getTime() / 1000) }
        },
        async getQuotes({ input, asOf }) {
          const { directory, depth } = await market()
          const symbol = directory.resolve(input.query.symbol)
          return { symbol, quotes: await depth.quotes(symbol, input.query.from, asOf.getTime() / 1000) }
        },
        async getTradingSession({ input, asOf }) {
          const { directory, covered } = await market()
          const symbol = directory.resolve(input.query.symbol)
          const { session } = covered.find((one) => one.symbol === symbol)!
          return { symbol, session, ...sessionAt(session, seconds(asOf)) }
        },
        async getMarketStatus({ input, asOf }) {
          const { origin, directory } = await market()
          const symbol = directory.resolve(input.query.symbol)
          // Asked first: bars that are stored meanwhile may only make the history longer than it is said to be.
          const collected = await online?.status(symbol)
          const series = (await source.series()).filter((entry) => entry.symbol === symbol)
          const status = await Promise.all(
            series.map(async (entry) => ({
              venue: entry.venue,
              interval_seconds: entry.interval_seconds,
              ...((await source.extent(entry, seconds(asOf))) ?? { first: null, last: null }),
            })),
          )
          return { symbol, origin, ready: true, series: status, ...collected }
        },
      },
      async freshness({ operation, query }, asOf) {
        if (operation === 'getSymbols') return null
        if (replay && !(await replay.isLoaded())) return { newest: null, sources: 0, coverage: 0 }
        const symbol = (await market()).directory.resolve(query.symbol)
        return barFreshness(source, online, { symbol, asOf: seconds(asOf) })
      },
      jobs: [
        ...(sample ? [walk] : []),
        ...(replay ? [replay.job] : []),
        ...(online?.jobs ?? []),
        ...(polled?.jobs ?? []),
      ],
      async facts() {
        if (replay && !(await replay.isLoaded())) return { origin: null, symbols: 0 }
        const { origin, covered } = await market()
        return { origin, symbols: covered.length, ...(await online?.facts()) }
      },
    }
  },
})

/** The symbols with bars, and where their order books come from. */
interface Market {
  /** Identifies this set of bars. Products that store results computed from them store it too. */
  readonly origin: string
  readonly covered: Awaited<ReturnType<typeof coverage>>
  readonly directory: SymbolIndex
  readonly depth: OrderBookSource
}

/** The published minutes as they are known at `now`, epoch seconds. */
function publishedMinutes(source: BarSource, now: () => number): PublishedMinutes {
  const seriesOf = async (symbol: string) =>
    (await source.series()).find((one) => one.symbol === symbol && one.interval_seconds === 60)
  return {
    async last(symbol) {
      const series = await seriesOf(symbol)
      const last = series ? await source.last(series, now()) : null
      if (!series || last === null) return null
      const bars = await source.read(series, last, last + 60, now())
      return bars.count === 0 ? null : { close: bars.close[0]!, closed: last + 60 }
    },
    async since(symbol, from) {
      const series = await seriesOf(symbol)
      if (!series) return new Map()
      const bars = await source.read(series, from, now(), now())
      return new Map(Array.from(bars.time, (time, i) => [time, { low: bars.low[i]!, high: bars.high[i]! }]))
    },
  }
}

/** Lists every symbol with bars: those of the settings first, then those that only a recording has. */
async function coverage(source: BarSource, symbols: readonly CoveredSymbol[]) {
  const series = await source.series()
  const described = new Map(symbols.map((symbol) => [symbol.symbol, symbol]))
  return [...new Set(series.map(({ symbol }) => symbol))].map((symbol) => {
    const words = described.get(symbol)
    const intervals = series.filter((entry) => entry.symbol === symbol).map((entry) => entry.interval_seconds)
    return {
      symbol,
      name: words?.name ?? symbol,
      aliases: words?.aliases ?? [],
      session: words?.session ?? (symbol.includes('-') ? ('24x7' as const) : ('us_equity' as const)),
      tick: words?.tick ?? null,
      intervals: [...new Set(intervals)].sort((a, b) => a - b),
    }
  })
}
