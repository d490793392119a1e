/** The methodology page of the regime: how it is computed, and how good it has been. */
import { readFileSync } from 'node:fs'
import type { Chart, Facts } from 'tollgate/plugin'
import type { Calibration } from './label-grades.ts'
import { MODEL } from './regime-model.ts'
import { HORIZONS, type LongHorizon, POOLED } from './volatility-horizons.ts'
import type { Horizon, Method } from '../../schemas/types.d.ts'

interface Figures {
  readonly forward_vol_ratio: number | null
  readonly persistence_1h: number | null
  readonly volatile_persistence_1h: number | null
  readonly flips_per_day: number | null
  readonly accuracy: number | null
  readonly brier: number | null
  readonly ece: number | null
  readonly block_ece: number | null
  readonly qlike: number | null
  readonly rms_ratio: number | null
  readonly within_p10_p90: number | null
}

interface Measured {
  readonly claims: Required<Method>['claims']
  readonly results: readonly (Recorded & {
    readonly figures: Figures
    readonly baseline: Figures
    readonly sizing: readonly Sizing[]
  })[]
}

/** A position that is sized every hour by a rule. */
interface Sizing {
  readonly rule: string
  /** Turnover in average positions. */
  readonly turns_per_year: number
  /** Standard deviation over mean of weekly volatility, and the same less that of the daily average of 11 hours. */
  readonly weekly_vol_cv: number
  readonly less_daily_average: number
}

/** Written by `npm run lab -- regime --write FILE...`. */
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
  'ECE of the worst six-hour block',
]

/** The baseline states no probability, so it has neither Brier score nor ECE. */
const BASELINE_COLUMNS = COLUMNS.indexOf('Brier')

const LEAST_DAYS = 300
/** Recordings of most of a year. */
const isLong = ({ first, last }: Recorded): boolean => Date.parse(last) - Date.parse(first) >= LEAST_DAYS * 86_400_000
const long = measured.results.filter(isLong)

/** Turnover of sizing by a horizon with its band, in average positions a year: the mean over recordings of a year. */
export function turnsPerYear(horizon: Horizon): number {
  const found = long.flatMap(({ sizing }) => sizing.filter(({ rule }) => rule === horizon))
  return Math.round(found.reduce((sum, { turns_per_year: turns }) => sum + turns, 0) / found.length)
}

/** A market with the grades of its labels, once they are known. */
type Graded = Facts & { readonly symbol: string }

/** common.json#/$defs/Method. `graded` are the markets of this service; none if it classifies a sample or a recording. */
export function methodology(graded: readonly Graded[] = []): Method {
  return {
    model: MODEL,
    paragraphs: [
      'Each minute the model forecasts the volatility of the next hour, turns the forecast into the probability that the hour will be more volatile than a published boundary, and that probability into STABLE or VOLATILE. It says how large a position should be, never in which direction.',
      'A minute that moves more than eight local scales must be confirmed by the next one, so that one bad print does not set the regime. At such a minute, and at one larger than 1.5 forecast standard deviations, the forecast never falls and the scalar never rises. The forecast is a ridge regression on squared five-minute returns over 5, 15, 60, 240, 1,440 and 10,080 minutes and with half-lives of 4, 11 and 24 hours, the 15-minute range, the hour of working days and weekends, the weekday and the opening of New York. It is refitted every week on the trailing 180 days, and every day of the first 30. It is drawn towards coefficients pooled over several markets, which count as three days.',
      'forecast_vol is exp of the expected log volatility, close to the median. forecast_vol_mean is the square root of the expected variance, and forecast_vol_p10, _median and _p90 are quantiles, all by the errors of the fit.',
      'The boundary is the 0.65 quantile of the trailing 180 days of hourly volatility, up to the hour before. Every snapshot states it, so each label can be checked against what happened. The probability follows from the distribution of the fit’s own errors. Smoothed with a half-life of 36 minutes, it changes the label to VOLATILE above 0.60 and to STABLE below 0.40. Confidence is the probability of the label before smoothing, corrected by how often earlier labels of its kind and six-hour block were right.',
      'Horizons of 4 hours, a day and a week are forecast once an hour from the snapshots at whole hours, so a buyer of the history can repeat them. The log of the forecast is a weighted sum of the log forecast of the next hour and of the log volatilities by averages of hourly variance with half-lives of 11 hours and a week. The weights are pooled over four recordings and fixed. Mean and quantiles follow from the errors in the same market over the last 180 days, renewed every week; at first from those of the recordings, which count as 20 horizons.',
      'The position scalar of a longer horizon is 0.5 over its forecast: a position of about 50% volatility a year. Trading only when the position leaves the no-trade band, and then to its nearer edge, is the rule of proportional costs. The daily horizon leans on the last day rather than on the best forecast: better ones that revert further to the usual volatility, or follow the hours of the day, left the weeks less even at the same turnover.',
      'A snapshot uses no bar and no correction after its as_of, whenever it is computed: the same bars, as they were first published, give the same snapshots, byte for byte. `origin` says whether it was computed live, back-filled, or caught up on after an outage. If venues do not agree on a minute, the last label is repeated for it and marked `held`; once the minute is decided, its snapshot takes that place, and what was sold stays on record.',
    ],
    formulas: [
      {
        name: 'Variance of a minute',
        formula: 'q = (ln c - ln c₋₅)² / 5; of bars of m ≥ 5 minutes (½ ln(H/L)² - 0.386 ln(C/O)² + ln(O/C₋₁)²) / m',
        source: 'Garman and Klass (1980)',
      },
      { name: 'Component', formula: 'v(w) = ½ ln(mean of q over w minutes + 10⁻¹²)', source: 'Corsi (2009)' },
      { name: 'Mean volatility', formula: 'exp(forecast) √mean(exp 2e), e the fit’s residuals' },
      { name: 'Range', formula: '½ ln mean((ln H/L)² / (4 ln 2)) over 15 minutes', source: 'Parkinson (1980)' },
      { name: 'Probability', formula: 'P = 1 - F(b - forecast), F the distribution of the fit’s residuals' },
      {
        name: 'Smoothed',
        formula: 'P̄ = P̄₋₁ + (1 - 2^(-m/36)) (P - P̄₋₁), m minutes a bar; VOLATILE above 0.60, STABLE below 0.40',
      },
      {
        name: 'Position scalar',
        formula: 'clip(median hourly volatility / forecast, 0.25, 1.5)',
        source: 'Moreira and Muir (2017)',
      },
      ...(['4h', '1d', '1w'] as const).map(horizonFormula),
      {
        name: 'Position scalar and band of these horizons',
        formula: `s = clip(0.5 / forecast, 0.05, 5); no trade between s e^-w and s e^w, w = ${Object.entries(HORIZONS)
          .map(([name, { band }]) => `${band} for ${name}`)
          .join(', ')}`,
        source: 'Gârleanu and Pedersen (2013); Constantinides (1986)',
      },
    ],
    claims: measured.claims,
    tables: [
      { caption: 'Measured out of sample, walking forward, on recordings', columns: COLUMNS, rows: rows('figures') },
      {
        caption: 'Baseline in the same runs: an hour is VOLATILE if the previous hour was above the same boundary',
        columns: COLUMNS.slice(0, BASELINE_COLUMNS),
        rows: rows('baseline').map((row) => row.slice(0, BASELINE_COLUMNS)),
      },
      sizingTable(),
      ...(graded.length > 0 ? [gradedHere(graded)] : []),
    ],
    charts: recordCharts(measured.results),
    limits: [
      'A recording shorter than 90 days is graded from its first day. It depends on the pooled coefficients and a boundary of a few days, so its figures are worse. There the baseline is right more often than the model, by up to two points.',
      'If volatility doubles within a year, the trailing boundary lags behind and more hours count as VOLATILE.',
      'The pooled coefficients were measured on the last 180 days of the four recordings of 90 days and more. The fit of every market starts from them; the boundary is its own.',
      'Rows of the model before, har-schmitt/1, stay in the history as they were sold.',
      'The weights of the horizons were pooled over the recordings that sizing is measured on.',
      'A longer horizon leaves out the hour of a minute that was computed late, until the hour after that. Within 24 hours of the first snapshot it answers 503.',
      'The model sees one market at a time. News affects it only through prices.',
    ],
    sources: [
      'Corsi, A simple approximate long-memory model of realized volatility, J. Financial Econometrics 7 (2009)',
      'Parkinson, The extreme value method for estimating the variance of the rate of return, J. Business 53 (1980)',
      'Garman and Klass, On the estimation of security price volatilities from historical data, J. Business 53 (1980)',
      'Moreira and Muir, Volatility-managed portfolios, J. Finance 72 (2017)',
      'Gârleanu and Pedersen, Dynamic trading with predictable returns and transaction costs, J. Finance 68 (2013)',
      'Constantinides, Capital market equilibrium with transaction costs, J. Political Economy 94 (1986)',
      'Politis and Romano, The stationary bootstrap, J. American Statistical Association 89 (1994)',
    ],
  }
}

function horizonFormula(horizon: LongHorizon) {
  const names = ['ln forecast of 1 h', 'ln v(half-life 11 h)', 'ln v(half-life 168 h)', '']
  const terms = POOLED[horizon].weights.flatMap((weight, i) => (weight === 0 ? [] : [`${weight} ${names[i]}`.trim()]))
  return { name: `Forecast of ${horizon}`, formula: `ln forecast = ${terms.join(' + ')}; annualised fractions` }
}

const SIZING_RULES = ['constant', '1d', 'average 11 h, daily', 'average 11 h, hourly'] as const

/** Sizing by the daily horizon beside rules that cost nothing, on recordings of a year, with where it does not help. */
function sizingTable(): NonNullable<Method['tables']>[number] {
  const rows = long.map(({ recording, sizing }) => {
    const rules = SIZING_RULES.map((name) => sizing.find(({ rule }) => rule === name)!)
    const [, daily, , hourly] = rules as [Sizing, Sizing, Sizing, Sizing]
    return {
      recording,
      rules,
      isWorse: daily.less_daily_average > 0,
      isLess: daily.weekly_vol_cv > hourly.weekly_vol_cv,
    }
  })
  const named = (of: typeof rows): string => of.map(({ recording }) => recording).join(', ') || 'none'
  const worse = named(rows.filter(({ isWorse }) => isWorse))
  const less = named(rows.filter(({ isLess }) => isLess))
  return {
    id: 'sizing',
    caption: `Sizing over a year: how much weekly volatility varies (deviation over mean; less is more even) and turns, in average positions a year. Less even than by the daily average: ${worse}. Less even than by the hourly one: ${less}.`,
    columns: [
      'recording',
      'constant size',
      'daily horizon in its band',
      'turns',
      'average of 11 h, daily',
      'turns',
      'average of 11 h, hourly',
      'turns',
    ],
    rows: rows.map(({ recording, rules }) => [
      recording,
      ...rules.flatMap(({ rule, weekly_vol_cv: variation, turns_per_year: turns }) =>
        rule === 'constant' ? [threeDigits(variation)] : [threeDigits(variation), Math.round(turns)],
      ),
    ]),
  }
}

const HERE = ['snapshots', ...COLUMNS.slice(2, -1)]

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
    const { flips_per_day: flips, accuracy, brier, ece, block_ece: blocks } = figures
    const graded = [ratio, stay, stayVolatile, flips, accuracy, brier, ece, blocks]
    return [result.recording, days, ...graded.map(threeDigits)]
  })
}

const threeDigits = (value: number | null): number | null => (value === null ? null : Number(value.toFixed(3)))

export interface Recorded {
  readonly recording: string
  readonly first: string
  readonly last: string
  readonly interval_minutes: number
  readonly calibration: Calibration
}

const TONES = ['main', 'second', 'third'] as const
const toneOf = (index: number) => TONES[index] ?? ('muted' as const)
/** Bins with a smaller share of all snapshots are not shown. */
const LEAST_SHARE = 0.005

/** The chart of calibration, for at most three recordings finer than an hour that last most of a year. */
export function recordCharts(results: readonly Recorded[]): Chart[] {
  const long = results
    .filter(isLong)
    .filter(({ interval_minutes: minutes }) => minutes < 60)
    .slice(0, TONES.length)
  return long.length === 0 ? [] : [calibrationChart(long)]
}

function calibrationChart(results: readonly Recorded[]): Chart {
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
      ...results.map(({ recording, calibration }, index) => ({
        name: recording,
        tone: toneOf(index),
        points: calibration
          .filter(([, , share]) => share >= LEAST_SHARE)
          .map(([stated, right]) => [stated, right] as const),
      })),
    ],
    table: {
      columns: ['Recording', 'Stated confidence', 'Right', 'Share of all snapshots'],
      rows: results.flatMap(({ recording, calibration }) =>
        calibration.map(([stated, right, share]) => [recording, percent(stated), percent(right), percent(share)]),
      ),
    },
  }
}

const percent = (share: number): string => `${(share * 100).toFixed(1)}%`
