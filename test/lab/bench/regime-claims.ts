/** What is claimed of the regime model, and whether its figures on recordings hold it. */
import type { FoundClaim } from '../../support/measure.ts'
import type { Figures } from '../../plugins/regime/model-figures.ts'
import type { SizingFigures } from '../../plugins/regime/model-horizons.ts'

/** The figures of one recording, as they are saved. */
export interface MeasuredRecording {
  readonly recording: string
  readonly first: string
  readonly last: string
  readonly figures: Figures
  readonly baseline: Figures
  /** The model, and the rules that cost nothing. */
  readonly resampled: readonly { readonly rule: string; readonly found: { readonly brier: number | null } }[]
  readonly sizing: readonly SizingFigures[]
  /** Bars beyond six standard deviations, and those of them at which the scalar rose. */
  readonly jumps: { readonly bars: number; readonly raised: number }
  readonly first_month: {
    readonly start: string
    readonly end: string
    readonly snapshots: number
    readonly brier: number
  }
}

const DAY = 86_400_000
const LONG_DAYS = 180
const YEAR_DAYS = 300
const daysOf = ({ first, last }: MeasuredRecording): number => (Date.parse(last) - Date.parse(first)) / DAY

/**
 * Brier scores of the first 30 days by the model before, har-schmitt/1 (commit 8215f14a), which is no longer in the
 * project. It is not known of other recordings.
 */
const EARLIER_FIRST_MONTHS: Readonly<Record<string, number>> = {
  'BTC-USD bitfinex 1 min': 0.1015,
  'ETH-USD bitfinex 1 min': 0.11,
  'ETH-USD binance 60 min': 0.1726,
  'BTC-USD binance 15 min': 0.1568,
}
const LESS_BRIER = 0.04

const DAILY_RULE = '1d'
const AVERAGE_RULE = 'average 11 h, daily'
const MOST_TURNS = 50

/** The claims that are read from the figures of all recordings, in the order of the page. */
export function regimeClaims(all: readonly MeasuredRecording[]): FoundClaim[] {
  const long = all.filter((one) => daysOf(one) >= LONG_DAYS)
  const year = all.filter((one) => daysOf(one) >= YEAR_DAYS)
  return [
    each(all, {
      claimed: 'The hour after VOLATILE is at least twice as volatile as that after STABLE',
      value: ({ figures }) => figures.forward_vol_ratio,
      isHeld: (ratio) => ratio >= 2,
      show: (ratio) => ratio.toFixed(2),
    }),
    each(all, {
      claimed: 'At least 90% of labels are the same an hour later',
      value: ({ figures }) => figures.persistence_1h,
      isHeld: (share) => share >= 0.9,
      show: percent,
    }),
    brierClaim(all),
    each(all, {
      claimed: 'Labels are right at least as often as those that repeat the last hour',
      value: ({ figures, baseline }) => figures.accuracy - baseline.accuracy,
      isHeld: (difference) => difference >= 0,
      show: (difference) => signed(100 * difference, 1),
      unit: ' points',
    }),
    calibrationClaim(long),
    forecastClaim(all),
    each(all, {
      claimed: '77 to 83% of hours lie between p10 and p90 of the forecast',
      value: ({ figures }) => figures.within_p10_p90 ?? NaN,
      isHeld: (share) => share >= 0.77 && share <= 0.83,
      show: percent,
    }),
    jumpClaim(all),
    sizingClaim(year),
    firstMonthClaim(all.filter(({ recording }) => recording in EARLIER_FIRST_MONTHS)),
  ]
}

interface Question {
  readonly claimed: string
  readonly value: (one: MeasuredRecording) => number
  readonly isHeld: (value: number) => boolean
  readonly show: (value: number) => string
  readonly unit?: string
}

/** A claim on each recording: the lowest and the highest value, and on how many it holds. */
function each(all: readonly MeasuredRecording[], { claimed, value, isHeld, show, unit = '' }: Question): FoundClaim {
  const values = all.map(value)
  return claimOn(all, claimed, `${range(values, show)}${unit}`, values.map(isHeld))
}

function brierClaim(all: readonly MeasuredRecording[]): FoundClaim {
  const [own, ...others] = ['', 'last hour', 'average', 'free logistic'].map((name) =>
    all.map(
      ({ resampled }) =>
        resampled.find(({ rule }, at) => (name === '' ? at === 0 : rule.startsWith(name)))!.found.brier!,
    ),
  )
  const shown = others.map((scores) => range(scores, (score) => score.toFixed(3)))
  return claimOn(
    all,
    'Brier score below those of repeating the last hour, of an average of 11 hours and of a free logistic regression',
    `${range(own!, (score) => score.toFixed(3))} beside ${shown.join(', ')}`,
    own!.map((score, at) => others.every((scores) => score < scores[at]!)),
  )
}

function calibrationClaim(long: readonly MeasuredRecording[]): FoundClaim {
  const [whole, blocks] = [long.map(({ figures }) => figures.ece), long.map(({ figures }) => figures.block_ece!)]
  const show = (error: number): string => error.toFixed(3)
  return claimOn(
    long,
    `Confidence is calibrated over ${LONG_DAYS} days and more: ECE at most 0.02, and 0.04 in every six-hour block`,
    `${range(whole, show)}, worst blocks ${range(blocks, show)}`,
    long.map((_, at) => whole[at]! <= 0.02 && blocks[at]! <= 0.04),
  )
}

function forecastClaim(all: readonly MeasuredRecording[]): FoundClaim {
  const ratios = all.map(({ figures }) => figures.rms_ratio)
  const [own, average] = [all.map(({ figures }) => figures.qlike), all.map(({ baseline }) => baseline.qlike)]
  const show = (value: number): string => value.toFixed(2)
  return claimOn(
    all,
    'Mean forecast: realized over forecast 0.9 to 1.1 (rms), and QLIKE below that of an average of 11 hours',
    `${range(ratios, show)}; QLIKE ${range(own, show)} beside ${range(average, show)}`,
    all.map((_, at) => ratios[at]! >= 0.9 && ratios[at]! <= 1.1 && own[at]! < average[at]!),
  )
}

function jumpClaim(all: readonly MeasuredRecording[]): FoundClaim {
  const sum = (name: 'bars' | 'raised'): number => all.reduce((total, { jumps }) => total + jumps[name], 0)
  const claim = claimOn(
    all,
    'At no bar beyond six standard deviations does the scalar rise',
    `${sum('raised')} of ${sum('bars').toLocaleString('en')}`,
    all.map(({ jumps }) => jumps.raised === 0),
  )
  return { ...claim, cases: sum('bars') }
}

/** Sizing over a year by the daily horizon with its band, beside a daily average of 11 hours. */
function sizingClaim(year: readonly MeasuredRecording[]): FoundClaim {
  const rules = year.map(({ sizing }) => sizing.find(({ rule }) => rule === DAILY_RULE)!)
  const averageTurns = year.map(({ sizing }) => sizing.find(({ rule }) => rule === AVERAGE_RULE)!.turns_per_year)
  const turns = rules.map((rule) => rule.turns_per_year)
  const less = rules.map((rule) => rule.less_daily_average)
  const whole = (value: number): string => value.toFixed(0)
  const claim = claimOn(
    year,
    `Sizing by the day makes weeks as even as a daily average of 11 hours, in at most ${MOST_TURNS} turns a year`,
    `${range(less, (value) => signed(value, 3))} in variation, ${range(turns, whole)} turns beside ${range(averageTurns, whole)}`,
    rules.map((rule) => rule.less_daily_average <= 0 && rule.turns_per_year <= MOST_TURNS),
  )
  return { ...claim, cases: rules.reduce((sum, { weeks }) => sum + weeks, 0) }
}

function firstMonthClaim(all: readonly MeasuredRecording[]): FoundClaim {
  const changes = all.map(({ recording, first_month: { brier } }) => brier / EARLIER_FIRST_MONTHS[recording]! - 1)
  const claim = claimOn(
    all,
    `In its first 30 days, a Brier score at least ${100 * LESS_BRIER}% below that of the model before`,
    changes.map((change) => `${signed(100 * change, 0).replace('-', '−')}%`).join(', '),
    changes.map((change) => change <= -LESS_BRIER),
  )
  const months = all.map((one) => one.first_month)
  return {
    ...claim,
    start: months.map(({ start }) => start).toSorted()[0]!,
    end: months
      .map(({ end }) => end)
      .toSorted()
      .at(-1)!,
    cases: months.reduce((sum, { snapshots }) => sum + snapshots, 0),
  }
}

/** A claim on recordings, which holds if it holds on each. */
function claimOn(
  all: readonly MeasuredRecording[],
  claimed: string,
  measured: string,
  held: readonly boolean[],
): FoundClaim {
  const met = held.every(Boolean)
  const count = held.filter(Boolean).length
  return {
    claimed,
    measured: met ? measured : `${measured}; holds on ${count} of ${held.length}`,
    met,
    on: onRecordings(all),
    start: all.map(({ first }) => first).toSorted()[0]!,
    end: all
      .map(({ last }) => last)
      .toSorted()
      .at(-1)!,
    cases: all.reduce((sum, { figures }) => sum + figures.snapshots, 0),
    data_mode: 'replay',
  }
}

/** "6 recordings of BTC-USD and ETH-USD" */
function onRecordings(all: readonly MeasuredRecording[]): string {
  const symbols = [...new Set(all.map(({ recording }) => recording.split(' ')[0]!))]
  return `${all.length} recordings of ${symbols.join(' and ')}`
}

/** "+1.5" */
const signed = (value: number, digits: number): string => `${value > 0 ? '+' : ''}${value.toFixed(digits)}`

const percent = (share: number): string => `${(100 * share).toFixed(1)}%`

/** "0.10 to 0.15" */
function range(values: readonly number[], show: (value: number) => string): string {
  const [low, high] = [show(Math.min(...values)), show(Math.max(...values))].map((shown) => shown.replace('-', '−'))
  return low === high ? low! : `${low!.replace(/%$/, '')} to ${high}`
}
