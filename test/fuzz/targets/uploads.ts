/** Files and bars that callers send to be judged: the whole way from bytes to the report. */
import { equal, ok } from 'node:assert/strict'
import type { BarQualityReport } from '../../../schemas/types.d.ts'
import { audit } from '../../../plugins/audit/audit.ts'
import { summaryOf } from '../../../plugins/audit/audit.ts'
import checkBarQuality from '../../../plugins/qc/bar-quality.ts'
import { parseJson } from '../../../gateway/validation/json-body.ts'
import { ask } from '../../plugins/audit/audit-figures.ts'
import { acceptedBy, acceptedLater, type FuzzTarget } from '../target.ts'
import { validatorsOf } from './operations.ts'

const context = { ask, asOf: new Date('2026-06-01T12:00:00Z'), unusableReason: null }
const options = { preset: 'large_cap', trials: 10, extraBps: 0, symbol: undefined } as const

const ROUND_TRIPS = `symbol,side,qty,entry_time,entry_price,exit_time,exit_price,fees
AAPL,long,10,2024-01-02T15:30:00Z,185.5,2024-01-03T15:30:00Z,187.25,1
AAPL,short,5,2024-01-04 15:30,182,2024-01-05 15:30,181.5,1
MSFT,long,3,2024-02-01,400,2024-02-02,405,0
`
const FILLS = `time;symbol;side;quantity;price;commission
2024-01-02 15:30:00;BTC-USD;buy;0,5;42000,5;1,2
2024-01-03 15:30:00;BTC-USD;sell;0,5;42500,25;1,2
`
const TRADINGVIEW = `Trade #,Type,Signal,Date/Time,Price USD,Contracts,Profit USD
1,Entry long,a,2024-01-02 10:00,100,1,
1,Exit long,b,2024-01-03 10:00,101,1,1
2,Entry short,a,2024-01-04 10:00,100,1,
2,Exit short,b,2024-01-05 10:00,99,1,1
`
const JSON_TRADES = JSON.stringify({
  strategy: {
    a: {
      trades: [
        {
          pair: 'BTC/USDT',
          open_date: '2024-01-02 00:00:00+00:00',
          close_date: '2024-01-03 00:00:00+00:00',
          open_rate: 100,
          close_rate: 101,
          amount: 1,
          stake_amount: 100,
          fee_open: 0.001,
          fee_close: 0.001,
          profit_abs: 0.8,
          is_short: false,
        },
      ],
    },
  },
})
const BARS = `symbol,date,open,high,low,close,volume,split
AAPL,2024-01-02,185,188,184,186,1000,1
AAPL,2024-01-03,186,189,185,187,1200,1
AAPL,2024-01-04,46,47,45,46,5000,4
`

const bar = (at: number, price: number) => [1_700_000_000 + at * 60, price, price + 1, price - 1, price + 0.5, 10]
const SERIES = Array.from({ length: 30 }, (_, at) => bar(at, 100 + (at % 7)))

const TABLE_WORDS = [
  ',',
  ';',
  '\t',
  '"',
  '""',
  '\n',
  '\r\n',
  '\r',
  '\uFEFF',
  '2024-01-02',
  '1.234,5',
  '(1)',
  '$',
  '%',
  'NaN',
]
const LEDGER_WORDS = [
  ...TABLE_WORDS,
  ...'symbol side qty entry_time exit_time entry_price exit_price fees pnl trial long short buy sell open'.split(' '),
  'Entry long',
  'Exit long',
  'Trade #',
]

/** The upload of a caller is one file, or a ledger and its bars: two parts, split by a line of dashes. */
const SPLIT = '\n-----\n'

export const UPLOADS: readonly FuzzTarget[] = [
  {
    name: 'trade-ledger',
    maxBytes: 32_000,
    seeds: [ROUND_TRIPS, FILLS, TRADINGVIEW, JSON_TRADES, Buffer.from(`\uFEFF${ROUND_TRIPS}`, 'utf16le')],
    words: LEDGER_WORDS,
    read: (input) => auditOf(input, undefined),
  },
  {
    name: 'reference-bars',
    maxBytes: 32_000,
    seeds: [ROUND_TRIPS + SPLIT + BARS, FILLS + SPLIT + BARS.replaceAll(',', ';')],
    words: [...TABLE_WORDS, ...'symbol date open high low close volume split'.split(' '), SPLIT],
    read(input) {
      const at = input.indexOf(SPLIT)
      return at === -1 ? undefined : auditOf(input.subarray(0, at), input.subarray(at + SPLIT.length))
    },
  },
  {
    name: 'bars',
    maxBytes: 64_000,
    seeds: [
      JSON.stringify(SERIES),
      JSON.stringify({ bars: SERIES, interval: '1m', session: '24x7', timezone: 'America/New_York' }),
      JSON.stringify({ bars: { columns: ['t', 'o', 'h', 'l', 'c', 'v'], rows: SERIES } }),
      JSON.stringify({
        bars: SERIES.slice(0, 4).map(([t, o, h, l, c, v]) => ({ t, o, h, l, c, v })),
        allow_negative: true,
      }),
      JSON.stringify(
        SERIES.map(([, ...rest], at) => [new Date(1_704_200_000_000 + at * 86_400_000).toISOString(), ...rest]),
      ),
    ],
    words: [
      'bars',
      'columns',
      'rows',
      'interval',
      'session',
      'timezone',
      't',
      'o',
      'h',
      '1d',
      'us_equity',
      'UTC',
      'auto',
    ],
    read(input) {
      const sent = acceptedBy(() => parseJson(input))
      const checked = acceptedBy(() => validatorsOf('checkBarQuality').input({ params: {}, query: {}, body: sent }))
      const report = checked && acceptedBy(() => checkBarQuality(checked.body))
      if (report) assertReport(report)
    },
  },
]

async function auditOf(file: Buffer, bars: Buffer | undefined): Promise<void> {
  const report = await acceptedLater(() => audit({ ...options, file, bars }, context))
  if (report === null) return
  const answer = { rid: 'fuzzed', report_url: '/report/fuzzed', summary: summaryOf(report), ...report }
  equal(validatorsOf('auditBacktest').answer(answer), null)
  ok(report.fills.impossible <= report.fills.fills)
}

function assertReport(report: BarQualityReport): void {
  equal(validatorsOf('checkBarQuality').answer(report), null)
}
