/** Writes one ledger in every layout that the audit reads. */
import type { Layout } from '../../../plugins/audit/trade-ledger.ts'

export interface Trip {
  readonly symbol: string
  /** 1 long, -1 short. */
  readonly sign: 1 | -1
  readonly qty: number
  readonly entryTime: string
  readonly entryPrice: number
  readonly exitTime: string
  readonly exitPrice: number
}

type Cell = string | number
type Writer = (trips: readonly Trip[]) => readonly (readonly Cell[])[]

const side = ({ sign }: Trip): string => (sign === 1 ? 'long' : 'short')
const profit = ({ sign, qty, entryPrice, exitPrice }: Trip): number => sign * qty * (exitPrice - entryPrice)
const iso = (day: string): string => `${day}T00:00:00Z`

/** Returns the entry and the exit of every trip as [trip, quantity with the sign of the order, time, price]. */
const executions = (trips: readonly Trip[]): (readonly [Trip, number, string, number])[] =>
  trips.flatMap((trip) => [
    [trip, trip.sign * trip.qty, trip.entryTime, trip.entryPrice] as const,
    [trip, -trip.sign * trip.qty, trip.exitTime, trip.exitPrice] as const,
  ])

const WRITERS: Readonly<Record<Layout, Writer>> = {
  round_trips: (trips) => [
    ['Ticker', 'Direction', 'Qty', 'Entry Time', 'entry_price', 'ExitTime', 'EXIT PRICE'],
    ...trips.map((trip) => [
      trip.symbol,
      side(trip).toUpperCase(),
      trip.qty,
      trip.entryTime,
      trip.entryPrice,
      trip.exitTime,
      trip.exitPrice,
    ]),
  ],
  fills: (trips) => [
    ['time', 'symbol', 'side', 'qty', 'price', 'fee'],
    ...executions(trips).map(([trip, qty, time, price]) => [
      time,
      trip.symbol,
      qty > 0 ? 'buy' : 'sell',
      Math.abs(qty),
      price,
      0,
    ]),
  ],
  tradingview: (trips) => [
    [
      'Trade #',
      'Type',
      'Date/Time',
      'Signal',
      'Symbol',
      'Price USD',
      'Position size (qty)',
      'Net P&L USD',
      'Net P&L %',
    ],
    ...trips
      .flatMap((trip, index) => {
        const half = (what: string, time: string, price: number): Cell[] => [
          index + 1,
          `${what} ${side(trip)}`,
          `${time} 00:00`,
          what,
          trip.symbol,
          price,
          trip.qty,
          profit(trip),
          1,
        ]
        return [half('Entry', trip.entryTime, trip.entryPrice), half('Exit', trip.exitTime, trip.exitPrice)]
      })
      .toReversed(),
  ],
  'backtesting.py': (trips) => [
    [
      '',
      'Ticker',
      'Size',
      'EntryBar',
      'ExitBar',
      'EntryPrice',
      'ExitPrice',
      'SL',
      'TP',
      'PnL',
      'EntryTime',
      'ExitTime',
    ],
    ...trips.map((trip, i) => [
      i,
      trip.symbol,
      trip.sign * trip.qty,
      i,
      i + 1,
      trip.entryPrice,
      trip.exitPrice,
      '',
      '',
      profit(trip),
      trip.entryTime,
      trip.exitTime,
    ]),
  ],
  vectorbt: (trips) => [
    [
      'Exit Trade Id',
      'Column',
      'Size',
      'Entry Timestamp',
      'Avg Entry Price',
      'Entry Fees',
      'Exit Timestamp',
      'Avg Exit Price',
      'Exit Fees',
      'PnL',
      'Direction',
      'Status',
    ],
    ...trips.map((trip, i) => [
      i,
      trip.symbol,
      trip.qty,
      `${trip.entryTime} 00:00:00+00:00`,
      trip.entryPrice,
      0,
      `${trip.exitTime} 00:00:00+00:00`,
      trip.exitPrice,
      0,
      profit(trip),
      side(trip) === 'long' ? 'Long' : 'Short',
      'Closed',
    ]),
  ],
  freqtrade: (trips) => [
    [
      'pair',
      'open_date',
      'close_date',
      'open_rate',
      'close_rate',
      'amount',
      'stake_amount',
      'fee_open',
      'fee_close',
      'is_short',
    ],
    ...trips.map((trip) => [
      trip.symbol,
      `${trip.entryTime} 00:00:00+00:00`,
      `${trip.exitTime} 00:00:00+00:00`,
      trip.entryPrice,
      trip.exitPrice,
      trip.qty,
      trip.qty * trip.entryPrice,
      0,
      0,
      trip.sign === -1 ? 'True' : 'False',
    ]),
  ],
  lean_trades: (trips) => [
    [
      'Entry Time',
      'Symbols',
      'Exit Time',
      'Direction',
      'Entry Price',
      'Exit Price',
      'Quantity',
      'P&L',
      'Fees',
      'MAE',
      'MFE',
    ],
    ...trips.map((trip) => [
      iso(trip.entryTime),
      trip.symbol,
      iso(trip.exitTime),
      trip.sign === 1 ? 'Buy' : 'Sell',
      `$${trip.entryPrice}`,
      `$${trip.exitPrice}`,
      trip.qty,
      profit(trip),
      0,
      0,
      0,
    ]),
  ],
  lean_orders: (trips) => [
    ['Time', 'Symbol', 'Price', 'Quantity', 'Type', 'Status', 'Value', 'Tag'],
    ...executions(trips).flatMap(([trip, qty, time, price], i) => [
      ...(i % 5 === 0 ? [[iso(time), trip.symbol, 0, qty, 'Limit', 'Canceled', 0, ''] as const] : []),
      [iso(time), trip.symbol, price, qty, 'Market', 'Filled', qty * price, ''] as const,
    ]),
  ],
}

export const LAYOUT_NAMES = Object.keys(WRITERS) as Layout[]

export interface Style {
  readonly delimiter?: string
  readonly newline?: string
  readonly bom?: boolean
}

/** Returns the ledger as a file in the given layout. */
export function writeLedger(
  layout: Layout,
  trips: readonly Trip[],
  { delimiter = ',', newline = '\n', bom }: Style = {},
): Buffer {
  const quoted = (cell: Cell): string => {
    const text = String(cell)
    return text.includes(delimiter) || text.includes('"') ? `"${text.replaceAll('"', '""')}"` : text
  }
  const lines = WRITERS[layout](trips).map((cells) => cells.map(quoted).join(delimiter))
  return Buffer.from((bom ? '\uFEFF' : '') + lines.join(newline) + newline)
}
