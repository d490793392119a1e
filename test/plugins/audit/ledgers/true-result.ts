/** What a set of trades is worth, by the conventions of an audit without a cost preset. */
import type { TrueTrades, TrueTrip } from './true-trades.ts'

export interface TrueResult {
  readonly trips: number
  /** Trips by symbol. */
  readonly bySymbol: ReadonlyMap<string, number>
  /** Equal-weighted mean returns of the trips, in basis points. */
  readonly grossBps: number
  readonly netBps: number
  /** Money by quote currency. Fees in a third coin are not in it. */
  readonly money: ReadonlyMap<string, { readonly gross: number; readonly net: number }>
  /** Fees in a currency that is neither base nor quote. */
  readonly thirdFees: ReadonlyMap<string, number>
  /** Value of what is left of positions after their last exits. */
  readonly left: number
}

export interface TripResult {
  readonly qty: number
  readonly entryPrice: number
  readonly exitPrice: number
  /** Money paid in at the entry. */
  readonly value: number
  readonly gross: number
  /** Fees in money; a fee in the bought coin counts at the price of the exit. */
  readonly fees: number
  readonly net: number
  /** What is left of the position after the last exit, at the price of the exit. */
  readonly left: number
}

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0)

/**
 * The result of one trip: gross = direction · size · quantity · (exit − entry), with mean prices by quantity. What is left
 * after the last exit counts at its price.
 *
 * @example 10 bought at 100, of which 0.01 pays the fee, 9.99 sold at 101 for a fee of 1.00899: gross 10, fees 2.01899, net 7.98101
 */
export function tripResult({ market, sign, entries, exits }: TrueTrip): TripResult {
  const [qty, sold] = [entries, exits].map((fills) => sum(fills.map((fill) => fill.qty))) as [number, number]
  const [paid, received] = [entries, exits].map((fills) => sum(fills.map((fill) => fill.qty * fill.price))) as [
    number,
    number,
  ]
  const [entryPrice, exitPrice] = [paid / qty, received / sold]
  const fees = sum(
    [...entries, ...exits].map(({ fee, feeCurrency }) =>
      feeCurrency === market.quote ? fee : feeCurrency === market.base ? fee * exitPrice * market.size : 0,
    ),
  )
  const gross = sign * market.size * qty * (exitPrice - entryPrice)
  const inKind = sum(entries.map(({ fee, feeCurrency }) => (feeCurrency === market.base ? fee : 0)))
  const left = Math.max(0, qty - inKind - sold) * exitPrice * market.size
  return { qty, entryPrice, exitPrice, value: paid * market.size, gross, fees, net: gross - fees, left }
}

/** The figures that the report on these trades must have. */
export function resultOf({ trips }: Pick<TrueTrades, 'trips'>): TrueResult {
  const results = trips.map(tripResult)
  const bySymbol = new Map<string, number>()
  const money = new Map<string, { gross: number; net: number }>()
  const thirdFees = new Map<string, number>()
  for (const [index, { market, entries, exits }] of trips.entries()) {
    bySymbol.set(market.symbol, (bySymbol.get(market.symbol) ?? 0) + 1)
    const total = money.get(market.quote) ?? { gross: 0, net: 0 }
    money.set(market.quote, { gross: total.gross + results[index]!.gross, net: total.net + results[index]!.net })
    for (const { fee, feeCurrency } of [...entries, ...exits])
      if (feeCurrency !== market.quote && feeCurrency !== market.base)
        thirdFees.set(feeCurrency, (thirdFees.get(feeCurrency) ?? 0) + fee)
  }
  const mean = (values: readonly number[]): number => (1e4 * sum(values)) / values.length
  return {
    trips: trips.length,
    bySymbol,
    grossBps: mean(results.map(({ gross, value }) => gross / value)),
    netBps: mean(results.map(({ net, value }) => net / value)),
    money,
    thirdFees,
    left: sum(results.map(({ left }) => left)),
  }
}
