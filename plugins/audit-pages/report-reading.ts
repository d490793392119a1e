/** What was read of a file and what was assumed, as the page shows it above the verdict and lists it below. */
import type { AuditReport } from '../../schemas/types.d.ts'
import { counted, number, quantity, type Table } from './report-figures.ts'

type Reading = NonNullable<AuditReport['reading']>
type Assumption = Reading['assumptions'][number]

/** Names of layouts. Others are shown as their code with spaces. */
const LAYOUTS: Readonly<Record<string, string>> = {
  round_trips: 'Round trips',
  fills: 'Fills',
  tradingview: 'TradingView',
  lean_trades: 'LEAN trades',
  lean_orders: 'LEAN orders',
}

/** Kinds of rows that are no trades, for one and for several. */
const SKIPPED: Readonly<Record<Reading['skipped'][number]['kind'], readonly [one: string, many: string]>> = {
  total: ['total', 'totals'],
  repeated_header: ['repeated header', 'repeated headers'],
  other_section: ['row of another section', 'rows of other sections'],
  preamble: ['row before the header', 'rows before the header'],
  cash: ['cash movement', 'cash movements'],
  dividend: ['dividend', 'dividends'],
  corporate_action: ['corporate action', 'corporate actions'],
  option_event: ['exercise or expiry of an option', 'exercises and expiries of options'],
  not_filled: ['order that was not filled', 'orders that were not filled'],
  summary: ['summary row', 'summary rows'],
  empty: ['empty row', 'empty rows'],
}

/** What a person can do about an assumption, by the member of the request that states it instead. */
const ACTIONS: Readonly<Record<string, string>> = {
  columns: 'Say what the columns are',
  contract_size: 'State the contract size',
  fee_currency: 'State the currency of fees',
  quote_currency: 'State the currency',
  capital: 'State the capital',
  timezone: 'State the time zone',
  symbol: 'State the symbol',
}

/** Assumptions in the order in which they can change the money, the worst first. */
const RANKS: Readonly<Record<Assumption['code'], number>> = {
  one_instrument: 0,
  all_long: 1,
  contract_size: 2,
  fee_currency: 3,
  fee_signs: 4,
  quote_currency: 5,
  strategy: 6,
  date_order: 7,
  time_zone: 8,
  capital: 9,
}

const SOURCES: Readonly<Record<Reading['instruments'][number]['contract_size_source'], string>> = {
  stated: 'as you stated',
  file: 'from the file',
  inferred: 'inferred from profits',
  assumed: 'assumed',
}

/** So many assumptions and names of columns fit into the first screen of a phone. */
const MAX_ASSUMPTIONS = 2
const MAX_COLUMNS = 3
const MAX_NAME = 32
/** More rows would make the page slow on phones. The download has up to 100. */
const MAX_INSTRUMENTS = 30

/** What was read. Reports of earlier versions have no columns and assumptions. */
export function readingOf(report: AuditReport) {
  const { ledger, reading } = report
  const assumptions = (reading?.assumptions ?? [])
    .toSorted((one, other) => RANKS[one.code] - RANKS[other.code])
    .map(({ text, parameter }) => ({
      text,
      ...(parameter && { href: `/audit-tool#${parameter}`, action: ACTIONS[parameter] ?? `State ${parameter}` }),
    }))
  return {
    file: `${layoutName(ledger.layout)}, ${counted(ledger.rows, 'row')}:`,
    judgedTrial:
      ledger.judged_trial === null
        ? null
        : `The best of ${number(ledger.trials)} trials is judged, ${shortened(ledger.judged_trial)}.`,
    left: leftOut(report),
    columns: reading ? columnsLine(reading.columns) : null,
    assumptions: assumptions.slice(0, MAX_ASSUMPTIONS),
    furtherAssumptions: assumptions.slice(MAX_ASSUMPTIONS),
    details: reading && detailsOf(reading),
  }
}

const layoutName = (layout: string): string => LAYOUTS[layout] ?? layout.replaceAll('_', ' ')

/** A name that somebody else chose, cut so that it fits into a line. */
const shortened = (name: string): string => (name.length <= MAX_NAME ? name : `${name.slice(0, MAX_NAME - 1)}…`)

/** Rows that are not among the trades: "Left out: 2 unusable rows, 8 totals." Null if there are none. */
function leftOut({ ledger, reading }: AuditReport): string | null {
  const skipped = reading?.skipped ?? []
  const parts = [
    ...(ledger.excluded > 0 ? [counted(ledger.excluded, 'unusable row')] : []),
    ...skipped.map(({ kind, rows }) => counted(rows, ...SKIPPED[kind])),
    ...(ledger.unfilled > 0 && !skipped.some(({ kind }) => kind === 'not_filled')
      ? [counted(ledger.unfilled, ...SKIPPED.not_filled)]
      : []),
    ...(ledger.open > 0 ? [counted(ledger.open, 'open position')] : []),
  ]
  return parts.length === 0 ? null : `Left out: ${parts.join(', ')}.`
}

/** "18 of 22 columns used", and ", not Code, Note, Model and 1 more." */
function columnsLine(columns: Reading['columns']) {
  const unused = columns.filter(({ used_as }) => used_as === null).map(({ name }) => name || '(no name)')
  if (unused.length === 0) return { used: `All ${counted(columns.length, 'column')} used`, unused: '.' }
  const named = unused.slice(0, MAX_COLUMNS).map(shortened)
  const further = unused.length - named.length
  const names = further > 0 ? `${named.join(', ')} and ${number(further)} more` : named.join(', ')
  const used = `${number(columns.length - unused.length)} of ${counted(columns.length, 'column')} used`
  return { used, unused: `, not ${names}.` }
}

function detailsOf({ columns, bars, instruments, skipped }: Reading) {
  return {
    columnCount: columnCount(columns),
    columns: columnTable(columns),
    bars: bars ? { count: columnCount(bars), columns: columnTable(bars) } : null,
    instruments: instruments.length === 0 ? null : instrumentTable(instruments.slice(0, MAX_INSTRUMENTS)),
    furtherInstruments: Math.max(0, instruments.length - MAX_INSTRUMENTS),
    skipped: skipped.length === 0 ? null : skippedTable(skipped),
  }
}

function columnCount(columns: Reading['columns']): string {
  const unused = columns.filter(({ used_as }) => used_as === null).length
  return `${number(columns.length)}, ${unused === 0 ? 'all used' : `${number(unused)} not used`}`
}

const columnTable = (columns: Reading['columns']): Table => ({
  columns: [{ label: 'Column' }, { label: 'Used as' }],
  rows: columns.map(({ name, used_as: use, why }) => [
    { text: name || '(no name)' },
    { text: use === null ? 'not used' : use.replaceAll('_', ' '), note: why },
  ]),
})

const instrumentTable = (instruments: Reading['instruments']): Table => ({
  columns: [
    { label: 'Symbol' },
    { label: 'Trades', isNumber: true },
    { label: 'Contract size', isNumber: true },
    { label: 'Currency' },
  ],
  rows: instruments.map(({ symbol, trades, contract_size: size, contract_size_source: source, currency }) => [
    { text: symbol || '(no name)' },
    { text: number(trades) },
    { text: quantity(size), note: SOURCES[source] },
    { text: currency ?? 'unknown' },
  ]),
})

const skippedTable = (skipped: Reading['skipped']): Table => ({
  columns: [{ label: 'Kind' }, { label: 'Rows', isNumber: true }, { label: 'First row', isNumber: true }],
  rows: skipped.map(({ kind, rows, first }) => [
    { text: SKIPPED[kind][1] },
    { text: number(rows) },
    { text: number(first) },
  ]),
})
