import { type Audit, audit } from '../../../plugins/audit/audit.ts'
import { calculate } from '../../../plugins/calculator/track-record.ts'
import checkBarQuality from '../../../plugins/qc/bar-quality.ts'
import type { Ask } from '../../../gateway/plugin/plugin.ts'
import { bestCpuSeconds } from '../../lab/bench/cpu-time.ts'
import { LAYOUT_NAMES, type Trip, writeLedger } from './ledger-layouts.ts'
import { atLeast, atMost, type Measure } from '../../support/measure.ts'
import { readRecorded } from '../../support/recorded-data.ts'

const PART = 'backtest audit'
const ROWS = 200_000

interface Truth {
  readonly reference_bars: string
  readonly row_findings: readonly { readonly row: number; readonly type: string; readonly leg?: string }[]
}

/** Stands in for the gateway: answers bar-quality calls with the real product, and lists no symbols. */
export const ask: Ask = async (id, ...[input]) => {
  if (id === 'getSymbols') return { origin: 'none', symbols: [] } as never
  if (id === 'checkBarQuality') return checkBarQuality((input as { body?: never }).body!) as never
  throw new Error(`No operation ${id} in this benchmark.`)
}

async function run(file: Buffer, bars?: Buffer, preset: 'large_cap' | 'zero' = 'large_cap'): Promise<Audit> {
  const request = { file, bars, preset, trials: 10, extraBps: 0, symbol: undefined }
  return audit(request, { ask, asOf: new Date(), unusableReason: null })
}

/** Measures findings against known defects, layouts against each other, published figures, and the time for a large file. */
export async function measureAudit(): Promise<Measure[]> {
  return [...(await measureFindings()), ...(await measureLayouts()), ...measurePaper(), ...(await measureTime())]
}

async function measureFindings(): Promise<Measure[]> {
  const truth = JSON.parse(readRecorded('ledgers/dev_defects_truth.json')) as Truth
  const bars = Buffer.from(readRecorded(truth.reference_bars))
  const defects = await run(Buffer.from(readRecorded('ledgers/dev_defects.csv')), bars)
  const found = defects.fills.findings.map(({ row, code, leg }) => [row, code, leg ?? ''].join(' '))
  const wanted = truth.row_findings.map(({ row, type, leg }) => [row, type, leg ?? ''].join(' '))
  const clean = await run(Buffer.from(readRecorded('ledgers/dev_clean.csv')), bars)
  const freqtrade = await run(Buffer.from(readRecorded('ledgers/freqtrade_backtest_trades.csv')))
  return [
    atLeast(
      PART,
      `planted defects found, of ${wanted.length}`,
      wanted.filter((one) => found.includes(one)).length,
      wanted.length,
      0,
    ),
    atMost(PART, 'findings without a planted defect', found.filter((one) => !wanted.includes(one)).length, 0, 0),
    atMost(
      PART,
      'findings and flags on the clean ledger',
      clean.fills.findings.length + clean.fills.flags.length,
      0,
      0,
    ),
    atLeast(PART, 'trades read of a freqtrade export of 179', freqtrade.ledger.trades, 179, 0),
  ]
}

async function measureLayouts(): Promise<Measure[]> {
  const trips = tripsOf(readRecorded('ledgers/dev_clean.csv'))
  const figures: number[][] = []
  for (const layout of LAYOUT_NAMES) figures.push(figuresOf(await run(writeLedger(layout, trips))))
  const [first = [], ...others] = figures
  const apart = others.flatMap((other) =>
    other.map((value, i) => Math.abs(value - first[i]!) / Math.max(1, Math.abs(first[i]!))),
  )
  return [
    atMost(
      PART,
      `figures of one ledger in ${LAYOUT_NAMES.length} layouts, largest relative difference`,
      Math.max(...apart),
      1e-6,
      9,
    ),
  ]
}

/** All numeric figures of performance and overfitting. */
export function figuresOf({ performance, overfitting }: Pick<Audit, 'performance' | 'overfitting'>): number[] {
  return [...Object.values(performance), ...Object.values(overfitting)]
    .flat()
    .filter((value): value is number => typeof value === 'number')
}

function tripsOf(csv: string): Trip[] {
  const [, ...lines] = csv.trim().split('\n')
  return lines.map((line) => {
    const [, symbol = '', side, qty, entryTime = '', entryPrice, exitTime = '', exitPrice] = line.trim().split(',')
    return {
      symbol,
      sign: side === 'short' ? -1 : 1,
      qty: Number(qty),
      entryTime,
      entryPrice: Number(entryPrice),
      exitTime,
      exitPrice: Number(exitPrice),
    }
  })
}

/** Bailey and López de Prado (2014): annual SR 2.5, 1250 days of 250 a year, skewness -3, kurtosis 10, variance 1/2. */
function measurePaper(): Measure[] {
  const track = { sharpe: 2.5, days: 1250, skew: -3, kurt: 10, srVariance: 0.5, periodsPerYear: 250 }
  const cases = [
    { dsr: 0.9004, name: '100 trials', track: { ...track, trials: 100 } },
    { dsr: 0.9505, name: '46 trials', track: { ...track, trials: 46 } },
    { dsr: 0.9505, name: '88 trials, normal returns', track: { ...track, trials: 88, skew: 0, kurt: 3 } },
  ]
  return cases.map(({ dsr, name, track }) => {
    const computed = calculate(track).dsr
    return {
      part: PART,
      name: `deflated Sharpe ratio of the paper's example, ${name}`,
      value: computed.toFixed(4),
      bar: `= ${dsr}`,
      pass: computed.toFixed(4) === dsr.toFixed(4),
    }
  })
}

async function measureTime(): Promise<Measure[]> {
  const file = Buffer.from(`symbol,side,qty,entry_time,entry_price,exit_time,exit_price\n${rows().join('\n')}\n`)
  const seconds = await bestCpuSeconds(() => run(file))
  const size = `${ROWS.toLocaleString('en')} trades (${(file.length / 1e6).toFixed(1)} MB)`
  return [atMost(PART, `CPU seconds for ${size}`, seconds, 3, 2)]
}

function rows(): string[] {
  const start = Date.UTC(2021, 0, 4)
  return Array.from({ length: ROWS }, (_, i) => {
    const time = (minutes: number): string => new Date(start + (i * 10 + minutes) * 60_000).toISOString()
    const price = (at: number): string => (100 + 10 * Math.sin(at / 1000) + Math.cos(at * 7)).toFixed(2)
    return `XYZ,${i % 3 === 0 ? 'short' : 'long'},10,${time(0)},${price(i)},${time(9)},${price(i + 1)}`
  })
}
