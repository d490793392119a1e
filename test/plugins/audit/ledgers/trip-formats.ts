/** Formats with one row for each trip, or two as TradingView writes them. */
import { type Cell, percentCell, plainNumber } from './dress.ts'
import {
  type Choose,
  type Format,
  type LedgerTable,
  moneyCell,
  profitCell,
  qtyCell,
  type TripRow,
  tripRows,
} from './formats.ts'
import type { Kind } from './markets.ts'
import type { FeeModel, TrueTrades } from './true-trades.ts'

const ALL: readonly Kind[] = ['stock', 'crypto', 'fx', 'futures']
const IN_MONEY: readonly FeeModel[] = ['none', 'rate', 'per_unit', 'fixed', 'rebates', 'base']

type Column = readonly [string, (row: TripRow) => Cell]

const at = (time: number): Cell => ({ at: time })
const signed = (row: TripRow): Cell => ({ value: row.trip.sign * row.qty, decimals: row.trip.market.qtyDecimals })

/** A share of the account that a trip made. */
const percent = ({ net }: TripRow): Cell => percentCell(net / 100)

function tableOf(
  trades: TrueTrades,
  columns: readonly Column[],
  rest: Omit<LedgerTable, 'names' | 'rows' | 'error'>,
): LedgerTable {
  const { rows, error } = tripRows(trades)
  const names = columns.map(([name]) => name)
  return { names, rows: rows.map((row) => columns.map(([, cellOf]) => cellOf(row))), error, ...rest }
}

/** Words for long and short, as vendors write them. */
export const SIDES: readonly (readonly [string, string])[] = [
  ['long', 'short'],
  ['Long', 'Short'],
  ['LONG', 'SHORT'],
  ['L', 'S'],
  ['buy', 'sell'],
  ['Buy', 'Sell'],
  ['B', 'S'],
  ['1', '-1'],
  ['Kauf', 'Verkauf'],
  ['Bought', 'Sold'],
]
export const SIDE_NAMES = [
  'Side',
  'Direction',
  'Position',
  'Type',
  'L/S',
  'B/S',
  'Pos',
  'Trade',
  'Action',
  'Market pos.',
]
export const SYMBOL_NAMES = [
  'Symbol',
  'Ticker',
  'Instrument',
  'Market',
  'Asset',
  'Contract',
  'Security',
  'Coin',
  'Underlying',
  'ISIN',
  'conid',
  'Description',
  'Identifier',
]
export const FEE_NAMES = [
  'Fee',
  'Fees',
  'Commission',
  'Commissions',
  'Comm',
  'Comm.',
  'Trading Fee',
  'Total Fee',
  'Commission Fee',
  'fee_cost',
  'Fees & Comm',
]
const TRIP_NAMES: readonly (readonly [string, string, string, string])[] = [
  ['Entry Time', 'Entry Price', 'Exit Time', 'Exit Price'],
  ['entry_time', 'entry_price', 'exit_time', 'exit_price'],
  ['Entry Date', 'Entry Price', 'Exit Date', 'Exit Price'],
  ['Open Time', 'Open Price', 'Close Time', 'Close Price'],
  ['Opened At', 'Avg Open Price', 'Closed At', 'Avg Close Price'],
  ['Date In', 'Price In', 'Date Out', 'Price Out'],
  ['EntryDateTime', 'EntryPrice', 'ExitDateTime', 'ExitPrice'],
  ['Open Date', 'Entry', 'Close Date', 'Exit'],
]
const QTY_NAMES = ['Qty', 'Quantity', 'Size', 'Shares', 'Volume', 'Contracts', 'Amount', 'Units', 'Lots']
const PROFIT_NAMES = ['PnL', 'Profit', 'P&L', 'P/L', 'Realized PnL', 'Profit/Loss']

/** What a column of symbols with this name holds. */
export function symbolColumn(name: string): (market: TripRow['trip']['market']) => string {
  if (name === 'ISIN') return ({ isin }) => isin
  if (name === 'conid') return ({ conid }) => conid
  return name === 'Description' ? ({ description }) => description : ({ symbol }) => symbol
}

/** Fee columns in one of the ways that people have: a total, one for each side, or several kinds that add up. */
function feeColumns(quote: string, choose: Choose): Column[] {
  const sign = choose([1, 1, -1])
  const name = choose(FEE_NAMES)
  const cellOf = (row: TripRow, value: number): Cell => ({
    ...row.fees,
    value: sign * value,
    money: quote,
  })
  switch (choose(['total', 'named', 'sides', 'kinds'])) {
    case 'named':
      return [[choose([`Fee (${quote})`, `Fee ${quote}`, `Commission ${quote}`]), (row) => cellOf(row, row.paid)]]
    case 'sides':
      return [
        ['Entry Fee', (row) => cellOf(row, row.entryFee.value)],
        ['Exit Fee', (row) => cellOf(row, row.exitFee.value)],
      ]
    case 'kinds':
      return [
        ['Commission', (row) => cellOf(row, row.mainFee.value)],
        ['Exchange Fee', (row) => cellOf(row, row.otherFee.value)],
      ]
    default:
      return [[name, (row) => cellOf(row, row.paid)]]
  }
}

/** Round trips with the names of no vendor in particular. */
const roundTrips: Format = {
  name: 'round trips',
  limits: { kinds: ALL, fees: IN_MONEY, oneCurrency: true },
  table(trades, choose) {
    const [entryTime, entryPrice, exitTime, exitPrice] = choose(TRIP_NAMES)
    const symbol = choose(SYMBOL_NAMES)
    const symbolOf = symbolColumn(symbol)
    // A column of nothing but "S" may be anything, so that letters are drawn if both sides were traded.
    const drawn = choose(SIDES)
    const hasBoth = new Set(trades.trips.map(({ sign }) => sign)).size === 2
    const [long, short] = drawn[0].length === 1 && !hasBoth ? (['long', 'short'] as const) : drawn
    const bySign = choose([true, false, false, false])
    const quote = trades.markets[0]!.quote
    const statesFees = trades.fees !== 'none' || choose([true, false])
    const profit = choose(['gross', 'net', undefined] as const)
    const columns: Column[] = [
      [symbol, ({ trip: { market } }) => symbolOf(market)],
      ...(bySign ? [] : [[choose(SIDE_NAMES), ({ trip }: TripRow) => (trip.sign === 1 ? long : short)] as const]),
      [choose(QTY_NAMES), bySign ? signed : qtyCell],
      [entryTime, (row) => at(row.entryAt)],
      [entryPrice, (row) => row.entryPrice],
      [exitTime, (row) => at(row.exitAt)],
      [exitPrice, (row) => row.exitPrice],
      ...(statesFees ? feeColumns(quote, choose) : []),
    ]
    if (trades.fees === 'rate' && choose([true, false]))
      columns.push(['Commission %', () => ({ ...percentCell(trades.rate * 100), decimals: 3 })])
    if (profit !== undefined && choose([true, false])) columns.push(['Profit %', percent])
    if (profit !== undefined)
      columns.push([profit === 'net' ? 'Net P&L' : choose(PROFIT_NAMES), (row) => profitCell(row[profit], row)])
    return tableOf(trades, columns, { statesFees, symbolOf, ...(profit === undefined ? {} : { profit }) })
  },
}

const metatraderPositions: Format = {
  name: 'MetaTrader 5 positions',
  limits: { kinds: ['fx'], fees: ['none', 'rate', 'fixed', 'per_unit'] },
  table: (trades) =>
    tableOf(
      trades,
      [
        ['Time', (row) => at(row.entryAt)],
        ['Position', ({ index }) => String(50_000_123 + index)],
        ['Symbol', ({ trip }) => trip.market.symbol],
        ['Type', ({ trip }) => (trip.sign === 1 ? 'buy' : 'sell')],
        ['Volume', qtyCell],
        ['Price', (row) => row.entryPrice],
        ['S / L', () => ''],
        ['T / P', () => ''],
        ['Time', (row) => at(row.exitAt)],
        ['Price', (row) => row.exitPrice],
        ['Commission', ({ mainFee }) => moneyCell(-mainFee.value, 'USD')],
        ['Swap', ({ otherFee }) => moneyCell(-otherFee.value, 'USD')],
        ['Profit', (row) => profitCell(row.gross, row)],
      ],
      { statesFees: true, profit: 'gross', fixed: { times: 'metatrader', order: true, names: true } },
    ),
}

const metatrader4: Format = {
  name: 'MetaTrader 4 history',
  limits: { kinds: ['fx'], fees: ['none', 'rate', 'fixed', 'per_unit'] },
  table: (trades) =>
    tableOf(
      trades,
      [
        ['Ticket', ({ index }) => String(90_123 + index)],
        ['Open Time', (row) => at(row.entryAt)],
        ['Type', ({ trip }) => (trip.sign === 1 ? 'buy' : 'sell')],
        ['Size', qtyCell],
        ['Item', ({ trip }) => trip.market.symbol.toLowerCase()],
        ['Price', (row) => row.entryPrice],
        ['S / L', () => ({ value: 0, decimals: 5 })],
        ['T / P', () => ({ value: 0, decimals: 5 })],
        ['Close Time', (row) => at(row.exitAt)],
        ['Price', (row) => row.exitPrice],
        ['Commission', ({ mainFee }) => moneyCell(-mainFee.value, 'USD')],
        ['Taxes', () => moneyCell(0, 'USD')],
        ['Swap', ({ otherFee }) => moneyCell(-otherFee.value, 'USD')],
        ['Profit', (row) => profitCell(row.gross, row)],
      ],
      {
        statesFees: true,
        profit: 'gross',
        symbolOf: ({ symbol }) => symbol.toLowerCase(),
        fixed: { times: 'metatrader', order: true, names: true },
      },
    ),
}

const backtestingPy: Format = {
  name: 'backtesting.py',
  limits: { kinds: ['stock', 'crypto'], fees: ['none', 'rate', 'fixed'], oneMarket: true, oneCurrency: true },
  table: (trades) =>
    tableOf(
      trades,
      [
        ['', ({ index }) => String(index)],
        ['Size', signed],
        ['EntryBar', ({ index }) => String(10 + 3 * index)],
        ['ExitBar', ({ index }) => String(12 + 3 * index)],
        ['EntryPrice', ({ entryPrice }) => entryPrice],
        ['ExitPrice', ({ exitPrice }) => exitPrice],
        ['SL', () => ''],
        ['TP', () => ''],
        ['PnL', (row) => profitCell(row.net, row)],
        ['Commission', ({ fees }) => fees],
        ['ReturnPct', (row) => ({ value: row.net / 10_000, decimals: 6 })],
        ['EntryTime', (row) => at(row.entryAt)],
        ['ExitTime', (row) => at(row.exitAt)],
        ['Duration', () => '1 days 02:00:00'],
        ['Tag', () => ''],
      ],
      { statesFees: true, profit: 'net', isUnnamed: true },
    ),
}

const vectorbt: Format = {
  name: 'vectorbt',
  limits: { kinds: ['stock', 'crypto'], fees: ['none', 'rate', 'fixed'], oneCurrency: true },
  table: (trades) =>
    tableOf(
      trades,
      [
        ['Exit Trade Id', ({ index }) => String(index)],
        ['Column', ({ trip }) => trip.market.symbol],
        ['Size', qtyCell],
        ['Entry Timestamp', (row) => at(row.entryAt)],
        ['Avg Entry Price', ({ entryPrice }) => entryPrice],
        ['Entry Fees', ({ entryFee }) => entryFee],
        ['Exit Timestamp', (row) => at(row.exitAt)],
        ['Avg Exit Price', ({ exitPrice }) => exitPrice],
        ['Exit Fees', ({ exitFee }) => exitFee],
        ['PnL', (row) => profitCell(row.net, row)],
        ['Return', (row) => ({ value: row.net / 10_000, decimals: 6 })],
        ['Direction', ({ trip }) => (trip.sign === 1 ? 'Long' : 'Short')],
        ['Status', () => 'Closed'],
        ['Position Id', ({ index }) => String(index)],
      ],
      { statesFees: true, profit: 'net' },
    ),
}

const freqtradeColumns: readonly Column[] = [
  ['pair', ({ trip: { market } }) => `${market.base}/${market.quote}`],
  ['stake_amount', (row) => ({ value: row.qty * row.entryPrice.value, decimals: 8 })],
  ['amount', qtyCell],
  ['open_date', (row) => at(row.entryAt)],
  ['close_date', (row) => at(row.exitAt)],
  ['open_rate', ({ entryPrice }) => entryPrice],
  ['close_rate', ({ exitPrice }) => exitPrice],
  ['fee_open', () => ''],
  ['fee_close', () => ''],
  ['trade_duration', ({ entryAt, exitAt }) => String((exitAt - entryAt) / 60_000)],
  ['profit_ratio', (row) => ({ value: row.net / 10_000, decimals: 8 })],
  ['profit_abs', (row) => profitCell(row.net, row)],
  ['exit_reason', ({ index }) => (index % 2 === 0 ? 'roi' : 'stop_loss')],
  ['is_open', () => 'False'],
  ['is_short', ({ trip }) => (trip.sign === 1 ? 'False' : 'True')],
  ['leverage', () => '1.0'],
]

const RATE = new Set(['fee_open', 'fee_close'])

function freqtradeTable(trades: TrueTrades): LedgerTable {
  const rate: Cell = { value: trades.fees === 'rate' ? trades.rate : 0, decimals: 8 }
  const columns = freqtradeColumns.map(([name, cellOf]): Column => [name, RATE.has(name) ? () => rate : cellOf])
  const table = tableOf(trades, columns, {
    statesFees: true,
    profit: 'net',
    symbolOf: ({ base, quote }) => `${base}/${quote}`,
    fixed: { times: 'pandas', numbers: true },
  })
  // The rate is applied to exact values, the truth has rounded fees of each fill.
  const fills = trades.trips.flatMap(({ entries, exits }) => [...entries, ...exits]).length
  return { ...table, error: { money: table.error.money + fills * 5e-9, bps: table.error.bps + 1e-3 } }
}

const freqtrade: Format = {
  name: 'freqtrade',
  limits: { kinds: ['crypto'], fees: ['none', 'rate'], oneCurrency: true },
  table: freqtradeTable,
}

/** A cell in JSON. */
function jsonValue(name: string, cell: Cell): unknown {
  if (typeof cell !== 'string')
    return 'at' in cell
      ? new Date(cell.at).toISOString().slice(0, 19).replace('T', ' ') + '+00:00'
      : Number(plainNumber(cell))
  if (cell === 'True' || cell === 'False') return cell === 'True'
  return name === 'leverage' ? Number(cell) : cell === '' ? null : cell
}

export const asObjects = ({ names, rows }: Pick<LedgerTable, 'names' | 'rows'>): Record<string, unknown>[] =>
  rows.map((row) => Object.fromEntries(row.map((cell, at) => [names[at]!, jsonValue(names[at]!, cell)])))

const freqtradeJson: Format = {
  name: 'freqtrade JSON',
  limits: freqtrade.limits,
  table(trades, choose) {
    const table = freqtradeTable(trades)
    const list = asObjects(table).map((row) => ({ ...row, enter_tag: null, orders: [{ amount: 1, safe_price: 2 }] }))
    const result = {
      strategy: { Mine: { trades: list, locks: [], best_pair: { key: 'A', profit_sum: 1 } } },
      metadata: {},
    }
    return { ...table, names: [...table.names, 'enter_tag'], json: choose([list, result]) }
  },
}

const leanTrades: Format = {
  name: 'LEAN trades',
  limits: { kinds: ['stock'], fees: ['none', 'per_unit', 'fixed', 'rate'], oneCurrency: true },
  table(trades, choose) {
    const words = choose([
      ['Buy', 'Sell'],
      ['Long', 'Short'],
    ] as const)
    return tableOf(
      trades,
      [
        ['Entry Time', (row) => at(row.entryAt)],
        ['Symbols', ({ trip }) => trip.market.symbol],
        ['Exit Time', (row) => at(row.exitAt)],
        ['Direction', ({ trip }) => words[trip.sign === 1 ? 0 : 1]],
        ['Entry Price', ({ entryPrice }) => entryPrice],
        ['Exit Price', ({ exitPrice }) => exitPrice],
        ['Quantity', qtyCell],
        ['P&L', (row) => profitCell(row.gross, row)],
        ['Fees', ({ fees }) => fees],
        ['MAE', () => moneyCell(0, '')],
        ['MFE', () => moneyCell(0, '')],
        ['Drawdown', () => moneyCell(0, '')],
        ['IsWin', ({ gross }) => (gross > 0 ? '1' : '0')],
      ],
      { statesFees: true, profit: 'gross', fixed: { times: 'zulu' } },
    )
  },
}

const ninjaTrader: Format = {
  name: 'NinjaTrader 8 trades',
  limits: { kinds: ['futures'], fees: ['none', 'fixed', 'per_unit'] },
  table: (trades) =>
    tableOf(
      trades,
      [
        ['Trade number', ({ index }) => String(index + 1)],
        ['Instrument', ({ trip }) => trip.market.symbol],
        ['Account', () => 'Sim101'],
        ['Strategy', () => ''],
        ['Market pos.', ({ trip }) => (trip.sign === 1 ? 'Long' : 'Short')],
        ['Qty', qtyCell],
        ['Entry price', ({ entryPrice }) => ({ ...entryPrice, money: '' })],
        ['Exit price', ({ exitPrice }) => ({ ...exitPrice, money: '' })],
        ['Entry time', (row) => at(row.entryAt)],
        ['Exit time', (row) => at(row.exitAt)],
        ['Entry name', () => 'Entry'],
        ['Exit name', () => 'Exit'],
        ['Profit', (row) => profitCell(row.net, row)],
        ['Cum. net profit', (row) => profitCell(row.net * 3, row)],
        ['Commission', ({ mainFee }) => mainFee],
        ['Clearing Fee', () => moneyCell(0, 'USD')],
        ['Exchange Fee', ({ otherFee }) => otherFee],
        ['IP Fee', () => moneyCell(0, 'USD')],
        ['NFA Fee', () => moneyCell(0, 'USD')],
        ['MAE', () => moneyCell(12.5, 'USD')],
        ['MFE', () => moneyCell(37.5, 'USD')],
        ['ETD', () => moneyCell(5, 'USD')],
        ['Bars', () => '12'],
      ],
      { statesFees: true, profit: 'net', fixed: { times: 'us' } },
    ),
}

const amiBroker: Format = {
  name: 'AmiBroker',
  limits: { kinds: ['stock', 'futures'], fees: ['none', 'fixed'], oneCurrency: true, wholeTrips: true },
  table: (trades) =>
    tableOf(
      trades,
      [
        ['Ticker', ({ trip }) => trip.market.symbol],
        ['Trade', ({ trip }) => (trip.sign === 1 ? 'Long' : 'Short')],
        ['Date', (row) => at(row.entryAt)],
        ['Price', ({ entryPrice }) => entryPrice],
        ['Ex. date', (row) => at(row.exitAt)],
        ['Ex. Price', ({ exitPrice }) => exitPrice],
        ['% chg', ({ gross }) => percentCell(gross / 100)],
        ['Profit', (row) => profitCell(row.net, row)],
        ['% Profit', ({ net }) => percentCell(net / 100)],
        ['Shares', qtyCell],
        ['Position value', (row) => moneyCell(row.qty * row.entryPrice.value, row.trip.market.quote)],
        ['Cum. Profit', (row) => profitCell(row.net * 2, row)],
        ['# bars', () => '7'],
        ['Profit/bar', (row) => profitCell(row.net / 7, row)],
        ['MAE', () => percentCell(-1.2)],
        ['MFE', () => percentCell(2.4)],
        ['Scale In/Out', () => '0/0'],
      ],
      { statesFees: false, profit: 'net' },
    ),
}

const backtrader: Format = {
  name: 'backtrader trade list',
  limits: { kinds: ['stock', 'crypto'], fees: ['none', 'fixed'], oneCurrency: true, wholeTrips: true },
  table: (trades) =>
    tableOf(
      trades,
      [
        ['ref', ({ index }) => String(index + 1)],
        ['ticker', ({ trip }) => trip.market.symbol],
        ['dir', ({ trip }) => (trip.sign === 1 ? 'long' : 'short')],
        ['datein', (row) => at(row.entryAt)],
        ['pricein', ({ entryPrice }) => entryPrice],
        ['dateout', (row) => at(row.exitAt)],
        ['priceout', ({ exitPrice }) => exitPrice],
        ['chng%', ({ gross }) => ({ value: gross / 100, decimals: 2 })],
        ['pnl', (row) => profitCell(row.net, row)],
        ['pnl%', ({ net }) => percentCell(net / 100)],
        ['size', signed],
        ['value', (row) => moneyCell(row.qty * row.entryPrice.value, row.trip.market.quote)],
        ['cumpnl', (row) => profitCell(row.net * 2, row)],
        ['nbars', () => '5'],
        ['pnl/bar', (row) => profitCell(row.net / 5, row)],
        ['mfe%', () => ({ value: 2.31, decimals: 2 })],
        ['mae%', () => ({ value: -0.87, decimals: 2 })],
      ],
      { statesFees: false, profit: 'net' },
    ),
}

type Half = 'Entry' | 'Exit'
type HalfColumn = readonly [string, (row: TripRow, half: Half) => Cell]

/** Two rows for each trip, the exit first. */
function tradingView(name: string, columnsOf: (quote: string) => readonly HalfColumn[]): Format {
  return {
    name,
    limits: {
      kinds: ['stock', 'crypto'],
      fees: ['none', 'fixed'],
      oneMarket: true,
      oneCurrency: true,
      wholeTrips: true,
    },
    table(trades) {
      const columns = columnsOf(trades.markets[0]!.quote)
      const { rows, error } = tripRows(trades)
      const halves = rows.flatMap((row) => (['Exit', 'Entry'] as const).map((half) => [row, half] as const))
      return {
        names: columns.map(([name]) => name),
        rows: halves.map(([row, half]) => columns.map(([, cellOf]) => cellOf(row, half))),
        error,
        statesFees: false,
        profit: 'net',
        isUnnamed: true,
      }
    },
  }
}

const word = ({ trip }: TripRow): string => (trip.sign === 1 ? 'long' : 'short')
const halfPrice = (row: TripRow, half: Half): Cell => ({
  ...(half === 'Entry' ? row.entryPrice : row.exitPrice),
  money: '',
})
const halfTime = (row: TripRow, half: Half): Cell => at(half === 'Entry' ? row.entryAt : row.exitAt)
const atExit =
  (cellOf: (row: TripRow) => Cell) =>
  (row: TripRow, half: Half): Cell =>
    half === 'Exit' ? cellOf(row) : ''

const firstTradingView = tradingView('TradingView, first generation', (quote) => [
  ['Trade #', ({ index }) => String(index + 1)],
  ['Type', (row, half) => `${half} ${word(row)}`],
  ['Signal', (_, half) => (half === 'Entry' ? 'My Long Entry Id' : 'Close entry(s) order')],
  ['Date/Time', halfTime],
  [`Price ${quote}`, halfPrice],
  ['Contracts', qtyCell],
  [`Profit ${quote}`, atExit((row) => profitCell(row.net, row))],
  ['Profit %', atExit(percent)],
  [`Cum. Profit ${quote}`, atExit((row) => profitCell(row.net * 2, row))],
  ['Cum. Profit %', atExit(percent)],
  [`Run-up ${quote}`, atExit((row) => profitCell(Math.abs(row.net), row))],
  ['Run-up %', atExit(percent)],
  [`Drawdown ${quote}`, atExit((row) => profitCell(Math.abs(row.net), row))],
  ['Drawdown %', atExit(percent)],
])

const secondTradingView = tradingView('TradingView, second generation', (quote) => [
  ['Trade #', ({ index }) => String(index + 1)],
  ['Type', (row, half) => `${half} ${word(row)}`],
  ['Date and time', halfTime],
  ['Signal', (_, half) => (half === 'Entry' ? 'Long' : 'TP/SL')],
  [`Price ${quote}`, halfPrice],
  ['Position size (qty)', qtyCell],
  ['Position size (value)', (row) => moneyCell(row.qty * row.entryPrice.value, '')],
  [`Net P&L ${quote}`, (row) => profitCell(row.net, row)],
  ['Net P&L %', percent],
  [`Run-up ${quote}`, (row) => profitCell(Math.abs(row.net), row)],
  ['Run-up %', percent],
  [`Drawdown ${quote}`, (row) => profitCell(-Math.abs(row.net), row)],
  ['Drawdown %', percent],
  [`Cumulative P&L ${quote}`, (row) => profitCell(row.net * 2, row)],
  ['Cumulative P&L %', percent],
])

export const TRIP_FORMATS: readonly Format[] = [
  roundTrips,
  metatraderPositions,
  metatrader4,
  backtestingPy,
  vectorbt,
  freqtrade,
  freqtradeJson,
  leanTrades,
  ninjaTrader,
  amiBroker,
  backtrader,
  firstTradingView,
  secondTradingView,
]
