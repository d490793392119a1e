/** Formats with one row for each fill: brokers, exchanges and platforms that list executions. */
import type { Cell, NumberCell } from './dress.ts'
import {
  type Choose,
  feeDecimals,
  fillError,
  fillFeeCell,
  fillPriceCell,
  fillQtyCell,
  type FillRow,
  fillRows,
  type Format,
  type LedgerTable,
  moneyCell,
} from './formats.ts'
import type { Kind } from './markets.ts'
import { FEE_NAMES, SIDE_NAMES, SYMBOL_NAMES, symbolColumn } from './trip-formats.ts'
import type { FeeModel, TrueTrades } from './true-trades.ts'

const ALL: readonly Kind[] = ['stock', 'crypto', 'fx', 'futures']
const BROKER_FEES: readonly FeeModel[] = ['none', 'rate', 'per_unit', 'fixed', 'rebates']

type Column = readonly [string, (row: FillRow, index: number) => Cell]

const at = ({ at }: FillRow): Cell => ({ at })
const signedQty = (row: FillRow): Cell => fillQtyCell(row, row.sign)
const symbolOf = ({ trip }: FillRow): string => trip.market.symbol
const quoteOf = ({ trip }: FillRow): string => trip.market.quote
const valueCell = (row: FillRow, sign: number = 1): Cell => ({
  value: sign * row.value,
  decimals: row.trip.market.feeDecimals,
})

interface Rest extends Omit<LedgerTable, 'names' | 'rows' | 'error'> {
  readonly merges: boolean
  /** Rows that are no fills, written between the others. */
  readonly between?: (index: number, row: FillRow) => readonly Cell[] | null
}

function tableOf(trades: TrueTrades, columns: readonly Column[], { merges, between, ...rest }: Rest): LedgerTable {
  const rows = fillRows(trades, merges).flatMap((row, index) => {
    const cells = columns.map(([, cellOf]) => cellOf(row, index))
    const other = between?.(index, row)
    return other ? [cells, other] : [cells]
  })
  return { names: columns.map(([name]) => name), rows, error: fillError(trades, merges), hasFills: true, ...rest }
}

/** Words for buy and sell; with four, for opening and closing each side. */
const SIDES: readonly (readonly string[])[] = [
  ['buy', 'sell'],
  ['Buy', 'Sell'],
  ['BUY', 'SELL'],
  ['B', 'S'],
  ['BOT', 'SLD'],
  ['Bought', 'Sold'],
  ['Kauf', 'Verkauf'],
  ['Achat', 'Vente'],
  ['Compra', 'Venta'],
  ['1', '-1'],
  ['Buy', 'Sell', 'Sell Short', 'Buy to Cover'],
  ['Buy', 'Sell', 'Short', 'Cover'],
  ['B', 'S', 'SS', 'BC'],
  ['Open Long', 'Close Long', 'Open Short', 'Close Short'],
  ['Buy to Open', 'Sell to Close', 'Sell to Open', 'Buy to Close'],
]

/** The word for an order: buy or sell, or open and close of a long or a short position. */
function sideWord(words: readonly string[], { sign, trip, leg }: FillRow): string {
  const opens = leg !== 'exit'
  if (words.length === 2 || trip.sign === 1) return words[sign === 1 ? 0 : 1]!
  return words[opens ? 2 : 3]!
}

const TIME_NAMES = [
  'Time',
  'Date',
  'DateTime',
  'Date/Time',
  'Timestamp',
  'Trade Time',
  'Trade Date',
  'Executed At',
  'Date and time',
]
const PRICE_NAMES = ['Price', 'Fill Price', 'Avg Price', 'Trade Price', 'Execution Price', 'TradePrice']
const QTY_NAMES = ['Qty', 'Quantity', 'Size', 'Shares', 'Volume', 'Amount', 'Filled Qty', 'Executed Qty', 'Units']
const FEE_COINS = ['Fee Coin', 'Fee Currency', 'commissionAsset', 'feeCurrency', 'Commission Currency']

function feeColumns(quote: string, fees: FeeModel, choose: Choose): Column[] {
  const inCoins = fees === 'base' || fees === 'third'
  const sign = choose([1, 1, -1]) as 1 | -1
  const name = choose(FEE_NAMES)
  const how = inCoins ? choose(['coin', 'attached']) : choose(['total', 'named', 'coin', 'kinds'])
  const coin: Column = [choose(FEE_COINS), ({ feeCurrency }) => feeCurrency]
  switch (how) {
    case 'coin':
      return [[name, (row) => fillFeeCell(row, sign)], coin]
    case 'attached':
      return [
        [
          name,
          (row) => `${row.fee.toFixed(feeDecimals(row)).replace(/\.?0+$/, '')}${choose(['', ' '])}${row.feeCurrency}`,
        ],
      ]
    case 'named':
      return [[choose([`Fee (${quote})`, `Fee ${quote}`, `Commission ${quote}`]), (row) => fillFeeCell(row, sign)]]
    case 'kinds':
      return [
        ['Commission', (row) => fillFeeCell({ ...row, fee: row.fee - part(row) }, sign)],
        [choose(['Exchange Fee', 'SEC Fee', 'Clearing Fee']), (row) => fillFeeCell({ ...row, fee: part(row) }, sign)],
      ]
    default:
      return [[name, (row) => fillFeeCell(row, sign)]]
  }
}

/** A part of a fee, in whole units of its last decimal. */
const part = (row: FillRow): number => Math.trunc((row.fee * 10 ** feeDecimals(row)) / 4) / 10 ** feeDecimals(row)

const fills: Format = {
  name: 'fills',
  limits: { kinds: ALL, fees: [...BROKER_FEES, 'base', 'third'], oneCurrency: true },
  table(trades, choose) {
    const name = choose(SYMBOL_NAMES)
    const spelling = symbolColumn(name)
    const bySign = choose([true, false, false, false])
    const words = choose(SIDES)
    const statesFees = trades.fees !== 'none' || choose([true, false])
    const merges = choose([true, false]) && words.length === 2
    const columns: Column[] = [
      [choose(TIME_NAMES), at],
      [name, ({ trip: { market } }) => spelling(market)],
      ...(bySign
        ? []
        : [[choose([...SIDE_NAMES, 'Buy/Sell', 'Transaction']), (row: FillRow) => sideWord(words, row)] as const]),
      [choose(QTY_NAMES), bySign ? signedQty : (row) => fillQtyCell(row)],
      [choose(PRICE_NAMES), fillPriceCell],
      ...(statesFees ? feeColumns(trades.markets[0]!.quote, trades.fees, choose) : []),
    ]
    if (choose([true, false]))
      columns.push([choose(['Value', 'Total', 'Notional', 'Turnover']), (row) => valueCell(row)])
    return tableOf(trades, columns, { merges, statesFees, symbolOf: spelling })
  },
}

const ibkrFlex: Format = {
  name: 'IBKR Flex',
  limits: { kinds: ['stock', 'futures'], fees: BROKER_FEES },
  table(trades, choose) {
    const id = choose(['Symbol', 'ISIN', 'Conid'])
    const spelling = symbolColumn(id === 'Conid' ? 'conid' : id)
    const columns: Column[] = [
      ['ClientAccountID', () => 'U1234567'],
      ['CurrencyPrimary', quoteOf],
      ['AssetClass', () => (trades.kind === 'stock' ? 'STK' : 'FUT')],
      [id, ({ trip }) => spelling(trip.market)],
      ...(id === 'Symbol'
        ? ([
            ['Description', ({ trip }) => trip.market.description],
            ['Conid', ({ trip }) => trip.market.conid],
          ] satisfies Column[])
        : []),
      ['Multiplier', ({ trip }) => String(trip.market.size)],
      ['DateTime', at],
      ['Buy/Sell', ({ sign }) => (sign === 1 ? 'BUY' : 'SELL')],
      ['Quantity', signedQty],
      ['TradePrice', (row) => ({ value: row.price, decimals: row.trip.market.priceDecimals })],
      ['TradeMoney', (row) => valueCell(row, row.sign)],
      ['Proceeds', (row) => valueCell(row, -row.sign)],
      ['IBCommission', (row) => fillFeeCell(row, -1)],
      ['IBCommissionCurrency', ({ feeCurrency }) => feeCurrency],
      ['NetCash', (row) => valueCell({ ...row, value: -row.sign * row.value - row.fee })],
      ['Open/CloseIndicator', ({ leg }) => ({ entry: 'O', exit: 'C', turn: 'C;O' })[leg]],
      ['LevelOfDetail', () => 'EXECUTION'],
    ]
    const fixed = { times: trades.daily ? 'compactDay' : 'compact' } as const
    return tableOf(trades, columns, { merges: true, statesFees: true, statesSize: true, symbolOf: spelling, fixed })
  },
}

/** The statement begins with other sections, and its rows have the name of their section in front. */
const ibkrActivity: Format = {
  name: 'IBKR Activity',
  limits: { kinds: ['stock'], fees: BROKER_FEES },
  table(trades) {
    const trade = (cells: readonly Cell[], kind = 'Data'): readonly Cell[] => ['Trades', kind, ...cells]
    const names =
      'Trades,Header,DataDiscriminator,Asset Category,Currency,Symbol,Date/Time,Quantity,T. Price,C. Price,Proceeds,Comm/Fee,Basis,Realized P/L,MTM P/L,Code'
    const ordered = fillRows(trades, true).toSorted((one, other) => symbolOf(one).localeCompare(symbolOf(other)))
    const rows = ordered.flatMap((row, index) => {
      const cells = trade([
        'Order',
        'Stocks',
        quoteOf(row),
        symbolOf(row),
        at(row),
        signedQty(row),
        { value: row.price, decimals: 2 },
        { value: row.price, decimals: 2 },
        valueCell(row, -row.sign),
        fillFeeCell(row, -1),
        valueCell(row, row.sign),
        { value: row.leg === 'entry' ? 0 : row.profit, decimals: 2 },
        '0',
        { entry: 'O', exit: 'C', turn: 'C;O' }[row.leg],
      ])
      const next = ordered[index + 1]
      if (next && symbolOf(next) === symbolOf(row)) return [cells]
      const blank = ['', '0', '', '', '0', '-2.5', '0', '0', '0', '']
      return [cells, trade(['', 'Stocks', quoteOf(row), symbolOf(row), ...blank], 'SubTotal')]
    })
    const before = [
      'Statement,Header,Field Name,Field Value',
      'Statement,Data,BrokerName,Interactive Brokers',
      'Statement,Data,Title,Activity Statement',
      'Account Information,Header,Field Name,Field Value',
      'Account Information,Data,Base Currency,USD',
    ]
    const after = [
      trade(['', 'Stocks', 'USD', '', '', '', '', '', '0', '-5', '0', '0', '0', ''], 'Total'),
      ['Dividends', 'Header', 'Currency', 'Date', 'Description', 'Amount'],
      ['Dividends', 'Data', 'USD', '2024-05-10', 'AAA Cash Dividend USD 0.25 per Share', '12.50'],
    ]
    return {
      names: names.split(','),
      rows,
      before,
      after,
      error: fillError(trades, true),
      statesFees: true,
      fixed: { times: 'activity', order: true, names: true, numbers: true, delimiter: ',', rows: true },
    }
  },
}

const schwab: Format = {
  name: 'Schwab',
  limits: { kinds: ['stock'], fees: ['none', 'fixed', 'per_unit'], daily: true, oneCurrency: true },
  table(trades) {
    const blank: Cell = ''
    const columns: Column[] = [
      ['Date', at],
      ['Action', (row) => sideWord(['Buy', 'Sell', 'Sell Short', 'Buy to Cover'], row)],
      ['Symbol', symbolOf],
      ['Description', ({ trip }) => trip.market.description],
      ['Quantity', (row) => fillQtyCell(row)],
      ['Price', fillPriceCell],
      ['Fees & Comm', (row) => (row.fee === 0 ? blank : moneyCell(row.fee, quoteOf(row)))],
      ['Amount', (row) => moneyCell(-row.sign * row.value - row.fee, quoteOf(row))],
    ]
    return tableOf(trades, columns, {
      merges: false,
      statesFees: true,
      fixed: { times: 'usDay' },
      between: (index, row) => {
        const start = [at(row), 'Cash Dividend', symbolOf(row), row.trip.market.description, '', '', '']
        if (index % 7 === 3) return [...start, moneyCell(1.25, quoteOf(row))]
        return index % 11 === 5
          ? [at(row), 'MoneyLink Transfer', '', 'Tfr BANK', '', '', '', moneyCell(500, 'USD')]
          : null
      },
    })
  },
}

/** The older export: amounts with their coin attached. */
const binance: Format = {
  name: 'Binance, older',
  limits: { kinds: ['crypto'], fees: ['none', 'rate', 'base', 'third'], oneCurrency: true },
  table(trades) {
    const bare = ({ value, decimals }: NumberCell): string => value.toFixed(decimals)
    const columns: Column[] = [
      ['Date(UTC)', at],
      ['Pair', symbolOf],
      ['Side', ({ sign }) => (sign === 1 ? 'BUY' : 'SELL')],
      ['Price', (row) => bare(fillPriceCell(row))],
      ['Executed', (row) => `${bare(fillQtyCell(row))}${row.trip.market.base}`],
      ['Amount', (row) => `${row.value.toFixed(8)}${quoteOf(row)}`],
      ['Fee', (row) => `${row.fee.toFixed(feeDecimals(row))}${row.feeCurrency}`],
    ]
    return tableOf(trades, columns, { merges: true, statesFees: true, fixed: { times: 'iso', numbers: true } })
  },
}

const binanceFeeCoin: Format = {
  name: 'Binance with a fee coin',
  limits: binance.limits,
  table(trades) {
    const columns: Column[] = [
      ['Date(UTC)', at],
      ['Market', symbolOf],
      ['Type', ({ sign }) => (sign === 1 ? 'BUY' : 'SELL')],
      ['Price', fillPriceCell],
      ['Amount', (row) => fillQtyCell(row)],
      ['Total', (row) => ({ value: row.value, decimals: 8 })],
      ['Fee', (row) => fillFeeCell(row)],
      ['Fee Coin', ({ feeCurrency }) => feeCurrency],
    ]
    return tableOf(trades, columns, { merges: true, statesFees: true })
  },
}

const binanceFutures: Format = {
  name: 'Binance futures',
  limits: { kinds: ['crypto'], fees: ['none', 'rate', 'rebates'], oneCurrency: true },
  table(trades) {
    const columns: Column[] = [
      ['Date(UTC)', at],
      ['Symbol', symbolOf],
      ['Side', ({ sign }) => (sign === 1 ? 'BUY' : 'SELL')],
      ['Price', fillPriceCell],
      ['Quantity', (row) => fillQtyCell(row)],
      ['Amount', (row) => ({ value: row.value, decimals: 8 })],
      ['Fee', (row) => fillFeeCell(row, -1)],
      ['Fee Coin', ({ feeCurrency }) => feeCurrency],
      ['Realized Profit', ({ profit }) => ({ value: profit, decimals: 8 })],
      ['Quote Asset', quoteOf],
    ]
    return tableOf(trades, columns, { merges: true, statesFees: true })
  },
}

const bybit: Format = {
  name: 'Bybit executions',
  limits: { kinds: ['crypto'], fees: ['none', 'rate', 'rebates'], oneCurrency: true },
  table(trades) {
    const columns: Column[] = [
      ['symbol', symbolOf],
      ['orderId', (_, index) => `a1b2-${90_000 + index}`],
      ['side', ({ sign }) => (sign === 1 ? 'Buy' : 'Sell')],
      ['orderType', () => 'Limit'],
      ['execPrice', fillPriceCell],
      ['execQty', (row) => fillQtyCell(row)],
      ['execValue', (row) => ({ value: row.value, decimals: 8 })],
      ['execFee', (row) => fillFeeCell(row)],
      ['feeRate', ({ fee, value }) => ({ value: fee / value, decimals: 6 })],
      ['execType', () => 'Trade'],
      ['execTime', at],
      ['isMaker', () => 'false'],
    ]
    return tableOf(trades, columns, { merges: true, statesFees: true })
  },
}

const kraken: Format = {
  name: 'Kraken trades',
  limits: { kinds: ['crypto'], fees: ['none', 'rate'], oneCurrency: true },
  table(trades) {
    const columns: Column[] = [
      ['txid', (_, index) => `TX${index}-ABCDE-FGHIJK`],
      ['ordertxid', (_, index) => `OX${index}-ABCDE-FGHIJK`],
      ['pair', ({ trip: { market } }) => `${market.base}/${market.quote}`],
      ['time', at],
      ['type', ({ sign }) => (sign === 1 ? 'buy' : 'sell')],
      ['ordertype', () => 'limit'],
      ['price', fillPriceCell],
      ['cost', (row) => ({ value: row.value, decimals: 8 })],
      ['fee', (row) => fillFeeCell(row)],
      ['vol', (row) => fillQtyCell(row)],
      ['margin', () => ({ value: 0, decimals: 5 })],
      ['misc', () => ''],
      ['ledgers', (_, index) => `L${index}-AAA,L${index}-BBB`],
    ]
    const spelling = ({ base, quote }: FillRow['trip']['market']) => `${base}/${quote}`
    return tableOf(trades, columns, {
      merges: true,
      statesFees: true,
      symbolOf: spelling,
      fixed: { times: trades.daily ? 'isoDay' : 'iso' },
    })
  },
}

const metatraderDeals: Format = {
  name: 'MetaTrader 5 deals',
  limits: { kinds: ['fx'], fees: ['none', 'rate', 'fixed', 'per_unit'] },
  table(trades) {
    const columns: Column[] = [
      ['Time', at],
      ['Deal', (_, index) => String(700 + index)],
      ['Symbol', symbolOf],
      ['Type', ({ sign }) => (sign === 1 ? 'buy' : 'sell')],
      ['Direction', ({ leg }) => ({ entry: 'in', exit: 'out', turn: 'in/out' })[leg]],
      ['Volume', (row) => fillQtyCell(row)],
      ['Price', fillPriceCell],
      ['Order', (_, index) => String(900 + index)],
      ['Commission', (row) => moneyCell(part(row) - row.fee, 'USD')],
      ['Fee', (row) => moneyCell(row.leg === 'exit' ? 0 : -part(row), 'USD')],
      ['Swap', (row) => moneyCell(row.leg === 'exit' ? -part(row) : 0, 'USD')],
      ['Profit', ({ profit }) => moneyCell(profit, 'USD')],
      ['Balance', (_, index) => moneyCell(10_000 + index, 'USD')],
      ['Comment', () => ''],
    ]
    return tableOf(trades, columns, {
      merges: false,
      statesFees: true,
      profit: 'gross',
      fixed: { times: 'metatrader' },
      between: (index, row) =>
        index % 13 === 4
          ? [at(row), '1', '', 'balance', '', '', '', '', '', '', '', moneyCell(500, 'USD'), '10500', 'Deposit']
          : null,
    })
  },
}

const ninjaTraderExecutions: Format = {
  name: 'NinjaTrader 8 executions',
  limits: { kinds: ['futures'], fees: ['none', 'fixed', 'per_unit'] },
  table(trades) {
    const columns: Column[] = [
      ['Instrument', symbolOf],
      ['Action', (row) => sideWord(['Buy', 'Sell', 'SellShort', 'BuyToCover'], row)],
      ['Quantity', (row) => fillQtyCell(row)],
      ['Price', (row) => ({ value: row.price, decimals: row.trip.market.priceDecimals })],
      ['Time', at],
      ['ID', (_, index) => `ex${4_000 + index}`],
      ['E/X', ({ leg }) => (leg === 'entry' ? 'Entry' : 'Exit')],
      ['Position', ({ leg, qty, trip }) => (leg === 'entry' ? `${qty} ${trip.sign === 1 ? 'L' : 'S'}` : '-')],
      ['Order ID', (_, index) => `or${8_000 + index}`],
      ['Name', ({ leg }) => (leg === 'entry' ? 'Entry' : 'Stop1')],
      ['Commission', (row) => moneyCell(row.fee, 'USD')],
      ['Rate', () => '1'],
      ['Account', () => 'Sim101'],
      ['Connection', () => 'Live'],
    ]
    return tableOf(trades, columns, { merges: false, statesFees: true, fixed: { times: 'us' } })
  },
}

const leanOrders: Format = {
  name: 'LEAN orders',
  limits: { kinds: ['stock'], fees: ['none'], oneCurrency: true },
  table(trades) {
    const columns: Column[] = [
      ['Time', at],
      ['Symbol', symbolOf],
      ['Price', (row) => ({ value: row.price, decimals: 2 })],
      ['Quantity', signedQty],
      ['Type', () => 'Market'],
      ['Status', () => 'Filled'],
      ['Value', (row) => valueCell(row, row.sign)],
      ['Tag', () => ''],
    ]
    return tableOf(trades, columns, {
      merges: true,
      statesFees: false,
      fixed: { times: 'zulu' },
      between: (index, row) =>
        index % 5 === 2
          ? [
              at(row),
              symbolOf(row),
              { value: 0, decimals: 2 },
              signedQty(row),
              'Limit',
              'Canceled',
              { value: 0, decimals: 2 },
              '',
            ]
          : null,
    })
  },
}

/** Transactions as pyfolio and backtrader list them. */
const transactions: Format = {
  name: 'backtrader transactions',
  limits: { kinds: ['stock', 'crypto'], fees: ['none'], oneCurrency: true },
  table(trades) {
    const columns: Column[] = [
      ['date', at],
      ['amount', signedQty],
      ['price', (row) => ({ value: row.price, decimals: row.trip.market.priceDecimals })],
      ['sid', ({ trip }) => String(trades.markets.indexOf(trip.market))],
      ['symbol', symbolOf],
      ['value', (row) => valueCell(row, -row.sign)],
    ]
    return tableOf(trades, columns, { merges: true, statesFees: false })
  },
}

export const FILL_FORMATS: readonly Format[] = [
  fills,
  ibkrFlex,
  ibkrActivity,
  schwab,
  binance,
  binanceFeeCoin,
  binanceFutures,
  bybit,
  kraken,
  metatraderDeals,
  ninjaTraderExecutions,
  leanOrders,
  transactions,
]
