/**
 * Reads the order books of the contracts that stand for a venue in spreads, so that a spread can say how much may be traded
 * at it. Each is read every few minutes.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { type Job, type PluginContext, timeoutSignal } from 'tollgate/plugin'
import { listOf } from '../lib/feeds/payloads.ts'
import { type Pauses, RequestError, requestJson } from '../lib/feeds/requests.ts'
import { type Book, isSound, type Level } from '../lib/quant/order-book.ts'
import type { FundingRate, VenueName } from './funding-rate.ts'
import type { Settings } from './funding-settings.ts'
import { pauseAfter } from './online-rates.ts'
import type { PerpetualBookStore } from './perpetual-books.ts'
import type { RateStore } from './rate-store.ts'
import { representatives } from './spreads.ts'
import { VENUES } from './venues/funding-venues.ts'
import { PayloadError, type Venue } from './venues/funding-venue.ts'

/** A book further from the mark price than this is that of another contract. */
const NEAR_MARK = 0.02
/** Statuses after which the rates of the venue are left alone, too. */
const LIMITS = [403, 418, 429, 451]

/** Creates the job. `pauses` are those of the polls: a venue that refuses them is not asked for books. */
export function bookJobs(
  context: PluginContext,
  settings: Settings,
  { rates, books, pauses }: { rates: RateStore; books: PerpetualBookStore; pauses: Pauses<VenueName> },
): readonly Job[] {
  const { log } = context
  const now = (): number => context.now().getTime() / 1000
  const wanted = new Set(settings.book_symbols ?? [])
  const limitMs = (settings.book_request_seconds ?? 8) * 1000
  const isEnabled = (venue: VenueName): boolean => settings.venues?.[venue]?.enabled ?? true

  async function readVenue(venue: Venue, signal: AbortSignal): Promise<void> {
    const { poll } = await rates.last(venue.name, now())
    for (const rate of representatives(poll?.rates ?? [], wanted)) {
      if (signal.aborted || pauses.isPaused(venue.name)) return
      const unit = coinsPerUnit(venue, rate)
      if (unit === null) continue
      try {
        const { path, body } = venue.book.request(rate.instrument)
        const url = (settings.venues?.[venue.name]?.url ?? venue.url).replace(/\/$/, '')
        const limit = AbortSignal.any([signal, timeoutSignal(limitMs)])
        const payload = await requestJson({ url: url + path, label: path, body, fetch: context.fetch, signal: limit })
        await books.add(venue.name, rate.instrument, now(), readBook(venue, rate, unit, payload))
      } catch (error) {
        if (signal.aborted) throw error
        log.warn({ venue: venue.name, instrument: rate.instrument, err: error }, 'could not read an order book')
        if (error instanceof RequestError && LIMITS.includes(error.status))
          await pauses.pause(venue.name, pauseAfter(error))
      }
      const pauseMs = settings.history_pause_ms ?? 0
      if (pauseMs > 0) await sleep(pauseMs, undefined, { signal }).catch(() => {})
    }
  }

  return [
    {
      name: 'books',
      everySeconds: settings.book_seconds ?? 300,
      run: async ({ signal }) => {
        await pauses.load()
        const venues = Object.values(VENUES).filter(({ name }) => isEnabled(name))
        await Promise.all(venues.map((venue) => readVenue(venue, signal)))
        await books.forget(now() - settings.keep_hours * 3600, signal)
      },
    },
  ]
}

/** Coins in one unit of a quantity; null if that is not known, or the contract is not paid in dollars. */
function coinsPerUnit({ book }: Venue, { contract, contractSize = null }: FundingRate): number | null {
  if (contract !== 'linear') return null
  return book.inContracts ? contractSize : 1
}

/**
 * Reads the book of an answer, with quantities in coins: `coins` is how many one unit of the venue's quantities is. Throws
 * PayloadError if the answer is no sound book, or one more than 2% away from the mark price.
 */
export function readBook(venue: Venue, rate: FundingRate, coins: number, payload: unknown): Book {
  const { bids, asks } = venue.book.sides(payload)
  const side = (levels: unknown, sign: 1 | -1): Level[] =>
    listOf(levels)
      .map((level): Level => [Number(listOf(level)[0]), Number(listOf(level)[1]) * coins])
      .toSorted(([a], [b]) => sign * (a - b))
  const book = { bids: side(bids, -1), asks: side(asks, 1) }
  if (!isSound(book)) throw new PayloadError('answered with a book that is empty, crossed or out of order')
  const price = rate.markPrice ?? rate.indexPrice
  const middle = (book.bids[0]![0] + book.asks[0]![0]) / 2
  if (price !== null && Math.abs(middle / price - 1) > NEAR_MARK)
    throw new PayloadError(`answered with a book around ${middle}, and a mark price of ${price}`)
  return book
}
