import { InvalidInput } from 'tollgate/plugin'
import type { Layout } from '../trade-ledger.ts'
import type { CellFormat } from './cell-values.ts'

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
  | 'clock'
  | 'price'
  | 'fees'
  | 'entryFees'
  | 'exitFees'
  | 'entryRate'
  | 'exitRate'
  | 'funding'
  | 'pnl'
  | 'trial'
  | 'status'
  | 'number'
  | 'type'
  | 'signal'

/** Known column names per field, separated by spaces, the most reliable first. They hold only letters and digits. */
const NAMES: Readonly<Record<Exclude<Field, 'clock'>, string>> = {
  symbol: 'symbol ticker pair instrument market column asset symbols security product productid tradingsymbol contract',
  side: 'side direction positionside tradedirection buysell action tradetype tradeside marketpos marketposition longshort dir',
  short: 'isshort short',
  qty: 'fillquantity filledquantity qty quantity executed executedqty filledqty size amount contracts shares units volume vol positionsizeqty sizeqty',
  stake: 'stakeamount stake',
  entryTime:
    'entrytime entrydate entrydatetime entrytimestamp opendate opentime opentimestamp openedat datein entryindex',
  entryPrice: 'entryprice avgentryprice openrate openprice avgopenprice entryrate pricein averageentryprice',
  exitTime:
    'exittime exitdate exitdatetime exittimestamp closedate closetime closetimestamp closedat dateout exitindex',
  exitPrice: 'exitprice avgexitprice closerate closeprice avgcloseprice exitrate priceout averageexitprice',
  time: 'filltime filledat executedat executiontime orderexecutiontime time datetime dateandtime date timestamp tradetime createdat dt timeutc dateutc tradedate fillindex',
  price: 'fillprice avgfillprice filledavgprice avgprice executionprice tradeprice price tprice',
  fees: 'fees fee commission commissions totalfees feeamount orderfee orderfeeamount commfee ibcommission',
  entryFees: 'entryfees entryfee entrycommission',
  exitFees: 'exitfees exitfee exitcommission',
  entryRate: 'feeopen',
  exitRate: 'feeclose',
  funding: 'fundingfees',
  pnl: 'pnl profitabs profit profitloss pl netpnl netpl realizedpnl realisedpnl netprofit closedpnl',
  trial: 'trial trialid trialno variant',
  status: 'status orderstatus',
  number: 'trade tradeno tradenumber',
  type: 'type ordertype',
  signal: 'signal',
}

export interface Header {
  readonly layout: Layout
  /** Index of the column of each field that the file has. */
  readonly columns: Partial<Readonly<Record<Field, number>>>
  /** Column names as the file writes them. */
  readonly names: readonly string[]
  readonly format: CellFormat
}

const ROUND_TRIP: readonly Field[] = ['entryTime', 'entryPrice', 'exitTime', 'exitPrice']

/** "Price USD": TradingView adds the currency to some names. */
const IN_CURRENCY = /^((?:[Ee]ntry |[Ee]xit )?[Pp]rice|Profit|Net P&L|Net PnL) [A-Z]{3,5}$/

/** A column name without case, spaces, punctuation and currency. */
export function plainName(name: string): string {
  return name
    .replace(IN_CURRENCY, '$1')
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]/gu, '')
}

/**
 * Recognises the layout of a ledger by its header. Throws InvalidInput for duplicate column names, and if the columns are
 * neither round trips nor fills; the message names the missing columns.
 *
 * @example recogniseHeader(['Ticker', 'Entry Time', 'entry_price', 'ExitTime', 'ExitPrice'], format).layout // 'round_trips'
 */
export function recogniseHeader(names: readonly string[], format: CellFormat): Header {
  assertDistinctNames(names)
  const byName = new Map<string, number>()
  for (const [index, name] of names.entries()) if (!byName.has(plainName(name))) byName.set(plainName(name), index)
  const columns: Partial<Record<Field, number>> = {}
  for (const [field, known] of Object.entries(NAMES) as [Field, string][]) {
    const name = known.split(' ').find((one) => byName.has(one))
    if (name !== undefined) columns[field] = byName.get(name) as number
  }
  // The day and the time of day have separate columns.
  const [date, clock] = [byName.get('date'), byName.get('time')]
  if (date !== undefined && clock !== undefined && columns.time === clock) Object.assign(columns, { time: date, clock })
  const has = (...fields: readonly Field[]): boolean => fields.every((field) => columns[field] !== undefined)
  return { layout: layoutOf(has, byName, names), columns, names, format }
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
  const wanted =
    has('time') || has('price') ? 'time, price and quantity of each fill' : missing.map(snakeCase).join(', ')
  throw new InvalidInput([
    {
      loc: ['body', 'file', 'header'],
      msg: `The columns ${names.slice(0, 12).map(quoted).join(', ')} are neither round trips nor fills. Missing: ${wanted}.`,
      type: 'unknown_layout',
    },
  ])
}

const snakeCase = (field: Field): string => field.replace(/[A-Z]/, (letter) => `_${letter.toLowerCase()}`)
const quoted = (name: string): string => JSON.stringify(name.slice(0, 40))

/** Throws InvalidInput if two columns have the same name, whatever its case. Columns without a name may repeat. */
export function assertDistinctNames(names: readonly string[], file: 'file' | 'bars' = 'file'): void {
  const seen = new Set<string>()
  for (const name of names) {
    const key = name.toLowerCase()
    if (name !== '' && seen.has(key))
      throw new InvalidInput([
        { loc: ['body', file, 'header'], msg: `Two columns have the name ${quoted(name)}.`, type: 'duplicate_column' },
      ])
    seen.add(key)
  }
}
