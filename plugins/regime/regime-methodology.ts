/** The methodology page of the regime: how it is computed, and how good it has been. */
import { readFileSync } from 'node:fs'
import type { Facts } from 'tollgate/plugin'
import type { Chart } from '../lib/charts.ts'
import type { Curves } from './label-grades.ts'
import { MODEL } from './regime-model.ts'
import type { Method } from '../../schemas/types.d.ts'

interface Figures {
  readonly forward_vol_ratio: number | null
  readonly persistence_1h: number | null
  readonly volatile_persistence_1h: number | null
  readonly flips_per_day: number | null
  readonly accuracy: number | null
  readonly brier: number | null
  readonly ece: number | null
}

interface Measured {
  readonly results: readonly (Recorded & { readonly figures: Figures; readonly baseline: Figures })[]
}

/** Written by `npm run bench:regime -- --write FILE...`. */
const measured = JSON.parse(readFileSync(new URL('regime-measurements.json', import.meta.url), 'utf8')) as Measured

const COLUMNS = [
  'recording',
  'days',
  'volatility ratio',
  'same after 1 h',
  'VOLATILE after 1 h',
  'changes a day',
  'right',
  'Brier',
  'ECE',
]

/** The baseline states no probability, so it has neither Brier score nor ECE. */
const BASELINE_COLUMNS = COLUMNS.indexOf('Brier')

/** A market with the grades of its labels, once they are known. */
type Graded = Facts & { readonly symbol: string }

/** common.json#/$defs/Method. `graded` are the markets of this service; none if it classifies a sample or a recording. */
export function methodology(graded: readonly Graded[] = []): Method {
  return {
    model: MODEL,
    paragraphs: [
      'Each minute the model forecasts the volatility of the next hour, turns the forecast into the probability that the hour will be more volatile than a published boundary, and that probability into STABLE or VOLATILE. It says how large a position should be, never in which direction.',
      'A minute that moves more than eight local scales must be confirmed by the next one, so that one bad print does not set the regime. The forecast is a least-squares fit on squared five-minute returns over 5, 15, 60, 240, 1,440 and 10,080 minutes, the 15-minute range, the time of day and the weekend. It is refitted every week on the trailing 180 days, for the first time once there are 30 days of them. Until then its coefficients are fixed.',
      'The boundary is the 0.65 quantile of the trailing 180 days of hourly volatility, up to the hour before. Every snapshot states it, so each label can be checked against what happened. The probability follows from the distribution of the fit’s own errors and is smoothed with a half-life of 30 minutes; the label changes to VOLATILE above 0.60 and to STABLE below 0.40. Confidence is the probability of the label.',
      'A snapshot uses no bar and no correction after its as_of, whenever it is computed: the same bars, as they were first published, give the same snapshots, byte for byte. `origin` says whether it was computed live, back-filled, or caught up on after an outage. If venues do not agree on a minute, the last label is repeated for it and marked `held`; once the minute is decided, its snapshot takes that place, and what was sold stays on record.',
    ],
    formulas: [
      {
        name: 'Variance of a minute',
        formula: 'q = (ln c - ln c₋₅)² / 5; of bars of m ≥ 5 minutes (½ ln(H/L)² - 0.386 ln(C/O)² + ln(O/C₋₁)²) / m',
        source: 'Garman and Klass (1980)',
      },
      { name: 'Component', formula: 'v(w) = ½ ln(mean of q over w minutes + 10⁻¹²)', source: 'Corsi (2009)' },
      { name: 'Range', formula: '½ ln mean((ln H/L)² / (4 ln 2)) over 15 minutes', source: 'Parkinson (1980)' },
      { name: 'Probability', formula: 'P = 1 - F(b - forecast), F the distribution of the fit’s residuals' },
      {
        name: 'Smoothed',
        formula: 'P̄ = P̄₋₁ + (1 - 2^(-m/30)) (P - P̄₋₁), m minutes a bar; VOLATILE above 0.60, STABLE below 0.40',
      },
      {
        name: 'Position scalar',
        formula: 'clip(median hourly volatility / forecast, 0.25, 1.5)',
        source: 'Moreira and Muir (2017)',
      },
    ],
    tables: [
      { caption: 'Measured out of sample, walking forward, on recordings', columns: COLUMNS, rows: rows('figures') },
      {
        caption: 'Baseline in the same runs: an hour is VOLATILE if the previous hour was above the same boundary',
        columns: COLUMNS.slice(0, BASELINE_COLUMNS),
        rows: rows('baseline').map((row) => row.slice(0, BASELINE_COLUMNS)),
      },
      ...(graded.length > 0 ? [gradedHere(graded)] : []),
    ],
    charts: recordCharts(measured.results),
    limits: [
      'A recording shorter than 90 days is graded from its first day. It depends mostly on the fixed coefficients and a boundary of a few days, so its figures are worse. There the baseline is right more often than the model.',
      'If volatility doubles within a year, the trailing boundary lags behind and more hours count as VOLATILE.',
      'The fixed coefficients of the first 30 days were measured on BTC and ETH of 2017. They are those of every market; the boundary and, after 30 days, the fit are its own.',
      'The model sees one market at a time. News affects it only through prices.',
    ],
    sources: [
      'Corsi, A simple approximate long-memory model of realized volatility, J. Financial Econometrics 7 (2009)',
      'Parkinson, The extreme value method for estimating the variance of the rate of return, J. Business 53 (1980)',
      'Garman and Klass, On the estimation of security price volatilities from historical data, J. Business 53 (1980)',
      'Moreira and Muir, Volatility-managed portfolios, J. Finance 72 (2017)',
    ],
  }
}

const HERE = ['snapshots', ...COLUMNS.slice(2)]

/** Live labels were sold before the hour that grades them; the others were computed afterwards. */
function gradedHere(markets: readonly Graded[]): NonNullable<Method['tables']>[number] {
  const row = (symbol: string, computed: string, count: unknown, of: Facts) =>
    [
      symbol,
      computed,
      count,
      of['forward_vol_ratio'],
      of['persistence_1h'],
      of['volatile_persistence_1h'],
      of['flips_per_day'],
      of['accuracy'],
      of['brier'],
      of['ece'],
    ].map((value) => (value ?? null) as string | number | null)
  return {
    caption:
      'Graded on this service over the last 90 days: labels computed live, and those back-filled, caught up on or held',
    columns: ['market', 'computed', ...HERE],
    rows: markets.flatMap((market) => {
      const backfilled = (market['backfilled'] ?? {}) as Facts
      return [
        row(market.symbol, 'live', market['live_snapshots'], market),
        row(market.symbol, 'later', backfilled['snapshots'], backfilled),
      ]
    }),
  }
}

function rows(of: 'figures' | 'baseline'): (string | number | null)[][] {
  return measured.results.map((result) => {
    const { [of]: figures } = result
    const { forward_vol_ratio: ratio, persistence_1h: stay, volatile_persistence_1h: stayVolatile } = figures
    const days = Math.round((Date.parse(result.last) - Date.parse(result.first)) / 86_400_000)
    const graded = [ratio, stay, stayVolatile, figures.flips_per_day, figures.accuracy, figures.brier, figures.ece]
    return [result.recording, days, ...graded.map((value) => (value === null ? null : Number(value.toFixed(3))))]
  })
}

export interface Recorded {
  readonly recording: string
  readonly first: string
  readonly last: string
  readonly interval_minutes: number
  readonly curves: Curves
}

const TONES = ['main', 'second', 'third'] as const
const toneOf = (index: number) => TONES[index] ?? ('muted' as const)
const LEAST_DAYS = 300
/** Bins with a smaller share of all snapshots are not shown. */
const LEAST_SHARE = 0.005

/** Charts of calibration and persistence, for at most three recordings finer than an hour that last most of a year. */
export function recordCharts(results: readonly Recorded[]): Chart[] {
  const long = results
    .filter(({ first, last }) => Date.parse(last) - Date.parse(first) >= LEAST_DAYS * 86_400_000)
    .filter(({ interval_minutes: minutes }) => minutes < 60)
    .slice(0, TONES.length)
  return long.length === 0 ? [] : [calibration(long), persistence(long)]
}

function calibration(results: readonly Recorded[]): Chart {
  return {
    id: 'regime-calibration',
    title: 'Calibration: stated confidence, and how often the label was right',
    description:
      'One line per recording, from low to high confidence. The closer it is to the dashed diagonal, the better the confidence was calibrated.',
    x: { label: 'Stated confidence', unit: 'percent', domain: [0.5, 1] },
    y: { label: 'Labels that the next hour confirmed', unit: 'percent', domain: [0.5, 1] },
    series: [
      {
        name: 'Perfectly calibrated',
        tone: 'muted',
        kind: 'dashed',
        points: [
          [0.5, 0.5],
          [1, 1],
        ],
      },
      ...results.map(({ recording, curves }, index) => ({
        name: recording,
        tone: toneOf(index),
        points: curves.calibration
          .filter(([, , share]) => share >= LEAST_SHARE)
          .map(([stated, right]) => [stated, right] as const),
      })),
    ],
    table: {
      columns: ['Recording', 'Stated confidence', 'Right', 'Share of all snapshots'],
      rows: results.flatMap(({ recording, curves }) =>
        curves.calibration.map(([stated, right, share]) => [
          recording,
          percent(stated),
          percent(right),
          percent(share),
        ]),
      ),
    },
  }
}

function persistence(results: readonly Recorded[]): Chart {
  return {
    id: 'regime-persistence',
    title: 'Persistence: VOLATILE labels that are still VOLATILE',
    description: 'One line per recording. It falls with the hours since a VOLATILE label was given.',
    x: { label: 'Hours later', domain: [0, 24] },
    y: { label: 'Still VOLATILE', unit: 'percent', domain: [0, 1] },
    series: results.map(({ recording, curves }, index) => ({
      name: recording,
      tone: toneOf(index),
      points: [[0, 1] as const, ...curves.persistence.map(([hours, , volatile]) => [hours, volatile] as const)],
    })),
    table: {
      columns: ['Recording', 'Hours later', 'Same label', 'Still VOLATILE'],
      rows: results.flatMap(({ recording, curves }) =>
        curves.persistence.map(([hours, all, volatile]) => [recording, hours, percent(all), percent(volatile)]),
      ),
    },
  }
}

const percent = (share: number): string => `${(share * 100).toFixed(1)}%`
