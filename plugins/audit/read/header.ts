import { InvalidInput } from '#gateway'
import type { Layout } from '../ledger.ts'

/** What a column can mean. */
export type Field =
  | 'symbol'
  | 'side'
  | 'short'
  | 'qty'
  | 'stake'
  | 'entryTime'
  | 'entryPrice'
  | 'exitTime'
  | 'exitPrice'
  | 'time'
  | 'price'
  | 'fees'
  | 'entryFees'
  | 'exitFees'
  | 'entryRate'
  | 'exitRate'
  | 'pnl'
  | 'trial'
  | 'status'
  | 'number'
  | 'type'
  | 'signal'

/** Names by field, letters and digits only, the surer ones first. */
const NAMES: Readonly<Record<Field, readonly string[]>> = {
  symbol: ['symbol', 'ticker', 'pair', 'instrument', 'market', 'column', 'asset', 'symbols', 'security'],
  side: ['side', 'direction', 'positionside', 'tradedirection', 'buysell', 'action'],
  short: ['isshort', 'short'],
  qty: [
    'qty',
    'quantity',
    'size',
    'amount',
    'contracts',
    'shares',
    'units',
    'volume',
    'positionsizeqty',
    'sizeqty',
    'executed',
  ],
  stake: ['stakeamount', 'stake'],
  entryTime: [
    'entrytime',
    'entrydate',
    'entrydatetime',
    'entrytimestamp',
    'opendate',
    'opentime',
    'opentimestamp',
    'entryindex',
  ],
  entryPrice: ['entryprice', 'avgentryprice', 'openrate', 'openprice', 'avgopenprice', 'entryrate'],
  exitTime: [
    'exittime',
    'exitdate',
    'exitdatetime',
    'exittimestamp',
    'closedate',
    'closetime',
    'closetimestamp',
    'exitindex',
  ],
  exitPrice: ['exitprice', 'avgexitprice', 'closerate', 'closeprice', 'avgcloseprice', 'exitrate'],
  time: [
    'time',
    'datetime',
    'dateandtime',
    'date',
    'timestamp',
    'filltime',
    'tradetime',
    'executedat',
    'executiontime',
    'timeutc',
    'dateutc',
    'fillindex',
  ],
  price: ['price', 'fillprice', 'avgprice', 'avgfillprice', 'executionprice', 'tradeprice', 'tprice'],
  fees: ['fees', 'fee', 'commission', 'commissions', 'totalfees', 'feeamount', 'orderfee', 'commfee'],
  entryFees: ['entryfees', 'entryfee', 'entrycommission'],
  exitFees: ['exitfees', 'exitfee', 'exitcommission'],
  entryRate: ['feeopen'],
  exitRate: ['feeclose'],
  pnl: ['pnl', 'profitabs', 'profit', 'profitloss', 'pl', 'netpnl', 'netpl', 'realizedpnl', 'realisedpnl', 'netprofit'],
  trial: ['trial', 'trialid', 'trialno', 'variant'],
  status: ['status', 'orderstatus'],
  number: ['trade', 'tradeno', 'tradenumber'],
  type: ['type', 'ordertype'],
  signal: ['signal'],
}

export type Columns = Partial<Readonly<Record<Field, number>>>

export interface Header {
  readonly layout: Layout
  readonly columns: Columns
  /** As the file writes them. */
  readonly names: readonly string[]
  /** "12,5" is a number: the cells are not separated by commas. */
  readonly decimalComma: boolean
}

const ROUND_TRIP: readonly Field[] = ['entryTime', 'entryPrice', 'exitTime', 'exitPrice']

/** "Price USD", as TradingView names the currency. */
const IN_CURRENCY = /^((?:[Ee]ntry |[Ee]xit )?[Pp]rice|Profit|Net P&L|Net PnL) [A-Z]{3,5}$/

/** Case, spaces and punctuation do not matter. */
export function plain(name: string): string {
  return name
    .replace(IN_CURRENCY, '$1')
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]/gu, '')
}

/**
 * Recognises the layout by the header. Throws InvalidInput for a column named twice, and where neither round trips nor
 * fills can be read, naming what is missing.
 *
 * @example recognise(['Ticker', 'Entry Time', 'entry_price', 'ExitTime', 'ExitPrice'], ',').layout // 'round_trips'
 */
export function recognise(names: readonly string[], delimiter: string): Header {
  assertDistinct(names)
  const byName = new Map<string, number>()
  for (const [index, name] of names.entries()) if (!byName.has(plain(name))) byName.set(plain(name), index)
  const columns: Partial<Record<Field, number>> = {}
  for (const [field, known] of Object.entries(NAMES) as [Field, readonly string[]][]) {
    const name = known.find((one) => byName.has(one))
    if (name !== undefined) columns[field] = byName.get(name) as number
  }
  const has = (...fields: readonly Field[]): boolean => fields.every((field) => columns[field] !== undefined)
  return { layout: layoutOf(has, byName, names), columns, names, decimalComma: delimiter !== ',' }
}

function layoutOf(
  has: (...fields: readonly Field[]) => boolean,
  byName: ReadonlyMap<string, number>,
  names: readonly string[],
): Layout {
  if (has(...ROUND_TRIP)) {
    if (byName.has('openrate') && byName.has('opendate')) return 'freqtrade'
    if (byName.has('avgentryprice')) return 'vectorbt'
    if (byName.has('entrybar')) return 'backtesting.py'
    if (byName.has('mae') && byName.has('mfe')) return 'lean_trades'
    return 'round_trips'
  }
  if (has('number', 'type', 'time', 'price')) return 'tradingview'
  if (has('time', 'price', 'qty', 'status', 'type') && !has('side')) return 'lean_orders'
  if (has('time', 'price', 'qty')) return 'fills'
  const missing = ROUND_TRIP.filter((field) => !has(field))
  const wanted = has('time') || has('price') ? 'time, price and quantity of each fill' : missing.map(spoken).join(', ')
  throw new InvalidInput([
    {
      loc: ['body', 'file', 'header'],
      msg: `The columns ${names.slice(0, 12).map(quoted).join(', ')} are neither round trips nor fills; missing: ${wanted}.`,
      type: 'unknown_layout',
    },
  ])
}

const spoken = (field: Field): string => field.replace(/[A-Z]/, (letter) => `_${letter.toLowerCase()}`)
const quoted = (name: string): string => JSON.stringify(name.slice(0, 40))

export function assertDistinct(names: readonly string[], file: 'file' | 'bars' = 'file'): void {
  const seen = new Set<string>()
  for (const name of names) {
    const key = name.toLowerCase()
    if (name !== '' && seen.has(key))
      throw new InvalidInput([
        { loc: ['body', file, 'header'], msg: `Two columns are called ${quoted(name)}.`, type: 'duplicate_column' },
      ])
    seen.add(key)
  }
}
