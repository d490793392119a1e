import type { TradeLedger } from '../trade-ledger.ts'
import { LedgerBuilder, buildLedger, type ReadOptions, type RowReader } from './ledger-rows.ts'
import { readCsv } from '../../lib/tables/csv-table.ts'
import { readFills } from './fills.ts'
import { readInstruments } from './instruments.ts'
import { markOpenPositions } from './open-positions.ts'
import { recogniseHeader } from './ledger-header.ts'
import { isJson, type JsonHandler, readJson } from './json-table.ts'
import { namedByLeg } from './position-deals.ts'
import { StatementSections } from './statement-sections.ts'
import { readTradingView } from './tradingview-trades.ts'
import { noteAssumptions } from './assumptions.ts'
import { noTradesError, refusePooled, refuseUnknownSides, refuseUnsold } from './unreadable-ledger.ts'
import { readRoundTrips } from './round-trips.ts'

/** A file with more rows is rejected with status 413. */
const MAX_ROWS = 200_000

/**
 * Reads a trade ledger in any of the known layouts, which it recognises by the header. Unusable rows become findings.
 * Throws InvalidInput that names the header or row if the file is not a ledger, or ServiceError body_too_large.
 */
export async function readLedger(bytes: Buffer, options: ReadOptions): Promise<TradeLedger> {
  let builder: LedgerBuilder | null = null
  let reader: RowReader | null = null
  const limits = { file: 'file', maxRows: MAX_ROWS } as const
  const sections = new StatementSections((kind, row) => builder?.skip(kind, row), options.stated.columns)
  const table: JsonHandler = {
    choose: sections.choose,
    above: sections.above,
    header(names, format, sample) {
      const { columns } = options.stated
      const stated = { columns, symbol: options.symbol }
      const header = recogniseHeader(namedByLeg(names), format, sections.own(names, sample), stated)
      const readings = header.readings.map((reading, index) => ({ ...reading, name: names[index]! }))
      builder = new LedgerBuilder({ ...header, names, readings }, options)
      reader = readerOf(builder)
      sections.begin(builder.header)
    },
    leftOut: (names) => builder?.assume('strategy', leftOutText(names), null),
    arrange: sections.arrange,
    row: (cells, row) => reader?.row(cells, row),
  }
  const rows = isJson(bytes) ? readJson(bytes, limits, table) : await readCsv(bytes, limits, table)
  const built = builder as unknown as LedgerBuilder
  ;(reader as unknown as RowReader).end()
  built.counts.rows = rows
  refuseUnknownSides(built)
  refuseUnsold(built)
  for (const [symbol, size] of sections.contractSizes) built.contractSizes.set(symbol, size)
  if (built.trades.length === 0) throw noTradesError(built)
  refusePooled(built)
  noteAssumptions(built)
  const instruments = readInstruments(built)
  return buildLedger(built, instruments, markOpenPositions(built), warningsOf(built))
}

/** What a JSON file has beside the trades that are judged. */
function leftOutText(names: readonly string[]): string {
  const listed = names.slice(0, 10).join(', ')
  const more = names.length > 10 ? ` and ${names.length - 10} more` : ''
  return `Only the longest list of trades is judged. Left out: ${listed}${more}.`
}

function readerOf(builder: LedgerBuilder): RowReader {
  const { layout } = builder.header
  if (layout === 'tradingview') return readTradingView(builder)
  return layout === 'fills' || layout === 'lean_orders' ? readFills(builder) : readRoundTrips(builder)
}

function warningsOf({ times, trades, has, warnings: read }: LedgerBuilder): string[] {
  const warnings = [...new Set(read)]
  if (!times.hasZone() && !times.isDaily()) warnings.push('times_without_zone_read_as_utc')
  if (times.assumedOrder() !== null) warnings.push(`dates_read_${times.assumedOrder()}_first`)
  if (has('fees') || has('entryFees') || has('entryRate'))
    if (trades.every(({ fees }) => fees === 0)) warnings.push('fees_all_zero')
  return warnings
}
