/** The history of the regime over 30 days, delayed by one day, and the realised volatility of the market. */
import type { Call, Chart } from 'tollgate/plugin'
import { cachedRead, type Read } from './cached-read.ts'

/** A period with one label, in epoch milliseconds. */
interface Run {
  readonly from: number
  readonly to: number
  readonly volatile: boolean
}

/** Squared log returns of five-minute bars, by the time at which each bar closed. */
interface Returns {
  readonly at: readonly number[]
  readonly squared: readonly number[]
}

/** The labels of a market and its returns over the same time. */
export interface MarketHistory {
  readonly symbol: string
  readonly runs: readonly Run[]
  readonly returns: Returns
}

/** One page of getRegimeHistory. */
interface HistoryPage {
  readonly symbol: string
  readonly next_start: string | null
  readonly snapshots: readonly {
    readonly as_of: string
    readonly regime: string
  }[]
}

interface Bars {
  readonly count: number
  readonly time: ArrayLike<number>
  readonly close: ArrayLike<number>
}

const DAYS = 30
const HOUR = 3_600_000
const DAY = 86_400_000
const YEAR = 365 * DAY
const BAR = 300_000
const PAGE_SIZE = 10_000

/**
 * Creates a function that reads the history as of the call, at most once an hour: snapshots never change. It returns null
 * if there is less than a day of history.
 */
export function createHistoryReader(): Read<MarketHistory> {
  return cachedRead(HOUR, (call) =>
    ['getRegimeHistory', 'getBars'].every((id) => call.catalog.operations.has(id))
      ? read(call, Math.floor(call.asOf.getTime() / HOUR) * HOUR)
      : Promise.resolve(null),
  )
}

async function read(call: Call, until: number): Promise<MarketHistory | null> {
  const runs: Run[] = []
  let symbol = ''
  let start: string | null = new Date(until - DAYS * DAY).toISOString()
  const end = new Date(until).toISOString()
  while (start !== null) {
    const query = { start, end, limit: PAGE_SIZE }
    const page = (await call.ask('getRegimeHistory', { query })) as HistoryPage
    symbol = page.symbol
    for (const { as_of, regime } of page.snapshots) {
      const at = Date.parse(as_of)
      const volatile = regime === 'VOLATILE'
      extend(runs, { from: at, to: at + 60_000, volatile })
    }
    start = page.next_start
  }
  const [first, last] = [runs[0], runs.at(-1)]
  if (first === undefined || last === undefined || last.to - first.from < DAY) return null
  const query = { symbol, from: first.from / 1000, to: until / 1000, interval: BAR / 1000 }
  const bars = (await call.ask('getBars', { query })) as Bars
  return { symbol, runs, returns: returnsOf(bars) }
}

/** Extends the last run by a snapshot, or begins a new run. */
function extend(runs: Run[], next: Run): void {
  const last = runs.at(-1)
  if (last?.volatile === next.volatile) runs[runs.length - 1] = { ...last, to: next.to }
  else runs.push(next)
}

function returnsOf({ count, time, close }: Bars): Returns {
  const [at, squared]: [number[], number[]] = [[], []]
  for (let i = 1; i < count; i += 1) {
    at.push(time[i]! * 1000 + BAR)
    squared.push(Math.log(close[i]! / close[i - 1]!) ** 2)
  }
  return { at, squared }
}

/** Returns the annualised realised volatility of (from, to] as a fraction, or null if no bar closed in it. */
function realised({ at, squared }: Returns, from: number, to: number): number | null {
  let [sum, count] = [0, 0]
  for (let i = firstAfter(at, from); i < at.length && at[i]! <= to; i += 1) {
    sum += squared[i]!
    count += 1
  }
  return count === 0 ? null : Math.sqrt((sum / count) * (YEAR / BAR))
}

/** Returns the index of the first time after `time`. */
function firstAfter(at: readonly number[], time: number): number {
  let [low, high] = [0, at.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if (at[middle]! > time) high = middle
    else low = middle + 1
  }
  return low
}

/** Splits the history into blocks of `length` milliseconds and returns the middle and the volatility of each. */
function blocks({ runs, returns }: MarketHistory, length: number): readonly (readonly [number, number])[] {
  const first = runs[0]?.from ?? 0
  const last = runs.at(-1)?.to ?? 0
  const count = Math.ceil((last - first) / length)
  return Array.from({ length: count }, (_, index) => first + index * length).flatMap((from) => {
    const value = realised(returns, from, from + length)
    return value === null ? [] : [[from + length / 2, value] as const]
  })
}

/** Returns the chart of the start page. */
export function chartOf(history: MarketHistory): Chart {
  const { symbol, runs } = history
  const volatile = runs.filter((run) => run.volatile)
  return {
    id: 'past-chart',
    title: `${symbol}: regime label and realised volatility`,
    description: `Realised volatility of ${symbol} in blocks of four hours over ${DAYS} days, with the ${volatile.length} periods that were labelled VOLATILE at the time.`,
    x: { label: 'UTC', scale: 'time' },
    y: { label: 'Annualised volatility', unit: 'percent', domain: [0, 0.1] },
    series: [{ name: 'Realised volatility, 4 hours', tone: 'main', kind: 'step', points: blocks(history, 4 * HOUR) }],
    bands: volatile.map(({ from, to }) => ({ from, to, tone: 'bad' })),
    bandNames: [{ name: 'Labelled VOLATILE', tone: 'bad' }],
    table: { columns: ['Day', 'VOLATILE', 'Label changes', 'Realised volatility'], rows: days(history) },
  }
}

function days({ runs, returns }: MarketHistory): (string | number)[][] {
  const first = Math.floor((runs[0]?.from ?? 0) / DAY)
  const last = Math.floor((runs.at(-1)?.from ?? 0) / DAY)
  return Array.from({ length: last - first + 1 }, (_, index) => (first + index) * DAY).map((from) => {
    const within = runs.filter((run) => run.to > from && run.from < from + DAY)
    const spans = within.map((run) => ({ ...run, length: Math.min(run.to, from + DAY) - Math.max(run.from, from) }))
    const all = spans.reduce((sum, { length }) => sum + length, 0)
    const volatile = spans.reduce((sum, run) => sum + (run.volatile ? run.length : 0), 0)
    const value = realised(returns, from, from + DAY)
    return [
      new Date(from).toISOString().slice(0, 10),
      percent(all === 0 ? 0 : volatile / all),
      within.filter((run) => run.from >= from && run !== runs[0]).length,
      value === null ? '–' : percent(value),
    ]
  })
}

const percent = (share: number): string => `${(share * 100).toFixed(0)}%`

/**
 * Returns the latest changes of the label, newest first, with the volatility of the next hour and of the whole period as
 * multiples of the median hour.
 */
export function changes({ runs, returns }: MarketHistory, count: number) {
  const hourly = hoursOf(runs, returns).toSorted((one, other) => one - other)
  const median = hourly[hourly.length >> 1] ?? null
  const relative = (from: number, to: number): number | null => {
    const value = realised(returns, from, to)
    return value === null || median === null ? null : value / median
  }
  const last = runs.at(-1)
  return runs
    .slice(1)
    .slice(-count)
    .toReversed()
    .map((run) => ({
      at: run.from,
      regime: run.volatile ? 'VOLATILE' : 'STABLE',
      tone: run.volatile ? 'volatile' : 'stable',
      hours: (run.to - run.from) / HOUR,
      isOpen: run === last,
      hourAfter: relative(run.from, run.from + HOUR),
      whole: relative(run.from, run.to),
    }))
}

function hoursOf(runs: readonly Run[], returns: Returns): number[] {
  const first = runs[0]?.from ?? 0
  const count = Math.floor(((runs.at(-1)?.to ?? 0) - first) / HOUR)
  return Array.from({ length: count }, (_, index) => first + index * HOUR).flatMap((from) => {
    const value = realised(returns, from, from + HOUR)
    return value === null ? [] : [value]
  })
}
