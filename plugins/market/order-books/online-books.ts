/** Books of the venues, asked for every fifteen seconds and kept where all processes see them. */
import type { Job, PluginContext } from 'tollgate/plugin'
import type { Level } from '../../lib/quant/order-book.ts'
import type { CoveredSymbol, Settings, VenueName } from '../symbols.ts'
import { VenueError } from '../venues/venue.ts'
import { isSound, type BookSnapshot, type Depth } from './order-book.ts'

const EVERY_SECONDS = 15
const KEPT_SECONDS = 3600
/** Levels a side: what Binance gives in one request of moderate weight. */
const LEVELS = 1000
const PATIENCE_SECONDS = 10

/** How each venue is asked for its book, and what its answer calls a level: `[price, quantity, …]`, best first. */
const ADDRESSES: Readonly<Record<VenueName, (code: string) => string>> = {
  // Binance Spot API, "Order book": /api/v3/depth, weight 50 at 1,000 levels.
  binance: (code) => `/api/v3/depth?symbol=${encodeURIComponent(code)}&limit=${LEVELS}`,
  // Coinbase Exchange REST API, "Get product book": level 2 is the whole book, aggregated by price.
  coinbase: (code) => `/products/${encodeURIComponent(code)}/book?level=2`,
}

type Quote = readonly [time: number, bid: number, ask: number]

/** The books that the job keeps, and the best prices of the last hour. `books` of the settings switches it off. */
export function openOnlineDepth(context: PluginContext, settings: Settings): Depth & { readonly jobs: readonly Job[] } {
  const { kv, log } = context
  const now = (): number => context.now().getTime() / 1000
  const pausedUntil = new Map<VenueName, number>()
  const held = async (symbol: string): Promise<readonly BookSnapshot[]> => (await kv.get(`book:${symbol}`)) ?? []
  const told = async (symbol: string): Promise<readonly Quote[]> => (await kv.get(`quotes:${symbol}`)) ?? []

  async function poll(symbol: CoveredSymbol, signal: AbortSignal): Promise<void> {
    for (const [venue, code] of Object.entries(symbol.venues ?? {}) as [VenueName, string][]) {
      const { url, enabled = true } = settings.venues?.[venue] ?? { url: '', enabled: false }
      if (!enabled || now() < (pausedUntil.get(venue) ?? 0)) continue
      try {
        const address = new URL(url.replace(/\/$/, '') + ADDRESSES[venue](code))
        const book = await fetchBook(venue, address, context.fetch, signal)
        return await keep(symbol.symbol, { venue, time: now(), ...book })
      } catch (error) {
        if (!(error instanceof VenueError)) throw error
        log.warn({ venue, symbol: code, status: error.status }, `no book: ${error.message}`)
        pausedUntil.set(venue, error.refused ? Infinity : now() + error.retryAfter)
      }
    }
  }

  /** The last two books: a call that began before a poll still finds one that is not newer than itself. */
  async function keep(symbol: string, book: BookSnapshot): Promise<void> {
    const [before] = await held(symbol)
    const quote: Quote = [book.time, book.bids[0]![0], book.asks[0]![0]]
    const recent = (await told(symbol)).filter(([time]) => time > book.time - KEPT_SECONDS)
    await kv.set(`book:${symbol}`, before ? [book, before] : [book], KEPT_SECONDS * 1000)
    await kv.set(`quotes:${symbol}`, [...recent, quote], KEPT_SECONDS * 1000)
  }

  const depth: Job = {
    name: 'depth',
    everySeconds: EVERY_SECONDS,
    run: async ({ signal }) => void (await Promise.all(settings.symbols.map((symbol) => poll(symbol, signal)))),
  }
  return {
    book: async (symbol, asOf) => (await held(symbol)).find(({ time }) => time <= asOf) ?? null,
    async quotes(symbol, from, to) {
      const found = (await told(symbol)).filter(([time]) => time >= from && time <= to)
      const column = (k: 0 | 1 | 2): Float64Array => Float64Array.from(found, (quote) => quote[k])
      const venue = (await held(symbol))[0]?.venue ?? ''
      return found.length > 0 ? { venue, time: column(0), bid: column(1), ask: column(2) } : null
    },
    jobs: settings.books === false ? [] : [depth],
  }
}

/** GETs a book. Throws VenueError for any other answer, with the wait that Retry-After asks for. */
async function fetchBook(
  venue: VenueName,
  address: URL,
  get: typeof fetch,
  signal: AbortSignal,
): Promise<Pick<BookSnapshot, 'bids' | 'asks'>> {
  let response: Response
  try {
    response = await get(address, { signal, headers: { accept: 'application/json' } })
    if (response.ok) {
      const { bids, asks } = (await response.json()) as { bids?: unknown; asks?: unknown }
      const book = { bids: levelsOf(bids), asks: levelsOf(asks) }
      if (isSound(book)) return book
    }
  } catch (error) {
    if (signal.aborted) throw error
    throw new VenueError(venue, 0, PATIENCE_SECONDS, error)
  }
  const asked = Number(response.headers.get('retry-after') ?? NaN)
  throw new VenueError(venue, response.status, Number.isFinite(asked) ? Math.max(1, asked) : PATIENCE_SECONDS)
}

function levelsOf(rows: unknown): Level[] {
  if (!Array.isArray(rows)) return []
  return rows.slice(0, LEVELS).map((row: readonly unknown[]): Level => [Number(row[0]), Number(row[1])])
}
