/**
 * Fetches minutes from several venues, publishes those that at least two of them agree on, and back-fills history. What
 * is published of a symbol is one series, whichever venues stood behind each minute.
 */
import type { Database, Facts, Job, PluginContext } from 'tollgate/plugin'
import { epochSeconds } from '../lib/time/timestamps.ts'
import { agreeOnMinutes, type AgreedMinutes, type VenueAnswer } from './agreed-minutes.ts'
import {
  BackfillPlan,
  GIVEN_UP_AFTER,
  type MissingMinutes,
  type PlannedWindow,
  seriesWithDueGaps,
  unfinishedSeries,
} from './backfill.ts'
import type { Columns } from './bars.ts'
import { SAMPLE_START } from './sample-bars.ts'
import type { Series, BarStore } from './bar-store.ts'
import { storeMinutes } from './stored-minutes.ts'
import { venuesOf, type CoveredSymbol, type Settings, type SymbolVenues } from './symbols.ts'
import { paceOf, type VenuePaces } from './venue-pace.ts'
import { type Listing, VenueRequests } from './venue-requests.ts'
import { type VenueName, VENUES, VENUES_BY_BIT } from './venues/bar-venues.ts'

export interface OnlineBars {
  readonly jobs: readonly Job[]
  /** The symbols that are collected. */
  readonly symbols: readonly CoveredSymbol[]
  /** How far the minutes of a symbol are decided, and which venues stand behind it. Null if it is not collected. */
  status(symbol: string): Promise<SymbolStatus | null>
  /** The venues that stand behind a symbol. Null if it is not collected. */
  venues(symbol: string): Promise<readonly VenueStatus[] | null>
  facts(): Promise<Facts>
}

export interface SymbolStatus {
  /** True once the whole history was fetched. */
  readonly ready: boolean
  /** Every minute before this is published, or given up: epoch seconds. */
  readonly settled: number
  /** Minutes before this were fetched when the collection began; later ones as they closed. Null before it began. */
  readonly live_since: number | null
  /** Where the history begins once it is complete, epoch seconds. */
  readonly collected_from: number
  /** Minutes since then without a bar: still to be fetched, waiting for venues to agree, and given up. */
  readonly missing_minutes: MissingMinutes
  readonly venues: readonly VenueStatus[]
  /** The venue of each bit where venues are stored as a number. */
  readonly venue_bits: readonly string[]
}

export interface VenueStatus {
  readonly venue: string
  readonly live: boolean
  readonly backfill: boolean
  /** Failures in a row; 0 while it answers. */
  readonly failures: number
  readonly reason: string | null
  /** When it is asked again, epoch seconds; null while it answers. */
  readonly retry_at: number | null
}

/** The venue of the published series. */
export const PUBLISHED = 'median'
/** A minute is fetched this long after its end, when the venues have settled it. */
const SETTLED_SECONDS = 3
/** Venues are asked for this many minutes before the wanted ones too: their last price counts in a quiet minute. */
const LEAD_SECONDS = 20 * 60
/** And, for a gap, for those after it: a venue that lists none of them may stand still. One request has room for them. */
const TRAIL_SECONDS = 4 * 3600
/**
 * A pause of up to this long is polled, because live venues still serve all of it and make the bars that they would have made
 * without the pause. Kraken serves 720 minutes, of which the lead takes 20. The start of a longer pause is back-filled.
 */
const POLLED_SECONDS = 600 * 60
/** A minute that is published later than this after its close counts as known from then. */
const LATE_SECONDS = 300
/** A window that too few venues answered for is fetched again after this. */
const POSTPONED_SECONDS = 10
/** A poll leaves out a venue whose turn is further away than this: the minute would be published before. */
const MAX_WAIT_MS = 10_000
/** Venues asked for each window, unless they fail or do not agree. */
const ASKED_FIRST = 2
/** A window or gap that is longer and of which no venue lists a minute is not taken for quiet: their pages may be empty by mistake. */
const MOST_SILENT_SECONDS = 3600
/** A venue that leaves a whole window out is believed if it lists minutes in so much of what is stored. */
const PROVED_SECONDS = 4 * 3600
const REQUEST_SECONDS = 8

/** One symbol: its published series, its plan and its venues. */
interface Feed {
  readonly symbol: CoveredSymbol
  readonly series: Series
  readonly plan: BackfillPlan
  readonly live: readonly Listing[]
  readonly backfill: readonly Listing[]
  readonly tolerance: number
  /** Where its history begins, epoch seconds. */
  readonly start: number
  /** What the live venues answered last. */
  readonly answers: Map<VenueName, VenueAnswer>
  /** Since when its minutes are published as they close, epoch seconds; null until that is known. It never changes. */
  liveSince: number | null
}

/**
 * Prepares the feeds of all symbols that have enough venues. Only the jobs send requests. Throws if the settings name too
 * few venues of a symbol, or if no symbol is left.
 */
export async function openOnlineBars(
  context: PluginContext,
  settings: Settings,
  store: BarStore,
  paces: VenuePaces,
): Promise<OnlineBars> {
  const now = (): number => Math.floor(context.now().getTime() / 1000)
  const requestSeconds = settings.request_seconds ?? REQUEST_SECONDS
  const requests = new VenueRequests({ context, store, paces, now, requestSeconds })
  await requests.loadHealth()
  const feeds: Feed[] = []
  const left: string[] = []
  for (const symbol of settings.symbols) {
    if (Object.keys(symbol.venues ?? {}).length === 0) continue
    const venues = venuesOf(symbol, settings)
    if (venues) feeds.push(await openFeed({ context, settings, store, now }, symbol, venues))
    else left.push(symbol.symbol)
  }
  if (left.length > 0 && feeds.length === 0)
    throw new Error(`fewer than two venues of every symbol are enabled; enable more of them in venues`)
  if (left.length > 0)
    context.log.warn({ symbols: left }, 'these symbols are not collected: fewer than two of their venues are enabled')
  return new MedianFeeds({ context, store, feeds, requests, now })
}

interface FeedParts {
  readonly context: PluginContext
  readonly settings: Settings
  readonly store: BarStore
  readonly now: () => number
}

async function openFeed(
  { context, settings, store, now }: FeedParts,
  symbol: CoveredSymbol,
  { live, backfill, tolerance }: SymbolVenues,
): Promise<Feed> {
  const listing = (name: VenueName): Listing => {
    const url = settings.venues?.[name]?.url ?? VENUES[name].url
    const venue = VENUES[name].create({ url: url.replace(/\/$/, ''), fetch: context.fetch, now })
    return { venue, name, symbol: symbol.symbol, code: symbol.venues[name]!, pace: paceOf(name, settings) }
  }
  const listings = new Map([...new Set([...live, ...backfill])].map((name) => [name, listing(name)]))
  const of = (names: readonly VenueName[]): Listing[] => names.map((name) => listings.get(name)!)
  const series = await store.published(PUBLISHED, symbol.symbol, 60)
  const plan = new BackfillPlan({ db: context.db, series, now })
  const from = Math.max(...[settings, symbol].map((one) => epochSeconds(one.history_start) ?? 0)) || SAMPLE_START
  const start = Math.floor(from / 60) * 60
  return {
    symbol,
    series,
    plan,
    live: of(live),
    backfill: of(backfill),
    tolerance,
    start,
    answers: new Map(),
    liveSince: null,
  }
}

interface MedianFeedsOptions {
  readonly context: PluginContext
  readonly store: BarStore
  readonly feeds: readonly Feed[]
  readonly requests: VenueRequests
  readonly now: () => number
}

class MedianFeeds implements OnlineBars {
  readonly jobs: readonly Job[]
  readonly #context: PluginContext
  readonly #store: BarStore
  readonly #feeds: readonly Feed[]
  readonly #requests: VenueRequests
  readonly #now: () => number

  constructor({ context, store, feeds, requests, now }: MedianFeedsOptions) {
    this.#context = context
    this.#store = store
    this.#feeds = feeds
    this.#requests = requests
    this.#now = now
    this.jobs = [
      { name: 'poll', everySeconds: 5, run: ({ signal }) => this.#each((feed) => this.#poll(feed, signal)) },
      {
        name: 'backfill',
        everySeconds: 20,
        run: async ({ signal }) => {
          await requests.loadHealth()
          await this.#backfill(signal)
        },
      },
    ]
  }

  get symbols(): readonly CoveredSymbol[] {
    return this.#feeds.map(({ symbol }) => symbol)
  }

  /** Runs something for every feed. One that fails stops none of the others. */
  async #each(run: (feed: Feed) => Promise<void>): Promise<void> {
    const outcomes = await Promise.allSettled(this.#feeds.map(run))
    for (const outcome of outcomes) if (outcome.status === 'rejected') throw outcome.reason
  }

  async status(symbol: string): Promise<SymbolStatus | null> {
    const feed = this.#feedOf(symbol)
    if (!feed) return null
    const frontier = await this.#extend(feed)
    const { windows, missing } = await feed.plan.progress()
    return {
      ready: windows === 0,
      settled: Math.min((await feed.plan.awaited()) ?? frontier, frontier),
      live_since: await this.#liveSince(feed),
      collected_from: feed.start,
      missing_minutes: missing,
      venue_bits: VENUES_BY_BIT,
      venues: await this.#venuesOf(feed),
    }
  }

  async venues(symbol: string): Promise<readonly VenueStatus[] | null> {
    const feed = this.#feedOf(symbol)
    return feed ? this.#venuesOf(feed) : null
  }

  async #venuesOf({ symbol: { symbol }, live, backfill }: Feed): Promise<readonly VenueStatus[]> {
    const failing = new Map((await this.#store.health()).map((record) => [`${record.source} ${record.item}`, record]))
    return [...new Set([...live, ...backfill])].map((listing) => {
      const record = failing.get(`${listing.name} ${symbol}`) ?? failing.get(`${listing.name} `)
      return {
        venue: listing.name,
        live: live.includes(listing),
        backfill: backfill.includes(listing),
        failures: record?.failures ?? 0,
        reason: record?.reason ?? null,
        retry_at: record?.until ?? null,
      }
    })
  }

  async facts(): Promise<Facts> {
    const unfinished = await this.#unfinished()
    const open = this.#feeds.flatMap(({ series }) => unfinished.get(series.id) ?? [])
    const failing = await this.#store.health()
    return {
      venues_failing: failing.map(({ source, item, status }) => `${source} ${item || 'all'} ${status}`),
      windows_to_fetch: open.reduce((sum, { windows }) => sum + windows, 0),
      gaps: open.reduce((sum, { gaps }) => sum + gaps, 0),
      venue_differences: await this.#store.qualityNotes(),
      rejected_rows: await this.#store.rejectedRows(),
    }
  }

  #feedOf(symbol: string): Feed | undefined {
    return this.#feeds.find((feed) => feed.symbol.symbol === symbol)
  }

  #unfinished(): ReturnType<typeof unfinishedSeries> {
    return unfinishedSeries(
      this.#context.db,
      this.#feeds.map(({ series }) => series),
    )
  }

  /**
   * Plans windows: at first for the whole past, later for what is too long ago to be polled. Returns the first minute that is
   * neither published nor planned.
   */
  async #extend({ plan, series, start }: Feed): Promise<number> {
    const last = await this.#store.last(series)
    const isFirst = last === null && (await plan.end()) === null
    const end = await plan.extend(last === null ? start : last + 60, this.#lastClose(), isFirst ? 0 : POLLED_SECONDS)
    return Math.max(end ?? start, last === null ? 0 : last + 60)
  }

  async #liveSince(feed: Feed): Promise<number | null> {
    if (feed.liveSince !== null) return feed.liveSince
    const noted = await this.#store.note(liveNote(feed.symbol))
    feed.liveSince = noted === null ? null : Number(noted)
    return feed.liveSince
  }

  /** Notes where the polls of a feed begin, the first time. */
  async #beginLive(feed: Feed, from: number): Promise<void> {
    if ((await this.#liveSince(feed)) === null) await this.#store.setNote(liveNote(feed.symbol), String(from))
  }

  /** The close of the last minute that venues have settled, epoch seconds. */
  #lastClose(): number {
    return Math.floor((this.#now() - SETTLED_SECONDS) / 60) * 60
  }

  /** Publishes the minutes that have closed since the last published one. */
  async #poll(feed: Feed, signal: AbortSignal): Promise<void> {
    const to = this.#lastClose()
    const from = await this.#extend(feed)
    await this.#beginLive(feed, from)
    if (from >= to) return
    await Promise.all(feed.live.map((listing) => this.#ask(feed, listing, from, to, signal)))
    const found = this.#agree(feed, [...feed.answers.values()], from, to, await this.#closeBefore(feed, from))
    if (found.decidedTo === from) return
    const liveSince = await this.#liveSince(feed)
    await this.#context.db.transaction(async (transaction) => {
      await this.#keep(transaction, feed, found, { liveSince, isLate: false })
      await feed.plan.within(transaction).addGaps(found.holes)
    })
    this.#logHoles(feed, found)
  }

  /** Asks a live venue, unless it has answered for the last minute already. */
  async #ask({ answers }: Feed, listing: Listing, from: number, to: number, signal: AbortSignal): Promise<void> {
    const known = answers.get(listing.name)
    const newest = known?.bars.time[known.bars.count - 1] ?? 0
    if (known && known.to >= to && known.from <= from && newest >= to - 60) return
    const limit = { maxWaitMs: MAX_WAIT_MS }
    const answer = await this.#requests.minutes(listing, from - LEAD_SECONDS, to, signal, limit)
    if (answer === null || answer === 'empty') answers.delete(listing.name)
    else answers.set(listing.name, answer)
  }

  #agree(feed: Feed, answers: readonly VenueAnswer[], from: number, to: number, before: number | null): AgreedMinutes {
    const { tolerance, live } = feed
    const awaited = live.filter((listing) => this.#requests.isUsable(listing)).map(({ name }) => name)
    return agreeOnMinutes(answers, { from, to, tolerance, before, awaited, now: this.#now(), bitOf })
  }

  async #closeBefore({ series }: Feed, from: number): Promise<number | null> {
    const { count, close } = await this.#store.read(series, from - LEAD_SECONDS, from, Number.MAX_SAFE_INTEGER)
    return close[count - 1] ?? null
  }

  async #keep(
    db: Database,
    feed: Feed,
    found: AgreedMinutes,
    { liveSince, isLate }: { readonly liveSince: number | null; readonly isLate: boolean },
  ): Promise<void> {
    const now = this.#now()
    const isPunctual = (close: number): boolean => close <= (liveSince ?? now) || now - close <= LATE_SECONDS
    const knownAt = (time: number): number => (isPunctual(time + 60) ? time + 60 : now)
    await storeMinutes(found, { db, series: feed.series, knownAt, now, isLate })
  }

  #logHoles({ symbol }: Feed, { holes }: AgreedMinutes): void {
    for (const { from, to } of holes)
      this.#context.log.warn({ symbol: symbol.symbol, from, to }, 'venues do not agree: these minutes are held')
  }

  /**
   * Fetches what is due: gaps of every symbol before windows, because minutes as they close wait for them, then the newest
   * window of each symbol, because what does not need the whole past rests on it, and the others of one symbol after the other
   * in the order of the settings, so that the first ones are sold long before the last.
   */
  async #backfill(signal: AbortSignal): Promise<void> {
    await this.#each(async (feed) => void (await this.#extend(feed)))
    await this.#fetchGaps(signal)
    for (const feed of this.#feeds) if (!signal.aborted) await this.#fetchNext(feed, 'open', signal)
    const unfinished = await this.#unfinished()
    for (const feed of this.#feeds) {
      const windows = unfinished.get(feed.series.id)?.windows ?? 0
      if (windows === 0) continue
      const progress = windows > 1 ? this.#context.progress(`back-filling ${feed.symbol.symbol}`, windows) : null
      while (!signal.aborted && (await this.#fetchNext(feed, 'open', signal))) {
        progress?.advance(1)
        await this.#fetchGaps(signal)
      }
      progress?.end()
    }
  }

  async #fetchGaps(signal: AbortSignal): Promise<void> {
    const due = await seriesWithDueGaps(this.#context.db, this.#now())
    await this.#each(async (feed) => {
      if (!due.has(feed.series.id)) return
      while (!signal.aborted && (await this.#fetchNext(feed, 'gap', signal)));
    })
  }

  /** Fetches the next window or gap that is due. Returns false if none is, or if too few venues answered. */
  async #fetchNext(feed: Feed, status: 'open' | 'gap', signal: AbortSignal): Promise<boolean> {
    const window = await feed.plan.next(status)
    if (!window) return false
    const { t_from: from, t_to: to } = window
    const before = await this.#closeBefore(feed, from)
    const queue = this.#listingsFor(feed, window)
    const until = status === 'gap' ? Math.max(to, Math.min(to + TRAIL_SECONDS, this.#lastClose())) : to
    const answers: VenueAnswer[] = []
    const empty: Listing[] = []
    let found: AgreedMinutes | null = null
    for (let asked = window.status === 'gap' ? queue.length : ASKED_FIRST; queue.length > 0; asked = 1) {
      const batch = queue.splice(0, asked)
      const got = await Promise.all(
        batch.map((listing) =>
          this.#requests.minutes(listing, from - LEAD_SECONDS, until, signal, { mayBeEmpty: true }),
        ),
      )
      for (const [i, answer] of got.entries())
        if (answer === 'empty') empty.push(batch[i]!)
        else if (answer) answers.push(answer)
      if (answers.length < 2) continue
      found = agreeOnMinutes(answers, { from, to, tolerance: feed.tolerance, before, now: this.#now(), bitOf })
      if (found.holes.length === 0 && found.decidedTo === to) break
    }
    const isSilent = to - from > MOST_SILENT_SECONDS && !answers.some(({ bars }) => listsAny(bars, from, to))
    if (!found || isSilent) {
      const isAnswered = answers.length + empty.length >= 2
      if (!isAnswered) await feed.plan.postpone(window, POSTPONED_SECONDS)
      else if (status === 'open' && answers.length === 0) return this.#decideEmpty(feed, window, empty, signal)
      // Some have bars, before, in or after these minutes. The others may have sent an empty page, so they are asked again as
      // for any minutes without agreement.
      else await feed.plan.fetched(window, [{ from, to }])
      return isAnswered
    }
    const holes = found.decidedTo < to ? [...found.holes, { from: found.decidedTo, to }] : found.holes
    const liveSince = await this.#liveSince(feed)
    const isLate = window.status === 'gap' && window.attempts >= GIVEN_UP_AFTER
    await this.#context.db.transaction(async (transaction) => {
      await this.#keep(transaction, feed, found, { liveSince, isLate })
      await feed.plan.within(transaction).fetched(window, holes)
      if (found.bars.count > 0) await feed.plan.within(transaction).reopen(window)
    })
    return true
  }

  /**
   * Decides about a window of which all venues that answered sent empty pages. They are believed if two of them list minutes
   * that are stored: before the first of these, the symbol was not listed yet. Otherwise they fail without saying so. Returns
   * false if the window was postponed.
   */
  async #decideEmpty(
    feed: Feed,
    window: PlannedWindow,
    empty: readonly Listing[],
    signal: AbortSignal,
  ): Promise<boolean> {
    const { t_from: from, t_to: to } = window
    const before = await this.#store.last(feed.series, from)
    const stored = before === null ? (await this.#store.extent(feed.series))?.first : before + 60 - PROVED_SECONDS
    const ask = async (listing: Listing, start: number): Promise<boolean> => {
      const end = Math.min(start + PROVED_SECONDS, this.#lastClose())
      const answer = await this.#requests.minutes(listing, start, end, signal, { mayBeEmpty: true })
      return answer !== null && answer !== 'empty'
    }
    const proved = stored === undefined ? [] : await Promise.all(empty.map((listing) => ask(listing, stored)))
    const isBelieved = proved.filter(Boolean).length >= 2
    if (!isBelieved) await feed.plan.postponeEmpty(window)
    else if (before === null) await feed.plan.giveUp(window)
    else await feed.plan.fetched(window, [{ from, to }])
    return isBelieved
  }

  /** The venues that are asked for a window or gap, in order: those that answer and reach back to it. */
  #listingsFor({ live, backfill }: Feed, { status, t_from }: PlannedWindow): Listing[] {
    const age = this.#now() - t_from + LEAD_SECONDS + 120
    const reaches = ({ venue }: Listing): boolean => age <= venue.historyMinutes * 60
    const all = status === 'gap' ? [...new Set([...live, ...backfill])] : backfill
    return all.filter((listing) => reaches(listing) && this.#requests.isUsable(listing))
  }
}

const listsAny = ({ count, time }: Columns, from: number, to: number): boolean =>
  time.subarray(0, count).some((at) => at >= from && at < to)
const bitOf = (name: VenueName): number => VENUES[name].bit
const liveNote = ({ symbol }: CoveredSymbol): string => `live since ${symbol}`
