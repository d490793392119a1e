/** Charts of the report: returns before and after costs, cost steps, and the deflated Sharpe ratio by number of trials. */
import type { Chart, WaterfallStep } from 'tollgate/plugin'
import type { AuditReport } from '../../schemas/types.d.ts'
import { deflatedSharpeChart } from '../lib/quant/deflated-sharpe-chart.ts'
import { percent } from './report-figures.ts'

/** The equity and drawdown charts. Empty for reports of earlier versions, which have no equity curve. */
export function equityCharts({ equity }: AuditReport): Chart[] {
  if (equity === undefined || equity.at.length < 2) return []
  const times = equity.at.map((at) => Date.parse(at))
  const points = (column: readonly number[]) => column.map((value, index) => [times[index] as number, value] as const)
  const x = { label: 'Exit, UTC', scale: 'time' } as const
  const last = (column: readonly number[]): string => percent(column.at(-1) ?? 0)
  const days = equity.at.map((at) => at.slice(0, 16).replace('T', ' '))
  const tableRows = tableRowsOf(equity.drawdown)
  return [
    {
      id: 'equity',
      title: 'Sum of returns before and after costs',
      description: `Two lines from the first exit to the last, with one unit per trade: ${last(equity.gross)} before costs, ${last(equity.net)} after them.`,
      x,
      y: { label: 'Sum of returns, one unit per trade', unit: 'percent', domain: [0, 0] },
      series: [
        { name: 'Before costs', tone: 'muted', kind: 'dashed', points: points(equity.gross) },
        { name: 'After costs', tone: 'main', points: points(equity.net) },
      ],
      table: {
        columns: ['Exit, UTC', 'Before costs', 'After costs', 'Drawdown'],
        rows: tableRows.map((index) => [
          days[index] ?? '',
          percent(equity.gross[index]),
          percent(equity.net[index]),
          percent(equity.drawdown[index]),
        ]),
      },
    },
    {
      id: 'drawdown',
      title: 'Drawdown from the highest point so far, after costs',
      description: `A line at or below zero. Its lowest point is ${percent(Math.min(...equity.drawdown))}.`,
      x,
      y: { label: 'Drawdown', unit: 'percent', domain: [0, 0] },
      series: [{ name: 'Drawdown', tone: 'bad', kind: 'step', points: points(equity.drawdown) }],
      table: {
        columns: ['Exit, UTC', 'Drawdown'],
        rows: tableRows.map((index) => [days[index] ?? '', percent(equity.drawdown[index])]),
      },
    },
  ]
}

/** Approximate number of rows in the tables beside the charts. */
const MAX_TABLE_ROWS = 60

/** The steps that the table lists: evenly spread ones, the deepest drawdown and the last. */
function tableRowsOf(drawdown: readonly number[]): readonly number[] {
  const step = Math.ceil(drawdown.length / MAX_TABLE_ROWS)
  const spread = [...drawdown.keys()].filter((index) => index % step === 0)
  const deepest = drawdown.indexOf(Math.min(...drawdown))
  return [...new Set([...spread, deepest, drawdown.length - 1])].sort((one, other) => one - other)
}

/** The steps from gross to net return, in basis points per trade. Each cost counts for both sides. */
export function costSteps({ performance, assumptions }: AuditReport): WaterfallStep[] {
  const { gross_expectancy_bps: gross, net_expectancy_bps: net } = performance
  const { half_spread_bps: spread, slippage_bps: slippage, extra_bps: extra } = assumptions
  const commission = gross - net - 2 * (spread + slippage + extra)
  const reported = assumptions.trades_with_reported_fees > 0
  return [
    { label: 'Gross', amount: gross, total: true },
    { label: 'Half the spread, twice', amount: -2 * spread },
    { label: 'Slippage, twice', amount: -2 * slippage },
    { label: reported ? 'Fees as reported' : 'Commission, twice', amount: -commission },
    ...(extra === 0 ? [] : [{ label: 'Extra, twice', amount: -2 * extra }]),
    { label: 'Net after costs', amount: net, total: true },
  ]
}

/** The deflated Sharpe ratio for more and fewer trials. Null if the report has no statistics. */
export function trialsChart({ performance, overfitting }: AuditReport): Chart | null {
  const { sharpe_per_trade: sharpe, trades, skewness, kurtosis } = performance
  const { sr_variance: variance, n_trials: trials, dsr } = overfitting
  if (sharpe === null || variance === null || dsr === null) return null
  const sample = { sharpe, observations: trades, skewness, kurtosis }
  return deflatedSharpeChart({ sample, variance, trials, dsr })
}

/**
 * Where to draw a fill beside its bar, in percent of the width of the row; null for other findings.
 *
 * @example placeOf({ price: 12, low: 10, high: 11 }) // { low: 5.36, width: 44.64, price: 94.64 }
 */
export function placeOf({ price, low, high }: Readonly<Partial<Record<'price' | 'low' | 'high', number | undefined>>>) {
  if (price === undefined || low === undefined || high === undefined) return null
  const [least, most] = [Math.min(price, low), Math.max(price, high)]
  const room = (most - least || 1) * 0.06
  const at = (value: number): number => Math.round(((value - least + room) / (most - least + 2 * room)) * 1e4) / 100
  return { low: at(low), width: Math.max(0.5, at(high) - at(low)), price: at(price) }
}
