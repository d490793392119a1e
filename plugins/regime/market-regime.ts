/** The regime of one market: what is sold of it, and what it is made of. */
import type { DataMode } from 'tollgate/plugin'
import {
  type Ask,
  type Call,
  type CallOf,
  type Facts,
  type Freshness,
  type FreshnessTools,
  InvalidInput,
  NotHeld,
  type PluginContext,
  Reply,
  type ServiceError,
  Unavailable,
} from 'tollgate/plugin'
import { dataSettings } from '../lib/feeds/data-settings.ts'
import type {
  Horizon,
  MarketStatus,
  RegimeCoverage,
  RegimeHistory,
  RegimeHistoryItem,
  RegimeHistoryQuery,
  RegimeQuery,
  Snapshot as RegimeSnapshot,
} from '../../schemas/types.d.ts'
import { roundTo } from '../lib/quant/rounding.ts'
import { formatSeconds, requireEpochSeconds } from '../lib/time/timestamps.ts'
import { type CatchUpTurns, type Classifier, createClassifier, type SettledMinutes } from './classifier.ts'
import type { Market } from './classify-work.ts'
import { barsSupported } from './volatility-features.ts'
import { type HistoryLabel, historyItem, SOLD_COLUMNS } from './history-blocks.ts'
import { HorizonForecasts } from './horizon-forecasts.ts'
import { Grader, type Grades, type WindowGrades } from './label-grades.ts'
import { MODEL, MODELS } from './regime-model.ts'
import { provenanceOf } from './provenance.ts'
import { turnsPerYear } from './regime-methodology.ts'
import { type HistoryPage, RememberedSnapshots, withHeld } from './remembered-snapshots.ts'
import {
  BACKFILL,
  HELD,
  type HeldSnapshot,
  LIVE,
  newestSnapshots,
  openSnapshots,
  type Origin,
  ORIGINS,
  type Snapshot,
  SNAPSHOT_COLUMNS,
  type SnapshotRange,
  type Snapshots,
  type SnapshotsAround,
  type Span,
} from './snapshots.ts'
import { type HorizonForecast, HORIZONS, type LongHorizon, noTradeBand, TARGET_VOL } from './volatility-horizons.ts'

/** Older data are not sold as current. */
const STALE_SECONDS = 300
/** A minute has a snapshot, or is held, by this time after its close. If not, it is missing. */
const DUE_SECONDS = 60
const END_OF_ROWS = Buffer.from(']}')
const GRADED_DAYS = 90
const HOUR = 3600
const FACTS_SECONDS = 60

const seconds = (moment: Date): number => Math.floor(moment.getTime() / 1000)

/** The last answer of an operation for a horizon, and what it shows. */
interface LastReply {
  readonly found: Snapshot
  readonly age: number
  readonly delay: number
  readonly reply: Reply<RegimeSnapshot>
}

/** What an answer says of a snapshot, beside what is stored. */
interface Shown {
  /** Seconds. */
  readonly age: number
  readonly delay: number
  /** The share of the minutes of its hour that have a bar; null for data that are made up or recorded. */
  readonly coverage: number | null
  /** The forecast of a longer horizon; null for the next hour. */
  readonly forecast: HorizonForecast | null
}

/** A market with what is stored of it, and its grades once they are known. */
export type GradedMarket = RegimeCoverage['symbols'][number] & Facts

type LatestCall = Pick<Call, 'ask' | 'asOf' | 'operation'> & { readonly input: { readonly query: RegimeQuery } }

/** What is stored of a market, and what is kept of it in memory. */
interface OpenSnapshots {
  readonly stored: Snapshots
  readonly remembered: RememberedSnapshots
  readonly horizons: HorizonForecasts
}

export interface MarketRegimeParts {
  /** Shared by all markets. */
  readonly turns: CatchUpTurns
  /** Memory for the history; the default of RememberedSnapshots if absent. */
  readonly blockBytes?: number
}

/** The regime of one market: its model, its stored snapshots and their grades. */
export class MarketRegime {
  readonly #context: PluginContext
  readonly #symbol: string
  readonly #dataMode: DataMode
  readonly #turns: CatchUpTurns
  readonly #blockBytes: number | undefined
  readonly #label: HistoryLabel
  /** The venue of each bit, and since when minutes are classified as they close. */
  #market: Pick<MarketStatus, 'venue_bits' | 'live_since'> = {}
  /** Seconds from one snapshot to the next. */
  #interval = 60
  /** First snapshot to keep, epoch seconds. */
  readonly #since: number
  #snapshots: OpenSnapshots | null = null
  #classifier: Classifier | null = null
  #grader: { readonly of: Snapshots; readonly grader: Grader } | null = null
  /** By operation and horizon. */
  readonly #lastReplies = new Map<string, LastReply>()
  /** The replies that show pages of the history. */
  readonly #pageReplies = new WeakMap<HistoryPage, Reply<RegimeHistory>>()
  #graded: { readonly at: number; readonly grades: Promise<Facts> } | null = null
  /** The last grades; empty before the first. */
  #figures: Facts = {}

  constructor(context: PluginContext, symbol: string, { turns, blockBytes }: MarketRegimeParts) {
    const { since } = context.settings as { readonly since: string }
    const { dataMode } = dataSettings(context)
    this.#context = context
    this.#symbol = symbol
    this.#dataMode = dataMode
    this.#turns = turns
    this.#blockBytes = blockBytes
    // Sample and recording have no origin: they are the same whenever they are computed.
    this.#label = { symbol, hasOrigin: dataMode === 'online' }
    // A recording begins on its own first day.
    this.#since = dataMode === 'replay' ? 0 : seconds(new Date(since))
  }

  get symbol(): string {
    return this.#symbol
  }

  /** The snapshot at `asOf`, for both current and sample: the catalog decides how old `asOf` is. */
  latest(call: LatestCall): Reply<RegimeSnapshot> | Promise<Reply<RegimeSnapshot>> {
    const found = this.#snapshots?.remembered.recallLatest(seconds(call.asOf))
    return found === undefined ? this.#readLatest(call) : this.#replyOf(found, call)
  }

  async #readLatest(call: LatestCall): Promise<Reply<RegimeSnapshot>> {
    const { remembered } = await this.#open(call.ask)
    return this.#replyOf(await remembered.latest(seconds(call.asOf)), call)
  }

  /** The reply that shows a snapshot: one object until the snapshot changes or a second passes. */
  #replyOf(
    found: Snapshot | HeldSnapshot | null,
    { ask, asOf, operation, input }: LatestCall,
  ): Reply<RegimeSnapshot> | Promise<Reply<RegimeSnapshot>> {
    if (!found) return this.#refuse(ask)
    const age = seconds(asOf) - dataTimeOf(found)
    if (age > STALE_SECONDS && this.#isFilling()) return this.#refuse(ask)
    if (age > STALE_SECONDS)
      throw new Unavailable(`The last bar is ${age} seconds old, more than ${STALE_SECONDS}. Nothing was charged.`)
    const delay = operation.maxFreshnessSeconds
    const { horizon = '1h' } = input.query
    const asked = `${operation.id} ${horizon}`
    const last = this.#lastReplies.get(asked)
    if (last?.found === found && last.age === age && last.delay === delay) return last.reply
    const show = (coverage: number | null, forecast: HorizonForecast | null): Reply<RegimeSnapshot> => {
      const reply = Reply.shared(new Reply(this.#shown(found, horizon, { age, delay, coverage, forecast })))
      this.#lastReplies.set(asked, { found, age, delay, reply })
      return reply
    }
    const { remembered } = this.#snapshots!
    const coverage = this.#label.hasOrigin ? remembered.barCoverage(found, seconds(asOf), this.#interval) : null
    const forecast = horizon === '1h' ? null : this.#forecastAt(horizon, dataTimeOf(found), ask)
    return coverage instanceof Promise || forecast instanceof Promise
      ? Promise.all([coverage, forecast]).then(([known, foretold]) => show(known, foretold))
      : show(coverage, forecast)
  }

  #forecastAt(horizon: LongHorizon, at: number, ask: Ask): HorizonForecast | Promise<HorizonForecast> {
    return this.#snapshots!.horizons.recall(horizon, at) ?? this.#readForecast(horizon, at, ask)
  }

  async #readForecast(horizon: LongHorizon, at: number, ask: Ask): Promise<HorizonForecast> {
    const { stored, horizons } = this.#snapshots!
    if ((await stored.missing()) !== null) return this.#refuse(ask)
    const forecast = await horizons.at(horizon, at)
    if (forecast) return forecast
    throw new Unavailable('A longer horizon needs a day of hourly volatility, and there is less. Nothing was charged.')
  }

  #shown(found: Snapshot, horizon: Horizon, { age, delay, coverage, forecast }: Shown): RegimeSnapshot {
    return {
      ...historyItem(found, this.#label),
      forecast_vol: found.forecast_vol,
      ...forecastsOf(found),
      ...(forecast && foretoldBy(forecast)),
      boundary_vol: found.boundary_vol,
      realized_vol_1h: found.realized_vol_1h,
      horizon_minutes: HORIZONS[horizon].minutes,
      since: formatSeconds(found.since),
      annualisation: 365,
      bars_used: found.bars_used,
      data_age_seconds: age,
      model: MODELS[found.model ?? 0]!,
      data_mode: this.#dataMode,
      ...(delay > 0 ? { delayed_by_seconds: delay } : {}),
      ...(this.#label.hasOrigin ? provenanceOf(found, this.#market.venue_bits ?? []) : {}),
      ...(coverage === null ? {} : { coverage: roundTo(coverage, 4) }),
      horizon,
      ...(forecast && { forecast_as_of: formatSeconds(forecast.as_of) }),
      ...volatilitiesOf(found, horizon),
      no_trade_band: bandOf(horizon, forecast?.position_scalar ?? found.position_scalar),
    }
  }

  /** How fresh the snapshot is that would be sold at a moment. Throws Unavailable while the history is being computed. */
  async freshness({ ask, freshnessOf }: FreshnessTools, asOf: Date): Promise<Freshness> {
    const { remembered } = await this.#open(ask)
    const at = seconds(asOf)
    const found = await remembered.latest(at)
    if (found === null || (this.#isFilling() && at - dataTimeOf(found) > STALE_SECONDS)) return this.#refuse(ask)
    const query = { symbol: this.#symbol }
    const bars = await freshnessOf('getMarketStatus', { query })
    const newest = new Date(dataTimeOf(found) * 1000)
    return { newest, sources: bars?.sources ?? null, coverage: bars?.coverage ?? 1 }
  }

  /**
   * How far a window goes beyond the newest snapshot, as the age of the data. Snapshots of the past do not age. Throws Unavailable
   * while those of the window are being computed.
   */
  historyFreshness(query: RegimeHistoryQuery, { ask }: FreshnessTools, asOf: Date): Freshness | Promise<Freshness> {
    if (this.#dataMode !== 'online') return { newest: asOf, sources: null, coverage: 1 }
    const found = this.#snapshots?.remembered.recallLatest(seconds(asOf))
    return found === undefined
      ? this.#readHistoryFreshness(query, ask, asOf)
      : this.#historyFreshnessOf(found, query, ask, asOf)
  }

  async #readHistoryFreshness(query: RegimeHistoryQuery, ask: Ask, asOf: Date): Promise<Freshness> {
    const { remembered } = await this.#open(ask)
    return this.#historyFreshnessOf(await remembered.latest(seconds(asOf)), query, ask, asOf)
  }

  #historyFreshnessOf(
    found: Snapshot | HeldSnapshot | null,
    { end }: RegimeHistoryQuery,
    ask: Ask,
    asOf: Date,
  ): Freshness | Promise<Freshness> {
    const at = seconds(asOf)
    const until = end === undefined ? at : Math.min(at, requireEpochSeconds(end, 'end'))
    if (found === null || (this.#isFilling() && until > found.as_of + STALE_SECONDS)) return this.#refuse(ask)
    const ageSeconds = Math.max(0, until - found.as_of)
    return { newest: new Date((at - ageSeconds) * 1000), sources: null, coverage: 1 }
  }

  async history(call: CallOf<'getRegimeHistory'>): Promise<Reply<RegimeHistory>> {
    const { ask, asOf, input } = call
    const { end, limit, cursor: start = input.query.start, horizon = '1h' } = input.query
    const at = seconds(asOf)
    const until = end === undefined ? at + 1 : requireEpochSeconds(end, 'end')
    const step = horizon === '1h' ? 60 : HOUR
    const from = start === undefined ? Math.max(0, until - limit * step) : requireEpochSeconds(start, 'start')
    if (from >= until)
      throw new InvalidInput(`must be before end, which is ${formatSeconds(until)}`, ['query', 'start'])
    const range = { from, to: until, asOf: at, limit }
    if (horizon !== '1h') return this.#horizonHistory(ask, { ...range, everySeconds: HOUR }, input.query, horizon)
    if (input.query.origin !== undefined || input.query.provenance) return this.#fullHistory(ask, range, input.query)
    const { stored, remembered } = await this.#open(ask)
    const page = await remembered.page(range)
    const known = this.#pageReplies.get(page)
    if (known) return known
    const { text, count, next, missing } = page
    const readTo = next === null ? until : next + 1
    if (this.#isComputing(missing, { from, to: readTo })) return this.#refuse(ask)
    if (count === 0) {
      const held = await stored.around({ from, to: until }, at)
      if (held.inside === null) throw await this.#nothingHeld(ask, held, range)
      // It was stored since the page was remembered.
      remembered.expire()
      if ((await remembered.page(range)).count === 0) return this.#refuse(ask)
      return this.history(call)
    }
    const newest = Math.floor(Date.parse(lastRow(text).as_of) / 1000)
    const head = this.#historyOf(range, { count, next, newest, minutes: count, snapshots: [] })
    // The rows are JSON already and belong between the last two brackets of the head.
    const beginning = Buffer.from(JSON.stringify(head).slice(0, -2))
    const reply = Reply.shared(Reply.json<RegimeHistory>([beginning, ...text, END_OF_ROWS]))
    this.#pageReplies.set(page, reply)
    return reply
  }

  /** The history of one origin, or with everything that is recorded of each snapshot. It is read from the database. */
  async #fullHistory(
    ask: Ask,
    range: SnapshotRange,
    { origin: name, provenance }: RegimeHistoryQuery,
  ): Promise<Reply<RegimeHistory>> {
    if (!this.#label.hasOrigin)
      throw new InvalidInput(`is recorded online only; this service serves ${this.#dataMode} data`, [
        'query',
        name === undefined ? 'provenance' : 'origin',
      ])
    const { stored } = await this.#open(ask)
    const missing = await stored.missing()
    const origin = name === undefined ? undefined : (ORIGINS.indexOf(name) as Origin)
    const liveSince = this.#market.live_since ?? Infinity
    // Rows before and after the first live minute are not searched for those of the other side.
    const from = origin === LIVE ? Math.max(range.from, liveSince + 1) : range.from
    const to = origin === BACKFILL ? Math.min(range.to, liveSince + 1) : range.to
    const columns = provenance ? SNAPSHOT_COLUMNS : SOLD_COLUMNS
    const asked = { ...range, from: Math.min(from, range.to), to }
    const found = (await stored.between(columns, { ...asked, limit: range.limit + 1 }, origin)) as Snapshot[]
    const held = origin === undefined || origin === HELD ? await stored.held(asked) : []
    // Whoever asks for held minutes also gets those that have been classified since.
    const rows = origin === HELD ? everHeld(found, held, asked) : withHeld(found, held, asked)
    const next = rows[range.limit]?.as_of ?? null
    const readTo = next === null ? range.to : next + 1
    if (this.#isComputing(missing, { from: range.from, to: readTo })) return this.#refuse(ask)
    const around = rows.length === 0 ? await stored.around(range, range.asOf) : null
    if (around?.inside === null) throw await this.#nothingHeld(ask, around, range)
    const page = rows.slice(0, range.limit)
    const snapshots = page.map((row) => ({
      ...historyItem(row, this.#label),
      ...(provenance ? provenanceOf(row, this.#market.venue_bits ?? []) : {}),
      ...('superseded_at' in row ? supersededAt(row as HeldSnapshot) : {}),
    }))
    // A minute that was held and then given up has two rows of the origin `held`.
    const minutes = new Set(page.map(({ as_of: at }) => at)).size
    const newest = page.at(-1)?.as_of ?? null
    const answer = this.#historyOf(range, { count: page.length, next, newest, minutes, snapshots })
    return new Reply(answer, { empty: page.length === 0 })
  }

  /** The history of a longer horizon: one row an hour, because its forecast changes once an hour. */
  async #horizonHistory(
    ask: Ask,
    range: SnapshotRange,
    { origin, provenance }: RegimeHistoryQuery,
    horizon: LongHorizon,
  ): Promise<Reply<RegimeHistory>> {
    if (origin !== undefined || provenance)
      throw new InvalidInput('has one row an hour and goes with neither origin nor provenance', ['query', 'horizon'])
    const { stored, horizons } = await this.#open(ask)
    if ((await stored.missing()) !== null) return this.#refuse(ask)
    const around = await stored.around(range, range.asOf)
    if (around.inside === null) throw await this.#nothingHeld(ask, around, range)
    const held = { from: Math.max(range.from, around.first!), to: Math.min(range.to, around.last! + 1) }
    const found = await stored.between(SOLD_COLUMNS, { ...range, ...held, limit: range.limit + 1 })
    const next = found[range.limit]?.as_of ?? null
    const page = found.slice(0, range.limit)
    const [first, last] = [page[0]?.as_of ?? 0, page.at(-1)?.as_of ?? -1]
    const forecasts = await horizons.of(horizon, { from: first, to: last + 1 })
    const foretold = new Map(forecasts.map((forecast) => [forecast.as_of, forecast]))
    const snapshots = page.flatMap((row) => {
      const forecast = foretold.get(row.as_of)
      if (!forecast) return []
      const item = { ...historyItem(row, this.#label), ...foretoldBy(forecast), horizon }
      return [{ ...item, no_trade_band: bandOf(horizon, forecast.position_scalar) }]
    })
    const count = snapshots.length
    const newest = page.at(-1)?.as_of ?? null
    return new Reply(this.#historyOf(range, { count, next, newest, minutes: count, snapshots }), { empty: count === 0 })
  }

  /** An answer of the history. It depends on `asOf` only if its window reaches into the minute before that. */
  #historyOf(
    { from, to, asOf, everySeconds: step = this.#interval }: SnapshotRange,
    page: AnsweredPage,
  ): RegimeHistory {
    const { count, next, newest, minutes, snapshots } = page
    const until = next ?? Math.min(to, Math.max(newest ?? 0, asOf - DUE_SECONDS) + 1)
    const due = Math.ceil(until / step) - Math.ceil(from / step)
    return {
      symbol: this.#symbol,
      start: formatSeconds(from),
      end: formatSeconds(to),
      count,
      next_cursor: next === null ? null : formatSeconds(next),
      next_start: next === null ? null : formatSeconds(next),
      coverage: due > 0 ? roundTo(Math.min(1, minutes / due), 4) : 0,
      newest: newest === null ? null : formatSeconds(newest),
      data_mode: this.#dataMode,
      snapshots,
    }
  }

  /** Why a window has no snapshots: they are being computed, the bars are late, or the window lies outside what is held. */
  async #nothingHeld(
    ask: Ask,
    { first, last, before }: SnapshotsAround,
    { from, to, asOf }: SnapshotRange,
  ): Promise<ServiceError> {
    if (first === null || last === null) return this.#waiting(ask)
    if (from > last && from <= asOf) {
      if (this.#isFilling()) return this.#waiting(ask)
      const reason = latenessOf(await this.#statusOf(ask))
      return new Unavailable(`The newest snapshot is of ${formatSeconds(last)}: ${reason}. Nothing was charged.`)
    }
    const length = to - from
    const end = before === null ? Math.min(first + length, last + 60) : before + 60
    const nearest = { start: new Date(Math.max(first, end - length) * 1000), end: new Date(end * 1000) }
    const held = `${formatSeconds(first)} to ${formatSeconds(last)}`
    return new NotHeld(`There are no snapshots in this window. They reach from ${held}. Nothing was charged.`, nearest)
  }

  async classify(ask: Ask, signal: AbortSignal): Promise<void> {
    const status = await this.#statusOf(ask)
    if (!this.#classifier) {
      const market = marketOf(status)
      if (!status.ready || !market) return
      const { stored } = await this.#open(ask)
      this.#classifier = createClassifier(this.#context, stored, market, this.#since, this.#turns)
    }
    await this.#classifier.run(ask, signal, settledMinutesOf(status))
  }

  #kept(): Promise<Snapshots | null> | Snapshots {
    return this.#snapshots?.stored ?? this.#grader?.of ?? newestSnapshots(this.#context.db, this.#symbol)
  }

  /** What is stored of the market. */
  async coverage(): Promise<RegimeCoverage['symbols'][number]> {
    const kept = await this.#kept()
    const { count, first, last } = (await kept?.extent()) ?? { count: 0, first: null, last: null }
    const time = (at: number | null) => (at === null ? null : formatSeconds(at))
    const isComplete = kept !== null && count > 0 && (await kept.missing()) === null
    return { symbol: this.#symbol, snapshots: count, since: time(first), newest: time(last), complete: isComplete }
  }

  async #grades(): Promise<Facts> {
    const kept = await this.#kept()
    const { count, first, last } = (await kept?.extent()) ?? { count: 0, first: null, last: null }
    const extent = {
      snapshots: count,
      first: first === null ? null : formatSeconds(first),
      last: last === null ? null : formatSeconds(last),
      window_days: GRADED_DAYS,
      model: MODEL,
    }
    // A grader reads only what is newer than the last snapshot it has seen, so it must not begin before the past is filled in.
    if (!kept || count === 0 || this.#isFilling() || (await kept.missing()) !== null) {
      // What is known of an unfinished history is soon out of date.
      this.#graded = null
      return extent
    }
    this.#figures = await this.#grade(kept)
    return { ...extent, ...this.#figures }
  }

  async #grade(kept: Snapshots): Promise<Facts> {
    if (this.#grader?.of !== kept) this.#grader = { of: kept, grader: new Grader(kept, GRADED_DAYS) }
    const { all, live, others } = await this.#grader.grader.grade(seconds(this.#context.now()))
    const { snapshots: liveCount, ...figures } = windowFigures(this.#label.hasOrigin ? live : all)
    if (!this.#label.hasOrigin) return figures
    // The figures above are those of labels that were sold before their hour; what was computed later is graded apart.
    return { ...figures, graded: 'live', live_snapshots: liveCount, backfilled: windowFigures(others) }
  }

  /** What is stored of the market, with the grades that `facts` found last. */
  async graded(): Promise<GradedMarket> {
    return { ...(await this.coverage()), ...this.#figures }
  }

  /** The grades of the labels. They are computed at most once per FACTS_SECONDS. */
  facts(): Promise<Facts> {
    const now = performance.now()
    if (!this.#graded || now - this.#graded.at >= FACTS_SECONDS * 1000)
      this.#graded = { at: now, grades: this.#grades() }
    return this.#graded.grades
  }

  async stop(): Promise<void> {
    await this.#classifier?.keep()
  }

  async #statusOf(ask: Ask): Promise<MarketStatus> {
    const status = await this.#askStatus(ask)
    this.#market = status
    this.#interval = marketOf(status)?.interval ?? this.#interval
    return status
  }

  #askStatus(ask: Ask): Promise<MarketStatus> {
    return ask('getMarketStatus', { query: { symbol: this.#symbol } })
  }

  async #open(ask: Ask): Promise<OpenSnapshots> {
    if (!this.#snapshots) {
      const db = this.#context.db
      const stored = await openSnapshots(db, this.#symbol, (await this.#statusOf(ask)).origin)
      // Two calls may open at the same time; one memory is enough.
      const remembered = {
        db,
        stored,
        label: this.#label,
        ...(this.#blockBytes ? { blockBytes: this.#blockBytes } : {}),
      }
      this.#snapshots ??= {
        stored,
        remembered: new RememberedSnapshots(remembered),
        horizons: new HorizonForecasts(stored),
      }
    }
    return this.#snapshots
  }

  /** True if snapshots of a window are still to be computed. There will be none before the first that is kept. */
  #isComputing(missing: Span | null, { from, to }: Span): boolean {
    return missing !== null && from < missing.to && to > Math.max(missing.from, this.#since)
  }

  /** True while the history is being computed. */
  #isFilling(): boolean {
    return this.#classifier !== null && !this.#classifier.isComplete()
  }

  /** How far the history is: first its bars are fetched, then its snapshots computed, perhaps by another process. */
  async #waiting(ask: Ask): Promise<Unavailable> {
    const status = await this.#statusOf(ask)
    const { ready, collected_from: from, missing_minutes: missing } = status
    if (!ready && from !== undefined && missing) {
      const minutes = (seconds(this.#context.now()) - from) / 60
      const done = percentOf(minutes - missing.to_fetch, minutes)
      return new Unavailable(
        `${done}% of the bars are fetched, ${missing.to_fetch} minutes are not. Nothing was charged; ask again in a minute.`,
        60,
        done / 100,
      )
    }
    const { stored } = await this.#open(ask)
    const begun = Math.max(this.#since, marketOf(status)?.first ?? 0)
    const span = await stored.missing()
    const done = span === null ? 99 : percentOf(span.from - begun, span.to - begun)
    return new Unavailable(
      `${done}% of the history is computed. Nothing was charged; ask again in a few seconds.`,
      10,
      done / 100,
    )
  }

  async #refuse(ask: Ask): Promise<never> {
    throw await this.#waiting(ask)
  }
}

/** Whole percent, below 100: something is still to be done. */
function percentOf(done: number, whole: number): number {
  const share = Math.floor((100 * done) / whole)
  return Number.isFinite(share) ? Math.max(0, Math.min(99, share)) : 0
}

/** The mean and the quantiles of the forecast; none of the first model. */
function forecastsOf({
  forecast_vol_mean: mean,
  forecast_vol_median: median,
  forecast_vol_p10: p10,
  forecast_vol_p90: p90,
}: Snapshot) {
  if (mean === null || median === null || p10 === null || p90 === null) return {}
  return { forecast_vol_mean: mean, forecast_vol_median: median, forecast_vol_p10: p10, forecast_vol_p90: p90 }
}

/** What the forecast of a longer horizon puts in the place of that of the next hour. */
function foretoldBy(forecast: HorizonForecast) {
  return {
    position_scalar: roundTo(forecast.position_scalar, 4),
    forecast_vol: roundTo(forecast.forecast_vol, 4),
    forecast_vol_mean: roundTo(forecast.forecast_vol_mean, 4),
    forecast_vol_median: roundTo(forecast.forecast_vol_median, 4),
    forecast_vol_p10: roundTo(forecast.forecast_vol_p10, 4),
    forecast_vol_p90: roundTo(forecast.forecast_vol_p90, 4),
  }
}

/** The volatility that the scalar aims at, and the usual one. Not of the next hour by a release that did not record it. */
function volatilitiesOf({ reference_vol: reference }: Snapshot, horizon: Horizon) {
  const target = horizon === '1h' ? reference : TARGET_VOL
  return {
    ...(target === null ? {} : { target_vol: target }),
    ...(reference === null ? {} : { reference_vol: reference }),
  }
}

function bandOf(horizon: Horizon, scalar: number) {
  const { low, high } = noTradeBand(horizon, scalar)
  return { low: roundTo(low, 4), high: roundTo(high, 4), turns_per_year: turnsPerYear(horizon) }
}

/** The close of the newest bar behind a snapshot, epoch seconds. A held minute repeats the snapshot of an earlier one. */
function dataTimeOf(found: Snapshot | HeldSnapshot): number {
  return 'rests_on' in found ? found.rests_on : found.as_of
}

/** What an answer of the history says of its rows. */
interface AnsweredPage {
  readonly count: number
  /** Time of the first row of the next page; null on the last one. */
  readonly next: number | null
  /** Time of the last row; null without one. */
  readonly newest: number | null
  /** Minutes that have a row. */
  readonly minutes: number
  readonly snapshots: RegimeHistory['snapshots']
}

/** The last of the rows of a page, which are JSON objects without objects in them. */
function lastRow(text: HistoryPage['text']): RegimeHistoryItem {
  const piece = text.at(-1)!
  return JSON.parse(piece.toString('utf8', piece.lastIndexOf('{'))) as RegimeHistoryItem
}

/** Why there are no newer bars. */
function latenessOf({ venues }: MarketStatus): string {
  const live = venues?.filter((venue) => venue.live) ?? []
  const answering = live.filter(({ failures }) => failures === 0)
  return answering.length === live.length ? 'the bars are late' : `${answering.length} of ${live.length} venues answer`
}

/** Rows of held minutes, with what was sold for them meanwhile, oldest first. */
function everHeld(rows: readonly Snapshot[], held: readonly HeldSnapshot[], range: SnapshotRange): Snapshot[] {
  const { from, to, asOf, limit } = range
  const sold = held.filter((one) => one.as_of >= from && one.as_of < to && one.known_at <= asOf)
  return [...sold, ...rows].toSorted((a, b) => a.as_of - b.as_of).slice(0, limit + 1)
}

const supersededAt = ({ superseded_at: at }: HeldSnapshot) => ({
  superseded_at: at === null ? null : formatSeconds(at),
})

/** The window that was graded, its figures, and beside them those of the rule without a model. */
function windowFigures({ start, end, lastHour, ...grades }: WindowGrades) {
  const time = (at: number | null): string | null => (at === null ? null : formatSeconds(at))
  const { snapshots: _, ...beside } = figuresOf(lastHour)
  return { ...figuresOf(grades), start: time(start), end: time(end), last_hour_rule: beside }
}

/** Figures for JSON: null for one without any case. */
function figuresOf(grades: Grades): Record<keyof Grades, number | null> {
  const known = Object.entries(grades).map(([name, value]) => [name, Number.isNaN(value) ? null : roundTo(value, 4)])
  return Object.fromEntries(known) as Record<keyof Grades, number | null>
}

/** How far a collected market is settled; null for a sample or a recording, which is settled as it closes. */
function settledMinutesOf({ settled, live_since: liveSince = null }: MarketStatus): SettledMinutes | null {
  return settled === undefined ? null : { settled, liveSince }
}

/** The finest bars that the model can read. */
function marketOf({ symbol, series }: MarketStatus): Market | null {
  const fitting = series
    .filter(({ interval_seconds, first }) => first !== null && barsSupported(interval_seconds / 60))
    .toSorted((a, b) => a.interval_seconds - b.interval_seconds)[0]
  return fitting ? { symbol, interval: fitting.interval_seconds, first: fitting.first as number } : null
}
