import { listOf } from '../../lib/feeds/payloads.ts'
import { RequestError } from '../../lib/feeds/requests.ts'
import { listedRows, requestBook, requestMinutes, type Venue, type VenueOptions } from './bar-venue.ts'

const ROW = { time: 0, open: 1, close: 2, high: 3, low: 4, volume: 5, unitsPerSecond: 1000 } as const
/** The most that it takes. */
const LEVELS = 250

/**
 * Bitfinex. One request returns up to 10,000 minutes as rows `[open time in ms, open, close, high, low, volume]`; we ask for
 * the oldest first. Both ends are inclusive. Minutes without a trade are missing, and an unknown symbol has none at all.
 * Errors are lists: `["error", 11010, "ratelimit: error"]`.
 *
 * Source: Bitfinex API v2, "Candles" and "Book".
 */
export function createBitfinex(options: VenueOptions): Venue {
  return {
    name: 'bitfinex',
    windowMinutes: 10_000,
    historyMinutes: Infinity,
    minutes(symbol, from, to, signal) {
      const url = new URL(`${options.url}/v2/candles/trade:1m:${written(symbol)}/hist`)
      url.searchParams.set('start', String(from * 1000))
      url.searchParams.set('end', String((to - 60) * 1000))
      url.searchParams.set('limit', String((to - from) / 60))
      url.searchParams.set('sort', '1')
      const rows = (body: unknown) => listedRows(withoutError(body), ROW)
      return requestMinutes({ name: 'bitfinex', url, from, to, rows }, options, signal)
    },
    book(symbol, signal) {
      const url = new URL(`${options.url}/v2/book/${written(symbol)}/P0?len=${LEVELS}`)
      return requestBook({ name: 'bitfinex', url, sides }, options, signal)
    },
  }
}

/** Levels are [price, count, amount]; asks have a negative amount. */
function sides(body: unknown): unknown {
  const levels = listOf(withoutError(body)).map((level) => listOf(level).map(Number))
  const side = (sign: 1 | -1) =>
    levels.filter(([, , amount]) => Math.sign(amount!) === sign).map(([price, , amount]) => [price, Math.abs(amount!)])
  return { bids: side(1), asks: side(-1) }
}

/** Longer names have a colon, `tDOGE:USD`, which stands in the path as it is. */
const written = (symbol: string): string => encodeURIComponent(symbol).replaceAll('%3A', ':')

function withoutError(body: unknown): unknown {
  const [first, code, message] = listOf(body)
  if (first !== 'error') return body
  throw new RequestError(`bitfinex answered ${String(message)}`, code === 11_010 ? 429 : 503)
}
