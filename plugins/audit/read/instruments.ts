import type { Instrument, Trade } from '../trade-ledger.ts'
import { knownContract } from '../contract-sizes.ts'
import { commissionOf, findModel, type FoundModel } from '../profit-models.ts'
import { forexPairOf, pairOf } from '../currency-pairs.ts'
import type { LedgerBuilder } from './ledger-rows.ts'

/** A currency pair is traded in lots if no quantity is above this. */
const MOST_LOTS = 1000
/** A message names at most this many symbols. */
const NAMED = 5
/** Warnings about what stated profits show. */
const MOST_WARNINGS = 20

/**
 * What is known of each symbol of a ledger. The size of a contract is what the request states, a column says, or the stated
 * profits show; without these it is the size that the name of the symbol means, and an assumption says so. A commission
 * that the profits contain and the file does not report becomes the fee of each trade.
 */
export function readInstruments(builder: LedgerBuilder): Instrument[] {
  const { trades, symbolNames, warnings, assume } = builder
  const groups = symbolNames.map((): number[] => [])
  for (const [index, { symbol }] of trades.entries()) groups[symbol]?.push(index)
  const missing: string[] = []
  const inferred = new Map<string, string[]>()
  const instruments = groups.map((indices, symbol) => {
    const group = indices.map((index) => trades[index]!)
    const name = symbolNames[symbol] ?? ''
    const stated = statedSize(builder, symbol)
    const column = builder.columnSizeOf(symbol)
    const known = knownContract(name)
    const fixed = stated ?? (column > 0 ? column : null)
    const model = findModel({ trades: group, stated: fixed, known: known?.size ?? null })
    for (const message of model ? inferences(model, fixed) : []) {
      const names = inferred.get(message)
      if (names) names.push(name)
      else inferred.set(message, [name])
    }
    if (model?.commission) addCommission(builder, indices, model)
    const currency = currencyOf(builder, symbol, model)
    const base = { name, currency, profits: model }
    if (fixed !== null)
      return {
        ...base,
        contractSize: fixed,
        contractSizeSource: stated === null ? ('file' as const) : ('stated' as const),
      }
    if (model && (model.size !== 1 || model.unverified === null))
      return { ...base, contractSize: meanSize(model, group), contractSizeSource: 'inferred' as const }
    const isContract = known !== null && (known.kind !== 'forex' || isInLots(group))
    if (isContract) missing.push(name)
    const size = isContract && known.isCertain ? known.size : 1
    return { ...base, contractSize: size, contractSizeSource: 'assumed' as const }
  })
  warnings.push(...namedBySymbol(inferred))
  if (missing.length > 0) {
    const sizes = missing
      .slice(0, NAMED)
      .map((name) => `${name} ${instruments.find((one) => one.name === name)?.contractSize ?? 1}`)
    const more = missing.length > NAMED ? ` and ${missing.length - NAMED} more` : ''
    warnings.push('contract_size_assumed')
    assume(
      'contract_size',
      `The file does not show what a contract is worth. Assumed for a move of 1: ${sizes.join(', ')}${more}.`,
      'contract_size',
    )
  }
  assumeCurrency(builder, instruments)
  return instruments
}

/** The contract size that the request states for a symbol; null if none. */
function statedSize({ options, symbolNames }: LedgerBuilder, symbol: number): number | null {
  const { contractSize } = options.stated
  if (contractSize === null || typeof contractSize === 'number') return contractSize
  const name = symbolNames[symbol] ?? ''
  return contractSize.get(name) ?? contractSize.get(name.toUpperCase()) ?? null
}

/** An account in the base currency states its profits in it. */
function currencyOf(builder: LedgerBuilder, symbol: number, model: FoundModel | null): string | null {
  const base = model?.isInverse ? (forexPairOf(builder.symbolNames[symbol] ?? '')?.base ?? null) : null
  return base ?? builder.currencyOf(symbol)
}

/** For an inverse model, the size at the mean exit price. */
function meanSize({ size, isInverse }: FoundModel, trades: readonly Trade[]): number {
  if (!isInverse) return size
  return size / (trades.reduce((sum, { exitPrice }) => sum + exitPrice, 0) / trades.length)
}

const isInLots = (trades: readonly Trade[]): boolean => trades.every(({ qty }) => qty <= MOST_LOTS)

/** What the stated profits show, as warnings without the symbol. */
function inferences(
  { size, isInverse, commission, unverified, tolerance }: FoundModel,
  fixed: number | null,
): string[] {
  const messages: string[] = []
  if (isInverse) messages.push(`contract_size_${short(size)}_divided_by_the_exit_price_inferred`)
  else if (size !== 1 && fixed === null)
    messages.push(
      tolerance === Infinity
        ? `contract_size_of_about_${short(size)}_inferred`
        : `contract_multiplier_${short(size)}_inferred`,
    )
  if (commission?.per === 'trade') messages.push(`unreported_commission_${short(commission.amount)}_a_trade_inferred`)
  if (commission?.per === 'unit')
    messages.push(`unreported_commission_${short(commission.amount / 2)}_a_unit_and_side_inferred`)
  if (commission?.per === 'turnover')
    messages.push(`unreported_commission_${short(commission.amount * 1e4)}_bps_a_side_inferred`)
  if (unverified !== null) messages.push('stated_profits_not_verified')
  return messages
}

/** Warnings with the symbol, or with the number of symbols if there are many. */
function namedBySymbol(messages: ReadonlyMap<string, readonly string[]>): string[] {
  const named = [...messages].flatMap(([message, names]) => {
    if (names.length > NAMED) return [`${message}_for_${names.length}_symbols`]
    return names.map((name) => (name === '' || message.includes('_bps_a_side_') ? message : `${message}_for_${name}`))
  })
  return named.length > MOST_WARNINGS
    ? [...named.slice(0, MOST_WARNINGS), `${named.length - MOST_WARNINGS}_more_inferences`]
    : named
}

/** Gives each trade of a symbol the commission that its stated profit contains. */
function addCommission({ trades }: LedgerBuilder, indices: readonly number[], model: FoundModel): void {
  for (const index of indices) {
    const trade = trades[index]!
    if (Number.isNaN(trade.qty)) continue
    const size = model.isInverse ? model.size / trade.exitPrice : model.size
    const value = size * trade.qty * (trade.entryPrice + trade.exitPrice)
    trades[index] = { ...trade, fees: commissionOf(model.commission, trade.qty, value) }
  }
}

/** Names the currency that was taken from the spelling of symbols, or that all prices are taken to share. */
function assumeCurrency(
  { symbolNames, options, assume, columnCurrencyOf }: LedgerBuilder,
  instruments: readonly Instrument[],
): void {
  if (options.stated.quoteCurrency !== null) return
  const guessed = instruments.filter(
    ({ name, profits }, symbol) => columnCurrencyOf(symbol) === null && !profits?.isInverse && isGuessed(name),
  )
  const unknown = instruments.filter(({ currency }) => currency === null)
  if (guessed.length > 0) {
    const pairs = guessed.slice(0, NAMED).map(({ name, currency }) => `${name} in ${currency ?? ''}`)
    const more = guessed.length > NAMED ? ` and ${guessed.length - NAMED} more` : ''
    assume(
      'quote_currency',
      `The currency of prices was taken from the names of symbols: ${pairs.join(', ')}${more}.`,
      'quote_currency',
    )
  } else if (unknown.length > 0 && symbolNames.length > 1)
    assume(
      'quote_currency',
      'The file names no currency. All prices are taken as amounts of the same one.',
      'quote_currency',
    )
}

/** Whether the currency of a pair stands in its name without a separator. */
const isGuessed = (name: string): boolean =>
  pairOf(name) !== null && !/[/_-]/.test(name.replace(/[-_]?(?:PERP|SWAP).*$/i, ''))

const short = (value: number): number => Number(value.toPrecision(6))
