/**
 * The plan of what is still to be fetched for one symbol. The past is cut into windows, fetched newest first. Minutes on
 * which venues did not agree are gaps: they are fetched again after 1, 2, 5, 10 and 30 minutes and after a day. A window or
 * gap and its bars are stored in one transaction, so a stop at any time loses nothing.
 */
import type { Database } from 'tollgate/plugin'
import type { Series } from './bar-store.ts'

/** A window or a gap to fetch: [t_from, t_to), epoch seconds. */
export interface PlannedWindow {
  readonly t_from: number
  readonly t_to: number
  /**
   * `open`: not fetched yet. `gap`: minutes without agreement. `lost`: minutes that stay without bars. `filled`: quiet minutes of
   * an earlier release.
   */
  readonly status: 'open' | 'gap' | 'done' | 'filled' | 'lost'
  /** How often venues have answered for a gap without agreeing, or for a window with empty pages. */
  readonly attempts: number
  /** Earliest time of the next attempt, epoch seconds. */
  readonly next_at: number
}

/** Minutes of the history without a bar. */
export interface MissingMinutes {
  /** In windows that were never fetched. */
  readonly to_fetch: number
  /** In gaps that are fetched again. */
  readonly undecided: number
  /** In gaps that stay. */
  readonly given_up: number
}

/** What is still to be fetched of a series. */
export interface Unfinished {
  /** Windows that were never fetched. */
  readonly windows: number
  readonly gaps: number
}

interface StatusCount {
  readonly status: string
  readonly n: number
}

type WindowRow = PlannedWindow & { readonly series: number }

/** Minutes per window. With the minutes before it that venues are asked for too, two requests of the smallest venue. */
const WINDOW_MINUTES = 580
/** Seconds after which a gap is fetched again. */
const RETRIES = [60, 120, 300, 600, 1800, 86_400]
/** And a window for which venues sent empty pages that are not believed. Nobody waits for it for longer than all of this. */
const EMPTY_RETRIES = [60, 600, 3600, 6 * 3600, 86_400]
/** After this many attempts nobody waits for a gap any longer. Bars that still come are stored as corrections. */
export const GIVEN_UP_AFTER = 2
const KEY = ['series', 't_from', 't_to'] as const

/** What is still to be fetched of those of the series that have anything left, by their ids: one statement. */
export async function unfinishedSeries(
  db: Database,
  series: readonly Pick<Series, 'id'>[],
): Promise<ReadonlyMap<number, Unfinished>> {
  const counts = (await db('market_windows')
    .whereIn(
      'series',
      series.map(({ id }) => id),
    )
    .whereIn('status', ['open', 'gap'])
    .groupBy('series', 'status')
    .select('series', 'status')
    .count('* as n')) as (StatusCount & { readonly series: number })[]
  const ids = new Set(counts.map((row) => row.series))
  return new Map([...ids].map((id) => [id, countsOf(counts.filter((row) => row.series === id))]))
}

/** The series with gaps that are due at `now`, epoch seconds: one statement. */
export async function seriesWithDueGaps(db: Database, now: number): Promise<ReadonlySet<number>> {
  const due = (await db('market_windows')
    .where('status', 'gap')
    .where('next_at', '<=', now)
    .distinct('series')) as readonly { readonly series: number }[]
  return new Set(due.map(({ series }) => series))
}

function countsOf(counts: readonly StatusCount[]): Unfinished {
  const of = (status: string): number => counts.find((row) => row.status === status)?.n ?? 0
  return { windows: of('open'), gaps: of('gap') }
}

/** The plan of one series. Pass a transaction to change it together with the bars. */
export class BackfillPlan {
  readonly #db: Database
  readonly #series: Series
  readonly #now: () => number

  constructor({ db, series, now }: { readonly db: Database; readonly series: Series; readonly now: () => number }) {
    this.#db = db
    this.#series = series
    this.#now = now
  }

  /** The same plan within a transaction. */
  within(db: Database): BackfillPlan {
    return new BackfillPlan({ db, series: this.#series, now: this.#now })
  }

  /**
   * Adds windows after the end of the plan, or after `from` if that is later, until at most `polled` seconds before `until` are
   * left to the polls; epoch seconds. Only the last window may be shorter than the others. Returns the end of the plan then;
   * null if it is empty.
   */
  async extend(from: number, until: number, polled: number): Promise<number | null> {
    const size = WINDOW_MINUTES * 60
    const end = await this.end()
    const start = Math.max(end ?? 0, from)
    const fresh: WindowRow[] = []
    for (let at = start; at < until - polled; at += size)
      fresh.push({
        series: this.#series.id,
        t_from: at,
        t_to: Math.min(at + size, until),
        status: 'open',
        attempts: 0,
        next_at: 0,
      })
    if (fresh.length === 0) return end
    // In one transaction: where the first plan ends, the polls begin, also after a crash.
    await this.#db.transaction(async (transaction) => {
      for (let i = 0; i < fresh.length; i += 500)
        await transaction<WindowRow>('market_windows')
          .insert(fresh.slice(i, i + 500))
          .onConflict([...KEY])
          .ignore()
    })
    return fresh.at(-1)!.t_to
  }

  /** The end of the last window or gap, epoch seconds; null if there is none. */
  async end(): Promise<number | null> {
    return (await this.#rows().orderBy('t_to', 'desc').first('t_to'))?.t_to ?? null
  }

  /** The newest window, or gap, that is due; null if none is. */
  async next(status: 'open' | 'gap'): Promise<PlannedWindow | null> {
    const due = this.#rows().where('status', status).where('next_at', '<=', this.#now())
    return (await due.orderBy('t_from', 'desc').first()) ?? null
  }

  /** Records minutes without agreement, as gaps to be fetched again. */
  async addGaps(holes: readonly { readonly from: number; readonly to: number }[]): Promise<void> {
    await this.#insertGaps(holes, 0)
  }

  /** Marks a window or gap as fetched. Its holes become gaps; one that is a hole as a whole becomes a gap itself. */
  async fetched(
    window: PlannedWindow,
    holes: readonly { readonly from: number; readonly to: number }[],
  ): Promise<void> {
    const isWhole = holes.length === 1 && holes[0]!.from === window.t_from && holes[0]!.to === window.t_to
    const attempts = window.status === 'open' ? 0 : window.attempts + 1
    const delay = RETRIES[attempts]
    if (isWhole && delay !== undefined) {
      await this.#of(window).update({ status: 'gap', attempts, next_at: this.#now() + delay })
      return
    }
    await this.#of(window).update({ status: isWhole ? 'lost' : 'done' })
    if (isWhole || holes.length === 0) return
    await this.#insertGaps(holes, attempts)
  }

  /** Gives a window up, because it lies before every stored bar: the symbol was not listed yet. */
  async giveUp(window: PlannedWindow): Promise<void> {
    await this.#of(window).update({ status: 'lost', attempts: 0 })
  }

  /** Turns windows into gaps that were given up as before the listing, if they come after a window that has bars. */
  async reopen({ t_to, status, attempts }: PlannedWindow): Promise<void> {
    await this.#rows()
      .where({ status: 'lost', attempts: 0 })
      .where('t_from', '>=', t_to)
      .update({ status: 'gap', attempts: status === 'gap' ? attempts : 0, next_at: this.#now() + RETRIES[0]! })
  }

  /**
   * Postpones a window for which venues sent empty pages that are not believed, for longer each time. In the end it is a gap
   * that nobody waits for.
   */
  async postponeEmpty(window: PlannedWindow): Promise<void> {
    const delay = EMPTY_RETRIES[window.attempts]
    await this.#of(window).update(
      delay === undefined
        ? { status: 'gap', attempts: GIVEN_UP_AFTER, next_at: this.#now() + RETRIES[GIVEN_UP_AFTER]! }
        : { attempts: window.attempts + 1, next_at: this.#now() + delay },
    )
  }

  /** Postpones a window or gap that too few venues answered for. */
  async postpone(window: PlannedWindow, seconds: number): Promise<void> {
    await this.#of(window).update({ next_at: this.#now() + seconds })
  }

  /** Counts the windows that were never fetched, and the minutes without a bar. */
  async progress(): Promise<{ readonly windows: number; readonly missing: MissingMinutes }> {
    const without = this.#rows().whereIn('status', ['open', 'gap', 'lost']).groupBy('status')
    const seconds = this.#db.raw('sum(t_to - t_from) as seconds')
    const rows = (await without.select('status', seconds).count('* as n')) as unknown as (StatusCount & {
      readonly seconds: number | string
    })[]
    const minutes = (status: string): number => Number(rows.find((row) => row.status === status)?.seconds ?? 0) / 60
    return {
      windows: countsOf(rows).windows,
      missing: { to_fetch: minutes('open'), undecided: minutes('gap'), given_up: minutes('lost') },
    }
  }

  /** The first minute that somebody still waits for: an open window, or a gap that is not given up. Null if none. */
  async awaited(): Promise<number | null> {
    const first = (name: string, where: string, values: readonly unknown[]) =>
      this.#db.raw(
        `(select t_from from market_windows where series = ? and ${where} order by t_from limit 1) as ${name}`,
        [this.#series.id, ...values],
      )
    const found = (await this.#db('market_series')
      .where({ id: this.#series.id })
      .first(
        first('window', 'status = ?', ['open']),
        first('gap', 'status = ? and attempts < ?', ['gap', GIVEN_UP_AFTER]),
      )) as { window: number | null; gap: number | null } | undefined
    const starts = [found?.window, found?.gap].flatMap((start) => start ?? [])
    return starts.length > 0 ? Math.min(...starts) : null
  }

  async #insertGaps(holes: readonly { readonly from: number; readonly to: number }[], attempts: number): Promise<void> {
    if (holes.length === 0) return
    const delay = RETRIES[attempts]
    const next_at = this.#now() + (delay ?? 0)
    const status = delay === undefined ? ('lost' as const) : ('gap' as const)
    const rows = holes.map(({ from, to }) => ({
      series: this.#series.id,
      t_from: from,
      t_to: to,
      status,
      attempts,
      next_at,
    }))
    await this.#db<WindowRow>('market_windows')
      .insert(rows)
      .onConflict([...KEY])
      .ignore()
  }

  #of({ t_from, t_to }: PlannedWindow) {
    return this.#rows().where({ t_from, t_to })
  }

  #rows() {
    return this.#db<WindowRow>('market_windows').where('series', this.#series.id)
  }
}
