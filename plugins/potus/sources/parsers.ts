/** Which parser reads which source, and what every feed must keep beyond its form. */
import { FeedError, type Item, type Source } from './source.ts'
import { parseCalendar, parseFedCalendar } from './calendars.ts'
import { parsePress, parseWhiteHouse } from './press-releases.ts'
import { parseDocuments, parseInspection } from './federal-register.ts'
import { parseMirror, parsePosts } from './truth-social.ts'

/** Null stands for an entry without a key or a date. */
type Parser = (body: Buffer, source: Source) => (Item | null)[]

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

/** A date further ahead than this is a mistake of the source. */
const AHEAD_MS = 5 * 60_000

export interface ParsedBody {
  /** Oldest first, each key once. */
  readonly items: readonly Item[]
  /** Entries that cannot be placed: they have no key or no date. */
  readonly leftOut: number
}

/**
 * The items of a body fetched at `at`; of two with one key the first in the feed counts. Throws FeedError where the body
 * is not the feed, holds too few items or none that can be placed, or one dated more than five minutes ahead.
 */
export function parseBody(source: Source, body: Buffer, at: number): ParsedBody {
  const parser = PARSERS[source.parser]
  if (!parser) throw new RangeError(`no parser ${source.parser}`)
  const entries = parser(body, source)
  const items = entries.filter((item) => item !== null)
  const leftOut = entries.length - items.length
  if (items.length === 0 && leftOut > 0)
    throw new FeedError('bad_date', `None of the ${leftOut} entries has both a key and a date.`)
  if (items.length < source.minItems)
    throw new FeedError('too_few_items', `The feed has ${items.length} items; at least ${source.minItems} are usual.`)
  const isPlan = source.kind === 'schedule.item'
  const ahead = items.find((item) => item.precision !== 'day' && !isPlan && item.publishedAt > at + AHEAD_MS)
  if (ahead)
    throw new FeedError(
      'future_date',
      `${ahead.key} is dated ${new Date(ahead.publishedAt).toISOString()}, ahead of us.`,
    )
  const byKey = new Map<string, Item>()
  for (const item of items) if (!byKey.has(item.key)) byKey.set(item.key, item)
  const sorted = [...byKey.values()].sort((a, b) => a.publishedAt - b.publishedAt || (a.key < b.key ? -1 : 1))
  return { items: sorted, leftOut }
}
