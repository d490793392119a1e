/** Reads a source from its first page to its last, and removes what it no longer lists. */
import type { PluginContext } from 'tollgate/plugin'
import { setTimeout as pause } from 'node:timers/promises'
import { readBoundedText } from '../lib/feeds/requests.ts'
import { SourceError, type Page } from './listing.ts'
import type { SourceSettings } from './directory-settings.ts'
import { readBazaar } from './sources/bazaar.ts'
import { agentsOf } from './sources/erc8004.ts'
import { readRegistry } from './sources/mcp-registry.ts'
import type { DirectoryStore } from './directory-store.ts'
import type { Visitor } from './visits.ts'

const PAGE_ROWS = 100
const MOST_PAGES = 2000
const MOST_BYTES = 8 * 1024 * 1024
/** A listing may end before the number of rows that it states, which changes while it is read, but not before this share. */
const LEAST_SHARE = 0.9
/** With more malformed rows than this, a listing does not say which services it no longer has. */
const MOST_MALFORMED = 0.1

export interface Sweep {
  readonly source: SourceSettings
  readonly rank: number
  readonly pauseMs: number
  readonly signal: AbortSignal
  readonly now: () => number
  /** Visits untrusted files that a source links to. */
  readonly visit: Visitor
}

/**
 * Sweeps a listing. Each page is stored as it arrives. Only a sweep that reaches the end, and can read nine tenths of the rows,
 * removes what it did not find.
 * Throws SourceError, also for a source with more than 2,000 pages, and for one that ends long before the number of rows that
 * it states.
 */
export async function sweep(
  store: DirectoryStore,
  get: PluginContext['fetch'],
  { source, rank, pauseMs, signal, now, visit }: Sweep,
): Promise<{ rows: number; dropped: Record<string, number> }> {
  const number = now()
  const dropped: Record<string, number> = {}
  let rows = 0
  const { registry, network, url: rpcUrl } = source
  const pages =
    registry && network && rpcUrl
      ? agentsOf({ rpcUrl, registry, network }, get, visit, signal)
      : pagesOf(source, get, pauseMs, signal, now)
  for await (const page of pages) {
    rows += page.rows
    for (const [reason, count] of Object.entries(page.dropped)) dropped[reason] = (dropped[reason] ?? 0) + count
    const at = now()
    await store.savePage({ source: source.id, rank, listings: page.listings, sweep: number, at, visitAt: at })
    await store.addOrigins(originsOf(page), at)
  }
  if ((dropped['malformed'] ?? 0) <= MOST_MALFORMED * rows) await store.conclude(source.id, number, now())
  return { rows, dropped }
}

/** The origins of the services of a page. */
function originsOf({ listings }: Page): string[] {
  return listings.flatMap(({ url }) => (url === null ? [] : [new URL(url).origin]))
}

async function* pagesOf(
  { kind, url = '' }: SourceSettings,
  get: PluginContext['fetch'],
  pauseMs: number,
  signal: AbortSignal,
  now: () => number,
): AsyncGenerator<Page> {
  let offset = 0
  let cursor: string | null = null
  let before = ''
  for (let n = 0; n < MOST_PAGES; n += 1) {
    if (n > 0) await pause(pauseMs, undefined, { signal })
    const address = new URL(url)
    address.searchParams.set('limit', String(PAGE_ROWS))
    if (kind === 'bazaar') address.searchParams.set('offset', String(offset))
    else if (cursor !== null) address.searchParams.set('cursor', cursor)
    const { payload, text } = await fetchJson(address, get, signal)
    // A source that ignores `offset` returns its first page forever.
    const isRepeated = text === before
    before = text
    if (kind === 'bazaar') {
      const page = readBazaar(payload, now())
      if (page === null) throw new SourceError('the answer is not a listing')
      if ((isRepeated || page.rows === 0) && page.total !== null && offset < LEAST_SHARE * page.total)
        throw new SourceError(
          `the source ${isRepeated ? 'repeats a page' : 'sent an empty page'} after ${offset} of ${page.total} rows`,
        )
      if (isRepeated) return
      yield page
      offset += page.rows
      if (page.rows === 0 || (page.total !== null ? offset >= page.total : page.rows < PAGE_ROWS)) return
    } else {
      if (isRepeated) return
      const page = readRegistry(payload, now())
      if (page === null) throw new SourceError('the answer is not a page of the registry')
      yield page
      if (page.nextCursor === null || page.nextCursor === cursor) return
      cursor = page.nextCursor
    }
  }
  throw new SourceError(`more than ${MOST_PAGES} pages`)
}

async function fetchJson(
  address: URL,
  get: PluginContext['fetch'],
  signal: AbortSignal,
): Promise<{ payload: unknown; text: string }> {
  try {
    const response = await get(address, { signal, redirect: 'manual', headers: { accept: 'application/json' } })
    if (!response.ok) {
      await response.body?.cancel()
      throw new SourceError(`the source answered ${response.status}`)
    }
    const text = await readBoundedText(response, MOST_BYTES)
    if (text === null) throw new SourceError(`a page above ${MOST_BYTES} bytes`)
    return { text, payload: JSON.parse(text) as unknown }
  } catch (error) {
    if (error instanceof SourceError || signal.aborted) throw error
    const reason = error instanceof SyntaxError ? 'the answer is not JSON' : 'the source did not answer'
    throw new SourceError(reason, { cause: error })
  }
}
