/** Keeps the snapshots of a market up to date: the newest first, then what is missing before them. */
import { deserialize, serialize } from 'node:v8'
import type { Ask, PluginContext } from 'tollgate/plugin'
import { classify, type Classified, type ClassifyInput, type Market, type Stretch } from './classify-work.ts'
import { closedAt, createModel, type ModelState } from './regime-model.ts'
import { encodeSnapshots, type Snapshots } from './snapshots.ts'

export interface Classifier {
  /** Brings the snapshots up to the last closed bar, and fills in those that are missing before. */
  run(ask: Ask, signal: AbortSignal): Promise<void>
  /** The share of the history that is stored, 0 to 1. */
  done(): number
  /** Stores the state of the model, so that the next start continues from here. */
  keep(): Promise<void>
}

const DAY = 86_400
/** A model that is further behind catches up in a worker thread. */
const FAR = DAY
/** Days before the present that are stored first: the current snapshot, and the one that is free a day later. */
const NEWEST_DAYS = 2
/** Days of history per function in a worker thread. Its snapshots stay below 10 MB. */
const FILL_DAYS = 28
const WORK_SECONDS = 600

/**
 * A run that is far behind classifies twice. The first pass goes to the present and stores only the last two days, so that
 * the current regime is sold within seconds. The second goes over the same bars from the same state and stores what lies
 * between. Both give the same snapshots, since a snapshot depends on the state and the bars before it alone.
 *
 * Snapshots are stored from `since` on, epoch seconds; earlier bars only warm up the model.
 */
export function createClassifier(
  { work, log, now: clock, progress: showProgress }: PluginContext,
  snapshots: Snapshots,
  market: Market,
  since: number,
): Classifier {
  /** The model at the last bar; null before the first run. */
  let live: ModelState | null = null
  /** What the second pass still has to do. */
  let fill: { state: Uint8Array; from: number; readonly to: number } | null = null
  let keptAt = -Infinity
  let share = 0
  let isComplete = false
  const closed = (at: number): number => (Number.isNaN(at) ? market.first : at)

  async function restore(): Promise<ModelState> {
    const kept = await snapshots.kept()
    if (!kept) return createModel(market.interval / 60)
    try {
      keptAt = kept.asOf
      return deserialize(kept.state) as ModelState
    } catch (error) {
      log.warn({ err: error }, 'could not read the stored model state; starting again from the first bar')
      return createModel(market.interval / 60)
    }
  }

  async function keep(asOf: number, state: Uint8Array): Promise<void> {
    await snapshots.keep(asOf, Buffer.from(state))
    keptAt = asOf
  }

  const inThread = (input: ClassifyInput, ask: Ask, signal: AbortSignal): Promise<Classified> =>
    work<Classified>(new URL('./classify-work.ts', import.meta.url), input, {
      call: { id: `classify ${market.symbol}`, ask, signal },
      timeoutSeconds: WORK_SECONDS,
    })

  /** The first pass. */
  async function catchUp(model: ModelState, to: number, ask: Ask, signal: AbortSignal): Promise<ModelState> {
    const from = closed(closedAt(model))
    const newest = Math.max(from, since, to - NEWEST_DAYS * DAY)
    const state = serialize(model)
    const caughtUp = await inThread({ state, market, from, to, since: newest }, ask, signal)
    const isFillNeeded = newest > Math.max(from, since)
    if (isFillNeeded) await snapshots.fillBefore(newest)
    await snapshots.add(caughtUp.snapshots)
    if (isFillNeeded) fill = { state, from, to: newest }
    else if (!Number.isNaN(caughtUp.closed)) await keep(caughtUp.closed, caughtUp.state)
    return deserialize(caughtUp.state) as ModelState
  }

  /** The second pass. The first one has begun it, in this process or an earlier one. */
  async function fillIn(ask: Ask, signal: AbortSignal): Promise<void> {
    const begun = fill!.from
    const progress = showProgress(`classifying ${market.symbol}`, Math.floor((fill!.to - begun) / market.interval))
    while (fill && !signal.aborted) {
      const { state, from, to } = fill
      const next = Math.min(from + FILL_DAYS * DAY, to)
      const part = await inThread({ state, market, from, to: next, since }, ask, signal)
      await snapshots.add(part.snapshots)
      progress.advance((next - from) / market.interval)
      share = (next - begun) / (to - begun)
      if (!Number.isNaN(part.closed)) await keep(part.closed, part.state)
      fill = next < to ? { state: part.state, from: next, to } : null
      await follow(ask)
    }
    progress.end()
  }

  /** Takes the bars that have closed since the last run. */
  async function follow(ask: Ask): Promise<void> {
    const model = live!
    const to = Math.floor(clock().getTime() / 1000)
    const from = closed(closedAt(model))
    if (from + market.interval > to) return
    const stretch: Stretch = { market, from, to, since }
    await snapshots.add(encodeSnapshots(await classify(model, stretch, ask)))
    if (!fill && closedAt(model) - keptAt >= DAY) await keep(closedAt(model), serialize(model))
  }

  async function run(ask: Ask, signal: AbortSignal): Promise<void> {
    if (!live) {
      const model = await restore()
      const now = Math.floor(clock().getTime() / 1000)
      live = now - closed(closedAt(model)) > FAR ? await catchUp(model, now, ask, signal) : model
    }
    await follow(ask)
    if (fill) await fillIn(ask, signal)
    if (fill || isComplete) return
    await snapshots.fillBefore(null)
    isComplete = true
  }

  return {
    async run(ask, signal) {
      try {
        await run(ask, signal)
      } catch (error) {
        // The gateway is closing. What is stored so far stays.
        if (!signal.aborted) throw error
      }
    },
    done: () => (isComplete ? 1 : Math.min(share, 0.99)),
    async keep() {
      if (!live || fill) return
      const at = closedAt(live)
      if (!Number.isNaN(at) && at !== keptAt) await keep(at, serialize(live))
    },
  }
}
