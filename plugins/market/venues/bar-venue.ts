/** What a venue must offer so that bars and order books can be read from it. */
import type { Book, Level } from '../../lib/quant/order-book.ts'
import { listOf, rowOf } from '../../lib/feeds/payloads.ts'
import { RequestError, requestJson } from '../../lib/feeds/requests.ts'
import type { Columns } from '../bars.ts'

/** Requests data from one venue. `signal` ends a request. Every method throws RequestError if there is no usable answer. */
export interface Venue {
  readonly name: string
  /** The largest number of minutes that one request returns. */
  readonly windowMinutes: number
  /**
   * Closed minutes of the venue's symbol that open in [from, to), epoch seconds, at most `windowMinutes` of them.
   * Minutes without a trade may be missing.
   */
  minutes(symbol: string, from: number, to: number, signal: AbortSignal): Promise<Columns>
  /** The order book of the venue's symbol, best levels first, at most MAX_LEVELS per side. */
  book(symbol: string, signal: AbortSignal): Promise<Book>
}

export interface VenueOptions {
  /** Base address of the API, without a trailing slash. */
  readonly url: string
  readonly fetch: typeof fetch
}

/** The largest book that Binance returns in a request of moderate weight. */
export const MAX_LEVELS = 1000
/** How long a venue is not asked after a failure, unless it states a time. */
export const PAUSE_SECONDS = 10

/** True for a status after which a venue must not be asked again: banned (418) or not allowed from here (451). */
export const isRefusal = (status: number): boolean => status === 418 || status === 451

/** Rows of an answer that is a list of lists. Throws RequestError for an answer of another shape. */
export async function requestRows(
  name: string,
  url: URL,
  { fetch }: VenueOptions,
  signal: AbortSignal,
): Promise<unknown[][]> {
  const rows = await requestJson({ url, label: name, fetch, signal })
  if (Array.isArray(rows) && rows.every(Array.isArray)) return rows as unknown[][]
  throw new RequestError(`${name} answered something else than a list of bars`, 200)
}

/** Requests a book: `{bids, asks}` with levels that begin with price and quantity. Throws RequestError for any other answer. */
export async function requestBook(name: string, url: URL, { fetch }: VenueOptions, signal: AbortSignal): Promise<Book> {
  const { bids, asks } = rowOf(await requestJson({ url, label: name, fetch, signal }))
  const book = { bids: levelsOf(bids), asks: levelsOf(asks) }
  if (isSound(book)) return book
  throw new RequestError(`${name} answered with a book that is empty, crossed or out of order`, 200)
}

function levelsOf(rows: unknown): Level[] {
  return listOf(rows)
    .slice(0, MAX_LEVELS)
    .map((row): Level => [Number(listOf(row)[0]), Number(listOf(row)[1])])
}

/** True for a book with two sides, each in order with positive prices and quantities, that do not cross. */
export function isSound({ bids, asks }: Book): boolean {
  const [bid, ask] = [bids[0]?.[0], asks[0]?.[0]]
  if (bid === undefined || ask === undefined || !(bid < ask)) return false
  const isOrdered = (levels: readonly Level[], sign: 1 | -1): boolean =>
    levels.every(
      ([price, quantity], i) => price > 0 && quantity > 0 && (i === 0 || sign * (price - levels[i - 1]![0]) > 0),
    )
  return isOrdered(bids, -1) && isOrdered(asks, 1)
}
