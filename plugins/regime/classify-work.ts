/** Classifies a stretch of bars. It runs in a worker thread, because a year of minutes takes seconds. */
import { deserialize, serialize } from 'node:v8'
import type { Ask, WorkTools } from 'tollgate/plugin'
import type { Bars } from '../../schemas/types.d.ts'
import { roundTo } from '../lib/quant/rounding.ts'
import { advance, closedAt, type ModelState, type Step } from './regime-model.ts'
import { encodeSnapshots, type EncodedSnapshots, type Snapshot } from './snapshots.ts'

export interface Market {
  readonly symbol: string
  /** Interval of the bars that the model reads, in seconds. */
  readonly interval: number
  /** Open of the first bar, epoch seconds. */
  readonly first: number
}

/** Bars to classify, those that open in [from, to). Times are epoch seconds. */
export interface Stretch {
  readonly market: Market
  readonly from: number
  readonly to: number
  /** Snapshots as of earlier times are not returned. */
  readonly since: number
}

/** What `classify-work` is given: the model before the stretch, by `serialize` of node:v8. */
export type ClassifyInput = Stretch & { readonly state: Uint8Array }

export interface Classified {
  /** The model after the stretch, serialised. */
  readonly state: Uint8Array
  /** Close of its last bar; NaN if there was none yet. */
  readonly closed: number
  readonly snapshots: EncodedSnapshots
}

const DAY = 86_400
/** Days of bars per request. */
const PAGE_DAYS = 7
const MINUTES_A_YEAR = 365 * 1440

export default async function classifyInThread(input: ClassifyInput, { ask }: WorkTools): Promise<Classified> {
  const model = deserialize(input.state) as ModelState
  const snapshots = await classify(model, input, ask)
  return { state: serialize(model), closed: closedAt(model), snapshots: encodeSnapshots(snapshots) }
}

/** Advances the model over a stretch of bars and returns the snapshots. */
export async function classify(model: ModelState, { market, from, to, since }: Stretch, ask: Ask): Promise<Snapshot[]> {
  const { symbol, interval } = market
  const snapshots: Snapshot[] = []
  for (let start = from; start < to; start += PAGE_DAYS * DAY) {
    const query = { symbol, from: start, to: Math.min(start + PAGE_DAYS * DAY, to), interval }
    const bars = await ask('getBars', { params: {}, query, body: undefined })
    take(model, bars, interval, (step, knownAt) => {
      if (step.minute * 60 >= since) snapshots.push(snapshotOf(step, knownAt))
    })
  }
  return snapshots
}

function take(model: ModelState, bars: Bars, interval: number, emit: (step: Step, knownAt: number) => void): void {
  const { time, open, high, low, close } = bars
  for (let i = 0; i < bars.count; i += 1) {
    const knownAt = time[i]! + interval
    advance(model, time[i]! / 60, open[i]!, high[i]!, low[i]!, close[i]!, (step) => emit(step, knownAt))
  }
}

const round = (value: number): number => roundTo(value, 4)
const annual = (log: number): number => round(Math.exp(log) * Math.sqrt(MINUTES_A_YEAR))

/** A step in the units of the API: volatilities as fractions per year, four decimals. */
function snapshotOf(step: Step, knownAt: number): Snapshot {
  return {
    as_of: step.minute * 60,
    volatile: step.volatile ? 1 : 0,
    confidence: round(step.volatile ? step.probability : 1 - step.probability),
    position_scalar: round(step.scalar),
    forecast_vol: annual(step.forecast),
    boundary_vol: annual(step.boundary),
    realized_vol_1h: Number.isNaN(step.realized) ? null : annual(step.realized),
    since: step.since * 60,
    bars_used: step.bars,
    known_at: knownAt,
  }
}
