/** One case: trades drawn at random, written as a file in a format and a dress drawn at random. */
import * as fc from 'fast-check'
import { type Dress, DRAWN_DRESS, write } from './dress.ts'
import { FILL_FORMATS } from './fill-formats.ts'
import { createChoose, type Format, type LedgerTable } from './formats.ts'
import { TRIP_FORMATS } from './trip-formats.ts'
import { resultOf, tripResult, type TrueResult } from './true-result.ts'
import { DRAWN_TRADES, type DrawnTrades, makeTrades, type TrueTrades } from './true-trades.ts'

export const FORMATS: readonly Format[] = [...TRIP_FORMATS, ...FILL_FORMATS]

export interface LedgerCase {
  readonly format: string
  readonly trades: TrueTrades
  readonly truth: TrueResult
  readonly table: LedgerTable
  readonly bytes: Buffer
  /** The columns as the file names them. */
  readonly names: readonly string[]
  /** Contract sizes that the request has to state, by the symbols of the file. */
  readonly sizes: ReadonlyMap<string, number>
  /** The symbol that the request has to state. */
  readonly symbol: string | undefined
  /** Whether nothing in the file settles if the month or the day of a date comes first. */
  readonly hasOpenDates: boolean
}

/** A column added, renamed or removed. */
export interface Change {
  readonly how: 'add' | 'rename' | 'remove'
  readonly column: number
  readonly name: string
}

export interface ChangedCase extends LedgerCase {
  readonly change: Change
  /** The column that was renamed or removed, as the format names it; null if one was added. */
  readonly lost: string | null
}

/** Names that say nothing. */
const STRANGE_NAMES = ['Xyzzy', 'col_17', 'Zusatz', '\u5099\u8003', 'Foo (bar)', 'unnamed 3', 'Q7', 'Lorem ipsum dolor']

/** Draws cases of which one column is added, renamed or removed. Formats that know columns by their place are left out. */
export const changedCase = (formats: readonly Format[]): fc.Arbitrary<ChangedCase> =>
  fc
    .record({
      format: fc.constantFrom(...formats),
      trades: DRAWN_TRADES,
      dress: DRAWN_DRESS,
      change: fc.record({
        how: fc.constantFrom<Change['how']>('add', 'rename', 'remove'),
        column: fc.nat(40),
        name: fc.constantFrom(...STRANGE_NAMES),
      }),
    })
    .map(({ format, trades, dress, change }) => {
      let lost: string | null = null
      const changed: Format = {
        ...format,
        table(set, choose) {
          const table = format.table(set, choose)
          if (table.json !== undefined || table.fixed?.order) return table
          const column = change.column % table.names.length
          if (change.how !== 'add') lost = table.names[column]!
          return { ...table, ...changedColumns(table, { ...change, column }) }
        },
      }
      return printed({ ...makeCase(changed, trades, dress), change, lost })
    })

function changedColumns(
  { names, rows }: LedgerTable,
  { how, column, name }: Change,
): Pick<LedgerTable, 'names' | 'rows'> {
  switch (how) {
    case 'add':
      return { names: [...names, name], rows: rows.map((row, index) => [...row, `x${(index * 7) % 11}`]) }
    case 'rename':
      return { names: names.with(column, name), rows }
    case 'remove':
      return { names: names.toSpliced(column, 1), rows: rows.map((row) => row.toSpliced(column, 1)) }
  }
}

/** Draws cases in these formats. */
export const drawnCase = (formats: readonly Format[]): fc.Arbitrary<LedgerCase> =>
  fc
    .record({ format: fc.constantFrom(...formats), trades: DRAWN_TRADES, dress: DRAWN_DRESS })
    .map(({ format, trades, dress }) => printed(makeCase(format, trades, dress)))

/** fast-check prints a case by its format; the error of the case has the file. */
const printed = <Case extends LedgerCase>(written: Case): Case =>
  Object.assign(written, { [fc.toStringMethod]: () => written.format })

/** Writes trades in a format and a dress. */
export function makeCase(format: Format, drawn: DrawnTrades, dress: Dress): LedgerCase {
  const trades = makeTrades(drawn, format.limits)
  const table = format.table(trades, createChoose(dress.salt))
  const { bytes, names, times } =
    table.json === undefined
      ? write(table, dress, trades.daily)
      : { bytes: Buffer.from(JSON.stringify(table.json)), names: table.names, times: 'pandas' as const }
  const symbolOf = table.symbolOf ?? (({ symbol }) => symbol)
  const needed = trades.markets.filter(({ size }) => size !== 1 && !table.statesSize)
  const isStated = dress.salt % 2 === 0 || !canInferSizes(trades, table)
  return {
    format: format.name,
    trades,
    truth: resultOf(trades),
    table,
    bytes,
    names,
    sizes: new Map(isStated ? needed.map((market) => [symbolOf(market), market.size]) : []),
    symbol: table.isUnnamed ? trades.markets[0]!.symbol : undefined,
    hasOpenDates: /^(?:us|us24|uk|dutch|usDay)$/.test(times) && !trades.trips.some(settlesDates),
  }
}

const settlesDates = ({ entries, exits }: TrueTrades['trips'][number]): boolean =>
  [...entries, ...exits].some(({ at }) => new Date(at).getUTCDate() > 12)

/** Enough different moves of each symbol, with profits that show them: fewer than four are no proof of a contract size. */
function canInferSizes({ trips, markets }: TrueTrades, { profit, statesFees }: LedgerTable): boolean {
  if (profit === undefined || !statesFees) return false
  return markets.every((market) => {
    const results = trips.filter((trip) => trip.market === market).map(tripResult)
    const moves = new Set(results.map(({ entryPrice, exitPrice }) => (exitPrice - entryPrice).toPrecision(8)))
    const isClear = results.every(({ gross, fees }) => Math.abs(gross) > 5 && Math.abs(gross) > 5 * Math.abs(fees))
    return moves.size >= 5 && isClear
  })
}
