/** Order books of the venues, polled every fifteen seconds and stored for all processes. */
import type { Job, PluginContext } from 'tollgate/plugin'
import { createPauses, RequestError } from '../../lib/feeds/requests.ts'
import type { CoveredSymbol, Settings } from '../symbols.ts'
import { isRefusal, PAUSE_SECONDS } from '../venues/bar-venue.ts'
import { type VenueName, VENUES } from '../venues/bar-venues.ts'
import type { BookSnapshot, OrderBookSource } from './order-book-source.ts'

const EVERY_SECONDS = 15
/** How long books and quotes are kept. */
const KEPT_SECONDS = 3600

type Quote = readonly [time: number, bid: number, ask: number]

/** The latest books and the best prices of the last hour. The setting `books: false` switches the polling off. */
export function openOnlineBooks(
  context: PluginContext,
  settings: Settings,
): OrderBookSource & { readonly jobs: readonly Job[] } {
  const { kv, log } = context
  const now = (): number => context.now().getTime() / 1000
  const pauses = createPauses<VenueName>(now)
  const booksOf = async (symbol: string): Promise<readonly BookSnapshot[]> => (await kv.get(`book:${symbol}`)) ?? []
  const quotesOf = async (symbol: string): Promise<readonly Quote[]> => (await kv.get(`quotes:${symbol}`)) ?? []

  async function poll(symbol: CoveredSymbol, signal: AbortSignal): Promise<void> {
    for (const [venue, code] of Object.entries(symbol.venues ?? {}) as [VenueName, string][]) {
      const { url, enabled = true } = settings.venues?.[venue] ?? { url: '', enabled: false }
      if (!enabled || pauses.isPaused(venue)) continue
      try {
        const source = VENUES[venue].create({ url: url.replace(/\/$/, ''), fetch: context.fetch })
        const book = await source.book(code, signal)
        return await keep(symbol.symbol, { venue, time: now(), ...book })
      } catch (error) {
        if (!(error instanceof RequestError)) throw error
        log.warn({ venue, symbol: code, status: error.status }, `the order book was not read: ${error.message}`)
        pauses.pause(venue, isRefusal(error.status) ? Infinity : (error.retryAfterSeconds ?? PAUSE_SECONDS))
      }
    }
  }

  /** Keeps two books, so that a call that began before a poll still finds one that is not newer than the call. */
  async function keep(symbol: string, book: BookSnapshot): Promise<void> {
    const [before] = await booksOf(symbol)
    const quote: Quote = [book.time, book.bids[0]![0], book.asks[0]![0]]
    const recent = (await quotesOf(symbol)).filter(([time]) => time > book.time - KEPT_SECONDS)
    await kv.set(`book:${symbol}`, before ? [book, before] : [book], KEPT_SECONDS * 1000)
    await kv.set(`quotes:${symbol}`, [...recent, quote], KEPT_SECONDS * 1000)
  }

  const depth: Job = {
    name: 'depth',
    everySeconds: EVERY_SECONDS,
    run: async ({ signal }) => void (await Promise.all(settings.symbols.map((symbol) => poll(symbol, signal)))),
  }
  return {
    book: async (symbol, asOf) => (await booksOf(symbol)).find(({ time }) => time <= asOf) ?? null,
    async quotes(symbol, from, to) {
      const found = (await quotesOf(symbol)).filter(([time]) => time >= from && time <= to)
      const column = (k: 0 | 1 | 2): Float64Array => Float64Array.from(found, (quote) => quote[k])
      const venue = (await booksOf(symbol))[0]?.venue ?? ''
      return found.length > 0 ? { venue, time: column(0), bid: column(1), ask: column(2) } : null
    },
    jobs: settings.books === false ? [] : [depth],
  }
}
