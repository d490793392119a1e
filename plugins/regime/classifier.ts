/** Keeps the snapshots of a market up to date: the newest first, then what is missing before them. */
import { deserialize, serialize } from 'node:v8'
import type { Ask, PluginContext } from 'tollgate/plugin'
import { classify, type Classified, type ClassifyInput, type Market, type Stretch } from './classify-work.ts'
import { closedAt, createModel, type ModelState } from './regime-model.ts'
import { CATCHUP, encodeSnapshots, HELD, LIVE, type Snapshot, type Snapshots } from './snapshots.ts'

export interface Classifier {
  /**
   * Brings the snapshots up to the last minute that is settled, and fills in those that are missing before. Without a
   * horizon every bar that has closed is settled, and nothing is recorded of how the snapshots come about.
   */
  run(ask: Ask, signal: AbortSignal, horizon: Horizon | null): Promise<void>
  /** True once the whole history is stored. */
  isComplete(): boolean
  /** Stores the state of the model, so that the next start continues from here. */
  keep(): Promise<void>
}

/** How far the minutes of a collected market are decided. */
export interface Horizon {
  /** Every minute that closes by then has a bar, or is given up: epoch seconds. */
  readonly settled: number
  /** Earlier minutes were fetched when the collection began, epoch seconds; null before it began. */
  readonly liveSince: number | null
}

/** Markets catch up one after the other: each of them keeps a worker thread busy for seconds. */
export class CatchUpTurns {
  #last: Promise<unknown> = Promise.resolve()

  /** Runs after all that were given before have ended, however they ended. */
  async take<Result>(run: () => Promise<Result>): Promise<Result> {
    const mine = this.#last.then(run, run)
    this.#last = mine.catch(() => undefined)
    return mine
  }
}

const DAY = 86_400
/** A minute that is not settled this long after its close is held. */
const HELD_AFTER = 40
/** Minutes are held for as long as the last label is sold. */
const HELD_SECONDS = 300
/** A model that is further behind catches up in a worker thread. */
const FAR = DAY
/** Days before the present that are stored first: the current snapshot, and the one that is free a day later. */
const NEWEST_DAYS = 2
/** Days of history per function in a worker thread. Its snapshots stay below 10 MB. */
const FILL_DAYS = 28
const WORK_SECONDS = 600

/**
 * A run that is far behind classifies twice. The first pass goes to the present and stores only the last two days, so that
 * the current regime is sold within seconds. The second goes over the same bars again, from the first that is sold, and
 * stores what lies between. Both give the same snapshots, since a snapshot depends on the state and the bars before it
 * alone.
 *
 * Snapshots are stored from `since` on, epoch seconds; earlier bars only warm up the model.
 */
export function createClassifier(
  { work, log, now: clock, progress: showProgress }: PluginContext,
  snapshots: Snapshots,
  market: Market,
  since: number,
  turns = new CatchUpTurns(),
): Classifier {
  /** The model at the last bar; null before the first run. */
  let live: ModelState | null = null
  /** What the second pass still has to do. */
  let fill: { state: Uint8Array; from: number; readonly to: number } | null = null
  let keptAt = -Infinity
  let isComplete = false
  let horizon: Horizon | null = null
  /** Minutes that are held; null before they were read. */
  let held: Set<number> | null = null
  const epoch = (): number => Math.floor(clock().getTime() / 1000)
  /** The end of what can be classified. */
  const settled = (): number => Math.min(epoch(), horizon?.settled ?? Infinity)
  const provenance = (now: number) => horizon && { now, liveSince: horizon.liveSince ?? now }
  const closed = (at: number): number => (Number.isNaN(at) ? market.first : at)

  async function restore(): Promise<ModelState> {
    const kept = await snapshots.kept()
    if (!kept) return createModel(market.interval / 60)
    try {
      keptAt = kept.asOf
      const model = deserialize(kept.state) as ModelState
      if (isSound(model)) return model
      log.warn('the stored model state has invalid numbers; starting again from the first bar')
      return createModel(market.interval / 60)
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
    const isFillNeeded = newest > Math.max(from, since)
    const now = epoch()
    const passed = { market, since: newest, provenance: provenance(now) }
    // Bars that close before the first snapshot. Both passes go on from there.
    const warm = isFillNeeded ? Math.max(from, since - market.interval) : from
    const begun = serialize(model)
    const state = warm > from ? (await inThread({ ...passed, from, to: warm, state: begun }, ask, signal)).state : begun
    const caughtUp = await inThread({ ...passed, from: warm, to, state }, ask, signal)
    if (isFillNeeded) await snapshots.fillBefore(newest)
    await snapshots.add(caughtUp.snapshots)
    await endHold(caughtUp.closed, now)
    if (isFillNeeded) fill = { state, from: warm, to: newest }
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
      const stretch = { market, from, to: next, since, provenance: provenance(epoch()) }
      const part = await inThread({ ...stretch, state }, ask, signal)
      await snapshots.add(part.snapshots)
      progress.advance((next - from) / market.interval)
      if (!Number.isNaN(part.closed)) await keep(part.closed, part.state)
      fill = next < to ? { state: part.state, from: next, to } : null
      await follow(ask)
    }
    progress.end()
  }

  /** Takes the bars that have been settled since the last run. */
  async function follow(ask: Ask): Promise<void> {
    const model = live!
    const now = epoch()
    const to = settled()
    const from = closed(closedAt(model))
    if (from + market.interval <= to) {
      const stretch: Stretch = { market, from, to, since, provenance: provenance(now) }
      try {
        const waiting = await heldMinutes()
        const late = (row: Snapshot): Snapshot =>
          waiting.has(row.as_of) ? { ...row, known_at: now, origin: row.origin === LIVE ? CATCHUP : row.origin } : row
        await snapshots.add(encodeSnapshots((await classify(model, stretch, ask)).map(late)))
        await endHold(closedAt(model), now)
      } catch (error) {
        // The model is ahead of what is stored. The next run starts from the state that was kept.
        live = null
        throw error
      }
    }
    if (!fill && closedAt(model) - keptAt >= DAY) await keep(closedAt(model), serialize(model))
    if (!fill) await hold(now)
  }

  async function heldMinutes(): Promise<Set<number>> {
    if (!horizon) return new Set()
    held ??= new Set(await snapshots.heldMinutes())
    return held
  }

  /** What was held up to `last` is classified now. */
  async function endHold(last: number, now: number): Promise<void> {
    const over = [...(await heldMinutes())].filter((minute) => minute <= last)
    if (over.length === 0) return
    await snapshots.supersede(last, now)
    for (const minute of over) held?.delete(minute)
  }

  /** Repeats the last label for minutes that should be settled by now and are not. */
  async function hold(now: number): Promise<void> {
    const last = horizon && (await snapshots.latest(Number.MAX_SAFE_INTEGER))
    if (!last) return
    const waiting = await heldMinutes()
    const rows: Parameters<Snapshots['hold']>[0][number][] = []
    for (
      let at = last.as_of + market.interval;
      at <= Math.min(now - HELD_AFTER, last.as_of + HELD_SECONDS);
      at += market.interval
    )
      if (!waiting.has(at)) {
        const recorded = { origin: HELD, computed_at: now, known_at: now, venues: null, spread_bps: null } as const
        rows.push({ ...last, ...recorded, as_of: at, realized_vol_1h: null, rests_on: last.as_of })
      }
    if (rows.length === 0 || now - last.as_of > 2 * HELD_SECONDS) return
    await snapshots.hold(rows)
    for (const { as_of } of rows) waiting.add(as_of)
  }

  async function run(ask: Ask, signal: AbortSignal): Promise<void> {
    if (!live) {
      const model = await restore()
      const to = settled()
      // Gaps of the past are fetched again, or given up within minutes. Classified before, they would stay holes for ever.
      if (epoch() - to > FAR) return
      const isFar = to - closed(closedAt(model)) > FAR
      live = isFar ? await turns.take(() => catchUp(model, settled(), ask, signal)) : model
    }
    await follow(ask)
    if (fill) await turns.take(() => fillIn(ask, signal))
    if (fill || isComplete) return
    await snapshots.fillBefore(null)
    isComplete = true
  }

  return {
    async run(ask, signal, settledTo) {
      horizon = settledTo
      try {
        await run(ask, signal)
      } catch (error) {
        // The gateway is closing. What is stored so far stays.
        if (!signal.aborted) throw error
      }
    },
    isComplete: () => isComplete,
    async keep() {
      if (!live || fill) return
      const at = closedAt(live)
      if (!Number.isNaN(at) && at !== keptAt) await keep(at, serialize(live))
    },
  }
}

/** False for a state that a bar of price zero has spoilt, as an earlier release could keep one. */
function isSound({ measures, filter }: ModelState): boolean {
  return [...measures.sums, filter.scale].every(Number.isFinite)
}
