/** The figures of a report as text. */
import { once } from 'tollgate/plugin'
import type { AuditReport } from '../../schemas/types.d.ts'

const rounded = once(() => new Intl.NumberFormat('en-US', { maximumFractionDigits: 2 }))

type Value = number | null | undefined
/** A number with at most two decimals; "–" without a value. */
export const number = (value: Value): string => (typeof value === 'number' ? rounded().format(value) : '–')
/** A number with its noun: "1 row", "4 rows". */
export const counted = (count: number, one: string, many = `${one}s`): string =>
  `${number(count)} ${count === 1 ? one : many}`

const exact = once(() => new Intl.NumberFormat('en-US', { maximumSignificantDigits: 8 }))
/** A quantity or price as the file has it, with at most eight digits: 0.0000123 is "0.0000123". */
export const quantity = (value: number): string => exact().format(value)
const fixed = (value: number, decimals: number): string =>
  value.toLocaleString('en-US', {
    minimumFractionDigits: decimals,
    maximumFractionDigits: decimals,
    signDisplay: 'negative',
  })
/** A ratio with two decimals: 2.9 is "2.90". */
const ratio = (value: Value): string => (typeof value === 'number' ? fixed(value, 2) : '–')
/** A share as percent with one decimal: 0.5 is "50.0%". */
export const percent = (value: Value): string => (typeof value === 'number' ? `${fixed(value * 100, 1)}%` : '–')
/** Basis points with one decimal: 2549.33 is "2,549.3 bps". */
export const bps = (value: Value): string => (typeof value === 'number' ? `${fixed(value, 1)} bps` : '–')
const years = (value: Value): string =>
  typeof value !== 'number' ? '–' : value > 0 && value < 0.05 ? '< 0.1 years' : `${fixed(value, 1)} years`
/** An interval: "-15.2 to 242.8 bps". */
const range = (pair: readonly number[] | null, decimals: number, unit = ''): string =>
  pair ? pair.map((value) => fixed(value, decimals)).join(' to ') + unit : '–'

/** A probability. A measured one is never shown as 0% or 100%. */
function chance(value: Value): string {
  if (typeof value !== 'number') return '–'
  if (value > 0.9995) return '> 99.9%'
  return value < 0.0005 ? '< 0.1%' : percent(value)
}

/** A p value: "0.042", never 0. */
const probability = (value: Value): string =>
  typeof value !== 'number' ? '–' : value < 0.001 ? '< 0.001' : fixed(value, 3)

export interface Figure {
  readonly label: string
  readonly figure: string
  /** What the figure means, or why there is none. */
  readonly note?: string
}

/** A table of the page. The first cell of a row names it; a cell has a text, and a note in small print. */
export interface Table {
  readonly columns: readonly { readonly label: string; readonly isNumber?: boolean }[]
  readonly rows: readonly (readonly { readonly text: string; readonly note?: string | null }[])[]
}

/** A figure with a note, which is left out if the figure is unknown. */
const noted = (label: string, figure: string, note: string): Figure =>
  figure === '–' ? { label, figure } : { label, figure, note }

/** The four figures at the top of the page. Those of days count trades that overlap once. */
export function keyFigures({ performance, overfitting, fills, days }: AuditReport): Figure[] {
  const dsr = days?.dsr ?? overfitting.dsr
  return [
    {
      label: 'Expectancy after costs',
      figure: bps(performance.net_expectancy_bps),
      note: `95%: ${range(performance.expectancy_ci95_bps, 1, ' bps')}`,
    },
    typeof days?.sharpe === 'number'
      ? { label: 'Annual Sharpe ratio', figure: ratio(days.sharpe), note: `by day, t ${ratio(days.t_stat)}` }
      : {
          label: 'Annual Sharpe ratio',
          figure: ratio(performance.sharpe),
          note: `95%: ${range(performance.sharpe_ci95, 2)}`,
        },
    {
      label: 'Deflated Sharpe ratio',
      figure: chance(dsr),
      note: `after ${number(overfitting.n_trials)} ${overfitting.n_trials === 1 ? 'trial' : 'trials'}`,
    },
    {
      label: 'Impossible fills',
      figure: fills.checked === 0 && fills.impossible === 0 ? 'unknown' : number(fills.impossible),
      note: `${number(fills.checked)} of ${number(fills.fills)} fills checked against bars`,
    },
  ]
}

/** The figures of the section on performance after costs. */
export function performance({ performance: it }: AuditReport): Figure[] {
  return [
    { label: 'Trades', figure: number(it.trades) },
    { label: 'Expectancy before costs', figure: bps(it.gross_expectancy_bps) },
    { label: 'Break-even cost per side', figure: bps(it.breakeven_cost_per_side_bps) },
    { label: 'Win rate', figure: percent(it.win_rate) },
    noted('Payoff', ratio(it.payoff), 'mean win divided by mean loss'),
    { label: 'Profit factor', figure: ratio(it.profit_factor) },
    { label: 't statistic', figure: ratio(it.t_stat) },
    noted('Sharpe ratio, adjusted for autocorrelation', ratio(it.sharpe_lo), 'Lo 2002'),
    noted('Largest drawdown', percent(it.max_drawdown), 'with one unit per trade'),
    { label: 'Trades per year', figure: number(it.trades_per_year) },
    { label: 'Time with a trade open', figure: percent(it.exposure) },
    { label: 'Skewness, kurtosis', figure: `${ratio(it.skewness)}, ${ratio(it.kurtosis)}` },
  ]
}

const METHODS = {
  marked: 'Each day, every position is valued at a price of that day.',
  blocks: 'There are no daily prices, so days are taken together in blocks',
  none: 'The trades cannot be valued by day.',
} as const

/** The section on days; null in reports of earlier versions. */
export function daily({ days: it }: AuditReport) {
  if (it === undefined) return null
  const block = it.block_days === null ? '.' : ` of ${number(it.block_days)} days, twice the longest trade or more.`
  const method = it.method === 'blocks' ? METHODS.blocks + block : METHODS[it.method]
  return {
    method,
    why: it.why === null ? null : `${capitalised(it.why)}.`,
    figures: it.method === 'none' ? [] : dailyFigures(it),
  }
}

const capitalised = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1)

/** Every benchmark that the returns were compared with. */
function comparisonsOf({ comparisons, benchmark, alpha_bps, alpha_t_stat, beta }: NonNullable<AuditReport['days']>) {
  if (comparisons !== undefined) return comparisons
  return benchmark === null ? [] : [{ benchmark, alpha_bps, alpha_t_stat, beta }]
}

function dailyFigures(it: NonNullable<AuditReport['days']>): Figure[] {
  return [
    noted('Days', number(it.days), `${percent(it.marked_share)} with prices`),
    { label: 'Independent bets', figure: it.effective_bets === null ? '–' : number(Math.round(it.effective_bets)) },
    noted('Mean return of a day', bps(it.mean_bps), `95%: ${range(it.mean_ci95_bps, 1, ' bps')}`),
    noted('t statistic', ratio(it.t_stat), `p ${probability(it.p_value)}`),
    { label: 'Annual Sharpe ratio', figure: ratio(it.sharpe) },
    { label: 'Deflated Sharpe ratio', figure: chance(it.dsr) },
    {
      label: 'Minimum track record',
      figure: it.min_trl_days === null ? '–' : `${number(Math.ceil(it.min_trl_days))} days`,
    },
    { label: 'Autocorrelation, day to day', figure: ratio(it.autocorrelation) },
    { label: 't statistic of the money of a day', figure: ratio(it.money_t_stat) },
    ...comparisonsOf(it).flatMap(({ benchmark, alpha_bps: alpha, alpha_t_stat: t, beta }) => {
      const beside = benchmark === 'traded_symbols' ? 'holding the symbols' : benchmark
      return [
        noted(`Alpha of a day, beside ${beside}`, bps(alpha), `t ${ratio(t)}`),
        { label: `Beta, beside ${beside}`, figure: ratio(beta) },
      ]
    }),
  ]
}

/** The figures of the section on luck and overfitting. */
export function overfitting({ overfitting: it }: AuditReport): Figure[] {
  return [
    noted('Probabilistic Sharpe ratio', chance(it.psr), 'against zero'),
    noted('Best Sharpe ratio by luck', ratio(it.sr0), 'expected, annual'),
    noted(
      'Minimum track record',
      it.min_trl_trades === null ? '–' : `${number(Math.ceil(it.min_trl_trades))} trades`,
      years(it.min_trl_years),
    ),
    noted('Minimum backtest length', years(it.min_btl_years), `at most ${years(it.min_btl_bound_years)}`),
    noted('Sharpe ratio after haircut', ratio(it.haircut_sharpe), 'Bonferroni, annual'),
    ...familyFigures(it),
    {
      label: 'Probability of overfitting',
      figure: percent(it.pbo),
      note: it.pbo_not_checked ?? `${it.pbo_blocks} blocks`,
    },
  ]
}

/** Tests of the best trial against luck among all trials of the file. A file with a single trial has none. */
function familyFigures({ spa_p_value: spa, reality_check_p_value: check }: AuditReport['overfitting']): Figure[] {
  return [
    ...(typeof spa === 'number'
      ? [{ label: 'Superior predictive ability', figure: `p ${probability(spa)}`, note: 'Hansen' }]
      : []),
    ...(typeof check === 'number'
      ? [{ label: 'Reality check', figure: `p ${probability(check)}`, note: 'White' }]
      : []),
  ]
}
