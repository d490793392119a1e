/** Keeps the snapshots of a market up to date: the newest first, then what is missing before them. */
import { deserialize, serialize } from 'node:v8'
import type { Ask, PluginContext } from 'tollgate/plugin'
import { classify, type Classified, type ClassifyInput, type Market, type Stretch } from './classify-work.ts'
import { closedAt, createModel, MODEL, type ModelState } from './regime-model.ts'
import { CATCHUP, encodeSnapshots, HELD, LIVE, type Snapshot, type Snapshots } from './snapshots.ts'

export interface Classifier {
  /**
   * Brings the snapshots up to the last minute that is settled, and fills in those that are missing before. Without a
   * `settledTo` every bar that has closed is settled, and nothing is recorded of how the snapshots come about.
   */
  run(ask: Ask, signal: AbortSignal, settledTo: SettledMinutes | null): Promise<void>
  /** True once the whole history is stored. */
  isComplete(): boolean
  /** Stores the state of the model, so that the next start continues from here. */
  keep(): Promise<void>
}

/** How far the minutes of a collected market are decided. */
export interface SettledMinutes {
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
  context: PluginContext,
  snapshots: Snapshots,
  market: Market,
  since: number,
  turns = new CatchUpTurns(),
): Classifier {
  return new MarketClassifier(context, snapshots, market, since, turns)
}

class MarketClassifier implements Classifier {
  readonly #context: PluginContext
  readonly #snapshots: Snapshots
  readonly #market: Market
  /** Snapshots as of earlier times are not stored. */
  #since: number
  readonly #turns: CatchUpTurns
  /** The model at the last bar; null before the first run. */
  #live: ModelState | null = null
  /** What the second pass still has to do. */
  #fill: { state: Uint8Array; from: number; readonly to: number } | null = null
  #keptAt = -Infinity
  #isComplete = false
  #settledMinutes: SettledMinutes | null = null
  /** Minutes that are held; null before they were read. */
  #held: Set<number> | null = null

  constructor(context: PluginContext, snapshots: Snapshots, market: Market, since: number, turns: CatchUpTurns) {
    this.#context = context
    this.#snapshots = snapshots
    this.#market = market
    this.#since = since
    this.#turns = turns
  }

  async run(ask: Ask, signal: AbortSignal, settledTo: SettledMinutes | null): Promise<void> {
    this.#settledMinutes = settledTo
    try {
      await this.#classify(ask, signal)
    } catch (error) {
      // The gateway is closing. What is stored so far stays.
      if (!signal.aborted) throw error
    }
  }

  isComplete(): boolean {
    return this.#isComplete
  }

  async keep(): Promise<void> {
    if (!this.#live || this.#fill) return
    const at = closedAt(this.#live)
    if (!Number.isNaN(at) && at !== this.#keptAt) await this.#keep(at, serialize(this.#live))
  }

  #epoch(): number {
    return Math.floor(this.#context.now().getTime() / 1000)
  }

  /** The end of what can be classified. */
  #settled(): number {
    return Math.min(this.#epoch(), this.#settledMinutes?.settled ?? Infinity)
  }

  #provenance(now: number) {
    return this.#settledMinutes && { now, liveSince: this.#settledMinutes.liveSince ?? now }
  }

  #closed(at: number): number {
    return Number.isNaN(at) ? this.#market.first : at
  }

  async #restore(): Promise<ModelState> {
    const kept = await this.#snapshots.kept()
    if (!kept) return createModel(this.#market.interval / 60)
    try {
      this.#keptAt = kept.asOf
      const model = deserialize(kept.state) as ModelState
      if (model.model !== MODEL) return await this.#succeed()
      if (isSound(model)) return model
      this.#context.log.warn('the stored model state has invalid numbers; starting again from the first bar')
      return createModel(this.#market.interval / 60)
    } catch (error) {
      this.#context.log.warn({ err: error }, 'could not read the stored model state; starting again from the first bar')
      return createModel(this.#market.interval / 60)
    }
  }

  /** A new model learns from all bars, and goes on where the snapshots of the one before end. */
  async #succeed(): Promise<ModelState> {
    const [missing, { last }] = [await this.#snapshots.missing(), await this.#snapshots.extent()]
    this.#since = Math.max(this.#since, missing?.from ?? (last ?? 0) + 1)
    return createModel(this.#market.interval / 60)
  }

  async #keep(asOf: number, state: Uint8Array): Promise<void> {
    await this.#snapshots.keep(asOf, Buffer.from(state))
    this.#keptAt = asOf
  }

  #inThread(input: ClassifyInput, ask: Ask, signal: AbortSignal): Promise<Classified> {
    return this.#context.work<Classified>(new URL('./classify-work.ts', import.meta.url), input, {
      call: { id: `classify ${this.#market.symbol}`, ask, signal },
      timeoutSeconds: WORK_SECONDS,
    })
  }

  /** The first pass. */
  async #catchUp(model: ModelState, to: number, ask: Ask, signal: AbortSignal): Promise<ModelState> {
    const [market, since] = [this.#market, this.#since]
    const from = this.#closed(closedAt(model))
    const newest = Math.max(from, since, to - NEWEST_DAYS * DAY)
    const isFillNeeded = newest > Math.max(from, since)
    const now = this.#epoch()
    const passed = { market, since: newest, provenance: this.#provenance(now) }
    // Bars that close before the first snapshot. Both passes go on from there.
    const warm = isFillNeeded ? Math.max(from, since - market.interval) : from
    const begun = serialize(model)
    const state =
      warm > from ? (await this.#inThread({ ...passed, from, to: warm, state: begun }, ask, signal)).state : begun
    const caughtUp = await this.#inThread({ ...passed, from: warm, to, state }, ask, signal)
    if (isFillNeeded) await this.#snapshots.fillBefore(newest)
    await this.#snapshots.add(caughtUp.snapshots)
    await this.#endHold(caughtUp.closed, now)
    if (isFillNeeded) this.#fill = { state, from: warm, to: newest }
    else if (!Number.isNaN(caughtUp.closed)) await this.#keep(caughtUp.closed, caughtUp.state)
    return deserialize(caughtUp.state) as ModelState
  }

  /** The second pass. The first one has begun it, in this process or an earlier one. */
  async #fillIn(ask: Ask, signal: AbortSignal): Promise<void> {
    const [market, since] = [this.#market, this.#since]
    const begun = this.#fill!.from
    const progress = this.#context.progress(
      `classifying ${market.symbol}`,
      Math.floor((this.#fill!.to - begun) / market.interval),
    )
    while (this.#fill && !signal.aborted) {
      const { state, from, to } = this.#fill
      const next = Math.min(from + FILL_DAYS * DAY, to)
      const stretch = { market, from, to: next, since, provenance: this.#provenance(this.#epoch()) }
      const part = await this.#inThread({ ...stretch, state }, ask, signal)
      await this.#snapshots.add(part.snapshots)
      progress.advance((next - from) / market.interval)
      if (!Number.isNaN(part.closed)) await this.#keep(part.closed, part.state)
      this.#fill = next < to ? { state: part.state, from: next, to } : null
      await this.#follow(ask)
    }
    progress.end()
  }

  /** Takes the bars that have been settled since the last run. */
  async #follow(ask: Ask): Promise<void> {
    const [market, since] = [this.#market, this.#since]
    const model = this.#live!
    const now = this.#epoch()
    const to = this.#settled()
    const from = this.#closed(closedAt(model))
    if (from + market.interval <= to) {
      const stretch: Stretch = { market, from, to, since, provenance: this.#provenance(now) }
      try {
        const waiting = await this.#heldMinutes()
        const late = (row: Snapshot): Snapshot =>
          waiting.has(row.as_of) ? { ...row, known_at: now, origin: row.origin === LIVE ? CATCHUP : row.origin } : row
        await this.#snapshots.add(encodeSnapshots((await classify(model, stretch, ask)).map(late)))
        await this.#endHold(closedAt(model), now)
      } catch (error) {
        // The model is ahead of what is stored. The next run starts from the state that was kept.
        this.#live = null
        throw error
      }
    }
    if (!this.#fill && closedAt(model) - this.#keptAt >= DAY) await this.#keep(closedAt(model), serialize(model))
    if (!this.#fill) await this.#hold(now)
  }

  async #heldMinutes(): Promise<Set<number>> {
    if (!this.#settledMinutes) return new Set()
    this.#held ??= new Set(await this.#snapshots.heldMinutes())
    return this.#held
  }

  /** What was held up to `last` is classified now. */
  async #endHold(last: number, now: number): Promise<void> {
    const over = [...(await this.#heldMinutes())].filter((minute) => minute <= last)
    if (over.length === 0) return
    await this.#snapshots.supersede(last, now)
    for (const minute of over) this.#held?.delete(minute)
  }

  /** Repeats the last label for minutes that should be settled by now and are not. */
  async #hold(now: number): Promise<void> {
    const last = this.#settledMinutes && (await this.#snapshots.latest(Number.MAX_SAFE_INTEGER))
    if (!last) return
    const waiting = await this.#heldMinutes()
    const rows: Parameters<Snapshots['hold']>[0][number][] = []
    for (
      let at = last.as_of + this.#market.interval;
      at <= Math.min(now - HELD_AFTER, last.as_of + HELD_SECONDS);
      at += this.#market.interval
    )
      if (!waiting.has(at)) {
        const recorded = { origin: HELD, computed_at: now, known_at: now, venues: null, spread_bps: null } as const
        rows.push({ ...last, ...recorded, as_of: at, realized_vol_1h: null, rests_on: last.as_of })
      }
    if (rows.length === 0 || now - last.as_of > 2 * HELD_SECONDS) return
    await this.#snapshots.hold(rows)
    for (const { as_of } of rows) waiting.add(as_of)
  }

  async #classify(ask: Ask, signal: AbortSignal): Promise<void> {
    if (!this.#live) {
      const model = await this.#restore()
      const to = this.#settled()
      // Gaps of the past are fetched again, or given up within minutes. Classified before, they would stay holes for ever.
      if (this.#epoch() - to > FAR) return
      const isFar = to - this.#closed(closedAt(model)) > FAR
      this.#live = isFar ? await this.#turns.take(() => this.#catchUp(model, this.#settled(), ask, signal)) : model
    }
    await this.#follow(ask)
    if (this.#fill) await this.#turns.take(() => this.#fillIn(ask, signal))
    if (this.#fill || this.#isComplete) return
    await this.#snapshots.fillBefore(null)
    this.#isComplete = true
  }
}

/** False for a state that a bar of price zero has spoilt, as an earlier release could keep one. */
function isSound({ measures, filter }: ModelState): boolean {
  return [...measures.sums, filter.scale].every(Number.isFinite)
}
