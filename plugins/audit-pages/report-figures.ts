/** The figures of a report as text. */
import type { AuditReport } from '../../schemas/types.d.ts'
import { once } from '../lib/once.ts'

const rounded = once(() => new Intl.NumberFormat('en-US', { maximumFractionDigits: 2 }))

type Value = number | null | undefined
/** A number with at most two decimals; "–" without a value. */
export const number = (value: Value): string => (typeof value === 'number' ? rounded().format(value) : '–')
const fixed = (value: number, decimals: number): string =>
  value.toLocaleString('en-US', { minimumFractionDigits: decimals, maximumFractionDigits: decimals })
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

interface Figure {
  readonly label: string
  readonly figure: string
  /** What the figure means, or why there is none. */
  readonly note?: string
}

/** A figure with a note, which is left out if the figure is unknown. */
const noted = (label: string, figure: string, note: string): Figure =>
  figure === '–' ? { label, figure } : { label, figure, note }

/** The four figures at the top of the page. */
export function keyFigures({ performance, overfitting, fills }: AuditReport): Figure[] {
  return [
    {
      label: 'Expectancy after costs',
      figure: bps(performance.net_expectancy_bps),
      note: `95%: ${range(performance.expectancy_ci95_bps, 1, ' bps')}`,
    },
    {
      label: 'Annual Sharpe ratio',
      figure: ratio(performance.sharpe),
      note: `95%: ${range(performance.sharpe_ci95, 2)}`,
    },
    {
      label: 'Deflated Sharpe ratio',
      figure: chance(overfitting.dsr),
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
    {
      label: 'Probability of overfitting',
      figure: percent(it.pbo),
      note: it.pbo_not_checked ?? `${it.pbo_blocks} blocks`,
    },
  ]
}
