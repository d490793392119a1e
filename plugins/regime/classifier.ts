/** Feeds closed bars to the regime model and stores its snapshots. */
import { deserialize, serialize } from 'node:v8'
import type { Ask, PluginContext, Progress } from 'tollgate/plugin'
import type { Bars } from '../../schemas/types.d.ts'
import { roundTo } from '../lib/quant/rounding.ts'
import { advance, createModel, type ModelState, type Step } from './regime-model.ts'
import type { Snapshot, Snapshots } from './snapshots.ts'

export interface Market {
  readonly symbol: string
  /** Interval of the bars that the model reads, in seconds. */
  readonly interval: number
  /** Open of the first bar, epoch seconds. */
  readonly first: number
}

export interface Classifier {
  /** Brings the snapshots up to the last closed bar. */
  run(ask: Ask, signal: AbortSignal): Promise<void>
  /** Progress of the first run, 0 to 1; stays 1 once the snapshots have caught up. */
  done(): number
  /** Stores the state of the model, so that the next start continues from here. */
  keep(): Promise<void>
}

const DAY = 86_400
/** Days of bars per request. */
const PAGE_DAYS = 7
/** Days of history between stored states. A restart repeats at most a day, an interrupted first run a month. */
const KEEP_DAYS = 30
/** A run over more bars than this shows its progress. */
const MANY = 20_000

/** Snapshots are stored from `since` on, epoch seconds; earlier bars only warm up the model. */
export function createClassifier(
  context: PluginContext,
  snapshots: Snapshots,
  market: Market,
  since: number,
): Classifier {
  let state: ModelState | null = null
  let keptAt = -Infinity
  let share = 0
  const closed = (model: ModelState): number => (Number.isNaN(model.minute) ? market.first : model.minute * 60)

  async function restore(): Promise<ModelState> {
    const kept = await snapshots.kept()
    if (!kept) return createModel(market.interval / 60)
    try {
      keptAt = kept.asOf
      return deserialize(kept.state) as ModelState
    } catch (error) {
      context.log.warn({ err: error }, 'could not read the stored model state; starting again from the first bar')
      return createModel(market.interval / 60)
    }
  }

  async function keep(model: ModelState): Promise<void> {
    if (Number.isNaN(model.minute) || closed(model) === keptAt) return
    await snapshots.keep(closed(model), serialize(model))
    keptAt = closed(model)
  }

  return {
    async run(ask, signal) {
      state ??= await restore()
      const now = Math.floor(context.now().getTime() / 1000)
      const begun = closed(state)
      if (begun + market.interval > now) return
      const total = Math.floor((now - begun) / market.interval)
      const progress: Progress | null = total > MANY ? context.progress(`classifying ${market.symbol}`, total) : null
      for (let from = begun; from < now && !signal.aborted;) {
        const to = Math.min(from + PAGE_DAYS * DAY, now)
        const query = { symbol: market.symbol, from, to, interval: market.interval }
        const bars = await ask('getBars', { params: {}, query, body: undefined })
        await snapshots.add(take(state, bars, market.interval, since))
        const live = to === now
        if (closed(state) - keptAt >= (live ? 1 : KEEP_DAYS) * DAY) await keep(state)
        share = Math.max(share, (to - begun) / (now - begun))
        progress?.advance((to - from) / market.interval)
        from = to
      }
      progress?.end()
    },
    done: () => share,
    keep: async () => {
      if (state) await keep(state)
    },
  }
}

function take(state: ModelState, bars: Bars, interval: number, since: number): Snapshot[] {
  const out: Snapshot[] = []
  const { time, open, high, low, close } = bars
  for (let i = 0; i < bars.count; i += 1) {
    const knownAt = time[i]! + interval
    advance(state, time[i]! / 60, open[i]!, high[i]!, low[i]!, close[i]!, (step) => {
      if (step.minute * 60 >= since) out.push(snapshotOf(step, knownAt))
    })
  }
  return out
}

const MINUTES_A_YEAR = 365 * 1440
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
