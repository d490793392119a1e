/**
 * Back-fills the history of a venue. The range is cut into windows, fetched newest first. A window and its status are
 * stored in one transaction, so a stop at any time loses nothing. Minutes that a window lacks become gaps. A gap is
 * fetched again after 1, 5 and 30 minutes and after a day, and is then stored as `filled` bars.
 */
import type { Database, Logger } from 'tollgate/plugin'
import { RequestError } from '../lib/feeds/requests.ts'
import { createColumns, FILLED, type Columns, badPrints } from './bars.ts'
import { createBarStore, type Bar, type Series } from './bar-store.ts'
import { PAUSE_SECONDS, type Venue } from './venues/bar-venue.ts'

export interface BackfillPlan {
  /** Adds the full windows of [from, until) that are missing in the plan; epoch seconds. */
  extend(from: number, until: number): Promise<void>
  /** Records the missing minutes of [from, to) as gaps to fetch. */
  findGaps(from: number, to: number): Promise<void>
  /** Fetches the next window or gap that is due. Returns false if none is. Throws RequestError. */
  fetchNext(signal: AbortSignal): Promise<boolean>
  /** Counts the windows that were never fetched, and the gaps. */
  remaining(): Promise<{ windows: number; gaps: number }>
}

/** A window or a gap to fetch: [t_from, t_to), epoch seconds. */
interface WindowRow {
  readonly series: number
  readonly t_from: number
  readonly t_to: number
  /** `open`: not fetched yet. `gap`: minutes that a window lacked. `filled`: a gap stored as flat bars. */
  readonly status: 'open' | 'gap' | 'done' | 'filled'
  readonly attempts: number
  /** Earliest time of the next attempt, epoch seconds. */
  readonly next_at: number
}

/** Seconds after which a gap is fetched again. */
const RETRIES = [60, 300, 1800, 86_400]
/** The bad-print filter warms up on this much history before new bars. */
const CONTEXT_SECONDS = 7200

export interface BackfillOptions {
  readonly db: Database
  readonly series: Series
  readonly venue: Venue
  /** The venue's own name of the symbol. */
  readonly symbol: string
  readonly log: Logger
  /** Epoch seconds. */
  readonly now: () => number
}

/** Creates the back-fill plan of one series. */
export function createBackfillPlan(options: BackfillOptions): BackfillPlan {
  return new SeriesBackfill(options)
}

class SeriesBackfill implements BackfillPlan {
  readonly #parts: BackfillOptions

  constructor(parts: BackfillOptions) {
    this.#parts = parts
  }

  async extend(from: number, until: number): Promise<void> {
    const { db, series, venue } = this.#parts
    const size = venue.windowMinutes * 60
    const planned = await this.#rows().whereNot('status', 'gap').orderBy('t_to', 'desc').first('t_to')
    const start = planned?.t_to ?? Math.floor(from / size) * size
    const fresh: WindowRow[] = []
    for (let at = start; at + size <= until; at += size)
      fresh.push({ series: series.id, t_from: at, t_to: at + size, status: 'open', attempts: 0, next_at: 0 })
    for (let i = 0; i < fresh.length; i += 500)
      await db<WindowRow>('market_windows')
        .insert(fresh.slice(i, i + 500))
        .onConflict(['series', 't_from', 't_to'])
        .ignore()
  }

  async fetchNext(signal: AbortSignal): Promise<boolean> {
    const { db, series, venue, symbol, log, now } = this.#parts
    const due = this.#rows().whereIn('status', ['open', 'gap']).where('next_at', '<=', now())
    const window = await due.orderBy('t_from', 'desc').first()
    if (!window) return false
    const key = { series: series.id, t_from: window.t_from, t_to: window.t_to }
    let bars: Columns
    try {
      bars = await venue.minutes(symbol, window.t_from, window.t_to, signal)
    } catch (error) {
      if (error instanceof RequestError)
        await this.#rows()
          .where(key)
          .update({ next_at: now() + (error.retryAfterSeconds ?? PAUSE_SECONDS) })
      throw error
    }
    await db.transaction(async (transaction) => {
      await storeNew(transaction, series, bars, now(), window.status === 'gap' ? 0 : Infinity)
      const mark = transaction<WindowRow>('market_windows').where(key)
      if (window.status === 'open') {
        await this.#storeGaps(transaction, window.t_from, window.t_to)
        return mark.update({ status: 'done' })
      }
      if (bars.count * 60 >= window.t_to - window.t_from) return mark.update({ status: 'done' })
      const delay = RETRIES[window.attempts + 1]
      if (delay !== undefined) return mark.update({ attempts: window.attempts + 1, next_at: now() + delay })
      await this.#fill(transaction, window)
      log.info({ symbol: series.symbol, from: window.t_from, to: window.t_to }, 'no trades in a gap: stored flat bars')
      return mark.update({ status: 'filled' })
    })
    return true
  }

  async remaining(): Promise<{ windows: number; gaps: number }> {
    const unfinished = this.#rows().whereIn('status', ['open', 'gap'])
    const counts = (await unfinished.groupBy('status').select('status').count('* as n')) as unknown as {
      status: string
      n: number
    }[]
    const of = (status: string): number => counts.find((row) => row.status === status)?.n ?? 0
    return { windows: of('open'), gaps: of('gap') }
  }

  findGaps(from: number, to: number): Promise<void> {
    return this.#storeGaps(this.#parts.db, from, to)
  }

  async #storeGaps(db: Database, from: number, to: number): Promise<void> {
    const { series, now } = this.#parts
    const bars = await createBarStore(db).read(series, from, to, Number.MAX_SAFE_INTEGER)
    const gaps: WindowRow[] = []
    const note = (t_from: number, t_to: number): void => {
      const [delay] = RETRIES as [number]
      if (t_to > t_from)
        gaps.push({ series: series.id, t_from, t_to, status: 'gap', attempts: 0, next_at: now() + delay })
    }
    for (let i = 0; i <= bars.count; i += 1)
      note(i === 0 ? from : bars.time[i - 1]! + 60, i === bars.count ? to : bars.time[i]!)
    if (gaps.length > 0)
      await db<WindowRow>('market_windows').insert(gaps).onConflict(['series', 't_from', 't_to']).ignore()
  }

  /** Stores flat bars for a gap that stays empty although the venue answers: nothing traded. */
  async #fill(db: Database, { t_from, t_to }: WindowRow): Promise<void> {
    const { series, now } = this.#parts
    const store = createBarStore(db)
    const before = await store.read(series, t_from - CONTEXT_SECONDS, t_to, Number.MAX_SAFE_INTEGER)
    const have = new Map([...before.time].map((time, i) => [time, before.close[i]!]))
    const out = createColumns()
    let close = before.count > 0 && before.time[0]! < t_from ? before.close[0]! : NaN
    for (let time = t_from - CONTEXT_SECONDS; time < t_to; time += 60) {
      close = have.get(time) ?? close
      if (time >= t_from && !have.has(time) && !Number.isNaN(close))
        out.add(time, close, close, close, close, 0, FILLED)
    }
    await store.add(series, out.end(), { knownAt: now() })
  }

  #rows() {
    const { db, series } = this.#parts
    return db<WindowRow>('market_windows').where('series', series.id)
  }
}

/**
 * Stores fetched bars: adds new ones, revises changed ones and corrects bad prints. A bar that arrives more than
 * `lateAfter` seconds after its close counts as known from now on; every other bar counts as known from its close.
 */
export async function storeNew(
  db: Database,
  series: Series,
  bars: Columns,
  now: number,
  lateAfter: number,
): Promise<void> {
  if (bars.count === 0) return
  const store = createBarStore(db)
  const first = bars.time[0]!
  const end = bars.time[bars.count - 1]! + 60
  const known = await store.read(series, first, end, Number.MAX_SAFE_INTEGER)
  const at = new Map([...known.time].map((time, i) => [time, i]))
  const [punctual, late] = [createColumns(bars.count), createColumns(bars.count)]
  for (let i = 0; i < bars.count; i += 1) {
    const { time, open, high, low, close, volume, state } = bars
    const bar = { time: time[i]!, open: open[i]!, high: high[i]!, low: low[i]!, close: close[i]!, volume: volume[i]! }
    const old = at.get(bar.time)
    const kept = now - bar.time - 60 > lateAfter ? late : punctual
    if (old === undefined) kept.add(bar.time, bar.open, bar.high, bar.low, bar.close, bar.volume, state[i]!)
    else if (changed(known, old, bar) && !(await store.has(series, bar))) await store.revise(series, bar, now)
  }
  await store.add(series, punctual.end())
  await store.add(series, late.end(), { knownAt: now })
  const around = await store.read(series, first - CONTEXT_SECONDS, end, Number.MAX_SAFE_INTEGER)
  for (const { index, price } of badPrints(around)) {
    const volume = around.volume[index]!
    await store.revise(
      series,
      { time: around.time[index]!, open: price, high: price, low: price, close: price, volume },
      now,
    )
  }
}

function changed(known: Columns, i: number, bar: Bar): boolean {
  const { open, high, low, close } = known
  return open[i] !== bar.open || high[i] !== bar.high || low[i] !== bar.low || close[i] !== bar.close
}
