import type { AuditMoney } from '../../../schemas/types.d.ts'
import { roundSignificant, roundTo } from '../../lib/quant/rounding.ts'
import { coinOf, pairOf } from '../currency-pairs.ts'
import { CurrencyRates } from '../currency-rates.ts'
import type { OpenPosition, Remainder, Trade, TradeLedger } from '../trade-ledger.ts'
import type { Trial } from './trials.ts'
import { entryValue, pointValue } from './trade-returns.ts'

/** Positions and remainders that a report lists. */
const LISTED = 20

/**
 * The judged trial in the money of the ledger. `net` is what the trips brought after the fees of the file and the costs of
 * the preset. Remainders count in it at the price of the last exit: without `remainders_value` it is cash. Open positions are
 * valued apart, at the last price of their symbol in the file. Amounts of several currencies have a total only if the file
 * itself gives their prices.
 *
 * @example 10 bought at 20 and sold at 19.8, 10 bought at 300 and sold at 303, fees of 0.40: gross 28, net 27.60
 */
export function moneyOf(ledger: TradeLedger, { index, trades, returns }: Trial): AuditMoney {
  const { capital } = ledger
  const open = ledger.openPositions.filter(({ trial }) => trial === index)
  const remainders = ledger.remainders.filter(({ trial }) => trial === index)
  const total = totalOf(ledger, trades, open)
  const missing = trades.some(({ qty }) => !Number.isFinite(qty)) ? 'The file has no quantity.' : total.missing
  const shown = {
    unknown_fees: ledger.unknownFees
      .filter(({ trial }) => trial === index)
      .map(({ currency, amount }) => ({ currency, amount: coins(amount) })),
    open_positions: markedPositions(ledger, open),
    remainders: valuedRemainders(ledger, remainders),
    capital,
  }
  if (missing !== null) return { ...NO_TOTAL, ...shown, total_missing: missing }
  const { rateOf } = total
  const round = roundingOf(ledger, trades.slice(0, 1))
  const sums = sumsOf(ledger, trades, returns, rateOf)
  const values = remainders.map((remainder) => valueOf(ledger, remainder) * rateOf(remainder.symbol, Infinity))
  const fall = drawdown(sums.nets, capital)
  return {
    ...shown,
    ...statedPart(trades, sums, round),
    currency: total.currency,
    total_missing: null,
    gross: round(sums.gross),
    fees: round(sums.fees),
    net: round(sums.net),
    net_by_notional_bps: sums.notional > 0 ? hundredths((sums.net / sums.notional) * 1e4) : null,
    unrealised: round(
      open.reduce(
        (sum, position) => sum + unrealisedOf(ledger, position) * rateOf(position.symbol, position.lastTime),
        0,
      ),
    ),
    remainders_value: round(values.reduce((sum, value) => sum + value, 0)),
    max_drawdown: round(fall.money),
    max_drawdown_share: fall.share,
  }
}

type Rounding = (value: number) => number

const NO_TOTAL = {
  currency: null,
  gross: null,
  fees: null,
  net: null,
  net_by_notional_bps: null,
  stated_profit: null,
  stated_basis: null,
  stated_difference: null,
  unrealised: null,
  remainders_value: null,
  max_drawdown: null,
  max_drawdown_share: null,
} as const

/** The currency of the total, and what an amount in the money of a symbol is worth in it at a time. */
interface Total {
  readonly currency: string | null
  readonly rateOf: (symbol: number, time: number) => number
  readonly missing: string | null
}

/** Several currencies have a total if the fills of the file give their prices. It is in the one with most trades. */
function totalOf({ instruments, fills }: TradeLedger, trades: readonly Trade[], open: readonly OpenPosition[]): Total {
  const counts = new Map<string, number>()
  for (const { symbol } of [...trades, ...open]) {
    const currency = instruments[symbol]?.currency ?? null
    if (currency !== null) counts.set(currency, (counts.get(currency) ?? 0) + 1)
  }
  const [[most] = [null], ...others] = [...counts].sort(([, one], [, other]) => other - one)
  if (most === null || others.length === 0) return { currency: most, rateOf: () => 1, missing: null }
  const pairs = instruments.map(({ name, currency }) => {
    const pair = pairOf(name)
    return pair && currency !== null ? { base: pair.base, quote: currency } : null
  })
  const rates = new CurrencyRates(
    fills.toSorted((one, other) => one.time - other.time),
    pairs,
  )
  const without = others.filter(([currency]) => rates.at(currency, most, 0) === null).map(([currency]) => currency)
  const named = [...counts.keys()].sort().join(', ')
  return {
    currency: most,
    rateOf: (symbol, time) => rates.at(instruments[symbol]?.currency ?? most, most, time) ?? Number.NaN,
    missing: without.length > 0 ? `The amounts are in ${named}, and the file gives no rates between them.` : null,
  }
}

interface Sums {
  readonly gross: number
  readonly fees: number
  readonly net: number
  readonly notional: number
  /** Profits that the file states; NaN if it does not state all of them. */
  readonly stated: number
  /** Profit of each trade after costs. */
  readonly nets: Float64Array
}

function sumsOf(
  { instruments }: TradeLedger,
  trades: readonly Trade[],
  returns: Trial['returns'],
  rateOf: Total['rateOf'],
): Sums {
  const nets = new Float64Array(trades.length)
  const sums = { gross: 0, fees: 0, net: 0, notional: 0, stated: 0 }
  for (const [index, trade] of trades.entries()) {
    const rate = rateOf(trade.symbol, trade.exitTime)
    const profit = profitOf(trade, instruments) * rate
    const value = entryValue(trade, instruments) * rate
    const net = profit - (returns.gross[index]! - returns.net[index]!) * value
    nets[index] = net
    sums.gross += profit
    sums.fees += (trade.fees || 0) * rate
    sums.stated += trade.pnl * rate
    sums.net += net
    sums.notional += value
  }
  return { ...sums, nets }
}

/** Profit of a trade before costs, in money. */
const profitOf = (
  { symbol, sign, qty, entryPrice, exitPrice }: Trade,
  instruments: TradeLedger['instruments'],
): number => sign * qty * (exitPrice - entryPrice) * pointValue(instruments[symbol]!, exitPrice)

/** The profits that the file states, and the basis on which they agree with prices: the nearer one of gross and net. */
function statedPart(
  trades: readonly Trade[],
  { gross, fees, stated }: Sums,
  round: Rounding,
): Pick<AuditMoney, 'stated_profit' | 'stated_basis' | 'stated_difference'> {
  if (!Number.isFinite(stated)) return { stated_profit: null, stated_basis: null, stated_difference: null }
  const [before, after] = [stated - gross, stated - (gross - fees)]
  const isNet = Math.abs(after) < Math.abs(before)
  const difference = isNet ? after : before
  const isNear = Math.abs(difference) <= 0.01 * trades.length + 0.01 * Math.abs(gross)
  return {
    stated_profit: round(stated),
    stated_basis: isNear ? (isNet ? 'net' : 'gross') : null,
    stated_difference: round(difference),
  }
}

/** The deepest fall of the running profit from its peak, in money, and as a share of capital plus the profit at the peak. */
function drawdown(
  nets: Float64Array,
  capital: number | null,
): { readonly money: number; readonly share: number | null } {
  let [sum, peak, money, share] = [0, 0, 0, 0]
  for (const net of nets) {
    sum += net
    peak = Math.max(peak, sum)
    money = Math.min(money, sum - peak)
    if (capital !== null) share = Math.min(share, (sum - peak) / (capital + peak))
  }
  return { money, share: capital === null ? null : roundTo(share, 6) }
}

function markedPositions(ledger: TradeLedger, open: readonly OpenPosition[]): AuditMoney['open_positions'] {
  return open
    .map((position) => ({
      position,
      unrealised: unrealisedOf(ledger, position),
      value: valueOf(ledger, { ...position, price: position.lastPrice }),
    }))
    .sort((one, other) => Math.abs(other.value) - Math.abs(one.value))
    .slice(0, LISTED)
    .map(({ position: { symbol, sign, qty, entryPrice, lastPrice, lastTime }, unrealised }) => ({
      symbol: ledger.symbols[symbol] ?? '',
      side: sideOf(sign),
      qty: Number.isFinite(qty) ? qty : null,
      entry_price: entryPrice,
      last_price: lastPrice,
      last_at: new Date(lastTime).toISOString(),
      unrealised: Number.isFinite(unrealised) ? roundingOf(ledger, [{ symbol }])(unrealised) : null,
    }))
}

/** Profit of an open position at its last price, after the fees of its entries. */
function unrealisedOf(
  { instruments }: TradeLedger,
  { symbol, sign, qty, entryPrice, lastPrice, fees }: OpenPosition,
): number {
  return sign * qty * (lastPrice - entryPrice) * pointValue(instruments[symbol]!, lastPrice) - (fees || 0)
}

function valuedRemainders(ledger: TradeLedger, remainders: readonly Remainder[]): AuditMoney['remainders'] {
  return remainders
    .map((remainder) => ({ remainder, value: valueOf(ledger, remainder) }))
    .sort((one, other) => Math.abs(other.value) - Math.abs(one.value))
    .slice(0, LISTED)
    .map(({ remainder: { symbol, sign, qty }, value }) => ({
      symbol: ledger.symbols[symbol] ?? '',
      side: sideOf(sign),
      qty,
      value: roundingOf(ledger, [{ symbol }])(value),
    }))
}

/** What is held is worth, in money; negative if it is owed. */
const valueOf = (
  { instruments }: TradeLedger,
  { symbol, sign, qty, price }: Pick<Remainder, 'symbol' | 'sign' | 'qty' | 'price'>,
): number => sign * qty * price * pointValue(instruments[symbol]!, price)

const sideOf = (sign: 1 | -1): 'long' | 'short' => (sign === 1 ? 'long' : 'short')
/** Rounds money to hundredths, and that of coins to eight digits: one may be worth much or little. */
const roundingOf = ({ symbols }: TradeLedger, held: readonly { readonly symbol: number }[]): Rounding =>
  held.some(({ symbol }) => coinOf(symbols[symbol] ?? '') !== null) ? coins : hundredths
const coins = (value: number): number => roundSignificant(roundTo(value, 10), 8) + 0
const hundredths = (value: number): number => roundTo(value, 2) + 0
