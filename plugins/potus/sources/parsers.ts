/** The parser of each source, and the checks that every body must pass. To add a format, add its parser to PARSERS. */
import { FeedError, type Item, type Source } from './source.ts'
import { parseCalendar, parseFedCalendar } from './calendars.ts'
import { parsePress, parseWhiteHouse } from './press-releases.ts'
import { parseDocuments, parseInspection } from './federal-register.ts'
import { archivePost, parseMirror, parsePosts } from './truth-social.ts'
import type { JsonRow } from './feed-body.ts'

/** Returns the items of a body; null for an entry without a key or a date. */
type Parser = (body: Buffer, source: Source) => (Item | null)[] | Promise<(Item | null)[]>

const PARSERS: Readonly<Record<string, Parser>> = {
  'wh-rss@1': parseWhiteHouse,
  'press-rss@1': parsePress,
  'truth-rss@1': parseMirror,
  'truth-json@1': parsePosts,
  'fr-pi@1': parseInspection,
  'fr-docs@1': parseDocuments,
  'calendar-json@1': parseCalendar,
  'fed-calendar@1': parseFedCalendar,
}

/** The parsers of sources whose lists are read row by row. */
const ROW_PARSERS: Readonly<Record<string, (row: JsonRow) => Item | null>> = { 'truth-json@1': archivePost }

/** A date further in the future than this is an error of the source. */
const AHEAD_MS = 5 * 60_000

/**
 * Parses one row of a list that was fetched at `at`; null if it has no date. Throws FeedError for a row without a usable id,
 * or with a date more than five minutes ahead.
 */
export function parseRow(source: Source, row: JsonRow, at: number): Item | null {
  const parser = ROW_PARSERS[source.parser]
  if (!parser) throw new RangeError(`there is no parser of rows for ${source.parser}`)
  const item = parser(row)
  if (item) requirePast(item, at)
  return item
}

/** Throws FeedError for an item dated more than five minutes ahead. */
function requirePast({ key, publishedAt }: Item, at: number): void {
  if (publishedAt <= at + AHEAD_MS) return
  throw new FeedError('future_date', `${key} is dated ${new Date(publishedAt).toISOString()}, in the future.`)
}

export interface ParsedBody {
  /** Oldest first, each key once. */
  readonly items: readonly Item[]
  /** Number of entries that were skipped because they have no key or no date. */
  readonly leftOut: number
}

/**
 * Parses a body that was fetched at `at`. Of two items with the same key the first one counts. Throws FeedError if the body
 * is not the feed, has too few items or no usable ones, or has an item dated more than five minutes ahead.
 */
export async function parseBody(source: Source, body: Buffer, at: number): Promise<ParsedBody> {
  const parser = PARSERS[source.parser]
  if (!parser) throw new RangeError(`there is no parser ${source.parser}`)
  const entries = await parser(body, source)
  const items = entries.filter((item) => item !== null)
  const leftOut = entries.length - items.length
  if (items.length === 0 && leftOut > 0)
    throw new FeedError('bad_date', `None of the ${leftOut} entries has both a key and a date.`)
  if (items.length < source.minItems)
    throw new FeedError(
      'too_few_items',
      `The feed has ${items.length} items; at least ${source.minItems} are expected.`,
    )
  const isPlan = source.kind === 'schedule.item'
  for (const item of items) if (item.precision !== 'day' && !isPlan) requirePast(item, at)
  const byKey = new Map<string, Item>()
  for (const item of items) if (!byKey.has(item.key)) byKey.set(item.key, item)
  const sorted = [...byKey.values()].sort((a, b) => a.publishedAt - b.publishedAt || (a.key < b.key ? -1 : 1))
  return { items: sorted, leftOut }
}
