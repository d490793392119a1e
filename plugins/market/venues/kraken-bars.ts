import { isRow, listOf, type Row, rowOf } from '../../lib/feeds/payloads.ts'
import { RequestError } from '../../lib/feeds/requests.ts'
import { LEVELS, listedRows, requestBook, requestMinutes, type Venue, type VenueOptions } from './bar-venue.ts'

const ROW = { time: 0, open: 1, high: 2, low: 3, close: 4, volume: 6, unitsPerSecond: 1 } as const

/**
 * Kraken spot. A request returns the last 720 minutes at most, whatever `since` says, oldest first, as rows `[time, open,
 * high, low, close, vwap, volume, count]` with prices as strings. Minutes without a trade are included, with no volume, and
 * the last row is the minute that is still open. Errors come with status 200: `{"error":["EQuery:Unknown asset pair"]}`.
 *
 * Source: Kraken REST API, "Get OHLC Data" and "Get Order Book".
 */
export function createKraken(options: VenueOptions): Venue {
  return {
    name: 'kraken',
    windowMinutes: 720,
    historyMinutes: 720,
    minutes(symbol, from, to, signal) {
      const url = new URL(`${options.url}/0/public/OHLC`)
      url.searchParams.set('pair', symbol)
      url.searchParams.set('interval', '1')
      // Rows after this time: the minute itself is left out.
      url.searchParams.set('since', String(from - 60))
      const rows = (body: unknown) => listedRows(pairOf(body), ROW)
      return requestMinutes({ name: 'kraken', url, from, to, rows }, options, signal)
    },
    book(symbol, signal) {
      const url = new URL(`${options.url}/0/public/Depth?pair=${encodeURIComponent(symbol)}&count=${LEVELS}`)
      return requestBook({ name: 'kraken', url, sides: pairOf }, options, signal)
    },
  }
}

/** What is stated of the pair, which Kraken calls by a name of its own. */
function pairOf(body: unknown): unknown {
  const { error, result }: Row = rowOf(body)
  const [message] = listOf(error)
  if (typeof message === 'string') throw new RequestError(`kraken answered ${message}`, statusOf(message))
  return isRow(result) ? Object.entries(result).find(([name]) => name !== 'last')?.[1] : undefined
}

/** The HTTP status that other venues use for the error. */
function statusOf(message: string): number {
  if (/unknown asset pair/i.test(message)) return 404
  return /too many|rate limit/i.test(message) ? 429 : 503
}
