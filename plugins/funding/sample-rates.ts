/**
 * Sample funding rates: a pure function of venue, symbol and minute. Rates swing slowly around the usual 0.01% per eight
 * hours, together at all venues with small differences between them.
 */
import { LRUCache } from 'lru-cache'
import { hashOf } from '../lib/feeds/sample-numbers.ts'
import { type ContractSettlements, createHeldSettlements } from './held-settlements.ts'
import type { Level } from '../lib/quant/order-book.ts'
import type { PerpetualBooks } from './perpetual-books.ts'
import type { SettlementSource } from './settlement-store.ts'
import { quarantine, type FundingRate, type VenueName, type RateSource } from './funding-rate.ts'

const DAY = 86_400
/** Symbol, price, and size of the swings of its rate. */
const SYMBOLS: readonly (readonly [symbol: string, price: number, swing: number])[] = [
  ['BTC', 98_000, 1],
  ['ETH', 3_600, 1.1],
  ['SOL', 190, 1.8],
  ['XRP', 2.2, 1.5],
  ['BNB', 640, 1],
  ['DOGE', 0.38, 2],
  ['ADA', 0.9, 1.6],
  ['AVAX', 36, 1.7],
  ['LINK', 19, 1.5],
  ['LTC', 95, 1.2],
  ['DOT', 7.4, 1.6],
  ['UNI', 11, 1.9],
  ['AAVE', 210, 2],
  ['ARB', 0.82, 2.4],
  ['OP', 1.9, 2.4],
  ['SUI', 3.4, 2.8],
  ['TIA', 5.6, 3.2],
  ['PEPE', 0.00002, 3.5],
]
/** From this index on, symbols have shorter intervals. */
const MINOR = 12

interface Form {
  readonly covered: number
  readonly hours: number
  readonly minorHours: number
  readonly source: FundingRate['intervalSource']
  readonly quote: string
  readonly name: (symbol: string) => string
}

const FORMS: Readonly<Record<VenueName, Form>> = {
  binance: { covered: 18, hours: 8, minorHours: 4, source: 'venue', quote: 'USDT', name: (symbol) => `${symbol}USDT` },
  bybit: { covered: 18, hours: 8, minorHours: 4, source: 'venue', quote: 'USDT', name: (symbol) => `${symbol}USDT` },
  okx: {
    covered: 16,
    hours: 8,
    minorHours: 4,
    source: 'venue',
    quote: 'USDT',
    name: (symbol) => `${symbol}-USDT-SWAP`,
  },
  hyperliquid: { covered: 18, hours: 1, minorHours: 1, source: 'published', quote: 'USD', name: (symbol) => symbol },
  dydx: { covered: 14, hours: 1, minorHours: 1, source: 'published', quote: 'USD', name: (symbol) => `${symbol}-USD` },
  kraken: {
    covered: 12,
    hours: 1,
    minorHours: 1,
    source: 'published',
    quote: 'USD',
    name: (symbol) => `PF_${symbol}USD`,
  },
  gate: { covered: 18, hours: 8, minorHours: 8, source: 'venue', quote: 'USDT', name: (symbol) => `${symbol}_USDT` },
  bitmex: { covered: 6, hours: 8, minorHours: 8, source: 'venue', quote: 'USDT', name: (symbol) => `${symbol}USDT` },
}

const angles = new Map<string, number>()
/** A fixed angle for a text. */
function angle(word: string): number {
  const known = angles.get(word)
  if (known !== undefined) return known
  const made = (hashOf(word) / 2 ** 32) * 2 * Math.PI
  angles.set(word, made)
  return made
}

const wave = (at: number, days: number, word: string): number =>
  Math.sin((2 * Math.PI * at) / (days * DAY) + angle(word))

/** The rate that a venue has for a symbol at a minute. `place` is that of the symbol in SYMBOLS. */
function rateOf(venue: VenueName, place: number, minute: number): FundingRate {
  const { hours, minorHours, source, quote, name } = FORMS[venue]
  const [symbol, start, swing] = SYMBOLS[place]!
  const interval = place < MINOR ? hours : minorHours
  const mood =
    wave(minute, 5.3, symbol) + 0.7 * wave(minute, 1.9, `${symbol} 2`) + 0.4 * wave(minute, 0.3, `${symbol} 3`)
  const apart = 0.5 * wave(minute, 2.7, `${symbol} ${venue}`) + 0.25 * wave(minute, 0.2, `${venue} ${symbol} 2`)
  const eight = 0.0001 + 0.00006 * swing * (mood + apart)
  const index =
    start * Math.exp(0.12 * wave(minute, 61, `${symbol} price`) + 0.03 * wave(minute, 3.1, `${symbol} price 2`))
  const mark = index * (1 + eight / 3)
  return {
    instrument: name(symbol),
    symbol,
    quote,
    settle: quote === 'USD' ? 'USDC' : quote,
    contract: 'linear',
    rate: ((eight * interval) / 8).toFixed(8),
    intervalHours: interval,
    intervalSource: source,
    kind: 'predicted',
    predictedRate: null,
    nextFunding: (Math.floor(minute / (interval * 3600)) + 1) * interval * 3600,
    markPrice: Number(mark.toPrecision(7)),
    indexPrice: Number(index.toPrecision(7)),
    volumeUsd: Math.round(2e9 * (0.2 + 0.1 * place) ** -1 * (1 + 0.3 * wave(minute, 1, `${symbol} ${venue} volume`))),
    openInterestUsd: Math.round(9e8 * (0.2 + 0.1 * place) ** -1),
    observed: minute,
  }
}

/** The places in SYMBOLS of what a venue lists. */
const placesOf = (venue: VenueName): readonly number[] =>
  SYMBOLS.slice(0, FORMS[venue].covered).map((_, place) => place)

/** Days of settled rates that the sample has. */
const SETTLED_DAYS = 30

/** The settled rates of the sample: those that were expected when their interval ended. */
export function openSampleSettlements(now: () => number): SettlementSource {
  const known = new LRUCache<string, readonly ContractSettlements[]>({ max: 16 })
  return createHeldSettlements((symbols) => {
    const hour = Math.floor(now() / 3600)
    const key = `${hour} ${symbols.join(' ')}`
    const made = known.get(key) ?? settledBy(symbols, hour * 3600)
    known.set(key, made)
    return made
  })
}

function settledBy(symbols: readonly string[], now: number): ContractSettlements[] {
  const from = Math.floor(now / DAY - SETTLED_DAYS) * DAY
  return (Object.keys(FORMS) as VenueName[]).flatMap((venue) =>
    placesOf(venue).flatMap((place): ContractSettlements[] => {
      const { instrument, symbol, intervalHours } = rateOf(venue, place, now)
      if (!symbols.includes(symbol)) return []
      const period = intervalHours * 3600
      const times = Array.from({ length: Math.floor((now - from) / period) }, (_, n) => from + (n + 1) * period)
      const settlements = times.map((time) => {
        const { rate } = rateOf(venue, place, time)
        return { venue, instrument, symbol, time, rate }
      })
      const contract = { venue, instrument, symbol, held_from: from, reached: now, updated_at: now, error: null }
      return [{ contract, settlements }]
    }),
  )
}

/** Creates the sample: every venue answers at every full minute. */
export function openSampleRates(): RateSource {
  return {
    async at(asOf) {
      const minute = Math.floor(asOf / 60) * 60
      return (Object.keys(FORMS) as VenueName[]).map((venue) => ({
        venue,
        enabled: true,
        poll: { ...quarantine(placesOf(venue).map((place) => rateOf(venue, place, minute))), untold: [] },
        fetched: minute,
        error: null,
      }))
    },
  }
}

/** A venue's order book is made anew this often, seconds. */
const BOOK_SECONDS = 300
const BOOK_LEVELS = 20

/** Sample order books around the mark prices, deeper where more is traded. */
export function openSampleBooks(rates: RateSource): PerpetualBooks {
  return async (venue, instrument, asOf) => {
    const time = Math.floor(asOf / BOOK_SECONDS) * BOOK_SECONDS
    const state = (await rates.at(time)).find((one) => one.venue === venue)
    const rate = state?.poll?.rates.find((one) => one.instrument === instrument)
    if (rate?.markPrice == null || rate.volumeUsd == null) return null
    const { markPrice, volumeUsd } = rate
    const side = (sign: 1 | -1): Level[] =>
      Array.from({ length: BOOK_LEVELS }, (_, i): Level => {
        const price = markPrice * (1 + sign * (0.00005 + 0.0001 * i))
        return [Number(price.toPrecision(8)), Number(((volumeUsd * 2e-5 * (1 + i)) / price).toPrecision(6))]
      })
    return { time, book: { bids: side(-1), asks: side(1) } }
  }
}
