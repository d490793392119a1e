/** What a venue must offer so that bars and order books can be read from it. */
import { type Book, isSound, type Level } from '../../lib/quant/order-book.ts'
import { type BarRow, checkBars, numberOf, type RejectedRow, type SentBar } from '../../lib/feeds/bar-rows.ts'
import { listOf, rowOf } from '../../lib/feeds/payloads.ts'
import { type DatedJson, requestDatedJson, RequestError } from '../../lib/feeds/requests.ts'
import { CLOSED, createColumns, type Columns } from '../bars.ts'

/** Requests data from one venue. `signal` ends a request. Every method throws RequestError if there is no usable answer. */
export interface Venue {
  readonly name: string
  /** The largest number of minutes that one request returns. */
  readonly windowMinutes: number
  /** How far back its minutes reach, in minutes; Infinity for years. */
  readonly historyMinutes: number
  /**
   * Closed minutes of the venue's symbol that open in [from, to), epoch seconds, at most `windowMinutes` of them.
   * Minutes without a trade may be missing.
   */
  minutes(symbol: string, from: number, to: number, signal: AbortSignal): Promise<VenueMinutes>
  /** The order book of the venue's symbol, best levels first, at most MAX_LEVELS per side. */
  book(symbol: string, signal: AbortSignal): Promise<VenueBook>
}

/** An order book, checked. */
export interface VenueBook {
  readonly book: Book
  /** When the venue says that it sent the book, epoch seconds; null if it does not say. */
  readonly date: number | null
}

/** Minutes of a venue, checked. */
export interface VenueMinutes {
  readonly bars: Columns
  /** Rows that were not good enough to be stored. */
  readonly rejected: readonly RejectedRow[]
}

export interface VenueOptions {
  /** Base address of the API, without a trailing slash. */
  readonly url: string
  /** Base address of the API that has order books with a limit, where that is another one. */
  readonly bookUrl?: string | undefined
  readonly fetch: typeof fetch
  /** Our clock, epoch seconds. It counts only if an answer has no `Date`. */
  readonly now: () => number
}

/** Levels to request per side, where a venue takes a number. Few orders reach behind them. */
export const LEVELS = 500
/** Levels of an answer that are read per side. */
const MAX_LEVELS = 1000

/** A request for the minutes of a venue, and how to read its answer. */
export interface MinutesRequest {
  readonly name: string
  readonly url: URL
  readonly from: number
  readonly to: number
  /** The rows of an answer; null if it has another shape. Throws RequestError for an error that comes with status 200. */
  readonly rows: (body: unknown) => readonly SentBar[] | null
}

/** Requests minutes and checks each row. Throws RequestError for an answer of another shape. */
export async function requestMinutes(
  { name, url, from, to, rows }: MinutesRequest,
  { fetch, now }: VenueOptions,
  signal: AbortSignal,
): Promise<VenueMinutes> {
  const { body, date }: DatedJson = await requestDatedJson({ url, label: name, fetch, signal })
  const sent = rows(body)
  if (!sent) throw new RequestError(`${name} answered something else than a list of bars`, 200)
  const checked = checkBars(sent, { from, to, intervalSeconds: 60, servedAt: date ?? now() })
  const out = createColumns(checked.rows.length + 1)
  for (const { time, open, high, low, close, volume } of checked.rows)
    out.add(time, open, high, low, close, volume, CLOSED)
  return { bars: out.end(), rejected: checked.rejected }
}

/** Where each number of a row stands, and how many units of its time make a second. */
export interface RowShape extends Readonly<Record<keyof BarRow, number>> {
  readonly unitsPerSecond: 1 | 1000
}

/** Reads rows that are lists of numbers; null if the answer is not a list. A row that is no list is set aside later. */
export function listedRows(body: unknown, at: RowShape): readonly SentBar[] | null {
  if (!Array.isArray(body)) return null
  return body.map((row: unknown) => {
    const cells = listOf(row)
    return {
      time: Math.floor(numberOf(cells[at.time]) / at.unitsPerSecond),
      open: cells[at.open],
      high: cells[at.high],
      low: cells[at.low],
      close: cells[at.close],
      volume: cells[at.volume],
      row,
    }
  })
}

/** A request for an order book, and how to read its answer. */
export interface BookRequest {
  readonly name: string
  readonly url: URL
  /**
   * Finds `{bids, asks}` with levels that begin with price and quantity in an answer. Default: the answer itself. Throws
   * RequestError for an error that comes with status 200.
   */
  readonly sides?: (body: unknown) => unknown
}

/** Requests a book and checks it. Throws RequestError for any other answer. */
export async function requestBook(
  { name, url, sides = (body) => body }: BookRequest,
  { fetch }: VenueOptions,
  signal: AbortSignal,
): Promise<VenueBook> {
  const { body, date } = await requestDatedJson({ url, label: name, fetch, signal })
  return { book: readBook(name, sides(body)), date }
}

/** A book from `{bids, asks}`, checked. Throws RequestError for any other value. */
function readBook(name: string, body: unknown): Book {
  const { bids, asks } = rowOf(body)
  const book = { bids: levelsOf(bids), asks: levelsOf(asks) }
  if (isSound(book)) return book
  throw new RequestError(`${name} answered with a book that is empty, crossed or out of order`, 200)
}

function levelsOf(rows: unknown): Level[] {
  return listOf(rows)
    .slice(0, MAX_LEVELS)
    .map((row): Level => [Number(listOf(row)[0]), Number(listOf(row)[1])])
}
