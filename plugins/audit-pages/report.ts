/** A report as the page shows it: figures as text, findings as rows. */
import type { AuditReport } from '../../schemas/types.d.ts'
import { costSteps, deflationChart, equityCharts, placeOf } from './charts.ts'

type Finding = AuditReport['fills']['findings'][number]

const WORDS = {
  reject: { title: 'Reject', tone: 'bad' },
  not_profitable: { title: 'Not profitable', tone: 'bad' },
  unproven: { title: 'Unproven', tone: 'doubt' },
  plausible: { title: 'Plausible', tone: 'fair' },
} as const

/** What each reason and warning means; those with figures in them are shown as they are. */
const MEANINGS: Readonly<Record<string, string>> = {
  'structural_share_above_0.005': 'More than 0.5% of the rows cannot be used.',
  'impossible_share_above_0.005': 'More than 0.5% of the fills could not have happened.',
  'unadjusted_split_share_above_0.005': 'More than 0.5% of the trades were held over a split at unadjusted prices.',
  lookahead_extremes: 'Fills lie at the extremes of their bars, as only hindsight could place them.',
  lookahead_same_bar: 'Entries at the open know the direction of the bar.',
  touch_fill: 'Too many fills lie exactly on a high or low.',
  net_expectancy_not_positive: 'Nothing is left after costs.',
  too_few_trades_for_statistics: 'Too few trades, or all alike: no statistics.',
  'dsr_below_0.95': 'The deflated Sharpe ratio is below 95%.',
  'pbo_above_0.5': 'The best trial is more likely than not overfitted.',
  fewer_trades_than_min_trl: 'The record is shorter than the minimum for this Sharpe ratio.',
  times_without_zone_read_as_utc: 'The times name no zone and were read as UTC.',
  fees_all_zero: 'Every reported fee is zero; the commission of the preset was charged instead.',
}

const NUMBER = new Intl.NumberFormat('en-US', { maximumFractionDigits: 2 })
const FINE = new Intl.NumberFormat('en-US', { maximumFractionDigits: 8 })

type Value = number | null | undefined
const number = (value: Value): string => (typeof value === 'number' ? NUMBER.format(value) : '–')
const percent = (value: Value): string => (typeof value === 'number' ? `${(value * 100).toFixed(1)}%` : '–')
const bps = (value: Value): string => (typeof value === 'number' ? `${value.toFixed(1)} bps` : '–')
const years = (value: Value): string => (typeof value === 'number' ? `${value.toFixed(1)} years` : '–')
const range = (pair: readonly number[] | null, written: (value: Value) => string): string =>
  pair ? `${written(pair[0])} to ${written(pair[1])}` : '–'

export function page(report: AuditReport) {
  const { rid, verdict, reasons, summary, as_of, ledger, assumptions, fills, warnings, model } = report
  const isSample = rid === 'sample'
  return {
    rid,
    isSample,
    ...WORDS[verdict],
    summary,
    reasons: reasons.map((reason) => MEANINGS[reason] ?? reason),
    warnings: warnings.map((warning) => MEANINGS[warning] ?? warning.replaceAll('_', ' ')),
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
    deflation: deflationChart(report),
    findings: fills.findings.map(shownFinding),
    checks: fills.checks.filter(({ checked }) => checked > 0),
    unchecked: fills.checks.filter(({ not_checked: left, checked }) => left > 0 || checked === 0),
  }
}

function shownFinding({ row, code, severity, leg, field, symbol, price, low, high, ...rest }: Finding) {
  return {
    row,
    code,
    severity,
    where: [symbol, leg, field].filter(Boolean).join(', '),
    price: fine(price),
    low: fine(low),
    high: fine(high),
    place: placeOf({ price, low, high }),
    figures: Object.entries(rest).map(([name, value]) => `${name.replaceAll('_', ' ')} ${written(name, value)}`),
  }
}

const fine = (value: number | undefined): string => (value === undefined ? '' : FINE.format(value))

function written(name: string, value: unknown): string {
  if (typeof value !== 'number') return String(value)
  return (name.endsWith('_bps') ? NUMBER : FINE).format(value)
}

interface Figure {
  readonly label: string
  readonly figure: string
  readonly note?: string
}

function keyFigures({ performance, overfitting, fills }: AuditReport): Figure[] {
  return [
    {
      label: 'Expectancy after costs',
      figure: bps(performance.net_expectancy_bps),
      note: `95%: ${range(performance.expectancy_ci95_bps, bps)}`,
    },
    {
      label: 'Sharpe ratio a year',
      figure: number(performance.sharpe),
      note: `95%: ${range(performance.sharpe_ci95, number)}`,
    },
    {
      label: 'Deflated Sharpe ratio',
      figure: percent(overfitting.dsr),
      note: `${number(overfitting.n_trials)} trials`,
    },
    {
      label: 'Impossible fills',
      figure: number(fills.impossible),
      note: `${number(fills.checked)} of ${number(fills.fills)} held against bars`,
    },
  ]
}

function performance({ performance: it }: AuditReport): Figure[] {
  return [
    { label: 'Trades', figure: number(it.trades) },
    { label: 'Expectancy before costs', figure: bps(it.gross_expectancy_bps) },
    { label: 'Break-even cost a side', figure: bps(it.breakeven_cost_per_side_bps) },
    { label: 'Win rate', figure: percent(it.win_rate) },
    { label: 'Payoff', figure: number(it.payoff), note: 'mean win over mean loss' },
    { label: 'Profit factor', figure: number(it.profit_factor) },
    { label: 't statistic', figure: number(it.t_stat) },
    { label: 'Sharpe ratio, autocorrelation allowed for', figure: number(it.sharpe_lo), note: 'Lo 2002' },
    { label: 'Largest drawdown', figure: percent(it.max_drawdown), note: 'of one unit a trade' },
    { label: 'Trades a year', figure: number(it.trades_per_year) },
    { label: 'Time with a trade open', figure: percent(it.exposure) },
    { label: 'Skewness, kurtosis', figure: `${number(it.skewness)}, ${number(it.kurtosis)}` },
  ]
}

function overfitting({ overfitting: it }: AuditReport): Figure[] {
  return [
    { label: 'Probabilistic Sharpe ratio', figure: percent(it.psr), note: 'against zero' },
    { label: 'Best Sharpe ratio by luck', figure: number(it.sr0), note: 'a year, expected' },
    {
      label: 'Minimum track record',
      figure: it.min_trl_trades === null ? '–' : `${number(Math.ceil(it.min_trl_trades))} trades`,
      note: years(it.min_trl_years),
    },
    {
      label: 'Minimum backtest length',
      figure: years(it.min_btl_years),
      note: `at most ${years(it.min_btl_bound_years)}`,
    },
    { label: 'Sharpe ratio after haircut', figure: number(it.haircut_sharpe), note: 'Bonferroni, a year' },
    {
      label: 'Probability of overfitting',
      figure: percent(it.pbo),
      note: it.pbo_not_checked ?? `${it.pbo_blocks} blocks`,
    },
  ]
}
