import { InvalidInput } from 'tollgate/plugin'
import type { TradeLedger } from '../trade-ledger.ts'
import { LedgerBuilder, buildLedger, type ReadOptions, type RowReader } from './ledger-rows.ts'
import { type TableHandler, readCsv } from './csv-table.ts'
import { readFills } from './fills-to-trades.ts'
import { recogniseHeader } from './ledger-header.ts'
import { isJson, readJson } from './json-table.ts'
import { readTradingView } from './tradingview-trades.ts'
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
  const table: TableHandler = {
    header(names, format) {
      builder = new LedgerBuilder(recogniseHeader(names, format), options)
      reader = readerOf(builder)
    },
    row: (cells, row) => reader?.row(cells, row),
  }
  const rows = isJson(bytes) ? readJson(bytes, limits, table) : await readCsv(bytes, limits, table)
  const built = builder as unknown as LedgerBuilder
  ;(reader as unknown as RowReader).end()
  built.counts.rows = rows
  if (built.trades.length === 0) throw noTradesError(built)
  return buildLedger(built, warningsOf(built))
}

function readerOf(builder: LedgerBuilder): RowReader {
  const { layout } = builder.header
  if (layout === 'tradingview') return readTradingView(builder)
  return layout === 'fills' || layout === 'lean_orders' ? readFills(builder) : readRoundTrips(builder)
}

function noTradesError({ counts, options }: LedgerBuilder): InvalidInput {
  const [first] = options.findings.list()
  if (!first) {
    const msg = counts.open > 0 ? 'All trades are still open.' : 'No order was filled.'
    return new InvalidInput([{ loc: ['body', 'file', 0], msg, type: 'no_trades' }])
  }
  const loc = ['body', 'file', first.row, ...(first.field === undefined ? [] : [first.field])]
  const msg = `No row is a usable trade. Row ${first.row}: ${first.code}${first.field ? ` in ${first.field}` : ''}.`
  return new InvalidInput([{ loc, msg, type: first.code }])
}

function warningsOf({ times, trades, has }: LedgerBuilder): string[] {
  const warnings: string[] = []
  if (!times.hasZone() && !times.isDaily()) warnings.push('times_without_zone_read_as_utc')
  if (times.assumedOrder() !== null) warnings.push(`dates_read_${times.assumedOrder()}_first`)
  if (has('fees') || has('entryFees') || has('entryRate'))
    if (trades.every(({ fees }) => fees === 0)) warnings.push('fees_all_zero')
  return warnings
}
