import type { LedgerBuilder } from './ledger-rows.ts'
import {
  areDollars,
  coinOf,
  type CurrencyPair,
  currencyCode,
  isKnownQuote,
  pairOf,
  unitsOfBase,
} from '../currency-pairs.ts'
import { CurrencyRates } from '../currency-rates.ts'
import type { Execution } from './positions.ts'
import type { Trade, UnknownFee } from '../trade-ledger.ts'

/** An execution whose fee is not yet in the money of its price. */
export interface UnsettledExecution extends Execution {
  fee: number
  kind: number
  /** Code of the currency of the fee; '' if the file names none. */
  readonly feeCurrency: string
}

const SIGNS: Readonly<Record<string, string>> = { $: 'USD', '€': 'EUR', '£': 'GBP', '¥': 'JPY', '₹': 'INR' }
/** A larger share of the value is no fee in the currency of the price. */
const LARGE_FEE = 0.05
/** "0.0005BTC", "1.2 USDT", "0.3 1INCH". */
const UNIT_BEHIND = /\d\.?\s*([A-Za-z]\w{1,9})$|\d\s+(\w{2,10})$/
/** "USDT 1.2", "$1.2", "-€0.35". */
const UNIT_BEFORE = /^[-+(]?\s*(?:([A-Z]{3,6})\s*[-+(]?\d|[A-Z]{0,3}([$€£¥₹]))/
/** "Fee (USDT)", "Commission USD". */
const UNIT_OF_NAME = /[([\s_]([A-Z]{3,5})[)\]]?$/
const DIGIT_0 = 48
const DIGIT_9 = 57

const isDigit = (code: number): boolean => code >= DIGIT_0 && code <= DIGIT_9

/**
 * Returns a function that tells the currency of the fee of a row: as its cell writes it, then as the column of fee
 * currencies, the name of the column, or the request states it. It returns '' if none does.
 */
export function feeCurrencyReader(builder: LedgerBuilder): (cells: readonly string[]) => string {
  const { has, text, name, options } = builder
  if (!has('fees')) return () => ''
  const [, named = ''] = UNIT_OF_NAME.exec(name('fees')) ?? []
  const fallback = currencyCode(isKnownQuote(named) ? named : (options.stated.feeCurrency ?? ''))
  // Files repeat the same few currencies.
  const codes = new Map<string, string>()
  const codeOf = (unit: string): string => {
    const known = codes.get(unit) ?? currencyCode(unit)
    codes.set(unit, known)
    return known
  }
  return (cells) => {
    const cell = text(cells, 'fees')
    if (cell !== '' && !(isDigit(cell.charCodeAt(cell.length - 1)) && isDigit(cell.charCodeAt(0)))) {
      const [, joined, apart] = UNIT_BEHIND.exec(cell) ?? []
      const [, code, sign] = UNIT_BEFORE.exec(cell) ?? []
      const unit = joined ?? apart ?? code ?? (sign === undefined ? undefined : SIGNS[sign])
      if (unit !== undefined) return codeOf(unit)
    }
    const stated = text(cells, 'feeCurrency')
    return /^\W*$/.test(stated) ? fallback : codeOf(stated)
  }
}

type UnsettledFee = Omit<UnsettledExecution, 'row' | 'sign' | 'pnl' | 'book'>

/**
 * Counts each fee in the money of its price, in place, and returns the warnings. A fee in the traded coin becomes units that
 * leave the position, one in a third currency is converted at the nearest price of it in the file. A fee that has no price
 * becomes NaN, and the builder notes its amount.
 *
 * @param executions in the order of time
 */
export function settleFeeCurrencies(builder: LedgerBuilder, executions: readonly UnsettledFee[]): readonly string[] {
  const { symbolNames: symbols, currencyOf, unknownFees } = builder
  const pairs = symbols.map((symbol, index): CurrencyPair | null => {
    const pair = pairOf(symbol)
    const quote = currencyOf(index)
    return pair && quote !== null ? { base: pair.base, quote } : pair
  })
  const unknown = new Map<string, UnknownFee & { amount: number }>()
  const warnings = new Set<string>()
  const coins = symbols.map((symbol) => coinOf(symbol) !== null)
  let [unnamed, large] = [0, 0]
  let rates: CurrencyRates | null = null
  for (const execution of executions) {
    const { fee, feeCurrency: currency, symbol, trial, price, qty, time } = execution
    if (currency === '' && Math.abs(fee) > 0 && coins[symbol]) {
      unnamed += 1
      if (fee > LARGE_FEE * qty * price) large += 1
    }
    if (currency === '' || !(fee !== 0)) continue
    const pair = pairs[symbol] ?? null
    const quote = pair?.quote ?? currencyOf(symbol)
    if (currency === quote) continue
    const name = symbols[symbol] ?? ''
    const units = unitsOfBase(currency, pair ?? { base: name.toUpperCase(), quote: '' })
    if (units !== null && Math.abs(fee * units) < qty) {
      // A contract is not held in its coin: the fee leaves the account, not the position.
      if (isContract(name)) execution.fee = fee * units * price
      else Object.assign(execution, { fee: Number.NaN, kind: fee * units })
      warnings.add(isContract(name) ? 'fees_in_coins_valued' : 'fees_in_kind_taken_from_positions')
      continue
    }
    // The only money that the file names is that of its fees.
    if (quote === null && isKnownQuote(currency)) continue
    if (quote !== null && areDollars(currency, quote)) {
      warnings.add(`fees_in_${currency}_counted_as_${quote}`)
      continue
    }
    rates ??= new CurrencyRates(executions, pairs)
    const rate = quote === null ? null : rates.at(currency, quote, time)
    if (rate !== null) {
      execution.fee = fee * rate
      warnings.add(`fees_in_${currency}_converted_at_prices_of_the_file`)
      continue
    }
    execution.fee = Number.NaN
    const key = `${trial}/${currency}`
    const known = unknown.get(key) ?? { currency, trial, amount: 0 }
    known.amount += fee
    unknown.set(key, known)
    warnings.add(`fees_in_${currency}_not_counted_without_a_price`)
  }
  noteUnnamedFees(builder, unnamed, large)
  unknownFees.push(...unknown.values())
  return [...warnings]
}

/**
 * Counts the fees of round trips in the money of their prices, in place. `currencies` are by row. A fee in the traded coin
 * counts at the exit price.
 */
export function settleTripFees(builder: LedgerBuilder, currencies: ReadonlyMap<number, string>): void {
  const { trades, symbolNames, warnings } = builder
  const isRate = builder.has('entryRate')
  if (currencies.size === 0 && (isRate || !symbolNames.some((symbol) => coinOf(symbol) !== null))) return
  const order = trades.map((_, index) => index).sort((one, other) => trades[one]!.exitTime - trades[other]!.exitTime)
  const executions = order.map((index): UnsettledFee => {
    const { row, symbol, trial, exitTime: time, exitPrice: price, qty, fees: fee } = trades[index]!
    return { symbol, trial, time, price, qty, fee, feeCurrency: currencies.get(row) ?? '', kind: 0 }
  })
  for (const code of settleFeeCurrencies(builder, executions))
    warnings.push(code.startsWith('fees_in_kind') ? 'fees_in_coins_valued' : code)
  for (const [place, { fee, kind, price }] of executions.entries()) {
    const index = order[place]!
    const fees = kind === 0 ? fee : kind * price
    if (!Object.is(fees, trades[index]!.fees)) trades[index] = { ...(trades[index] as Trade), fees }
  }
}

/**
 * Says that fees of coins that name no currency are taken as amounts in that of the price, and if they are too large a share
 * of the value for that.
 */
function noteUnnamedFees({ assume, warnings }: LedgerBuilder, unnamed: number, large: number): void {
  if (unnamed === 0) return
  const doubt = large > 0 ? ` ${large} of them are more than 5% of the value, as fees in another coin would be.` : ''
  assume(
    'fee_currency',
    `The fees name no currency and are taken as amounts in that of the price.${doubt}`,
    'fee_currency',
  )
  if (large > 0) warnings.push('fees_without_currency_above_5_percent_of_the_value')
}

/** Whether a symbol is a perpetual or another contract, by its spelling. */
const isContract = (symbol: string): boolean => /PERP|SWAP|MCBL|\.P$|:[A-Z]+(?:-\d{6})?$/i.test(symbol)
