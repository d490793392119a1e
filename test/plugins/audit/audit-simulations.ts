import { type Audit, audit } from '../../../plugins/audit/audit.ts'
import { moments } from '../../../plugins/lib/quant/descriptive-statistics.ts'
import { ask } from './audit-figures.ts'
import { atLeast, atMost, claiming, type Measure, shown, within } from '../../support/measure.ts'
import {
  alwaysLong,
  averagingDown,
  few,
  independent,
  martingale,
  overlapping,
  type Simulation,
  skilled,
  withoutLosers,
} from './simulated-ledgers.ts'

const PART = 'simulated ledgers'
const SEEDS = 200
/** Of 200 ledgers without an edge, more than 17 are plausible once in a hundred times if a twentieth should be. */
const MOST_WRONG = 17

export interface Simulated {
  readonly seeds: number
  readonly plausible: number
  /** Mean and deviation of the t statistic of days. */
  readonly t: { readonly mean: number; readonly deviation: number }
}

interface Options {
  readonly seeds?: number
  /** Whether the audit gets the bars too. */
  readonly hasBars?: boolean
}

/** Audits ledgers of one kind with the seeds 1, 2, 3, …, each as a single trial without costs. */
export async function simulate(simulation: Simulation, options: Options = {}): Promise<Simulated> {
  const { seeds = SEEDS, hasBars = true } = options
  const statistics: number[] = []
  let plausible = 0
  for (let seed = 1; seed <= seeds; seed += 1) {
    const { file, bars } = simulation(seed)
    const report = await auditOf(file, hasBars ? bars : undefined)
    if (report.verdict === 'plausible') plausible += 1
    if (report.days.t_stat !== null) statistics.push(report.days.t_stat)
  }
  const { mean, variance } = moments(statistics)
  return { seeds, plausible, t: { mean, deviation: Math.sqrt(variance) } }
}

function auditOf(file: string, bars: string | undefined): Promise<Audit> {
  const request = {
    file: Buffer.from(file),
    bars: bars === undefined ? undefined : Buffer.from(bars),
    preset: 'zero',
    trials: 1,
    extraBps: 0,
    symbol: undefined,
  } as const
  return audit(request, { ask, asOf: new Date('2026-01-01'), unusableReason: null })
}

const WORTHLESS: readonly (readonly [name: string, simulation: Simulation, isDeviationKnown: boolean])[] = [
  ['independent trades', independent, true],
  ['trades that overlap on one factor, long', overlapping('long'), true],
  ['martingale sizes', martingale, false],
  ['positions that average down', averagingDown, true],
  ['always long an index in pieces', alwaysLong(0), false],
]

/** Measures how often ledgers without an edge are plausible, and how often those with one are not. */
export async function measureSimulations(): Promise<Measure[]> {
  const [alarms, deviations, wrong]: [Measure[], Measure[], number[]] = [[], [], []]
  for (const [name, simulation, isDeviationKnown] of WORTHLESS) {
    const { plausible, t } = await simulate(simulation)
    wrong.push(plausible)
    alarms.push(atMost(PART, `plausible of ${SEEDS}, no edge: ${name}`, plausible, MOST_WRONG, 0))
    if (isDeviationKnown) deviations.push(within(PART, `deviation of t: ${name}`, t.deviation, 0.9, 1.15))
  }
  const measures: Measure[] = []
  const none = async (name: string, simulation: Simulation): Promise<void> => {
    measures.push(atMost(PART, `plausible of ${SEEDS}: ${name}`, (await simulate(simulation)).plausible, 0, 0))
  }
  await none('two to ten trades', few)
  await none('all losers removed', withoutLosers(1))
  const removed = async (share: number): Promise<void> => {
    const { plausible } = await simulate(withoutLosers(share))
    measures.push(shown(PART, `plausible of ${SEEDS}: ${share * 100}% of the losers removed`, String(plausible)))
  }
  for (const share of [0.25, 0.5]) await removed(share)
  const one = await simulate(skilled(4, 1))
  const ten = await simulate(skilled(6, 10))
  const power = [
    atLeast(PART, 'plausible share, t of 4 in one trial', one.plausible / SEEDS, 0.85),
    atLeast(PART, 'plausible share, t of 6 in one of ten trials', ten.plausible / SEEDS, 0.9),
  ]
  const claimed = claiming([...alarms, ...power], {
    claimed: `Of ${SEEDS} simulated ledgers at most ${MOST_WRONG} are plausible without an edge, and at least 170 with one`,
    measured: `${Math.min(...wrong)} to ${Math.max(...wrong)} by kind, ${one.plausible} and ${ten.plausible}`,
    on: `${WORTHLESS.length} kinds without an edge, two with (t of 4; t of 6 in ten trials)`,
    start: null,
    end: null,
    cases: (WORTHLESS.length + 2) * SEEDS,
    data_mode: 'sample',
  })
  return [...claimed, ...deviations, ...measures]
}
