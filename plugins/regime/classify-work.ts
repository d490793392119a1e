/** Classifies a stretch of bars. It runs in a worker thread, because a year of minutes takes seconds. */
import { deserialize, serialize } from 'node:v8'
import type { Ask, WorkTools } from 'tollgate/plugin'
import type { Bars } from '../../schemas/types.d.ts'
import { roundTo } from '../lib/quant/rounding.ts'
import { advance, closedAt, MODEL, type ModelState, MODELS, type Step } from './regime-model.ts'
import { BACKFILL, CATCHUP, encodeSnapshots, type EncodedSnapshots, HELD, LIVE, type Snapshot } from './snapshots.ts'

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
  /** What is recorded of how the snapshots come about; null to record nothing. */
  readonly provenance: Provenance | null
}

export interface Provenance {
  /** When they are computed, epoch seconds. */
  readonly now: number
  /** Bars of earlier minutes were fetched when their collection began, epoch seconds. */
  readonly liveSince: number
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
/** A snapshot that is computed later than this after its minute is not live. */
const LIVE_SECONDS = 300

export default async function classifyInThread(input: ClassifyInput, { ask }: WorkTools): Promise<Classified> {
  const model = deserialize(input.state) as ModelState
  const snapshots = await classify(model, input, ask)
  return { state: serialize(model), closed: closedAt(model), snapshots: encodeSnapshots(snapshots) }
}

/**
 * Advances the model over a stretch of bars and returns the snapshots. Each bar counts as it was first published, so the
 * snapshots are the same whether they are computed minute by minute or long after.
 */
export async function classify(model: ModelState, stretch: Stretch, ask: Ask): Promise<Snapshot[]> {
  const { market, from, to, since, provenance } = stretch
  const { symbol, interval } = market
  const snapshots: Snapshot[] = []
  for (let start = from; start < to; start += PAGE_DAYS * DAY) {
    const query = { symbol, from: start, to: Math.min(start + PAGE_DAYS * DAY, to), interval, first: true }
    const bars = await ask('getBars', { query })
    take(model, bars, interval, (step, bar) => {
      if (step.minute * 60 >= since) snapshots.push(snapshotOf(step, originOf(step.minute * 60, bar, provenance)))
    })
  }
  return snapshots
}

/** The bar at which a step was emitted. */
interface TakenBar {
  /** Epoch seconds. */
  readonly closed: number
  readonly venues: number | null
  readonly spread: number | null
}

function take(model: ModelState, bars: Bars, interval: number, emit: (step: Step, bar: TakenBar) => void): void {
  const { time, open, high, low, close, venues, spread_bps: spreads } = bars
  for (let i = 0; i < bars.count; i += 1) {
    const spread = spreads?.[i] ?? NaN
    const bar = {
      closed: time[i]! + interval,
      venues: venues?.[i] || null,
      spread: Number.isNaN(spread) ? null : roundTo(spread, 2),
    }
    advance(model, time[i]! / 60, open[i]!, high[i]!, low[i]!, close[i]!, (step) => emit(step, bar))
  }
}

type Recorded = Pick<Snapshot, 'known_at' | 'origin' | 'computed_at' | 'venues' | 'spread_bps'>

/** How the snapshot of a minute came about. A minute before the bar at which it was emitted has no bar. */
function originOf(asOf: number, { closed, venues, spread }: TakenBar, provenance: Provenance | null): Recorded {
  if (!provenance) return { known_at: closed, origin: null, computed_at: null, venues: null, spread_bps: null }
  const { now, liveSince } = provenance
  const since = { computed_at: now, venues: null, spread_bps: null }
  const isPast = asOf <= liveSince
  if (asOf !== closed) return { ...since, known_at: isPast ? closed : now, origin: HELD }
  const origin = isPast ? BACKFILL : now - asOf <= LIVE_SECONDS ? LIVE : CATCHUP
  return { known_at: origin === CATCHUP ? now : closed, origin, computed_at: now, venues, spread_bps: spread }
}

const round = (value: number): number => roundTo(value, 4)
const annual = (log: number): number => round(Math.exp(log) * Math.sqrt(MINUTES_A_YEAR))

/** A step in the units of the API: volatilities as fractions per year, four decimals. */
function snapshotOf(step: Step, recorded: Recorded): Snapshot {
  return {
    as_of: step.minute * 60,
    volatile: step.volatile ? 1 : 0,
    confidence: round(step.confidence),
    position_scalar: round(step.scalar),
    forecast_vol: annual(step.forecast),
    boundary_vol: annual(step.boundary),
    realized_vol_1h: Number.isNaN(step.realized) ? null : annual(step.realized),
    since: step.since * 60,
    bars_used: step.bars,
    model: MODELS.indexOf(MODEL),
    forecast_vol_mean: annual(step.mean),
    forecast_vol_median: annual(step.median),
    forecast_vol_p10: annual(step.p10),
    forecast_vol_p90: annual(step.p90),
    reference_vol: annual(step.reference),
    ...recorded,
  }
}
