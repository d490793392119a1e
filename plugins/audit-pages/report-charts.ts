/** The report as pictures: what the trades made before and after costs, and what is left of it as trials are counted. */
import type { Chart, Step } from '../lib/charts.ts'
import type { AuditReport } from '../../schemas/types.d.ts'
import { deflatedSharpeChart } from '../lib/quant/deflated-sharpe-chart.ts'

/** Reports of earlier versions have no equity. */
export function equityCharts({ equity }: AuditReport): Chart[] {
  if (equity === undefined || equity.at.length < 2) return []
  const times = equity.at.map((at) => Date.parse(at))
  const points = (column: readonly number[]) => column.map((value, index) => [times[index] as number, value] as const)
  const x = { label: 'Exit, UTC', scale: 'time' } as const
  const last = (column: readonly number[]): string => percent(column.at(-1) ?? 0)
  const days = equity.at.map((at) => at.slice(0, 16).replace('T', ' '))
  const told = toldOf(equity.drawdown)
  return [
    {
      id: 'equity',
      title: 'Sum of returns before and after costs',
      description: `Two lines from the first exit to the last, one unit a trade: ${last(equity.gross)} before costs, ${last(equity.net)} after them.`,
      x,
      y: { label: 'Sum of returns, one unit a trade', unit: 'percent', domain: [0, 0.001] },
      series: [
        { name: 'Before costs', tone: 'muted', kind: 'dashed', points: points(equity.gross) },
        { name: 'After costs', tone: 'main', points: points(equity.net) },
      ],
      table: {
        columns: ['Exit, UTC', 'Before costs', 'After costs', 'Drawdown'],
        rows: told.map((index) => [
          days[index] ?? '',
          percent(equity.gross[index]),
          percent(equity.net[index]),
          percent(equity.drawdown[index]),
        ]),
      },
    },
    {
      id: 'drawdown',
      title: 'Fall from the highest point so far, after costs',
      description: `A line at zero or below it; at its deepest ${percent(Math.min(...equity.drawdown))}.`,
      x,
      y: { label: 'Drawdown', unit: 'percent', domain: [-0.001, 0] },
      series: [{ name: 'Drawdown', tone: 'bad', kind: 'step', points: points(equity.drawdown) }],
      table: {
        columns: ['Exit, UTC', 'Drawdown'],
        rows: told.map((index) => [days[index] ?? '', percent(equity.drawdown[index])]),
      },
    },
  ]
}

/** Rows of the tables beside the charts. */
const MOST_TOLD = 60

/** Places that a table tells: evenly spread ones, the deepest fall and the last. */
function toldOf(drawdown: readonly number[]): readonly number[] {
  const step = Math.ceil(drawdown.length / MOST_TOLD)
  const spread = [...drawdown.keys()].filter((index) => index % step === 0)
  const deepest = drawdown.indexOf(Math.min(...drawdown))
  return [...new Set([...spread, deepest, drawdown.length - 1])].sort((one, other) => one - other)
}

/** From what a trade makes to what is left of it, basis points a trade; both sides of each cost. */
export function costSteps({ performance, assumptions }: AuditReport): Step[] {
  const { gross_expectancy_bps: gross, net_expectancy_bps: net } = performance
  const { half_spread_bps: spread, slippage_bps: slippage, extra_bps: extra } = assumptions
  const commission = gross - net - 2 * (spread + slippage + extra)
  const reported = assumptions.trades_with_reported_fees > 0
  return [
    { label: 'A trade makes', amount: gross, total: true },
    { label: 'Half the spread, twice', amount: -2 * spread },
    { label: 'Slippage, twice', amount: -2 * slippage },
    { label: reported ? 'Fees as reported' : 'Commission, twice', amount: -commission },
    ...(extra === 0 ? [] : [{ label: 'Extra, twice', amount: -2 * extra }]),
    { label: 'Is left', amount: net, total: true },
  ]
}

/** The deflated Sharpe ratio had there been more trials, or fewer. Null where there are no statistics. */
export function trialsChart({ performance, overfitting }: AuditReport): Chart | null {
  const { sharpe_per_trade: sharpe, trades, skewness, kurtosis } = performance
  const { sr_variance: variance, n_trials: trials, dsr } = overfitting
  if (sharpe === null || variance === null || dsr === null) return null
  const sample = { sharpe, observations: trades, skewness, kurtosis }
  return deflatedSharpeChart({ sample, variance, trials, dsr })
}

/** A fill beside the bar it claims to be from, in percent of the row; null for other findings. */
export function placeOf({ price, low, high }: Readonly<Partial<Record<'price' | 'low' | 'high', number | undefined>>>) {
  if (price === undefined || low === undefined || high === undefined) return null
  const [least, most] = [Math.min(price, low), Math.max(price, high)]
  const room = (most - least || 1) * 0.06
  const at = (value: number): number => Math.round(((value - least + room) / (most - least + 2 * room)) * 1e4) / 100
  return { low: at(low), width: Math.max(0.5, at(high) - at(low)), price: at(price) }
}

const percent = (share: number | undefined): string => (share === undefined ? '–' : `${(share * 100).toFixed(1)}%`)
