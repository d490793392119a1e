import {
  abdiRanaldoSpread,
  corwinSchultzSpread,
  edgeSpread,
  rollSpread,
} from '../../../../plugins/lib/quant/spread-estimators.ts'
import type { Ohlc } from '../../../../plugins/lib/quant/volatility-estimators.ts'
import { atLeast, atMost, type Measure, shown } from '../../../support/measure.ts'
import { readRecorded, recordedNames } from '../../../support/recorded-data.ts'

const PART = 'spreads'
const US_TICK = 0.01

interface SpreadDay {
  readonly isUs: boolean
  readonly bars: Ohlc
  /** Mean quoted spread of the day, bps. */
  readonly quoted: number
  /** Mean price, for the tick floor. */
  readonly price: number
}

type Estimator = (bars: Ohlc) => number | null

/** Compares spreads estimated from one day of minute bars with the mean quoted spread of that day. */
export function measureSpreads(): Measure[] {
  const days = recordedNames('spread', '_minute_trades_quotes.csv.gz').map(readDay)
  const groups = { US: days.filter(({ isUs }) => isUs), crypto: days.filter(({ isUs }) => !isUs) }
  const error = (group: readonly SpreadDay[], estimate: Estimator, floored = false): number =>
    mean(group.map((day) => Math.abs(spreadOf(day, estimate, floored) - day.quoted)))
  const rank = (group: readonly SpreadDay[], estimate: Estimator, floored = false): number =>
    rankCorrelation(
      group.map((day) => spreadOf(day, estimate, floored)),
      group.map(({ quoted }) => quoted),
    )
  const roll: Estimator = ({ close }) => rollSpread(close)
  const rivals = { 'Abdi-Ranaldo': abdiRanaldoSpread, 'Corwin-Schultz': corwinSchultzSpread, Roll: roll }
  const older = Object.entries(rivals).map(
    ([name, estimate]) => `${name} ${error(groups.US, estimate).toFixed(2)} (${rank(groups.US, estimate).toFixed(2)})`,
  )
  return [
    atMost(
      PART,
      `US, ${groups.US.length} days: EDGE by the hour with tick floor, mean error in bps`,
      error(groups.US, byTheHour, true),
      0.8,
    ),
    atLeast(PART, 'US: EDGE by the hour with tick floor, rank correlation', rank(groups.US, byTheHour, true), 0.65),
    shown(
      PART,
      'US: EDGE of the day, without the floor',
      `${error(groups.US, edgeSpread).toFixed(2)} (${rank(groups.US, edgeSpread).toFixed(2)})`,
    ),
    shown(PART, 'US: older estimators', older.join(', ')),
    atMost(
      PART,
      `crypto, ${groups.crypto.length} days: EDGE by the hour, mean error in bps`,
      error(groups.crypto, byTheHour),
      2,
    ),
    atLeast(PART, 'crypto: EDGE by the hour, rank correlation', rank(groups.crypto, byTheHour), 0.65),
    shown(
      PART,
      'crypto: EDGE of the day',
      `${error(groups.crypto, edgeSpread).toFixed(2)} (${rank(groups.crypto, edgeSpread).toFixed(2)})`,
    ),
  ]
}

const HOUR = 60

/** EDGE of each hour of minute bars, averaged with its sign, as in the cost product. */
function byTheHour({ open, high, low, close }: Ohlc): number {
  const hours = Array.from({ length: Math.floor(open.length / HOUR) }, (_, hour) => {
    const [from, to] = [hour * HOUR, (hour + 1) * HOUR]
    const part = (column: ArrayLike<number>): number[] => Array.from(column).slice(from, to)
    return edgeSpread({ open: part(open), high: part(high), low: part(low), close: part(close) })
  })
  return mean(hours.filter((spread) => spread !== null))
}

function readDay(name: string): SpreadDay {
  const [header = '', ...lines] = readRecorded(`spread/${name}`).trim().split('\n')
  const names = header.split(',')
  const cells = lines.map((line) => line.split(',').map((cell) => (cell.trim() === '' ? NaN : Number(cell))))
  const column = (word: string): number[] => cells.map((row) => row[names.indexOf(word)]!)
  const [bid, ask, close] = [column('bid_close'), column('ask_close'), column('close')]
  const spreads = bid.map((price, i) => (1e4 * (ask[i]! - price)) / ((ask[i]! + price) / 2)).filter(Number.isFinite)
  const bars = { open: column('open'), high: column('high'), low: column('low'), close }
  return { isUs: name.startsWith('us_'), bars, quoted: mean(spreads), price: mean(close.filter((price) => price > 0)) }
}

/** The spread in bps, at least zero, and at least one tick if `floored`. */
function spreadOf({ bars, price }: SpreadDay, estimate: Estimator, floored: boolean): number {
  return 1e4 * Math.max(estimate(bars) ?? 0, floored ? US_TICK / price : 0)
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length
}

/** Spearman's rank correlation. Ties share their mean rank. */
function rankCorrelation(xs: readonly number[], ys: readonly number[]): number {
  const ranks = (values: readonly number[]): number[] =>
    values.map((value) => {
      const [below, equal] = [values.filter((other) => other < value), values.filter((other) => other === value)]
      return below.length + (equal.length + 1) / 2
    })
  const [rx, ry] = [ranks(xs), ranks(ys)]
  const [mx, my] = [mean(rx), mean(ry)]
  const sum = (of: (i: number) => number): number => rx.reduce((total, _, i) => total + of(i), 0)
  const covariance = sum((i) => (rx[i]! - mx) * (ry[i]! - my))
  return covariance / Math.sqrt(sum((i) => (rx[i]! - mx) ** 2) * sum((i) => (ry[i]! - my) ** 2))
}
