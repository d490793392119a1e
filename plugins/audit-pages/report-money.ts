/** What the trades of a report are worth in the money of the ledger, as text. */
import type { AuditReport } from '../../schemas/types.d.ts'
import { bps, counted, type Figure, number, percent, quantity, type Table } from './report-figures.ts'

type Money = NonNullable<AuditReport['money']>

/** The money of a report; null in reports of earlier versions. */
export function moneyOf({ money, performance, ledger }: AuditReport) {
  if (money === undefined) return null
  const amount = amountIn(money.currency)
  return {
    net: money.net === null ? null : amount(money.net),
    isLoss: (money.net ?? 0) < 0,
    missing: money.net === null ? (money.total_missing ?? 'The file has no quantities.') : null,
    currencyUnknown: money.net !== null && money.currency === null,
    signs: signsOf(performance.net_expectancy_bps, money),
    key: keyLines(money, performance.net_expectancy_bps, openLine(money, ledger, amount), amount),
    figures: moneyFigures(money, amount),
    open: money.open_positions.length === 0 ? null : openTable(money.open_positions, amount),
    openCount: counted(ledger.open, 'open position'),
    remainders: money.remainders.length === 0 ? null : remainderTable(money.remainders, amount),
  }
}

type Amount = (value: number | null) => string

/**
 * Writes amounts of a currency: whole from 10,000 on, with two decimals from 0.1 on, otherwise with three digits.
 *
 * @example amountIn('USD')(-997704.4) // "-997,704 USD"
 */
export function amountIn(currency: string | null): Amount {
  return (value) => {
    if (value === null) return '–'
    // What rounding leaves of a difference is no amount.
    const shown = Math.abs(value) < 1e-8 ? 0 : value
    const size = Math.abs(shown)
    const shape =
      size >= 10_000
        ? { maximumFractionDigits: 0 }
        : size >= 0.1 || size === 0
          ? { minimumFractionDigits: 2, maximumFractionDigits: 2 }
          : { maximumSignificantDigits: 3 }
    return [shown.toLocaleString('en-US', shape), ...(currency === null ? [] : [currency])].join(' ')
  }
}

/** Says that the average trade and the money have different signs; null if they have not. */
function signsOf(byTrade: number, { net, net_by_notional_bps: byNotional }: Money): string | null {
  const inMoney = net ?? byNotional
  if (inMoney === null || byTrade * inMoney >= 0) return null
  return inMoney < 0
    ? 'The average trade gains, the money is lost: large trades lose.'
    : 'The average trade loses, the money is gained: large trades win.'
}

/** The lines of the first screen. Lines about what the ledger does not have are left out. */
function keyLines(money: Money, byTrade: number, open: readonly Figure[], amount: Amount): Figure[] {
  const { remainders, remainders_value: left, unknown_fees: unknown } = money
  return [
    { label: 'By trade', figure: bps(byTrade), note: 'equal weights' },
    ...(money.net_by_notional_bps === null
      ? []
      : [{ label: 'By notional', figure: bps(money.net_by_notional_bps), note: 'by size' }]),
    ...open,
    ...(remainders.length === 0 || left === null ? [] : [{ label: 'Remainders', figure: amount(left) }]),
    ...unknown.map(({ currency, amount: fees }) => ({
      label: 'Fees not counted',
      figure: `${quantity(fees)} ${currency}`,
    })),
    ...(money.max_drawdown === null ? [] : [drawdownFigure(money, amount)]),
  ]
}

/** What open positions are worth; without a total, or if the file has no price of them, how many there are. */
function openLine(
  { open_positions: listed, unrealised }: Money,
  ledger: AuditReport['ledger'],
  amount: Amount,
): Figure[] {
  const label = 'Open positions'
  if (listed.length === 0)
    return ledger.open > 0 && ledger.trials === 1 ? [{ label, figure: number(ledger.open), note: 'not valued' }] : []
  if (unrealised === null) return [{ label, figure: number(listed.length), note: 'no total' }]
  return [{ label, figure: amount(unrealised), note: 'at last prices' }]
}

function drawdownFigure({ max_drawdown: deepest, max_drawdown_share: share }: Money, amount: Amount): Figure {
  const figure = { label: 'Largest drawdown', figure: amount(deepest) }
  return share === null ? figure : { ...figure, note: `${percent(Math.abs(share))} of capital` }
}

/** All figures in money. */
function moneyFigures(money: Money, amount: Amount): Figure[] {
  const { gross, fees, net, stated_profit: stated } = money
  const costs = gross === null || net === null ? null : gross - (fees ?? 0) - net
  return [
    { label: 'Before costs', figure: amount(gross) },
    { label: 'Fees in the file', figure: amount(fees) },
    {
      label: money.remainders.length === 0 ? 'Costs of the preset' : 'Costs of the preset and remainders',
      figure: amount(costs),
    },
    { label: 'Net', figure: amount(net) },
    ...(stated === null
      ? []
      : [{ label: 'Profit that the file states', figure: amount(stated), note: statedNote(money, amount) }]),
    { label: 'Capital at the start', figure: money.capital === null ? 'unknown' : amount(money.capital) },
  ]
}

/** "before fees, 0.04 USD above ours". */
function statedNote({ stated_basis: basis, stated_difference: difference }: Money, amount: Amount): string {
  const against = basis === null ? 'neither before nor after fees' : basis === 'gross' ? 'before fees' : 'after fees'
  if (difference === null) return against
  if (Math.abs(difference) < 0.005) return `${against}, the same as ours`
  return `${against}, ${amount(Math.abs(difference))} ${difference > 0 ? 'above' : 'below'} ours`
}

const openTable = (positions: Money['open_positions'], amount: Amount): Table => ({
  columns: [
    { label: 'Position' },
    { label: 'Entry', isNumber: true },
    { label: 'Last price', isNumber: true },
    { label: 'Profit', isNumber: true },
  ],
  rows: positions.map(({ symbol, side, qty, entry_price: entry, last_price: last, last_at: at, unrealised }) => [
    { text: symbol, note: qty === null ? side : `${side} ${quantity(qty)}` },
    { text: quantity(entry) },
    { text: quantity(last), note: at.slice(0, 10) },
    { text: amount(unrealised) },
  ]),
})

const remainderTable = (remainders: Money['remainders'], amount: Amount): Table => ({
  columns: [{ label: 'Remainder' }, { label: 'Value', isNumber: true }],
  rows: remainders.map(({ symbol, side, qty, value }) => [
    { text: symbol, note: `${side} ${quantity(qty)}` },
    { text: amount(value) },
  ]),
})
