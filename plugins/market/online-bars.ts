/** Fetches bars from the public venues: back-fills history, polls closed minutes, and compares with a second venue. */
import { setTimeout as pause } from 'node:timers/promises'
import type { Facts, Job, PluginContext } from 'tollgate/plugin'
import { createPauses, RequestError } from '../lib/feeds/requests.ts'
import { epochSeconds } from '../lib/time/timestamps.ts'
import { createBackfillPlan, storeNew, type BackfillPlan } from './backfill.ts'
import { SAMPLE_START } from './sample-bars.ts'
import type { Series, BarStore, QualityNote } from './bar-store.ts'
import type { CoveredSymbol, Settings, VenueSettings } from './symbols.ts'
import { isRefusal, PAUSE_SECONDS, type Venue } from './venues/bar-venue.ts'
import { type ListedVenue, type VenueName, VENUES } from './venues/bar-venues.ts'

export interface OnlineBars {
  readonly jobs: readonly Job[]
  /** Rank of a venue; the smallest is read first. A venue that refused us comes last. */
  readonly rank: (venue: string) => number
  /** Returns true once the whole history of the symbol was fetched. */
  ready(symbol: string): Promise<boolean>
  facts(): Promise<Facts>
}

/** A minute is fetched this long after its end, when the venue has settled it. */
const SETTLED_SECONDS = 3
/** Each poll fetches at least this many minutes, so that late revisions by the venue are stored. */
const RECENT_MINUTES = 3
/** A minute that arrives later than this after its close counts as known from its arrival. */
const LATE_SECONDS = 300
/** Closes of two venues that differ by more than this (log ratio) are recorded. */
const TOLERANCE = 0.01

interface Feed {
  readonly symbol: CoveredSymbol
  readonly venue: Venue
  /** The venue's own name of the symbol. */
  readonly code: string
  readonly series: Series
  readonly plan: BackfillPlan
  readonly pauseMs: number
}

/** Prepares the feeds of all symbols at all enabled venues. Only the jobs send requests. */
export async function openOnlineBars(context: PluginContext, settings: Settings, store: BarStore): Promise<OnlineBars> {
  return new VenueFeeds(context, settings, store, await openFeeds(context, settings, store))
}

async function openFeeds(context: PluginContext, settings: Settings, store: BarStore): Promise<Feed[]> {
  const { db, log } = context
  const now = (): number => nowSeconds(context)
  const feeds: Feed[] = []
  for (const symbol of settings.symbols)
    for (const [name, code] of Object.entries(symbol.venues ?? {}) as [VenueName, string][]) {
      const {
        url,
        enabled = true,
        per_second,
      }: VenueSettings & ListedVenue = { ...VENUES[name], ...settings.venues?.[name] }
      if (!enabled) continue
      const venue = VENUES[name].create({ url: url.replace(/\/$/, ''), fetch: context.fetch })
      const series = await store.series(name, symbol.symbol, 60)
      const plan = createBackfillPlan({ db, series, venue, symbol: code, log, now })
      feeds.push({ symbol, venue, code, series, plan, pauseMs: 1000 / per_second })
    }
  return feeds
}

const nowSeconds = (context: Pick<PluginContext, 'now'>): number => Math.floor(context.now().getTime() / 1000)

class VenueFeeds implements OnlineBars {
  readonly jobs: readonly Job[]
  readonly #context: PluginContext
  readonly #store: BarStore
  readonly #feeds: readonly Feed[]
  readonly #symbols: readonly string[]
  /** Where the history starts, epoch seconds. */
  readonly #start: number
  /** Venues that refused us since the start. */
  readonly #refused = new Set<string>()
  readonly #pauses: ReturnType<typeof createPauses>

  constructor(context: PluginContext, settings: Settings, store: BarStore, feeds: readonly Feed[]) {
    this.#context = context
    this.#store = store
    this.#feeds = feeds
    this.#symbols = [...new Set(feeds.map(({ symbol }) => symbol.symbol))]
    this.#start = epochSeconds(settings.history_start) ?? SAMPLE_START
    this.#pauses = createPauses(() => this.#now())
    this.jobs = [
      {
        name: 'poll',
        everySeconds: 10,
        run: async ({ signal }) => void (await Promise.all(this.#primaries().map((feed) => this.#poll(feed, signal)))),
      },
      { name: 'backfill', everySeconds: 20, run: ({ signal }) => this.#backfill(signal) },
      {
        name: 'compare',
        everySeconds: 3600,
        run: async ({ signal }) => {
          for (const symbol of this.#symbols) await this.#compare(symbol, signal)
        },
      },
    ]
  }

  readonly rank = (venue: string): number =>
    (this.#refused.has(venue) ? 100 : 0) + this.#feeds.findIndex((feed) => feed.venue.name === venue)

  async ready(symbol: string): Promise<boolean> {
    const feed = this.#order(symbol)[0]
    if (!feed) return true
    await feed.plan.extend(this.#start, this.#now())
    return this.#refused.has(feed.venue.name) || (await feed.plan.remaining()).windows === 0
  }

  async facts(): Promise<Facts> {
    const open = await Promise.all(this.#primaries().map((feed) => feed.plan.remaining()))
    return {
      venues_refusing: [...this.#refused],
      windows_to_fetch: open.reduce((sum, { windows }) => sum + windows, 0),
      gaps: open.reduce((sum, { gaps }) => sum + gaps, 0),
      venue_differences: await this.#store.qualityNotes(),
    }
  }

  #now(): number {
    return nowSeconds(this.#context)
  }

  /** The feeds of a symbol in order: the first is read, the second is compared with it. */
  #order(symbol: string): Feed[] {
    const all = this.#feeds.filter((feed) => feed.symbol.symbol === symbol)
    return [
      ...all.filter(({ venue }) => !this.#refused.has(venue.name)),
      ...all.filter(({ venue }) => this.#refused.has(venue.name)),
    ]
  }

  /** The feed that is read, for each symbol. */
  #primaries(): Feed[] {
    return this.#symbols.flatMap((symbol) => this.#order(symbol).slice(0, 1))
  }

  /** Runs a request unless the venue is paused. A venue that refuses is not asked again until the next start. */
  async #ask<Result>(feed: Feed, request: () => Promise<Result>): Promise<Result | null> {
    if (this.#refused.has(feed.venue.name) || this.#pauses.isPaused(feed.venue.name)) return null
    try {
      return await request()
    } catch (error) {
      if (!(error instanceof RequestError)) throw error
      this.#context.log.warn({ venue: feed.venue.name, symbol: feed.code, status: error.status }, error.message)
      this.#pauses.pause(feed.venue.name, error.retryAfterSeconds ?? PAUSE_SECONDS)
      if (isRefusal(error.status)) this.#refused.add(feed.venue.name)
      return null
    }
  }

  async #backfill(signal: AbortSignal): Promise<void> {
    for (const feed of this.#primaries()) {
      await feed.plan.extend(this.#start, this.#now())
      const { windows } = await feed.plan.remaining()
      const progress =
        windows > 1
          ? this.#context.progress(`back-filling ${feed.series.symbol} from ${feed.venue.name}`, windows)
          : null
      while (!signal.aborted && (await this.#ask(feed, () => feed.plan.fetchNext(signal)))) {
        progress?.advance(1)
        // An abort ends the pause; the loop then sees it.
        await pause(feed.pauseMs * (0.75 + Math.random() / 2), undefined, { signal }).catch(() => undefined)
      }
      progress?.end()
    }
  }

  /** Fetches the minutes closed since the last stored one: at least three, at most one window. */
  async #poll(feed: Feed, signal: AbortSignal): Promise<void> {
    const end = Math.floor((this.#now() - SETTLED_SECONDS) / 60) * 60
    const last = (await this.#store.extent(feed.series))?.last ?? 0
    if (last >= end - 60) return
    const size = feed.venue.windowMinutes * 60
    const from = Math.max(Math.min(last + 60, end - RECENT_MINUTES * 60), Math.floor(end / size) * size, end - size)
    await this.#ask(feed, async () => {
      const bars = await feed.venue.minutes(feed.code, Math.min(from, end - 60), end, signal)
      const lateAfter = last > 0 ? LATE_SECONDS : Infinity
      await this.#context.db.transaction((transaction) =>
        storeNew(transaction, feed.series, bars, this.#now(), lateAfter),
      )
      if (bars.count > 0) await feed.plan.findGaps(from, bars.time[bars.count - 1]! + 60)
    })
  }

  /** Compares the last hour's closes with those of the second venue. */
  async #compare(symbol: string, signal: AbortSignal): Promise<void> {
    const [first, second] = this.#order(symbol)
    if (!first || !second) return
    const end = Math.floor((this.#now() - SETTLED_SECONDS) / 60) * 60
    const ours = await this.#store.read(first.series, end - 3600, end, this.#now())
    const theirs = await this.#ask(second, () => second.venue.minutes(second.code, end - 3600, end, signal))
    if (!theirs) return
    const closes = new Map([...theirs.time].map((time, i) => [time, theirs.close[i]!]))
    const notes: QualityNote[] = []
    for (let i = 0; i < ours.count; i += 1) {
      const other = closes.get(ours.time[i]!)
      if (other === undefined || Math.abs(Math.log(ours.close[i]! / other)) <= TOLERANCE) continue
      const detail = `${first.venue.name} ${ours.close[i]!}, ${second.venue.name} ${other}`
      notes.push({ t_open: ours.time[i]!, kind: 'venue_difference', detail })
    }
    await this.#store.noteQuality(first.series, notes)
  }
}
