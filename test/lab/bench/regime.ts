/**
 * `npm run lab -- regime`: measures the regime model on recorded bars, out of sample: every forecast uses a fit on earlier
 * bars only.
 */
import { writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { fillQuiet, readBarFile, recordingFormat } from '../../../plugins/market/bar-recordings.ts'
import { joinRecordings, LONGEST_QUIET_SECONDS, type Recording } from '../../../plugins/market/bar-replay.ts'
import type { Calibration } from '../../../plugins/regime/label-grades.ts'
import { poolRows, type Rows } from '../../../plugins/regime/volatility-fit.ts'
import type { HourRow } from '../../../plugins/regime/volatility-horizons.ts'
import { createModel, MODEL } from '../../../plugins/regime/regime-model.ts'
import { formatSeconds } from '../../../plugins/lib/time/timestamps.ts'
import { saveFigures, SAVING } from '../claim.ts'
import { flag, readOptions, refuse, root, say, sayTable, text } from '../experiment.ts'
import { freeLogistic } from '../../plugins/regime/free-logistic.ts'
import { baselineOf, figuresOf, type Figures, forwardOf, trackCalibration } from '../../plugins/regime/model-figures.ts'
import {
  horizonFigures,
  hourRows,
  LONG_HORIZONS,
  poolHorizons,
  type SizingFigures,
  sizingOf,
} from '../../plugins/regime/model-horizons.ts'
import { since, track, type Track, until } from '../../plugins/regime/model-track.ts'
import {
  FIGURES,
  figuresOfSums,
  type Forecasts,
  type Interval,
  resample,
  type Resampled,
  sumsByDay,
} from '../../plugins/regime/resampled-figures.ts'
import { badPrintTrials, prefixHolds, raisedAtJumps } from '../../plugins/regime/model-trials.ts'
import { type MeasuredRecording, regimeClaims } from './regime-claims.ts'

interface Measured extends MeasuredRecording {
  readonly files: readonly string[]
  readonly trained_on: string | null
  readonly interval_minutes: number
  readonly resampled: readonly ResampledRule[]
  readonly horizons: readonly ReturnType<typeof horizonFigures>[]
  readonly calibration: Calibration
  /** Median minutes for which one bad print changes the label, over 20 trials. */
  readonly bad_print_minutes: number
  readonly prefix_identical: boolean
  readonly seconds: number
}

/** Figures of a rule with the central 95% of the stationary bootstrap of days; null where the rule does not state them. */
interface ResampledRule {
  readonly rule: string
  readonly found: Readonly<Record<keyof Resampled, number | null>>
  readonly intervals: Readonly<Record<keyof Resampled, Interval | null>>
}

const DAY = 1440

async function read(paths: readonly string[]): Promise<(Recording & { files: string[] })[]> {
  const pieces: (Recording & { files: string[] })[] = []
  for (const path of paths) {
    const name = recordingFormat(basename(path))
    if (!name) throw new Error(`${path}: the file name lacks symbol and interval. Name it like venue_pair_1m_….csv`)
    for (const [symbol, bars] of await readBarFile(path, name))
      pieces.push({ ...name, symbol, bars, files: [basename(path)] })
  }
  return joinRecordings(pieces).map((recording) => ({
    ...recording,
    bars: fillQuiet(recording.bars, recording.interval_seconds, LONGEST_QUIET_SECONDS),
    files: pieces
      .filter(
        ({ symbol, venue, interval_seconds }) =>
          symbol === recording.symbol && venue === recording.venue && interval_seconds === recording.interval_seconds,
      )
      .flatMap(({ files }) => files),
  }))
}

function measure(recording: Recording & { files: string[] }, from: string | null, trained: Recording | null): Measured {
  const { bars, symbol, venue, interval_seconds } = recording
  const barMinutes = interval_seconds / 60
  const begun = performance.now()
  const fit = trained ? modelOf(trained).fit : undefined
  const whole = track(bars, barMinutes, fit)
  const seconds = (performance.now() - begun) / 1000
  const days = (whole.minute[whole.count - 1]! - whole.minute[0]!) / DAY
  const start = from === null ? whole.minute[0]! + (days < 90 ? 0 : 30 * DAY) : Date.parse(from) / 60_000
  const graded = since(whole, start)
  const month = until(whole, whole.minute[0]! + 30 * DAY)
  const trials = badPrintTrials(bars, barMinutes).toSorted((a, b) => a - b)
  return {
    recording: `${symbol} ${venue} ${barMinutes} min`,
    files: recording.files,
    trained_on: trained ? `${trained.symbol} ${trained.venue}` : null,
    first: formatSeconds(graded.minute[0]! * 60),
    last: formatSeconds(graded.minute[graded.count - 1]! * 60),
    interval_minutes: barMinutes,
    figures: rounded(figuresOf(graded)),
    baseline: rounded(baselineOf(graded)),
    resampled: resampledRules(whole, start),
    sizing: sizingOf(whole, start).map(roundedSizing),
    jumps: raisedAtJumps(graded),
    first_month: {
      start: formatSeconds(month.minute[0]! * 60),
      end: formatSeconds(month.minute[month.count - 1]! * 60),
      snapshots: month.count,
      brier: round4(figuresOf(month).brier),
    },
    horizons: LONG_HORIZONS.map((horizon) => roundedHorizon(horizonFigures(whole, horizon, start))),
    calibration: trackCalibration(graded).map(([stated, right, share]) => [
      round4(stated),
      round4(right),
      round4(share),
    ]),
    bad_print_minutes: ((trials[9]! + trials[10]!) / 2) * barMinutes,
    prefix_identical: prefixHolds(bars, barMinutes, trained ? track(bars, barMinutes) : whole),
    seconds: Math.round(seconds * 100) / 100,
  }
}

/** The model beside the rules that cost nothing: the last hour, an average of 11 hours, and a logistic regression. */
function resampledRules(whole: Track, start: number): ResampledRule[] {
  const logistic = freeLogistic(whole)
  const graded = since(whole, start)
  const { minute, stepMinutes, boundary, realized, count } = graded
  const beside = { minute, stepMinutes, boundary, forward: forwardOf(graded) }
  const said = graded.confidence.map((sure, i) => (graded.volatile[i] === 1 ? sure : 1 - sure))
  const chance = logistic.subarray(whole.count - count)
  const last = Uint8Array.from(realized, (value, i) => (value > boundary[i]! ? 1 : 0))
  const isAbove = Uint8Array.from(graded.ewma, (value, i) => (value > boundary[i]! ? 1 : 0))
  const likely = Uint8Array.from(chance, (value) => (value > 0.5 ? 1 : 0))
  // A label is a probability of 0 or 1. The logistic regression has one of its own.
  const labels = ['forward_vol_ratio', 'persistence_1h', 'brier'] as const
  const rule = (name: string, states: readonly (keyof Resampled)[], of: Omit<Forecasts, keyof typeof beside>) => {
    const { found, intervals } = resample(sumsByDay({ ...beside, ...of }), figuresOfSums)
    const stated = <Value>(values: Readonly<Record<keyof Resampled, Value>>, round: (value: Value) => Value) =>
      Object.fromEntries(FIGURES.map((figure) => [figure, states.includes(figure) ? round(values[figure]) : null]))
    return { rule: name, found: stated(found, round4), intervals: stated(intervals, roundedInterval) } as ResampledRule
  }
  return [
    rule(MODEL, FIGURES, { volatile: graded.volatile, probability: said, mean: graded.mean }),
    rule('last hour > boundary', labels, { volatile: last, probability: last, mean: realized }),
    rule('average 11 h', [...labels, 'qlike', 'rms_ratio'], {
      volatile: isAbove,
      probability: isAbove,
      mean: graded.ewma,
    }),
    rule('free logistic', [...labels, 'ece'], { volatile: likely, probability: chance, mean: graded.ewma }),
  ]
}

const roundedInterval = ([low, high]: Interval): Interval => [round4(low), round4(high)]

const roundedSizing = (figures: SizingFigures): SizingFigures => ({
  rule: figures.rule,
  weeks: figures.weeks,
  turns_per_year: Math.round(figures.turns_per_year * 10) / 10,
  weekly_vol_cv: round4(figures.weekly_vol_cv),
  weekly_vol_cv_interval: roundedInterval(figures.weekly_vol_cv_interval),
  less_daily_average: round4(figures.less_daily_average),
  less_daily_average_interval: roundedInterval(figures.less_daily_average_interval),
})

const roundedHorizon = ({ horizon, cases, ...figures }: ReturnType<typeof horizonFigures>) => ({
  horizon,
  cases,
  rms_ratio: round4(figures.rms_ratio),
  qlike: round4(figures.qlike),
  average_qlike: round4(figures.average_qlike),
  within_p10_p90: round4(figures.within_p10_p90),
})

function modelOf({ bars, interval_seconds }: Recording) {
  const model = createModel(interval_seconds / 60)
  const whole = track(bars, interval_seconds / 60, undefined, model)
  return { fit: model.fit, rows: model.rows, hours: hourRows(whole) }
}

/** Fits the last 180 days of all recordings together, for models to start with, and all of their hours for longer horizons. */
function pool(markets: readonly { readonly rows: Rows; readonly hours: readonly HourRow[] }[]): void {
  const { coefficients, residuals, meanSquare } = poolRows(markets.map(({ rows }) => rows))
  const rounded = (values: Float64Array) => Array.from(values, (value) => Number(value.toFixed(5)))
  const fit = {
    coefficients: rounded(coefficients),
    residuals: rounded(residuals),
    mean_square: round4(meanSquare),
    horizons: poolHorizons(markets.map(({ hours }) => hours)),
  }
  const file = join(root, 'plugins/regime/pooled-fit.json')
  writeFileSync(file, `${JSON.stringify(fit)}\n`)
  say(`Wrote ${file}`)
}

function rounded(figures: Figures): Figures {
  const entries = Object.entries(figures) as [string, number | null][]
  return Object.fromEntries(
    entries.map(([name, value]) => [name, value === null || Number.isNaN(value) ? null : round4(value)]),
  ) as unknown as Figures
}

/** Rounds to four decimals. */
function round4(value: number): number {
  return Math.round(value * 1e4) / 1e4
}

const COLUMNS = [
  ['ratio', 'forward_vol_ratio', 2],
  ['stay 1h', 'persistence_1h', 3],
  ['V stay', 'volatile_persistence_1h', 3],
  ['flips/day', 'flips_per_day', 2],
  ['share V', 'share_volatile', 2],
  ['accuracy', 'accuracy', 3],
  ['Brier', 'brier', 3],
  ['ECE', 'ece', 3],
  ['6 h', 'block_ece', 3],
  ['rms', 'rms_ratio', 2],
  ['QLIKE', 'qlike', 3],
  ['p10-90', 'within_p10_p90', 2],
  ['corr', 'correlation', 2],
  ['CV', 'daily_vol_cv', 2],
  ['CV sized', 'scaled_daily_vol_cv', 2],
] as const

/** Prints a table with model and baseline of each recording, followed by the results of the trials. */
function sayResults(results: readonly Measured[]): void {
  const head = ['recording', ...COLUMNS.map(([title]) => title)]
  const rows = results.flatMap(({ recording, trained_on, figures, baseline }) => [
    [trained_on === null ? recording : `${recording} (fit on ${trained_on})`, ...cells(figures)],
    ['  last hour > boundary', ...cells(baseline)],
  ])
  const notes = results.map(
    ({ recording, first, last, figures, bad_print_minutes, prefix_identical, seconds }) =>
      `${recording}: ${figures.snapshots} snapshots graded from ${first} to ${last}; one bad print changes the label for ` +
      `${bad_print_minutes} min (median of 20); prefixes ${prefix_identical ? 'identical' : 'DIFFER'}; ${seconds} s`,
  )
  sayTable([head, ...rows])
  say('\nWith the central 95% of the stationary bootstrap of days')
  sayTable([
    ['recording', 'rule', ...FIGURES],
    ...results.flatMap(({ recording, resampled }) =>
      resampled.map(({ rule, found, intervals }) => [
        recording,
        rule,
        ...FIGURES.map((name) => withInterval(found[name], intervals[name])),
      ]),
    ),
  ])
  say(
    '\nSizing every hour: turnover in average positions a year, variation of weekly volatility, less the daily average',
  )
  sayTable([
    ['recording', 'rule', 'turns', 'CV of weeks', 'less average 11 h, daily'],
    ...results.flatMap(({ recording, sizing }) =>
      sizing.map((one) => [
        recording,
        one.rule,
        one.turns_per_year.toFixed(0),
        withInterval(one.weekly_vol_cv, one.weekly_vol_cv_interval),
        withInterval(one.less_daily_average, one.less_daily_average_interval),
      ]),
    ),
  ])
  say('\nForecasts of longer horizons')
  sayTable([
    ['recording', 'horizon', 'cases', 'rms', 'QLIKE', 'QLIKE of the average', 'p10-90'],
    ...results.flatMap(({ recording, horizons }) =>
      horizons.map(({ horizon, cases, ...figures }) => [
        recording,
        horizon,
        String(cases),
        ...[figures.rms_ratio, figures.qlike, figures.average_qlike, figures.within_p10_p90].map((n) => n.toFixed(3)),
      ]),
    ),
  ])
  say(`\n${notes.join('\n')}`)
}

const withInterval = (value: number | null, interval: Interval | null): string =>
  value === null || interval === null
    ? '-'
    : `${value.toFixed(3)} (${interval.map((end) => end.toFixed(3)).join(' to ')})`

function cells(figures: Measured['figures']): string[] {
  return COLUMNS.map(([, name, digits]) => figures[name]?.toFixed(digits) ?? '-')
}

const { values, words, usage } = readOptions(
  {
    from: text(
      'DATE',
      'grade the snapshots from that day on (default: without the first 30 days; all of fewer than 90 days)',
      null,
    ),
    train: text('FILE', 'fit the model on this file, and use that fit for all others', null),
    pool: flag('fit the last 180 days of the files together, and save it as the fit that every model starts with'),
    json: flag('print everything as JSON'),
    ...SAVING,
  },
  'FILE...',
  'FILE: recorded bars; consecutive files of one venue form one recording',
)
if (words.length === 0) refuse(usage)
const trained = values.train === null ? null : ((await read([values.train]))[0] ?? null)
const recordings = await read(words)
if (values.pool) pool(recordings.map(modelOf))
const results = (values.pool ? [] : recordings).map((recording) => measure(recording, values.from, trained))
if (values.json) say(JSON.stringify(results, null, 2))
else if (!values.pool) sayResults(results)
if (values.write && !values.pool) {
  const command = `npm run lab -- regime ${results.flatMap(({ files }) => files).join(' ')}`
  const figures = { claims: regimeClaims(results), model: MODEL, command, results }
  await saveFigures('plugins/regime/regime-measurements.json', figures, values.into)
}
