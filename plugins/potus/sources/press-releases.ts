/** Press releases as RSS or Atom: the White House (its WordPress feeds and a scraper's copy) and agencies. */
import { oneLine, toText } from './html-text.ts'
import { FeedError, type Item, type Kind, type Precision, type Source } from './source.ts'
import { feedText, timeOf } from './feed-body.ts'

interface Entry {
  readonly key: string
  readonly title: string
  readonly link: string
  readonly date: string | undefined
  readonly html: string
  readonly labels: readonly string[]
}

/** Items of an agency's feed. Each has the source's kind. */
export async function parsePress(body: Buffer, source: Source): Promise<(Item | null)[]> {
  return (await entriesOf(body)).map((entry) => itemOf(entry, source, source.kind))
}

/** Items of a White House feed. Title, text and address decide the kind; the category is used last. */
export async function parseWhiteHouse(body: Buffer, source: Source): Promise<(Item | null)[]> {
  return (await entriesOf(body)).map((entry) => {
    const item = itemOf(entry, source, source.kind)
    return item && { ...item, kind: whiteHouseKind(item, entry.labels) }
  })
}

/** The entries of a feed. One that the parser leaves out, because it has nothing in it, is here without a key. */
async function entriesOf(body: Buffer): Promise<Entry[]> {
  const text = feedText(body)
  const entries = await parsedEntries(text)
  const listed = text.replaceAll(/<!\[CDATA\[[\s\S]*?\]\]>/g, '').match(/<(?:item|entry)(?=[\s>/])/g)?.length ?? 0
  return [...entries, ...Array.from({ length: Math.max(0, listed - entries.length) }, () => NOTHING)]
}

const NOTHING: Entry = { key: '', title: '', link: '', date: undefined, html: '', labels: [] }

/** The parser is loaded with the first feed, so that no start waits for it. */
async function parsedEntries(text: string): Promise<Entry[]> {
  const { parseFeed } = await import('feedsmith')
  let parsed: ReturnType<typeof parseFeed>
  try {
    parsed = parseFeed(text)
  } catch (error) {
    throw new FeedError('malformed', `The feed cannot be read: ${(error as Error).message}`)
  }
  if (parsed.format === 'rss')
    return (parsed.feed.items ?? []).map((item) => ({
      key: item.guid?.value ?? item.link ?? '',
      title: item.title ?? '',
      link: item.link ?? item.guid?.value ?? '',
      date: textOrNone(item.pubDate ?? item.dc?.dates?.[0]),
      html: item.content?.encoded ?? item.description ?? '',
      labels: (item.categories ?? []).map(({ name }) => name ?? ''),
    }))
  if (parsed.format === 'atom')
    return (parsed.feed.entries ?? []).map((entry) => ({
      key: entry.id ?? '',
      title: textIn(entry.title),
      link: (entry.links?.find(({ rel = 'alternate' }) => rel === 'alternate') ?? entry.links?.[0])?.href ?? '',
      date: textOrNone(entry.published ?? entry.updated),
      html: textIn(entry.content) || textIn(entry.summary),
      labels: [],
    }))
  if (parsed.format === 'rdf')
    return (parsed.feed.items ?? []).map((item) => ({
      key: item.rdf?.about ?? item.link ?? '',
      title: item.title ?? '',
      link: item.link ?? '',
      date: textOrNone(item.dc?.dates?.[0]),
      html: item.content?.encoded ?? item.description ?? '',
      labels: [],
    }))
  throw new FeedError('not_a_feed', `Feeds in the format ${parsed.format} are not supported.`)
}

const textOrNone = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined)

const textIn = (part: unknown): string =>
  textOrNone(part) ?? textOrNone((part as { value?: unknown } | undefined)?.value) ?? ''

/** WordPress adds a line that names the site on which the text first appeared. */
const APPEARED = /\n*The post .{1,400}? appeared first on .{1,80}$/s

/** Null if the entry has no key or no date. */
function itemOf(entry: Entry, source: Source, kind: Kind): Item | null {
  const published = timeOf(entry.date)
  if (entry.key === '' || published === null) return null
  const clock = new Date(published).toISOString().slice(11, 19)
  const precision: Precision = clock === source.dayStamp ? 'day' : 's'
  return {
    key: entry.key,
    kind,
    title: oneLine(entry.title) || null,
    text: toText(entry.html).replace(APPEARED, '').trim(),
    lang: 'en',
    url: entry.link,
    media: [],
    occurredAt: null,
    publishedAt: published,
    precision,
    post: null,
    signedOn: /\/presidential-actions\//.test(entry.link) ? new Date(published).toISOString().slice(0, 10) : null,
    counts: null,
  }
}

/** Phrases that identify the kind of a document. */
const FORMULAS: readonly (readonly [RegExp, Kind])[] = [
  [/\bit is hereby ordered\b|\bhereby order(?:ed)?:/i, 'action.executive_order'],
  [
    /\bdo hereby proclaim\b|\bBY THE PRESIDENT OF THE UNITED STATES OF AMERICA\s+A PROCLAMATION\b/i,
    'action.proclamation',
  ],
  [/^MEMORANDUM FOR\b/m, 'action.memorandum'],
]
const TITLES: readonly (readonly [RegExp, Kind])[] = [
  [/\bsigned into law\b/i, 'bill_signed'],
  [/^(?:nominations?|withdrawals?)\b.*\bsent to the senate\b/i, 'action.nomination'],
  [/^fact sheet\b/i, 'fact_sheet'],
]
const PATHS: readonly (readonly [RegExp, Kind])[] = [
  [/\/fact-sheets?\//, 'fact_sheet'],
  [/\/briefings-statements\//, 'statement'],
  [/\/releases\//, 'release'],
]
const LABELS: readonly (readonly [RegExp, Kind])[] = [
  [/^executive orders?$/i, 'action.executive_order'],
  [/^proclamations?$/i, 'action.proclamation'],
  [/memorand/i, 'action.memorandum'],
  [/^nominations/i, 'action.nomination'],
]

function whiteHouseKind({ title, text, url, kind }: Item, labels: readonly string[]): Kind {
  const first = (rules: readonly (readonly [RegExp, Kind])[], ...words: readonly string[]): Kind | undefined =>
    rules.find(([pattern]) => words.some((word) => pattern.test(word)))?.[1]
  const isAction = /\/presidential-actions\//.test(url)
  return (
    first(TITLES, title ?? '') ??
    (isAction ? (first(FORMULAS, text) ?? first(LABELS, ...labels) ?? 'action.other') : undefined) ??
    first(PATHS, url) ??
    kind
  )
}
