import { expect } from 'chai'
import * as fc from 'fast-check'
import { FORMATS } from './ledgers/ledger-case.ts'
import { type Market, MARKETS } from './ledgers/markets.ts'
import { resultOf, tripResult } from './ledgers/true-result.ts'
import { DRAWN_TRADES, makeTrades, type TrueFill, type TrueTrip } from './ledgers/true-trades.ts'

type Execution = readonly [qty: number, price: number, fee?: number, currency?: string]

/** A trip from its executions; fees are in the quote currency if they name none. */
function trip(market: Market, sign: 1 | -1, entry: Execution, exit: Execution): TrueTrip {
  const fill = ([qty, price, fee = 0, feeCurrency = market.quote]: Execution, sign: 1 | -1, at: number): TrueFill => ({
    at,
    sign,
    qty,
    price,
    fee,
    feeCurrency,
  })
  return { market, sign, entries: [fill(entry, sign, 0)], exits: [fill(exit, -sign as 1 | -1, 1)], turns: false }
}

const X: Market = MARKETS.stock[0]!
const ABC: Market = { ...MARKETS.crypto[0]!, symbol: 'ABCUSDT', base: 'ABC' }
const EURUSD: Market = MARKETS.fx[0]!
const MNQ: Market = MARKETS.futures[0]!
const moneyOf = (trips: readonly TrueTrip[], currency: string): number => resultOf({ trips }).money.get(currency)!.net

describe('the figures that written ledgers are compared with', () => {
  it('take a fee in the bought coin from the position', () => {
    const trips = [
      trip(ABC, 1, [10, 100, 0.01, 'ABC'], [9.99, 101, 1.00899]),
      trip(ABC, 1, [10, 200, 0.01, 'ABC'], [9.99, 198, 1.97802]),
      trip(ABC, 1, [10, 400, 0.01, 'ABC'], [9.99, 396, 3.95604]),
    ]
    const { grossBps, netBps } = resultOf({ trips })
    expect(grossBps).to.be.closeTo(-33.333, 0.001)
    expect(netBps).to.be.closeTo(-53.257, 0.001)
    expect(moneyOf(trips, 'USDT')).to.be.closeTo(-63.893, 0.001)
    const cheap = [trip(ABC, 1, [100_000_000, 0.000_01, 100_000, 'ABC'], [99_900_000, 0.000_011, 1.0989])]
    expect(resultOf({ trips: cheap }).netBps).to.be.closeTo(978.011, 0.001)
  })

  it('multiply moves by the contract size', () => {
    const lots = ([sign, exit]: readonly [1 | -1, number]) => trip(EURUSD, sign, [0.1, 1.08], [0.1, exit, 0.7])
    const trips = (
      [
        [1, 1.081],
        [-1, 1.0806],
        [1, 1.0812],
        [1, 1.0794],
        [-1, 1.079],
        [1, 1.0808],
      ] as const
    ).map(lots)
    expect(resultOf({ trips }).netBps).to.be.closeTo(3.673, 0.001)
    expect(moneyOf(trips, 'USD')).to.be.closeTo(23.8, 1e-6)
    const deal = [trip(EURUSD, 1, [0.1, 1.085], [0.1, 1.087])]
    expect(resultOf({ trips: deal }).netBps).to.be.closeTo(18.433, 0.001)
    const futures = [trip(MNQ, 1, [1, 18_000], [1, 17_995, 1.5]), trip(MNQ, 1, [1, 18_000], [1, 18_010, 1.5])]
    expect(resultOf({ trips: futures }).netBps).to.be.closeTo(0.972, 0.001)
  })

  it('weigh each trip alike, whatever its instrument, side and value', () => {
    const other = { ...X, symbol: 'Y' }
    const trips = [trip(X, 1, [10, 20, 0.1], [10, 19.8, 0.1]), trip(other, 1, [10, 300, 0.1], [10, 303, 0.1])]
    expect(resultOf({ trips }).netBps).to.be.closeTo(-5.333, 0.001)
    expect(moneyOf(trips, 'USD')).to.be.closeTo(27.6, 1e-9)
    const sides = [trip(X, -1, [10, 100], [10, 98]), trip(X, 1, [10, 100], [10, 102])]
    expect(resultOf({ trips: sides }).netBps).to.be.closeTo(200, 1e-9)
    expect(
      resultOf({ trips: [trip(X, 1, [1, 100], [1, 101]), trip(X, 1, [1, 100], [1, 101.1])] }).netBps,
    ).to.be.closeTo(105, 1e-9)
  })

  it('subtract fees and add rebates', () => {
    const pairs = [
      [5, 5],
      [5, 5],
      [-0.2, -0.1],
    ] as const
    const trips = pairs.map(([entry, exit]) => trip(X, 1, [100, 100, entry], [100, 100.2, exit]))
    expect(resultOf({ trips }).netBps).to.be.closeTo(13.433, 0.001)
    const stocks = resultOf({ trips: [trip(X, 1, [100, 50, 1], [100, 51, 1])] })
    expect([stocks.grossBps, stocks.netBps]).to.deep.equal([200, 196])
  })

  it('equal the sum of cash of all executions, and of less than a lot that is left', () => {
    const formats = fc.constantFrom(...FORMATS)
    fc.assert(
      fc.property(DRAWN_TRADES, formats, (drawn, { limits }) => {
        const { trips } = makeTrades(drawn, limits)
        const cash = new Map<string, number>()
        for (const { market, entries, exits } of trips) {
          let held = 0
          for (const { sign, qty, price, fee, feeCurrency } of [...entries, ...exits]) {
            const paid = sign * qty * price * market.size + (feeCurrency === market.quote ? fee : 0)
            cash.set(market.quote, (cash.get(market.quote) ?? 0) - paid)
            held += sign * qty - (feeCurrency === market.base ? fee : 0)
          }
          expect(Math.abs(held)).to.be.below(10 ** -market.qtyDecimals)
          const { left } = tripResult({ market, sign: 1, entries, exits, turns: false })
          cash.set(market.quote, cash.get(market.quote)! + left)
        }
        for (const [currency, sum] of cash)
          expect(moneyOf(trips, currency)).to.be.closeTo(sum, 1e-9 * Math.max(1, ...trips.map(turnover)) * trips.length)
      }),
      { numRuns: 300 },
    )
  })
})

const turnover = ({ entries, market }: TrueTrip): number =>
  entries.reduce((sum, { qty, price }) => sum + qty * price * market.size, 0)
