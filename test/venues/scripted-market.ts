/**
 * An invented market whose truth is known: the price of each symbol in each minute follows from a seed. The venues of
 * this folder all quote it, each a little differently, as real ones do.
 */
import { seedOf } from '../../plugins/lib/feeds/sample-numbers.ts'
import { seededRandom } from '../../plugins/lib/quant/seeded-random.ts'

export interface Bar {
  /** Open time, epoch seconds. */
  readonly time: number
  readonly open: number
  readonly high: number
  readonly low: number
  readonly close: number
  /** In units of the base currency. Zero in a minute without a trade. */
  readonly volume: number
  readonly trades: number
}

/** Price and quantity. */
export type Level = readonly [price: number, quantity: number]

export interface Book {
  /** Best first. */
  readonly bids: readonly Level[]
  readonly asks: readonly Level[]
}

interface Traits {
  /** Price when the market opens. */
  readonly price: number
  /** Volatility per year, a fraction. */
  readonly volatility: number
  /** Digits after the decimal point. */
  readonly digits: number
  /** Turnover per minute in dollars. */
  readonly turnover: number
  /** Share of minutes without a trade. */
  readonly quiet: number
}

/** The symbols of the market. USDT-USD stays close to one. */
export const SYMBOLS: Readonly<Record<string, Traits>> = {
  'BTC-USD': { price: 98_000, volatility: 0.5, digits: 2, turnover: 1_400_000, quiet: 0 },
  'ETH-USD': { price: 3_600, volatility: 0.68, digits: 2, turnover: 760_000, quiet: 0 },
  'SOL-USD': { price: 165, volatility: 0.8, digits: 2, turnover: 240_000, quiet: 0 },
  'XRP-USD': { price: 3, volatility: 0.75, digits: 4, turnover: 210_000, quiet: 0 },
  'DOGE-USD': { price: 0.21, volatility: 0.95, digits: 5, turnover: 90_000, quiet: 0.001 },
  'ADA-USD': { price: 0.74, volatility: 0.85, digits: 4, turnover: 60_000, quiet: 0.002 },
  'LTC-USD': { price: 112, volatility: 0.75, digits: 2, turnover: 40_000, quiet: 0.002 },
  'LINK-USD': { price: 16.4, volatility: 0.9, digits: 3, turnover: 45_000, quiet: 0.002 },
  'AVAX-USD': { price: 22.3, volatility: 0.95, digits: 2, turnover: 30_000, quiet: 0.004 },
  'BNB-USD': { price: 780, volatility: 0.6, digits: 2, turnover: 50_000, quiet: 0.002 },
  'USDT-USD': { price: 1.0004, volatility: 0.0012, digits: 5, turnover: 120_000, quiet: 0 },
}

/** The market opens on 1 August 2025. There is no bar before. */
const MARKET_OPENS = Date.UTC(2025, 7, 1) / 1000
const MINUTES_PER_YEAR = 525_600
/** Volatility itself moves: half of a change of its logarithm is gone after six hours. */
const PERSISTENCE = 0.5 ** (1 / 360)
const VOLATILITY_OF_VOLATILITY = 0.55
/** Venues differ from the truth by at most this fraction. */
export const VENUE_DEVIATION = 0.00015

export interface ScriptedMarket {
  /** The true bar that opens at `time`, epoch seconds, a multiple of 60. Throws RangeError for an unknown symbol. */
  bar(symbol: string, time: number): Bar
  /** The bar as a venue reports it: near the truth, on the tick of the symbol, and perhaps without a trade. */
  barAt(venue: string, symbol: string, time: number): Bar
  /** The bar of the minute that is still forming at `now` (epoch milliseconds), as a venue reports it. */
  forming(venue: string, symbol: string, now: number): Bar
  /** The true price at a moment, epoch milliseconds. */
  price(symbol: string, at: number): number
  /** The book of a venue at a moment, epoch milliseconds, with at most `levels` levels on each side. */
  book(venue: string, symbol: string, at: number, levels: number): Book
}

/** Bars that are kept of each venue and symbol: tests ask for the same days again and again. */
const KEPT_BARS = 10_000

/** The paths of each seed by symbol: half a year of minutes takes long to compute, so the markets of a process share them. */
const pathsOfSeeds = new Map<string, Map<string, PricePath>>()

/** Creates the market. The same seed gives the same prices on every machine. */
export function createMarket(seed = 'tollgate'): ScriptedMarket {
  const paths = pathsOfSeeds.get(seed) ?? new Map<string, PricePath>()
  pathsOfSeeds.set(seed, paths)
  const pathOf = (symbol: string): PricePath => {
    const known = paths.get(symbol)
    if (known) return known
    const traits = SYMBOLS[symbol]
    if (!traits) throw new RangeError(`the market has no ${symbol}; it has ${Object.keys(SYMBOLS).join(', ')}`)
    const path = new PricePath(`${seed}/${symbol}`, symbol, traits)
    paths.set(symbol, path)
    return path
  }
  const round = (value: number, { digits }: Traits): number => Number(value.toFixed(digits))

  function bar(symbol: string, time: number): Bar {
    const path = pathOf(symbol)
    const minute = minuteOf(time)
    const [open, close] = [path.priceAt(minute), path.priceAt(minute + 1)]
    const reach = path.spread(minute)
    const [up, down, size] = [unitOf(path.hash, minute, 0), unitOf(path.hash, minute, 1), unitOf(path.hash, minute, 2)]
    const turnover = path.traits.turnover * (0.4 + 1.2 * size)
    return {
      time,
      open,
      high: Math.max(open, close) * (1 + reach * up),
      low: Math.min(open, close) * (1 - reach * down),
      close,
      volume: turnover / close,
      trades: 1 + Math.floor(turnover / 2_000),
    }
  }

  function deviated(venue: string, symbol: string, exact: Bar): Bar {
    const path = pathOf(symbol)
    const { traits } = path
    const hash = path.hashAt(venue)
    const minute = minuteOf(exact.time)
    const near = (price: number, at: number): number =>
      round(price * (1 + VENUE_DEVIATION * (2 * unitOf(hash, at, 3) - 1)), traits)
    const [open, close] = [near(exact.open, minute), near(exact.close, minute + 1)]
    if (unitOf(hash, minute, 4) < traits.quiet)
      return { time: exact.time, open, high: open, low: open, close: open, volume: 0, trades: 0 }
    return {
      time: exact.time,
      open,
      high: Math.max(open, close, near(exact.high, minute)),
      low: Math.min(open, close, near(exact.low, minute)),
      close,
      volume: Number((exact.volume * (0.3 + 0.4 * unit(venue, minute, 5))).toFixed(8)),
      trades: exact.trades,
    }
  }

  function price(symbol: string, at: number): number {
    const path = pathOf(symbol)
    const minute = minuteOf(Math.floor(at / 60_000) * 60)
    const share = (at % 60_000) / 60_000
    return path.priceAt(minute) * (1 - share) + path.priceAt(minute + 1) * share
  }

  return {
    bar,
    price,
    barAt(venue, symbol, time) {
      const known = pathOf(symbol).barsAt(venue)
      const asked = known.get(time)
      if (asked) return asked
      if (known.size >= KEPT_BARS) known.clear()
      const made = deviated(venue, symbol, bar(symbol, time))
      known.set(time, made)
      return made
    },
    forming(venue, symbol, now) {
      const time = Math.floor(now / 60_000) * 60
      const share = Math.max(0.01, (now % 60_000) / 60_000)
      const whole = bar(symbol, time)
      const close = price(symbol, now)
      return deviated(venue, symbol, {
        ...whole,
        close,
        high: Math.max(whole.open, close),
        low: Math.min(whole.open, close),
        volume: whole.volume * share,
        trades: Math.ceil(whole.trades * share),
      })
    },
    book(venue, symbol, at, levels) {
      const { traits } = pathOf(symbol)
      const tick = 10 ** -traits.digits
      const second = Math.floor(at / 1000)
      const middle = price(symbol, at) * (1 + VENUE_DEVIATION * (2 * unit(venue, second, 6) - 1))
      const half = Math.max(tick, middle * 0.00001)
      const side = (sign: 1 | -1): Level[] =>
        Array.from({ length: levels }, (_, i) => [
          round(middle + sign * (half + i * Math.max(tick, middle * 0.00002)), traits),
          Number(((traits.turnover / middle / 40) * (0.3 + unit(venue, second + i, sign + 8)) + 1e-8).toFixed(8)),
        ])
      return { bids: side(-1), asks: side(1) }
    },
  }
}

const minuteOf = (time: number): number => (time - MARKET_OPENS) / 60

/** A number in [0, 1) that depends on nothing else than its arguments. */
export function unit(name: string, at: number, salt: number): number {
  return unitOf(nameHash(name), at, salt)
}

function unitOf(name: number, at: number, salt: number): number {
  let hash = Math.imul(name ^ Math.imul(at | 0, 0x9e3779b1) ^ Math.imul(salt + 1, 0x85ebca6b), 0xc2b2ae35)
  hash = Math.imul(hash ^ (hash >>> 15), 0x27d4eb2f)
  hash = Math.imul(hash ^ (hash >>> 13), 0x165667b1)
  return ((hash ^ (hash >>> 16)) >>> 0) / 2 ** 32
}

const nameHashes = new Map<string, number>()

function nameHash(name: string): number {
  const known = nameHashes.get(name)
  if (known !== undefined) return known
  const hash = seedOf(name)
  nameHashes.set(name, hash)
  return hash
}

/** The price at the start of every minute: a random walk whose volatility is a slow random walk too. */
class PricePath {
  readonly traits: Traits
  /** Of the seed and the symbol, for `unitOf`. */
  readonly hash: number
  readonly #symbol: string
  readonly #venues = new Map<string, number>()
  readonly #bars = new Map<string, Map<number, Bar>>()
  readonly #random: () => number
  #prices = new Float64Array(65_536)
  #spreads = new Float32Array(65_536)
  #size = 0
  #level: number
  #heat = 0

  constructor(name: string, symbol: string, traits: Traits) {
    this.traits = traits
    this.hash = seedOf(name)
    this.#symbol = symbol
    this.#random = seededRandom(this.hash)
    this.#level = Math.log(traits.price)
  }

  /** Of a venue and the symbol, for `unitOf`. */
  hashAt(venue: string): number {
    const known = this.#venues.get(venue)
    if (known !== undefined) return known
    const hash = seedOf(`${venue}/${this.#symbol}`)
    this.#venues.set(venue, hash)
    return hash
  }

  /** The bars that a venue was asked for, by time. */
  barsAt(venue: string): Map<number, Bar> {
    const known = this.#bars.get(venue) ?? new Map<number, Bar>()
    this.#bars.set(venue, known)
    return known
  }

  /** The price at the start of a minute. Throws RangeError before the market opened. */
  priceAt(minute: number): number {
    if (minute < 0 || minute >= this.#size) this.#reach(minute)
    return this.#prices[minute]!
  }

  /** How far the extremes of a minute reach beyond its open and close, as a fraction. */
  spread(minute: number): number {
    if (minute < 0 || minute >= this.#size) this.#reach(minute)
    return this.#spreads[minute]!
  }

  #reach(minute: number): void {
    if (minute < 0) throw new RangeError('the market was not open then')
    if (minute >= this.#prices.length) this.#grow(minute + 1)
    const [prices, spreads, random] = [this.#prices, this.#spreads, this.#random]
    const perMinute = this.traits.volatility / Math.sqrt(MINUTES_PER_YEAR)
    const noise = Math.sqrt(1 - PERSISTENCE ** 2) * VOLATILITY_OF_VOLATILITY
    let [level, heat] = [this.#level, this.#heat]
    for (let at = this.#size; at <= minute; at += 1) {
      heat = PERSISTENCE * heat + noise * normal(random)
      const sigma = perMinute * Math.exp(heat)
      prices[at] = Math.exp(level)
      spreads[at] = sigma * 0.6
      level += sigma * normal(random)
    }
    this.#level = level
    this.#heat = heat
    this.#size = Math.max(this.#size, Math.floor(minute) + 1)
  }

  #grow(size: number): void {
    const [prices, spreads] = [this.#prices, this.#spreads]
    const length = 2 ** Math.ceil(Math.log2(size))
    this.#prices = new Float64Array(length)
    this.#spreads = new Float32Array(length)
    this.#prices.set(prices)
    this.#spreads.set(spreads)
  }
}

/** Box-Muller; one of the two values is dropped, so that each minute uses the same count of random numbers. */
function normal(random: () => number): number {
  return Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random())
}
