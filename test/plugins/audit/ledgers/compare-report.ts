/** Compares the report on a written file with the trades that it was written from. */
import { InvalidInput } from '../../../../gateway/plugin/plugin.ts'
import { type Audit } from '../../../../plugins/audit/audit.ts'
import { NOTHING_STATED } from '../../../../plugins/audit/reading-options.ts'
import type { AuditReport } from '../../../../schemas/types.d.ts'
import { auditOf } from '../audit-fixtures.ts'
import type { ChangedCase, LedgerCase } from './ledger-case.ts'
import { SIDE_NAMES } from './trip-formats.ts'

/** Why a file may be refused although a person could read it: nothing in it settles what is meant. */
export const AMBIGUITIES: Readonly<Record<string, (written: LedgerCase) => boolean>> = {
  /** 1/2/2024, and no date of the file has a day above 12. */
  ambiguous_date: ({ hasOpenDates }) => hasOpenDates,
  /** More rebates than commissions, but the commissions are larger, or the other way round. */
  ambiguous_fee_signs: ({ trades: { trips } }) => {
    // A column holds the fees of fills, of one side of each trip, or of whole trips.
    const legs = trips.flatMap(({ entries, exits }) => [entries.map(({ fee }) => fee), exits.map(({ fee }) => fee)])
    const byLeg = legs.map(sumOf)
    const byTrip = trips.map((_, index) => byLeg[2 * index]! + byLeg[2 * index + 1]!)
    return [legs.flat(), byLeg, byTrip].some((fees) => {
      const [paid, received] = [fees.filter((fee) => fee > 0).length, fees.filter((fee) => fee < 0).length]
      return paid === received || paid > received !== sumOf(fees) > 0
    })
  },
}

const sumOf = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0)

export type Outcome =
  | { readonly kind: 'agrees' }
  | { readonly kind: 'ambiguous'; readonly code: string }
  | { readonly kind: 'fault'; readonly faults: readonly Fault[] }

export interface Fault {
  /** What is wrong, without numbers, so that equal faults can be counted. */
  readonly code: string
  readonly text: string
}

/** Audits the file of a case, and compares every figure. */
export async function outcomeOf(written: LedgerCase): Promise<Outcome> {
  let report: Report
  try {
    report = await reportOn(written)
  } catch (error) {
    return refusal(written, error)
  }
  return outcome(faultsOf(written, report))
}

/**
 * Audits a file of which a column was added, renamed or removed. Figures may be missing then, but nothing may be silent: a
 * refusal names a column or a row, and a report lists every column, keeps instruments apart and says what it assumed.
 */
export async function silenceOf(written: ChangedCase): Promise<Outcome> {
  let report: Report
  try {
    report = await reportOn(written)
  } catch (error) {
    if (!(error instanceof InvalidInput)) return refusal(written, error)
    if (namesPlace(written, error)) return { kind: 'ambiguous', code: error.detail[0]!.type }
    return outcome([{ code: 'refusal without a place', text: error.message }])
  }
  const { reading } = report
  const faults: Fault[] = []
  columnFaults(written, reading, faults)
  const assumed = reading?.assumptions.map(({ code }) => code) ?? []
  const { lost, change, trades, table } = written
  const isPooled = report.ledger.symbols < trades.markets.length
  // Round trips are not matched, so that it is enough to say that they are taken for one instrument.
  const mayAssume = change.how === 'remove' || !table.hasFills
  const mayPool = table.isUnnamed || (mayAssume && assumed.includes('one_instrument'))
  if (isPooled && !mayPool)
    faults.push({ code: 'instruments pooled', text: `symbols: ${report.ledger.symbols}, not ${trades.markets.length}` })
  const isSide = /^(?:fills|round trips)$/.test(written.format) && lost !== null && SIDE_NAMES.includes(lost)
  if (isSide && change.how === 'remove' && !assumed.includes('all_long'))
    faults.push({ code: 'all long, not said', text: `assumptions: ${assumed.join(', ')}` })
  return outcome(faults)
}

const outcome = (faults: readonly Fault[]): Outcome =>
  faults.length === 0 ? { kind: 'agrees' } : { kind: 'fault', faults }

async function reportOn({ bytes, sizes, symbol }: LedgerCase): Promise<Report> {
  const stated = { ...NOTHING_STATED, contractSize: sizes.size === 0 ? null : sizes }
  return auditOf(bytes, { preset: 'zero', trials: 1, symbol, stated })
}

function namesPlace({ names }: LedgerCase, { detail: [item] }: InvalidInput): boolean {
  return typeof item?.loc[2] === 'number' || names.some((name) => name !== '' && item?.msg.includes(name.trim()))
}

function refusal(written: LedgerCase, error: unknown): Outcome {
  if (!(error instanceof InvalidInput)) {
    const text = error instanceof Error ? (error.stack ?? error.message) : String(error)
    return { kind: 'fault', faults: [{ code: 'crash', text }] }
  }
  const [item] = error.detail
  const code = item?.type ?? 'unknown'
  if (AMBIGUITIES[code]?.(written) && namesPlace(written, error)) return { kind: 'ambiguous', code }
  return { kind: 'fault', faults: [{ code: `refused: ${code}`, text: error.message }] }
}

type Parts = Partial<Pick<AuditReport, 'money' | 'reading'>>
type Report = Audit & Parts

function faultsOf(written: LedgerCase, report: Report): Fault[] {
  const { truth, trades, table } = written
  const { money, reading } = report
  const faults: Fault[] = []
  const equal = (code: string, actual: unknown, expected: unknown): void => {
    if (actual !== expected) faults.push({ code, text: `${code}: ${String(actual)}, not ${String(expected)}` })
  }
  const close = (code: string, actual: number | null | undefined, expected: number, tolerance: number): void => {
    if (typeof actual === 'number' && Math.abs(actual - expected) <= tolerance) return
    faults.push({ code, text: `${code}: ${String(actual)}, not ${expected} (± ${tolerance.toPrecision(2)})` })
  }
  equal('trips', report.ledger.trades, truth.trips)
  equal('excluded rows', report.ledger.excluded, 0)
  equal('open positions', report.ledger.open, 0)
  equal('symbols', report.ledger.symbols, trades.markets.length)
  columnFaults(written, reading, faults)
  if (reading?.instruments)
    for (const market of trades.markets) {
      const symbol = written.symbol ?? (table.symbolOf ?? (({ symbol }) => symbol))(market)
      const count = reading.instruments.find((one) => one.symbol === symbol)?.trades
      equal('trips of a symbol', count, truth.bySymbol.get(market.symbol))
    }
  const tolerance = 0.006 + table.error.bps
  close('gross bps', report.performance.gross_expectancy_bps, truth.grossBps, tolerance)
  moneyFaults(written, money, { close, equal })
  // Without a fee column, a cost of each trip can only be inferred from the profits.
  if (table.statesFees || trades.fees === 'none')
    close('net bps', report.performance.net_expectancy_bps, truth.netBps, tolerance)
  return faults
}

/** Every column is listed in the order of the file, used or not. JSON and statements of sections may have others too. */
function columnFaults({ names, table }: LedgerCase, reading: Parts['reading'], faults: Fault[]): void {
  const listed = reading?.columns.map(({ name }) => name) ?? []
  // The first two cells of a statement name the section and the kind of row.
  const wanted = names.slice(table.before === undefined ? 0 : 2).map((name) => name.trim())
  const missing = wanted.filter((name) => !listed.includes(name))
  const isLoose = table.json !== undefined || table.before !== undefined
  if (missing.length > 0)
    faults.push({ code: 'columns not listed', text: `Not in reading.columns: ${missing.join(', ')}` })
  else if (!isLoose && listed.join('\n') !== wanted.join('\n'))
    faults.push({ code: 'columns listed in another order', text: listed.join(', ') })
}

interface Checks {
  close(code: string, actual: number | null | undefined, expected: number, tolerance: number): void
  equal(code: string, actual: unknown, expected: unknown): void
}

function moneyFaults({ truth, table, trades }: LedgerCase, money: Parts['money'], { close, equal }: Checks): void {
  if (!money) return equal('money', money, 'an object')
  const [[currency, sums] = [], ...others] = [...truth.money]
  if (currency === undefined || sums === undefined) return
  if (others.length > 0) {
    equal('total of mixed currencies', money.net, null)
    equal('reason for no total', typeof money.total_missing, 'string')
    return
  }
  // A report rounds money to cents, and that of coins to eight digits.
  const rounded = (value: number): number => (trades.kind === 'crypto' ? 1e-10 : 0.00501) + 6e-8 * Math.abs(value)
  const tolerance = (value: number): number => table.error.money + rounded(value)
  close('gross money', money.gross, sums.gross, tolerance(sums.gross))
  if (table.statesFees || trades.fees === 'none') close('net money', money.net, sums.net, tolerance(sums.net))
  else close('stated profit', money.stated_profit, sums.net, tolerance(sums.net) + 0.005 * truth.trips)
  if (money.currency !== null) equal('currency', money.currency, currency)
  if (table.hasFills && truth.left > 0)
    close('remainders', money.remainders_value, truth.left, 0.3 * truth.left + tolerance(0))
  for (const [third, amount] of truth.thirdFees)
    close(
      'fees in another coin',
      money.unknown_fees.find((one) => one.currency === third)?.amount,
      amount,
      rounded(amount),
    )
}
