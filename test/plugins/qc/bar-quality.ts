import checkBarQuality from '../../../plugins/qc/bar-quality.ts'
import { parseBarTime } from '../../../plugins/qc/bar-times.ts'
import { corrupt, type Defect } from './planted-defects.ts'
import { atLeast, claiming, type Measure, shown } from '../../support/measure.ts'
import { type Bar, readBarsFile, readRecorded } from '../../support/recorded-data.ts'

const PART = 'bar quality'
const SEEDS = [1, 2]

type Window = readonly [file: string, from: number, rows: number, interval: number, each: number]

/**
 * Series of different markets and bar lengths without outages: file, first row, number of rows, seconds per bar, and how
 * many defects of each kind to plant.
 */
const CLEAN: readonly Window[] = [
  ['regime/binance_btcusdt_1m_2024-12.csv.gz', 0, 8000, 60, 5],
  ['regime/binance_btcusdt_1m_2024-12.csv.gz', 20_000, 8000, 60, 5],
  ['exchanges/bars/btc_perp_1m_2021-12-31_14d.csv', 0, 8000, 60, 5],
  ['exchanges/bars/coinbase_BTC-USD_5m_2026-01-26_2026-04-22.csv', 9000, 8000, 300, 5],
  ['regime/binance_btcusdt_15m_2025.csv.gz', 0, 8000, 900, 5],
  ['regime/binance_ethusdt_1h_2022-2024.csv.gz', 16_000, 8000, 3600, 5],
  ['bars/eurusd_1h_backtestingpy.csv.gz', 0, 5000, 3600, 3],
  ['bars/goog_daily_backtestingpy.csv.gz', 0, 2148, 86_400, 1],
]

/** Minute bars of a thin venue: one minute in ten to fifty has no trade, and single orders move the price. */
const THIN: readonly Window[] = [
  ['regime/bitfinex_btcusd_1m_2017.csv.gz', 126_000, 7000, 60, 5],
  ['regime/bitfinex_btcusd_1m_2017.csv.gz', 294_000, 7000, 60, 5],
  ['regime/bitfinex_ethusd_1m_2017.csv.gz', 210_000, 7000, 60, 5],
  ['regime/bitfinex_ethusd_1m_2017.csv.gz', 378_000, 7000, 60, 5],
]

/** Measures precision and recall by family, on the corrupted sample and on defects planted in clean series. */
export function measureQuality(): Measure[] {
  const sample: Tally = new Map()
  const { truth } = JSON.parse(readRecorded('bars/qc_dev_btc_1m_truth.json')) as { truth: RecordedDefect[] }
  judge(readBarsFile('bars/qc_dev_btc_1m_corrupted.csv.gz'), truth.map(defectOf), sample)
  const [liquid, thin] = [inject(CLEAN), inject(THIN)]
  const own = (name: string, { findings, bars }: Injected): Measure =>
    shown(PART, `${name}, before injection`, `${findings} findings on ${bars.toLocaleString('en')} bars`)
  const found = [
    ...figures('corrupted sample', sample),
    ...figures('injected', liquid.tally),
    own('those series', liquid),
    ...figures('thin market, injected', thin.tally).map(thinly),
    own('the thin market', thin),
  ]
  return claiming(found, misprintClaim(liquid, thin), (name) =>
    /injected: bad_print(?: hard, recall|, prec)/.test(name),
  )
}

/** What is claimed of misprints, planted in liquid and in thin markets. */
function misprintClaim(liquid: Injected, thin: Injected) {
  const both = [liquid, thin].map(({ tally }) => ({ all: tally.get('bad_print')!, hard: tally.get('bad_print hard')! }))
  const percent = (share: number): string => `${(100 * share).toFixed(1)}%`
  const found = both.map(({ hard }) => percent(hard.hits / hard.wanted)).join(' and ')
  const wrong = both.map(({ all }) => percent(all.false / all.alarms)).join(' and ')
  const time = (seconds: number): string => new Date(seconds * 1000).toISOString()
  return {
    claimed: 'Misprints: at least 80% of the hardest are found, and at most 3% of those reported are false',
    measured: `${found} found, ${wrong} false`,
    on: `Planted in ${CLEAN.length} liquid and ${THIN.length} thin series of bars`,
    start: time(Math.min(liquid.first, thin.first)),
    end: time(Math.max(liquid.last, thin.last)),
    cases: both.reduce((sum, { all }) => sum + all.wanted, 0),
    data_mode: 'replay',
  } as const
}

/** Removes the limit. Gaps of three minutes and runs of eight equal bars are common in a thin market. */
function thinly(measure: Measure): Measure {
  return /: (?:timestamp|stale),/.test(measure.name) ? { ...measure, bar: '', pass: null } : measure
}

interface Injected {
  readonly tally: Tally
  /** Errors and warnings on the unchanged series. */
  readonly findings: number
  readonly bars: number
  /** Times of the first and the last bar, epoch seconds. */
  readonly first: number
  readonly last: number
}

function inject(windows: readonly Window[]): Injected {
  const counted: Tally = new Map()
  let [findings, count, first, last] = [0, 0, Infinity, -Infinity]
  for (const [file, from, rows, interval, each] of windows) {
    const bars = timed(readBarsFile(file).slice(from, from + rows))
    const { counts } = checkBarQuality({ bars })
    count += bars.length
    first = Math.min(first, Number(bars[0]!.t))
    last = Math.max(last, Number(bars.at(-1)!.t))
    findings += counts.error + counts.warning
    for (const seed of SEEDS) {
      const corrupted = corrupt(bars, each, seed, interval)
      judge(corrupted.bars, corrupted.truth, counted)
    }
  }
  return { tally: counted, findings, bars: count, first, last }
}

interface RecordedDefect {
  readonly family: Defect['family']
  readonly type: string
  readonly tier?: string
  readonly row: number
  readonly factor?: number
  readonly len?: number
}

function defectOf({ len, ...defect }: RecordedDefect): Defect {
  return len === undefined ? defect : { ...defect, length: len }
}

/** Converts times to epoch seconds, because the planted defects change them. */
function timed(bars: readonly Bar[]): Bar[] {
  return bars.map(({ t, o, h, l, c, v }) => ({ t: parseBarTime(t) ?? NaN, o, h, l, c, v }))
}

function judge(bars: readonly Bar[], truth: readonly Defect[], into: Tally): void {
  const { findings, splits } = checkBarQuality({ bars })
  tally(truth, findings, splits, into)
}

/** Family or tier, lowest recall and lowest precision. Null means no limit; an undefined precision is not shown. */
const BARS: readonly (readonly [string, number | null, (number | null)?])[] = [
  ['impossible', 1, 1],
  ['timestamp', 1, 1],
  ['stale', 1, 1],
  ['bad_print', null, 0.97],
  ['bad_print easy', 1],
  ['bad_print decimal', 1],
  ['bad_print medium', 0.95],
  ['bad_print hard', 0.8],
  ['volume', null, null],
  ['split', 1, 1],
]

function figures(where: string, counted: Tally): Measure[] {
  return BARS.flatMap(([key, recall, precision]) => {
    const { hits, wanted, alarms, false: wrong } = counted.get(key) ?? { hits: 0, wanted: 0, alarms: 0, false: 0 }
    const share = alarms === 0 ? 1 : 1 - wrong / alarms
    const measures = [figure(`${where}: ${key}, recall (${hits}/${wanted})`, hits / wanted, recall)]
    if (precision !== undefined)
      measures.push(figure(`${where}: ${key}, precision (${wrong} false of ${alarms})`, share, precision))
    return measures
  })
}

function figure(name: string, value: number, least: number | null): Measure {
  return least === null ? shown(PART, name, value.toFixed(3)) : atLeast(PART, name, value, least)
}

interface Found {
  readonly code: string
  readonly family: string
  readonly severity: string
  readonly index: number
  readonly observed: number | string | null
}

interface FoundSplit {
  readonly index: number
  readonly factor: number
}

/** Hits, misses and false alarms by family; for bad prints also by tier, as "bad_print hard". */
export type Tally = Map<string, { hits: number; wanted: number; alarms: number; false: number }>

/**
 * Compares a report with the planted defects. A finding of the same family on the same row is a hit. Bad prints and
 * timestamps may be one row late, stale runs must overlap by half, and splits must be within one bar and 2% of the factor.
 * A finding that matches no defect of its family is false, unless it is an info.
 */
export function tally(
  truth: readonly Defect[],
  found: readonly Found[],
  splits: readonly FoundSplit[],
  into: Tally,
): void {
  const splitsFound = splits.map(({ index, factor }) => ({
    code: 'unadjusted_split', family: 'split', severity: 'error', index, observed: factor,
  })) // prettier-ignore
  const others = found.filter(({ family, severity }) => family !== 'split' && severity !== 'info')
  const findings: Found[] = [...others, ...splitsFound]
  for (const defect of truth) {
    const isHit = findings.some((finding) => meets(defect, finding))
    for (const key of keysOf(defect)) {
      const entry = entryOf(into, key)
      entry.wanted += 1
      if (isHit) entry.hits += 1
    }
  }
  for (const finding of findings) {
    const entry = entryOf(into, finding.family)
    entry.alarms += 1
    if (!truth.some((defect) => meets(defect, finding))) entry.false += 1
  }
}

function keysOf({ family, tier }: Defect): string[] {
  return tier ? [family, `${family} ${tier}`] : [family]
}

function entryOf(into: Tally, key: string): { hits: number; wanted: number; alarms: number; false: number } {
  const entry = into.get(key) ?? { hits: 0, wanted: 0, alarms: 0, false: 0 }
  into.set(key, entry)
  return entry
}

function meets(defect: Defect, finding: Found): boolean {
  if (defect.family !== finding.family) return false
  const late = finding.index - defect.row
  if (defect.family === 'bad_print' || defect.family === 'timestamp') return late === 0 || late === 1
  if (defect.family === 'split')
    return Math.abs(late) <= 1 && Math.abs(Number(finding.observed) / (defect.factor ?? 1) - 1) < 0.02
  if (defect.family !== 'stale') return late === 0
  const [length, seen] = [defect.length ?? 0, Number(finding.observed)]
  const overlap = Math.min(defect.row + length, finding.index + seen) - Math.max(defect.row, finding.index)
  return overlap >= length / 2
}
