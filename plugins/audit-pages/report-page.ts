/** The data of the report page: figures as text, findings as table rows. */
import { once } from 'tollgate/plugin'
import type { AuditReport } from '../../schemas/types.d.ts'
import { costSteps, equityCharts, placeOf, trialsChart } from './report-charts.ts'
import { bps, counted, daily, keyFigures, number, overfitting, performance } from './report-figures.ts'
import { moneyOf } from './report-money.ts'
import { readingOf } from './report-reading.ts'
import { CHECK_DESCRIPTIONS, REASON_MESSAGES } from './messages.ts'

type Finding = AuditReport['fills']['findings'][number]

const VERDICTS = {
  reject: { title: 'Reject', tone: 'bad' },
  not_profitable: { title: 'Not profitable', tone: 'bad' },
  unproven: { title: 'Unproven', tone: 'doubt' },
  plausible: { title: 'Plausible', tone: 'fair' },
} as const

/** Everything that the view of a report shows. */
export function reportPage(report: AuditReport) {
  const { rid, verdict, as_of, ledger, assumptions, fills, warnings, model } = report
  const isSample = rid === 'sample'
  return {
    rid,
    isSample,
    ...VERDICTS[verdict],
    ...groundsOf(report),
    reading: readingOf(report),
    money: moneyOf(report),
    daily: daily(report),
    warnings: warningsOf(warnings),
    asOf: as_of,
    model,
    ledger,
    assumptions,
    key: keyFigures(report),
    performance: performance(report),
    overfitting: overfitting(report),
    fills,
    equity: equityCharts(report),
    costs: costSteps(report),
    deflation: trialsChart(report),
    findings: shownFindings(fills.findings),
    found: fills.findings.length,
    judged: judgedOf(report),
    ...cautionOf(report),
    checks: fills.checks.filter(({ checked }) => checked > 0).map(named),
    unchecked: fills.checks.filter(({ not_checked: left, checked }) => left > 0 || checked === 0).map(named),
  }
}

/** So many reasons fit into the first screen of a phone. */
const MAX_GROUNDS = 3

/**
 * Why the verdict: its grounds with their numbers, those that decide it first. Without grounds, as for "plausible" and in
 * reports of earlier versions, the summary, with the reasons that these have.
 */
function groundsOf({ verdict, grounds, reasons, summary }: AuditReport) {
  if (grounds === undefined)
    return { summary, grounds: reasons.map((reason) => REASON_MESSAGES[reason] ?? reason), furtherGrounds: [] }
  const isMilder = (ground: (typeof grounds)[number]): number => Number(ground.verdict !== verdict)
  const texts = grounds.toSorted((one, other) => isMilder(one) - isMilder(other)).map(({ explanation }) => explanation)
  return {
    summary: texts.length === 0 ? summary : null,
    grounds: texts.slice(0, MAX_GROUNDS),
    furtherGrounds: texts.slice(MAX_GROUNDS),
  }
}

/** A file with many symbols can have a warning for each. */
const MAX_WARNINGS = 12

function warningsOf(warnings: readonly string[]): readonly string[] {
  const shown = warnings.slice(0, MAX_WARNINGS).map((code) => REASON_MESSAGES[code] ?? code.replaceAll('_', ' '))
  const hidden = warnings.length - shown.length
  return hidden === 0 ? shown : [...shown, `The JSON report has ${number(hidden)} more warnings.`]
}

/** One line that says what the verdict is about. */
function judgedOf({ ledger, performance }: AuditReport): string {
  const days = [ledger.first, ledger.last].map((moment) => moment.slice(0, 10))
  return `${counted(performance.trades, 'trade')} in ${counted(ledger.symbols, 'symbol')}, ${days.join(' to ')}`
}

/** Warns about fills that were not checked, in one line where the grounds say the rest, so that nobody thinks they passed. */
function cautionOf({ fills: { checked, fills }, grounds }: AuditReport) {
  if (checked >= fills) return { caution: null, uncheckedFills: null }
  const count = `${number(fills - checked)} of ${counted(fills, 'fill')}`
  if (grounds !== undefined) return { caution: null, uncheckedFills: `${count} not checked against bars` }
  const caution =
    checked === 0
      ? 'No fill could be checked against bars, so it is unknown whether the fills could have happened.'
      : `${count} could not be checked against bars.`
  return { caution, uncheckedFills: null }
}

function named<Row extends { readonly check: string }>(row: Row) {
  return { ...row, name: row.check.replaceAll('_', ' '), meaning: CHECK_DESCRIPTIONS[row.check] ?? '' }
}

/** More findings would make the page slow on phones. The download has all of them. */
const MAX_FINDINGS_SHOWN = 50

/** The findings as table rows, errors before warnings. All prices have as many decimals as the longest, to line up. */
function shownFindings(all: readonly Finding[]) {
  const isWarning = ({ severity }: Finding): number => Number(severity === 'warning')
  const findings = all.toSorted((one, other) => isWarning(one) - isWarning(other)).slice(0, MAX_FINDINGS_SHOWN)
  const prices = findings.flatMap(({ price, low, high }) => [price, low, high])
  const decimals = Math.max(0, ...prices.map((price) => (price === undefined ? 0 : decimalsOf(price))))
  const shape = { minimumFractionDigits: decimals, maximumFractionDigits: decimals }
  const written = new Intl.NumberFormat('en-US', shape)
  const priced = (value: number | undefined): string => (value === undefined ? '' : written.format(value))
  return findings.map(({ row, code, severity, leg, field, symbol, price, low, high, ...rest }) => ({
    row,
    code,
    severity,
    where: [symbol, leg, field].filter(Boolean).join(', '),
    price: priced(price),
    low: priced(low),
    high: priced(high),
    place: placeOf({ price, low, high }),
    figures: Object.entries(rest).map(([name, value]) => figureOf(name, value)),
  }))
}

const fine = once(() => new Intl.NumberFormat('en-US', { maximumFractionDigits: 8 }))

const decimalsOf = (value: number): number => Number(value.toFixed(8)).toString().split('.')[1]?.length ?? 0

/** "excess 633.74 bps" for excess_bps. */
function figureOf(name: string, value: unknown): string {
  const words = name.replaceAll('_', ' ')
  if (typeof value !== 'number') return `${words} ${String(value)}`
  return name.endsWith('_bps') ? `${words.slice(0, -4)} ${bps(value)}` : `${words} ${fine().format(value)}`
}
