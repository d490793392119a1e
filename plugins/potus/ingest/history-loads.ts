/**
 * Fetches the older items of sources, once and page by page. A page is stored together with the position after it, so a
 * load that is interrupted goes on with the next page: no item is missing and none is stored twice.
 */
import { createHash } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Database, Job, Logger } from 'tollgate/plugin'
import { parseBody } from '../sources/parsers.ts'
import { FeedError, type History, type Item, type Source } from '../sources/source.ts'
import { earlier, type HistoryRow, newHistory, readHistory, writeHistory } from '../store/histories.ts'
import type { Writer } from './event-writer.ts'
import type { Fetched, Fetcher } from './fetch.ts'
import type { HostPace } from './pace-per-host.ts'
import { pauseAfterFailure } from './polling.ts'

export interface HistoryParts {
  readonly db: Database
  readonly writer: Pick<Writer, 'add'>
  readonly fetcher: Fetcher
  readonly pace: HostPace
  readonly sources: readonly Source[]
  readonly log: Logger
  readonly now: () => number
}

/** How often a load that has failed, or was not begun, looks whether it can go on. */
const EVERY_SECONDS = 30
const NO_VALIDATORS = { etag: null, lastModified: null }

/** One job for each enabled source with older items. Once everything is loaded, a job does nothing. */
export function historyJobs(parts: HistoryParts): Job[] {
  return parts.sources
    .filter(({ enabled, history }) => enabled && history !== null)
    .map((source) => {
      const load = new HistoryLoad(parts, source, walkerOf(source.history as History))
      return { name: `history ${source.id}`, everySeconds: EVERY_SECONDS, run: ({ signal }) => load.run(signal) }
    })
}

/** What a page of a source's past says about where to go on. */
interface Step<Position> {
  /** Null at the end. */
  readonly next: Position | null
  /** The part that is done then, if it can be known. */
  readonly share: number | null
}

interface Page {
  readonly items: readonly Item[]
  /** Entries of the page, those that were skipped included. */
  readonly entries: number
  /** True if the source answered that there is no such page. */
  readonly isAbsent: boolean
}

/** Knows the addresses of a source's older items. */
interface Walk<Position> {
  first(now: number): Position
  address(source: Source, position: Position): string
  /** Returns true if the source may answer that there is no such page. */
  mayBeAbsent(position: Position): boolean
  after(position: Position, page: Page, now: number): Step<Position>
}

/** The same with positions as the JSON that is stored. */
interface Walker extends Walk<string> {
  /** Returns true for the items of the page before: a cache may ignore the number of the page, and the walk would never end. */
  repeats(position: string, page: Page): boolean
}

function walkerOf(history: History): Walker {
  return history.by === 'pages' ? inJson(pagesOf()) : inJson(daysOf(history))
}

function inJson<Position>(walk: Walk<Position>): Walker {
  const read = (position: string) => JSON.parse(position) as Position & { readonly last?: string | null }
  return {
    first: (now) => JSON.stringify(walk.first(now)),
    address: (source, position) => walk.address(source, read(position)),
    mayBeAbsent: (position) => walk.mayBeAbsent(read(position)),
    repeats: (position, page) => page.items.length > 0 && read(position).last === hashOfKeys(page),
    after(position, page, now) {
      const { next, share } = walk.after(read(position), page, now)
      return { next: next === null ? null : JSON.stringify({ ...next, last: hashOfKeys(page) }), share }
    },
  }
}

/** Identifies the items of a page; null if it has none. */
function hashOfKeys({ items }: Page): string | null {
  const keys = items.map(({ key }) => key).join('\0')
  return items.length === 0 ? null : createHash('sha256').update(keys).digest('base64url')
}

interface PageNumber {
  readonly page: number
  /** 1 or 2. The second time finds what has moved to another page while the first was under way. */
  readonly pass: number
  /** How often in a row this page was absent. */
  readonly absent: number
}

/** A page must be absent so often to be the end: a server that is being mended may answer 404, too. */
const ENDS = 2
const PASSES = 2

/** A WordPress feed: `paged=1` has the newest items, and the page after the last one answers 404. */
function pagesOf(): Walk<PageNumber> {
  return {
    first: () => ({ page: 1, pass: 1, absent: 0 }),
    address: ({ url }, { page }) => withQuery(url, { paged: String(page) }),
    mayBeAbsent: ({ page }) => page > 1,
    after({ page, pass, absent }, { entries, isAbsent }) {
      if (!isAbsent && entries > 0) return { next: { page: page + 1, pass, absent: 0 }, share: null }
      if (absent + 1 < ENDS) return { next: { page, pass, absent: absent + 1 }, share: null }
      return pass < PASSES ? { next: { page: 1, pass: pass + 1, absent: 0 }, share: null } : { next: null, share: 1 }
    },
  }
}

interface DayRange {
  /** First and last day, as in "2026-05-01". */
  readonly from: string
  readonly to: string
  readonly page: number
}

const DAY_MS = 86_400_000
const dayOf = (time: number): string => new Date(time).toISOString().slice(0, 10)

/** A search of the Federal Register by date of publication: the newest days first, with pages within the days. */
function daysOf({ from: earliest, days, perPage }: Extract<History, { by: 'days' }>): Walk<DayRange> {
  const rangeUntil = (last: number): DayRange => {
    const first = dayOf(last - (days - 1) * DAY_MS)
    return { from: first < earliest ? earliest : first, to: dayOf(last), page: 1 }
  }
  return {
    first: (now) => rangeUntil(now),
    address: ({ url }, { from, to, page }) =>
      withQuery(url, {
        'conditions[publication_date][gte]': from,
        'conditions[publication_date][lte]': to,
        order: 'oldest',
        per_page: String(perPage),
        page: String(page),
      }),
    mayBeAbsent: () => false,
    after({ from, to, page }, { entries }, now) {
      if (entries >= perPage) return { next: { from, to, page: page + 1 }, share: null }
      if (from <= earliest) return { next: null, share: 1 }
      const whole = Math.max(DAY_MS, now - Date.parse(earliest))
      return { next: rangeUntil(Date.parse(from) - DAY_MS), share: Math.min(1, (now - Date.parse(from)) / whole) }
    },
  }
}

function withQuery(address: string, query: Readonly<Record<string, string>>): string {
  const url = new URL(address)
  for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value)
  return url.href
}

class HistoryLoad {
  readonly #parts: HistoryParts
  readonly #source: Source
  readonly #walker: Walker
  #failures = 0
  #notBefore = 0

  constructor(parts: HistoryParts, source: Source, walker: Walker) {
    this.#parts = parts
    this.#source = source
    this.#walker = walker
  }

  /** Loads page after page until the end, a failure, or the signal. */
  async run(signal: AbortSignal): Promise<void> {
    const { db, now, log } = this.#parts
    if (now() < this.#notBefore) return
    let row = (await readHistory(db, this.#source.id)) ?? newHistory(this.#source.id, this.#walker.first(now()), now())
    while (row.state === 'loading' && !signal.aborted) {
      const next = await this.#page(row, signal)
      if (next === null) return
      row = next
      if (row.state === 'done') log.info({ source: row.source, fresh: row.fresh }, 'loaded the older items of a source')
      else await sleep((this.#source.history as History).pauseSeconds * 1000, undefined, { signal }).catch(() => {})
    }
  }

  /** Loads one page, and returns the row after it; null after a failure. */
  async #page(row: HistoryRow, signal: AbortSignal): Promise<HistoryRow | null> {
    const { pace, fetcher, now } = this.#parts
    const source = { ...this.#source, url: this.#walker.address(this.#source, row.position) }
    const fetched = await pace.run(source.url, signal, () => fetcher.fetch(source, NO_VALIDATORS, now(), signal))
    const at = now()
    const page = await pageOf(source, fetched, at, this.#walker.mayBeAbsent(row.position))
    if (typeof page === 'string') return this.#fail(row, page, fetched, at)
    if (this.#walker.repeats(row.position, page))
      return this.#fail(row, 'The page repeats the one before it.', fetched, at)
    const { next, share } = this.#walker.after(row.position, page, at)
    const oldest = page.items.length === 0 ? null : Math.min(...page.items.map(({ publishedAt }) => publishedAt))
    const after: HistoryRow = {
      ...row,
      state: next === null ? 'done' : 'loading',
      position: next ?? row.position,
      pages: row.pages + 1,
      items: row.items + page.items.length,
      oldest: earlier(row.oldest, oldest),
      share: share ?? row.share,
      updated_at: at,
      finished_at: next === null ? at : null,
      detail: null,
    }
    const stored = await this.#store(source, fetched, page.items, at, after)
    this.#failures = 0
    // A page that is absent is asked for again in the next run, not at once.
    return page.isAbsent && next !== null ? null : stored
  }

  async #store(
    source: Source,
    fetched: Fetched,
    items: readonly Item[],
    at: number,
    after: HistoryRow,
  ): Promise<HistoryRow> {
    const { db, writer } = this.#parts
    let saved = after
    const save = async (tx: Database): Promise<void> => {
      const row = (await tx('potus_events')
        .where({ source: source.id, ingest: 'backfill' })
        .count('* as n')
        .first()) as { n: number }
      saved = { ...after, fresh: row.n }
      await writeHistory(tx, saved)
    }
    if (items.length === 0) await db.transaction(save)
    else
      await writer.add({ ...fetched, source, at }, items, {
        timing: { now: at, ingest: 'backfill', isPast: true },
        inTransaction: save,
      })
    return saved
  }

  async #fail(row: HistoryRow, detail: string, { headers }: Fetched, at: number): Promise<null> {
    const { db, log } = this.#parts
    this.#failures += 1
    this.#notBefore = at + pauseAfterFailure({ pollSeconds: EVERY_SECONDS }, this.#failures, headers, at)
    log.warn({ source: row.source, failures: this.#failures, detail }, 'older items of a source could not be read')
    await writeHistory(db, { ...row, updated_at: at, detail })
    return null
  }
}

/** What a page holds, or why it cannot be read. */
async function pageOf(
  source: Source,
  { status, body, failure }: Fetched,
  at: number,
  mayBeAbsent: boolean,
): Promise<Page | string> {
  if (mayBeAbsent && (status === 404 || status === 410)) return { items: [], entries: 0, isAbsent: true }
  if (body === null) return failure ?? `The source answered ${status}.`
  try {
    const { items, leftOut } = await parseBody({ ...source, minItems: 0 }, body, at)
    return { items, entries: items.length + leftOut, isAbsent: mayBeAbsent && items.length + leftOut === 0 }
  } catch (error) {
    if (error instanceof FeedError) return `${error.reason}: ${error.message}`
    throw error
  }
}
