/** The outcome of a simulation as a Markdown table, laid out as Prettier does it. */
import { type Capacity, type Latency, type Outcome, type Setup, CHANGES } from './paid-calls.ts'

/** Prices and sizes that the simulation does not need. */
export interface Prices {
  /** Price of a unit of gas, in gwei. */
  readonly gasGwei: number
  /** Price of the chain's own coin, in US dollars. */
  readonly coinUsd: number
  /** Bytes of the journal per payment. */
  readonly bytesPerPayment: number
}

const DAY = 86_400
const YEAR = 365 * DAY

/**
 * The cost of gas in US dollars.
 * @example gasUsd(50_616, { gasGwei: 0.005, coinUsd: 3_000, … }) → 0.00075924
 */
export function gasUsd(gas: number, { gasGwei, coinUsd }: Prices): number {
  return gas * gasGwei * 1e-9 * coinUsd
}

/** Results of the simulation for one setup. */
export function tableOf(setup: Setup, outcome: Outcome, capacity: Capacity, prices: Prices): string {
  const { paid, unpaid, burstSeconds, settling, changesPerCommit, commitsPerSecond, answeredPerSecond } = outcome
  const bytes = setup.paidPerSecond * prices.bytesPerPayment
  const figures: [string, string][] = [
    ['paid calls answered a second', count(answeredPerSecond)],
    ['a paid call takes (p50, p99)', range(paid)],
    ['a 402 takes (p50, p99)', range(unpaid)],
    ...(burstSeconds === null
      ? []
      : [[`${count(setup.burst)} more at once are answered within`, time(burstSeconds)] as [string, string]]),
    ['journal: changes a second', count(setup.paidPerSecond * CHANGES[setup.settling.scheme])],
    ['journal: commits a second, changes in each', `${count(commitsPerSecond)}, ${changesPerCommit.toFixed(1)}`],
    ['journal: written a day, a year', `${size(bytes * DAY)}, ${size(bytes * YEAR)}`],
    ...settlingFigures(setup, settling, prices),
  ]
  const full = new Map(capacity.resources.map(({ name, use }) => [name, use]))
  const uses = outcome.resources.map(({ name, use }) => [name, part(use), part(full.get(name) ?? Number.NaN)])
  const first = capacity.resources[0]
  return [
    markdown(['Figure', `At ${count(setup.paidPerSecond)} a second`], figures),
    markdown(
      ['How full is it?', `At ${count(setup.paidPerSecond)} a second`, `At ${count(capacity.paidPerSecond)}`],
      uses,
    ),
    `Full first (80 %) at ${count(capacity.paidPerSecond)} paid calls a second: ${first?.name ?? 'nothing'}.`,
  ].join('\n\n')
}

function settlingFigures({ paidPerSecond, settling }: Setup, outcome: Outcome['settling'], prices: Prices) {
  if (!outcome || settling.scheme !== 'exact') return []
  const { paymentsPerTransaction, gasPerPayment, transactionsPerSecond, feeGrowthPerBlock } = outcome
  const usd = gasUsd(gasPerPayment, prices)
  const { blockSeconds } = settling.chain
  const doubling = (Math.log(2) / Math.log1p(feeGrowthPerBlock)) * blockSeconds
  return [
    [
      'transactions a second, payments in each',
      `${count(transactionsPerSecond)}, ${paymentsPerTransaction.toFixed(1)}`,
    ],
    ['gas of a payment', count(gasPerPayment)],
    ['gas of a payment, of a day, in US dollars', `${usd.toFixed(5)}, ${count(usd * paidPerSecond * DAY)}`],
    [
      "the network's fee, if nobody else used it",
      feeGrowthPerBlock === 0 ? 'stays' : `doubles every ${time(doubling)}`,
    ],
  ] as [string, string][]
}

/** Three digits: 12,300 and 0.123. */
function count(value: number): string {
  return Number(value.toPrecision(3)).toLocaleString('en-US', { maximumFractionDigits: 6 })
}

function part(use: number): string {
  const percent = use * 100
  return `${percent < 1 ? '< 1' : percent.toFixed(0)} %`
}

function range({ p50, p99 }: Latency): string {
  return `${time(p50)}, ${time(p99)}`
}

function time(seconds: number): string {
  if (seconds >= 600) return `${(seconds / 60).toFixed(0)} min`
  if (seconds >= 1) return `${seconds.toFixed(seconds < 10 ? 1 : 0)} s`
  if (seconds < 0.00005) return '< 0.1 ms'
  return `${(seconds * 1000).toFixed(seconds < 0.01 ? 1 : 0)} ms`
}

const UNITS = ['B', 'kB', 'MB', 'GB', 'TB', 'PB'] as const

function size(bytes: number): string {
  const power = Math.min(UNITS.length - 1, Math.floor(Math.log10(bytes) / 3))
  return `${Number((bytes / 1000 ** power).toPrecision(3))} ${UNITS[power] ?? 'B'}`
}

/** The first column to the left, the others to the right. */
function markdown(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = head.map((title, at) => Math.max(3, title.length, ...rows.map((row) => row[at]?.length ?? 0)))
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`
  const pad = (cell: string, at: number): string =>
    at === 0 ? cell.padEnd(widths[at] ?? 0) : cell.padStart(widths[at] ?? 0)
  const rule = widths.map((width, at) => (at === 0 ? '-'.repeat(width) : `${'-'.repeat(width - 1)}:`))
  return [line(head.map(pad)), line(rule), ...rows.map((row) => line(row.map(pad)))].join('\n')
}
