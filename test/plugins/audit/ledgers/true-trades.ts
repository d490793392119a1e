/**
 * Trades whose result is known: fills of one position after another, drawn at random, and what they are worth. The audit is
 * compared with these figures, so nothing here may import from it.
 */
import * as fc from 'fast-check'
import { MARKETS, type Kind, type Market } from './markets.ts'

/** One execution. */
export interface TrueFill {
  /** Epoch milliseconds, on a whole minute. */
  readonly at: number
  /** 1 for a buy, -1 for a sale. */
  readonly sign: 1 | -1
  readonly qty: number
  readonly price: number
  /** In the currency of the fee; negative for a rebate. */
  readonly fee: number
  /** The base coin, the quote currency or a third one. */
  readonly feeCurrency: string
}

/** A position from flat to flat. */
export interface TrueTrip {
  readonly market: Market
  readonly sign: 1 | -1
  readonly entries: readonly TrueFill[]
  readonly exits: readonly TrueFill[]
  /** Whether its first entry and the last exit of the trip before are one order, which turns the position. */
  readonly turns: boolean
}

/** How a venue charges. */
export type FeeModel = 'none' | 'rate' | 'per_unit' | 'fixed' | 'rebates' | 'base' | 'third'

export interface TrueTrades {
  readonly kind: Kind
  /** The traded markets, in the order of their first trade. */
  readonly markets: readonly Market[]
  readonly trips: readonly TrueTrip[]
  readonly fees: FeeModel
  /** The rate a side of the model "rate". */
  readonly rate: number
  /** Whether each time is midnight. */
  readonly daily: boolean
}

/** What a file can say. A set of trades is made to fit it. */
export interface Limits {
  readonly kinds: readonly Kind[]
  readonly fees: readonly FeeModel[]
  /** The file has no symbol. */
  readonly oneMarket?: boolean
  /** The file has no times of day. */
  readonly daily?: boolean
  /** The file has one row for each trip, or its fills cannot be told apart. */
  readonly wholeTrips?: boolean
  /** All markets have the same quote currency. */
  readonly oneCurrency?: boolean
}

const DRAWN_TRIP = fc.record({
  market: fc.nat(3),
  short: fc.boolean(),
  turns: fc.nat(5).map((n) => n === 5),
  units: fc.nat(999),
  entries: fc.array(fc.record({ share: fc.integer({ min: 1, max: 9 }), price: fc.nat(999) }), {
    minLength: 1,
    maxLength: 3,
  }),
  exits: fc.array(fc.record({ share: fc.integer({ min: 1, max: 9 }), price: fc.nat(999) }), {
    minLength: 1,
    maxLength: 3,
  }),
  minutes: fc.integer({ min: 1, max: 4_000 }),
})
type DrawnTrip = typeof DRAWN_TRIP extends fc.Arbitrary<infer Value> ? Value : never

/** Numbers from which `makeTrades` makes a set of trades that fits a file. */
export const DRAWN_TRADES = fc.record({
  kind: fc.nat(59),
  fees: fc.nat(59),
  feeStep: fc.integer({ min: 1, max: 40 }),
  daily: fc.boolean(),
  wholeTrips: fc.boolean(),
  floors: fc.boolean(),
  firstMarket: fc.nat(59),
  markets: fc.integer({ min: 1, max: 4 }),
  day: fc.nat(700),
  trips: fc.array(DRAWN_TRIP, { minLength: 1, maxLength: 40, size: 'max' }),
})
export type DrawnTrades = typeof DRAWN_TRADES extends fc.Arbitrary<infer Value> ? Value : never

const MINUTE = 60_000
const DAY = 1_440 * MINUTE
const FIRST_DAY = Date.UTC(2023, 0, 2, 9, 30)
const THIRD_COIN = 'BNB'
/** The least share of a position that an order which turns it opens on the other side. */
const MIN_TURN = 0.05

/** A number with so many decimals, without the noise of binary fractions. */
export const decimal = (value: number, digits: number): number => Number(value.toFixed(digits))

const pick = <Value>(list: readonly Value[], at: number): Value => list[at % list.length] as Value

/** Makes the trades that the drawn numbers stand for, within what the file can say. */
export function makeTrades(drawn: DrawnTrades, limits: Limits): TrueTrades {
  const kind = pick(limits.kinds, drawn.kind)
  const fees = pick(
    limits.fees.filter((model) => (kind === 'crypto' ? model !== 'per_unit' : model !== 'base' && model !== 'third')),
    drawn.fees,
  )
  const daily = limits.daily ?? drawn.daily
  const all = MARKETS[kind]
  const first = pick(all, drawn.firstMarket)
  const eligible = limits.oneCurrency === true ? all.filter(({ quote }) => quote === first.quote) : all
  const start = eligible.indexOf(first)
  const count = limits.oneMarket === true ? 1 : Math.min(drawn.markets, eligible.length)
  const markets = Array.from({ length: count }, (_, index) => pick(eligible, start + index))
  const rate = drawn.feeStep / 20_000
  const whole = limits.wholeTrips === true || drawn.wholeTrips
  const begin = FIRST_DAY + drawn.day * DAY
  // Each market has its own clock, so that the trips of several markets overlap.
  const clocks = new Map(
    markets.map((market, index) => [
      market,
      daily ? { at: begin - (begin % DAY), step: DAY } : { at: begin + index * 7 * MINUTE, step: MINUTE },
    ]),
  )
  const last = new Map<Market, TrueTrip>()
  const trips = drawn.trips.map((trip) => {
    const market = pick(markets, trip.market)
    const parts = { market, fees, rate, whole, floors: drawn.floors, clock: clocks.get(market)!, step: drawn.feeStep }
    const made = makeTrip(trip, { ...parts, before: last.get(market) })
    last.set(market, made)
    return made
  })
  return { kind, markets: markets.filter((market) => last.has(market)), trips, fees, rate, daily }
}

interface TripParts {
  readonly market: Market
  readonly fees: FeeModel
  readonly rate: number
  readonly step: number
  readonly whole: boolean
  /** Whether sales are in whole lots, so that a fee in the bought coin leaves less than a lot. */
  readonly floors: boolean
  readonly clock: { at: number; readonly step: number }
  readonly before: TrueTrip | undefined
}

function makeTrip(drawn: DrawnTrip, parts: TripParts): TrueTrip {
  const { market, fees, clock, before, whole } = parts
  const longOnly = fees === 'base'
  // The fee of an order that turns the position is shared by quantity, which is true of fees that are a rate.
  const mayTurn = drawn.turns && before !== undefined && ['none', 'rate', 'rebates', 'third'].includes(fees)
  const [entryParts, exitParts] = whole
    ? [drawn.entries.slice(0, 1), drawn.exits.slice(0, 1)]
    : [drawn.entries, drawn.exits]
  const units = market.units[0] + Math.round(((market.units[1] - market.units[0]) * drawn.units) / 999)
  const pieces = split(units, entryParts)
  // A crumb on the other side of zero is what is left of the position before, not a new one.
  const turns = mayTurn && pieces[0]!.units >= MIN_TURN * tripSize(before) * 10 ** market.qtyDecimals
  const sign = turns ? (-before.sign as 1 | -1) : drawn.short && !longOnly ? -1 : 1
  const priceOf = (at: number): number =>
    decimal(Math.round((market.price * (0.9 + (0.2 * at) / 999)) / market.tick) * market.tick, market.priceDecimals)
  const minutes = Math.max(1, Math.round(drawn.minutes / (clock.step === DAY ? 1_000 : 1)))
  const entries = pieces.map(({ units, price }, index): TrueFill => {
    const isTurn = turns && index === 0
    const at = isTurn ? lastAt(before) : clock.at
    clock.at += isTurn ? 0 : clock.step
    const qty = decimal(units / 10 ** market.qtyDecimals, market.qtyDecimals)
    return { at, sign, qty, ...withFee(parts, sign, qty, isTurn ? before.exits.at(-1)!.price : priceOf(price)) }
  })
  clock.at += minutes * clock.step
  const digits = market.qtyDecimals + (fees === 'base' && !parts.floors ? 5 : 0)
  const paidInKind = entries.reduce((sum, { fee, feeCurrency }) => sum + (feeCurrency === market.base ? fee : 0), 0)
  const left = (units / 10 ** market.qtyDecimals - paidInKind) * 10 ** digits
  const held = parts.floors ? Math.floor(left + 1e-6) : Math.round(left)
  const exits = split(held, exitParts).map(({ units, price }): TrueFill => {
    const at = clock.at
    clock.at += clock.step
    const qty = decimal(units / 10 ** digits, digits)
    return { at, sign: -sign as 1 | -1, qty, ...withFee(parts, -sign as 1 | -1, qty, priceOf(price)) }
  })
  return { market, sign, entries, exits, turns }
}

const tripSize = ({ entries }: TrueTrip): number => entries.reduce((sum, { qty }) => sum + qty, 0)
const lastAt = ({ exits }: TrueTrip): number => exits.at(-1)!.at

/** Splits whole units by shares, at least one unit each; a position of few units has few parts. */
function split(
  units: number,
  parts: readonly { readonly share: number; readonly price: number }[],
): { units: number; price: number }[] {
  const used = parts.slice(0, Math.max(1, Math.min(parts.length, units)))
  const total = used.reduce((sum, { share }) => sum + share, 0)
  let left = units
  return used.map(({ share, price }, index) => {
    const rest = used.length - 1 - index
    const own = rest === 0 ? left : Math.max(1, Math.min(left - rest, Math.floor((units * share) / total)))
    left -= own
    return { units: own, price }
  })
}

function withFee(
  { market, fees, rate, step }: TripParts,
  sign: 1 | -1,
  qty: number,
  price: number,
): Pick<TrueFill, 'price' | 'fee' | 'feeCurrency'> {
  const value = qty * price * market.size
  const quote = (fee: number) => ({ price, fee: decimal(fee, market.feeDecimals), feeCurrency: market.quote })
  switch (fees) {
    case 'none':
      return quote(0)
    case 'rate':
      return quote(value * rate)
    case 'per_unit':
      return quote(Math.max(market.feePerUnit, (qty * market.feePerUnit * step) / 10))
    case 'fixed':
      return quote(market.feePerUnit * step)
    case 'rebates':
      // Purchases pay: nobody can tell the sign of fees in a file of nothing but rebates.
      return quote(value * rate * (sign === -1 && Math.round(price / market.tick) % 4 === 0 ? -0.2 : 1))
    case 'base':
      return sign === 1
        ? { price, fee: decimal(qty * rate, market.qtyDecimals + 5), feeCurrency: market.base }
        : quote(value * rate)
    case 'third':
      return { price, fee: decimal((value * rate) / 300, 8), feeCurrency: THIRD_COIN }
  }
}
