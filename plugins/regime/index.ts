/** The regime plugin: one snapshot per minute, sold as current value and as history, and free with a day's delay. */
import {
  type Ask,
  type Call,
  definePlugin,
  type Facts,
  InvalidInput,
  type OperationId,
  type PluginContext,
  Reply,
  Unavailable,
} from 'tollgate/plugin'
import { type DataMode, dataSettings } from '../lib/feeds/data-settings.ts'
import type {
  MarketStatus,
  RegimeHistory,
  RegimeHistoryQuery,
  Snapshot as RegimeSnapshot,
} from '../../schemas/types.d.ts'
import { roundTo } from '../lib/quant/rounding.ts'
import { formatSeconds, requireEpochSeconds } from '../lib/time/timestamps.ts'
import { createClassifier, type Classifier } from './classifier.ts'
import type { Market } from './classify-work.ts'
import { barsSupported, HORIZON_MINUTES } from './volatility-features.ts'
import { historyItem } from './history-blocks.ts'
import { createGrader } from './label-grades.ts'
import { methodology } from './regime-methodology.ts'
import { MODEL } from './regime-model.ts'
import { type HistoryPage, RememberedSnapshots } from './remembered-snapshots.ts'
import { migrations, newestSnapshots, openSnapshots, type Snapshot, type Snapshots } from './snapshots.ts'

/** Older data are not sold as current. */
const STALE_SECONDS = 300
const END_OF_ROWS = Buffer.from(']}')
const GRADED_DAYS = 90
const FACTS_SECONDS = 60

const seconds = (moment: Date): number => Math.floor(moment.getTime() / 1000)

export default definePlugin({
  name: 'regime',
  migrations,
  settings: {
    type: 'object',
    additionalProperties: false,
    required: ['symbol', 'since'],
    properties: {
      symbol: { type: 'string', description: 'The market to classify.' },
      since: {
        type: 'string',
        format: 'date-time',
        description: 'Time of the first snapshot to keep. Earlier bars only warm up the model.',
      },
    },
  },
  setup(context) {
    const regime = new MarketRegime(context)
    return {
      handlers: {
        getRegimeSample: (call: Call) => regime.latest(call),
        getRegimeCurrent: (call: Call) => regime.latest(call),
        getRegimeHistory: (call: Call<{ query: RegimeHistoryQuery }>) => regime.history(call),
        getRegimeMethod: methodology,
      },
      // Every ten seconds, so that a snapshot follows soon after its minute. A run without new bars is cheap.
      jobs: [{ name: 'classify', everySeconds: 10, run: ({ ask, signal }) => regime.classify(ask, signal) }],
      facts: () => regime.facts(),
      stop: () => regime.stop(),
    }
  },
})

/** The last answer of an operation, and what it shows. */
interface LastReply {
  readonly found: Snapshot
  readonly age: number
  readonly delay: number
  readonly reply: Reply<RegimeSnapshot>
}

/** The regime of one market: its model, its stored snapshots and their grades. */
class MarketRegime {
  readonly #context: PluginContext
  readonly #symbol: string
  readonly #dataMode: DataMode
  /** First snapshot to keep, epoch seconds. */
  readonly #since: number
  #snapshots: { readonly stored: Snapshots; readonly remembered: RememberedSnapshots } | null = null
  #classifier: Classifier | null = null
  #grader: { readonly of: Snapshots; readonly grade: ReturnType<typeof createGrader> } | null = null
  readonly #lastReplies = new Map<OperationId, LastReply>()
  /** The replies that show pages of the history. */
  readonly #pageReplies = new WeakMap<HistoryPage, Reply<RegimeHistory>>()
  #graded: { readonly at: number; readonly grades: Promise<Facts> } | null = null

  constructor(context: PluginContext) {
    const { symbol, since } = context.settings as { readonly symbol: string; readonly since: string }
    const { dataMode } = dataSettings(context)
    this.#context = context
    this.#symbol = symbol
    this.#dataMode = dataMode
    // A recording begins on its own first day.
    this.#since = dataMode === 'replay' ? 0 : seconds(new Date(since))
  }

  /** The snapshot at `asOf`, for both current and sample: the catalog decides how old `asOf` is. */
  latest(call: Call): Reply<RegimeSnapshot> | Promise<Reply<RegimeSnapshot>> {
    const found = this.#snapshots?.remembered.recallLatest(seconds(call.asOf))
    return found === undefined ? this.#readLatest(call) : this.#replyOf(found, call)
  }

  async #readLatest(call: Call): Promise<Reply<RegimeSnapshot>> {
    const { remembered } = await this.#open(call.ask)
    return this.#replyOf(await remembered.latest(seconds(call.asOf)), call)
  }

  /** The reply that shows a snapshot: one object until the snapshot changes or a second passes. */
  #replyOf(found: Snapshot | null, { asOf, operation }: Call): Reply<RegimeSnapshot> {
    if (!found) throw this.#waiting()
    const age = seconds(asOf) - found.as_of
    if (age > STALE_SECONDS && this.#isFilling()) throw this.#waiting()
    if (age > STALE_SECONDS)
      throw new Unavailable(`The last bar is ${age} seconds old, more than ${STALE_SECONDS}. Nothing was charged.`)
    const delay = operation.maxFreshnessSeconds
    const last = this.#lastReplies.get(operation.id)
    if (last && last.found === found && last.age === age && last.delay === delay) return last.reply
    const reply = Reply.shared(new Reply(this.#shown(found, age, delay)))
    this.#lastReplies.set(operation.id, { found, age, delay, reply })
    return reply
  }

  #shown(found: Snapshot, age: number, delay: number): RegimeSnapshot {
    return {
      ...historyItem(found, this.#symbol),
      forecast_vol: found.forecast_vol,
      boundary_vol: found.boundary_vol,
      realized_vol_1h: found.realized_vol_1h,
      horizon_minutes: HORIZON_MINUTES,
      since: formatSeconds(found.since),
      annualisation: 365,
      bars_used: found.bars_used,
      data_age_seconds: age,
      model: MODEL,
      data_mode: this.#dataMode,
      ...(delay > 0 ? { delayed_by_seconds: delay } : {}),
    }
  }

  async history({ ask, asOf, input }: Call<{ query: RegimeHistoryQuery }>): Promise<Reply<RegimeHistory>> {
    const { start, end, limit } = input.query
    const at = seconds(asOf)
    const until = end === undefined ? at + 1 : requireEpochSeconds(end, 'end')
    const from = start === undefined ? Math.max(0, until - limit * 60) : requireEpochSeconds(start, 'start')
    if (from > until) throw new InvalidInput('is after end; swap them', ['query', 'start'])
    const { remembered } = await this.#open(ask)
    const page = await remembered.page({ from, to: until, asOf: at, limit })
    const known = this.#pageReplies.get(page)
    if (known) return known
    const { text, count, next, missing } = page
    const readTo = next === null ? until : next + 1
    if (missing && from < missing.to && readTo > missing.from) throw this.#waiting()
    const head: RegimeHistory = {
      symbol: this.#symbol,
      start: formatSeconds(from),
      end: formatSeconds(until),
      count,
      next_start: next === null ? null : formatSeconds(next),
      data_mode: this.#dataMode,
      snapshots: [],
    }
    // The rows are JSON already and belong between the last two brackets of the head.
    const beginning = Buffer.from(JSON.stringify(head).slice(0, -2))
    const reply = Reply.shared(Reply.json<RegimeHistory>([beginning, ...text, END_OF_ROWS]))
    this.#pageReplies.set(page, reply)
    return reply
  }

  async classify(ask: Ask, signal: AbortSignal): Promise<void> {
    if (!this.#classifier) {
      const status = await this.#statusOf(ask)
      const market = marketOf(status)
      if (!status.ready || !market) return
      const { stored } = await this.#open(ask)
      this.#classifier = createClassifier(this.#context, stored, market, this.#since)
    }
    await this.#classifier.run(ask, signal)
  }

  async #grades(): Promise<Facts> {
    const kept = this.#snapshots?.stored ?? this.#grader?.of ?? (await newestSnapshots(this.#context.db, this.#symbol))
    const { count, first, last } = (await kept?.extent()) ?? { count: 0, first: null, last: null }
    const extent = {
      snapshots: count,
      first: first === null ? null : formatSeconds(first),
      last: last === null ? null : formatSeconds(last),
      window_days: GRADED_DAYS,
      model: MODEL,
    }
    if (!kept || this.#isFilling()) return extent
    if (this.#grader?.of !== kept) this.#grader = { of: kept, grade: createGrader(kept, GRADED_DAYS) }
    const { snapshots: _, ...figures } = await this.#grader.grade(seconds(this.#context.now()))
    const known = Object.entries(figures).map(([name, value]) => [name, Number.isNaN(value) ? null : roundTo(value, 4)])
    return { ...extent, ...(Object.fromEntries(known) as Record<string, number | null>) }
  }

  /** The grades of the labels. They are computed at most once per FACTS_SECONDS. */
  facts(): Promise<Facts> {
    const now = performance.now()
    if (!this.#graded || now - this.#graded.at >= FACTS_SECONDS * 1000)
      // What is known of an unfinished history is soon out of date.
      this.#graded = { at: this.#isFilling() ? -Infinity : now, grades: this.#grades() }
    return this.#graded.grades
  }

  async stop(): Promise<void> {
    await this.#classifier?.keep()
  }

  #statusOf(ask: Ask): Promise<MarketStatus> {
    return ask('getMarketStatus', { params: {}, query: { symbol: this.#symbol }, body: undefined })
  }

  async #open(ask: Ask): Promise<{ readonly stored: Snapshots; readonly remembered: RememberedSnapshots }> {
    if (!this.#snapshots) {
      const db = this.#context.db
      const stored = await openSnapshots(db, this.#symbol, (await this.#statusOf(ask)).origin)
      // Two calls may open at the same time; one memory is enough.
      this.#snapshots ??= { stored, remembered: new RememberedSnapshots({ db, stored, symbol: this.#symbol }) }
    }
    return this.#snapshots
  }

  /** True while the history is being computed. */
  #isFilling(): boolean {
    return this.#classifier !== null && this.#classifier.done() < 1
  }

  #waiting(): Unavailable {
    const done = this.#classifier ? Math.floor(100 * this.#classifier.done()) : 0
    return new Unavailable(`${done}% of the history is computed. Nothing was charged; ask again in a few seconds.`, 10)
  }
}

/** The finest bars that the model can read. */
function marketOf({ symbol, series }: MarketStatus): Market | null {
  const fitting = series
    .filter(({ interval_seconds, first }) => first !== null && barsSupported(interval_seconds / 60))
    .toSorted((a, b) => a.interval_seconds - b.interval_seconds)[0]
  return fitting ? { symbol, interval: fitting.interval_seconds, first: fitting.first as number } : null
}
