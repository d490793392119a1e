/** The start page: what the service is, the regime 24 hours ago, and a call to copy. */
import type { Call, Operation } from 'tollgate/plugin'
import type { Snapshot } from '../../schemas/types.d.ts'
import { ask, askIfAvailable, percent } from './page-data.ts'
import type { Read } from './cached-read.ts'
import { changes, chartOf, type MarketHistory } from './regime-history.ts'

/** The measured record of the regime model. A figure is missing until it can be measured. */
interface Stats {
  readonly snapshots?: number
  readonly forward_vol_ratio?: number | null
  readonly persistence_1h?: number | null
  readonly brier?: number | null
  readonly ece?: number | null
  readonly window_days?: number | null
}

interface Gauge {
  readonly label: string
  readonly figure: string
  /** Length of the bar and positions of the marks, 0 to 100. */
  readonly share: number
  readonly marks: readonly number[]
  readonly note: string
}

const MAX_SCALAR = 1.5
const SHOWN_CHANGES = 8

/** Notes for data that are not live. */
const ORIGINS: Readonly<Record<string, string>> = {
  sample: 'Invented data, for trying the service.',
  replay: 'Recorded data, replayed.',
}

/** Returns what every start page shows, and the regime 24 hours ago with its record and history. */
export async function home(call: Call, readHistory: Read<MarketHistory>) {
  const { catalog } = call
  const [front, health, sample, stats, past] = await Promise.all([
    ask<object>(call, 'getFrontPage', { query: call.input.query }),
    ask<{ readonly data_mode: string }>(call, 'getHealth'),
    askIfAvailable<Snapshot>(call, 'getRegimeSample'),
    askIfAvailable<Stats>(call, 'getStats'),
    readHistory(call),
  ])
  const operation = catalog.operations.get('getRegimeSample')
  return {
    ...front,
    origin: ORIGINS[health.data_mode] ?? null,
    sample: sample && operation ? panel(sample, operation) : null,
    record: record(stats ?? {}),
    window: stats?.window_days ?? null,
    past: past ? { chart: chartOf(past), changes: changes(past, SHOWN_CHANGES) } : null,
  }
}

function panel(snapshot: Snapshot, { path, maxFreshnessSeconds }: Operation) {
  return {
    path,
    age: `${Math.round(maxFreshnessSeconds / 3600)} hours`,
    symbol: snapshot.symbol,
    asOf: snapshot.as_of,
    regime: snapshot.regime,
    tone: snapshot.regime.toLowerCase(),
    gauges: gauges(snapshot),
  }
}

/** Converts a share to a position on a bar of 100. */
const place = (share: number): number => Math.round(Math.min(1, Math.max(0, share)) * 1000) / 10

/** Returns the figures of a snapshot as bars. A confidence of 0.874 fills 87.4 of 100. */
function gauges(snapshot: Snapshot): readonly Gauge[] {
  const { confidence, position_scalar: scalar, forecast_vol: forecast, boundary_vol: boundary } = snapshot
  return [
    {
      label: 'Confidence',
      figure: percent(confidence),
      share: place(confidence),
      marks: [],
      note: 'Probability that the label is right for the next hour.',
    },
    {
      label: 'Position scalar',
      figure: `${scalar.toFixed(2)}×`,
      share: place(scalar / MAX_SCALAR),
      marks: [place(1 / MAX_SCALAR)],
      note: 'Exposure that keeps risk constant. The mark is normal exposure, 1.00×.',
    },
    ...(forecast === undefined || boundary === undefined
      ? []
      : [
          {
            label: 'Volatility forecast',
            figure: percent(forecast),
            share: place(forecast / (2 * boundary)),
            marks: [50],
            note: `For the next hour, annualised. The mark is the boundary between the regimes, ${percent(boundary)}.`,
          },
        ]),
  ]
}

interface Figure {
  readonly label: string
  readonly figure: string
  readonly note: string
}

function record(stats: Stats): readonly Figure[] {
  const { forward_vol_ratio: ratio, persistence_1h: persistence, brier, ece, snapshots } = stats
  const graded = [
    ...row('Volatility ratio', ratio, (value) => `${value.toFixed(2)}×`, 'hour after VOLATILE compared with STABLE'),
    ...row('Persistence', persistence, percent, 'of labels are unchanged an hour later'),
    ...row('Brier score', brier, (score) => score.toFixed(3), 'of the probability; a coin toss has 0.250'),
    ...row('Calibration error', ece, (error) => error.toFixed(3), 'of the stated confidence (ECE)'),
  ]
  if (graded.length === 0) return []
  const count = (value: number): string => value.toLocaleString('en-US')
  return [...graded, ...row('Snapshots', snapshots, count, 'one per minute, each from data up to its minute')]
}

function row(
  label: string,
  value: number | null | undefined,
  written: (value: number) => string,
  note: string,
): readonly Figure[] {
  return typeof value === 'number' ? [{ label, figure: written(value), note }] : []
}
