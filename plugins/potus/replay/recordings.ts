/**
 * Reads recorded payloads as a timeline of polls. A folder of polls is named after its source and its files after the time
 * of the request; other recordings are recognised by their content. Rows that were recorded one by one count as seen when
 * they were published. A file that cannot be read is skipped.
 */
import { readdir, readFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { feedText, jsonValue, objectsOf, type JsonRow } from '../sources/feed-body.ts'
import { parseBody } from '../sources/parsers.ts'
import { FeedError, type Item, type Source } from '../sources/source.ts'
import { postItem, archivePost } from '../sources/truth-social.ts'
import { type Answer, createLogReader, gunzipOrNull } from './poll-log.ts'

export interface RecordedEntry {
  readonly source: string
  /** Time of the request as recorded. */
  readonly at: number
  readonly url: string
  /** The body as it was fetched; null for a row that was recorded by itself. */
  readonly body: Buffer | null
  readonly item: Item | null
  /** Missing if only the body was recorded, which then had a status of 200. */
  readonly answer?: Answer
}

/** Sources of folders that are not named after them. */
const FOLDERS: Readonly<Record<string, string>> = { 'whitehouse-briefings-rss': 'wh.briefings' }
const STAMP = /^(\d{4})-?(\d{2})-?(\d{2})T(\d{2})(\d{2})(\d{2})Z_/
const BODY = /\.(?:xml|rss|atom|jsonc?)(?:\.gz)?$/
const ROWS = /\.(?:jsonl|ndjson)(?:\.gz)?$/

/** Reads every recording below a folder, in order of time. Other files are ignored. */
export async function readRecordings(folder: string, sources: ReadonlyMap<string, Source>): Promise<RecordedEntry[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  const paths = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name))
  const recorded: RecordedEntry[] = []
  for (const path of paths.sort()) recorded.push(...(await readOne(path, sources)))
  return recorded.sort((a, b) => a.at - b.at)
}

async function readOne(path: string, sources: ReadonlyMap<string, Source>): Promise<RecordedEntry[]> {
  const name = basename(path)
  const parent = basename(dirname(path))
  const polled = STAMP.test(name) ? sources.get(FOLDERS[parent] ?? parent) : undefined
  const isRows = !polled && ROWS.test(name)
  if (!polled && !isRows && !BODY.test(name)) return []
  const body = await bytesOf(path)
  if (body === null) return []
  if (isRows) return rowsOf(body, sources)
  const source = polled ?? sources.get(recogniseBody(body, sources) ?? '')
  const at = source ? await fetchedAt(source, name, body) : null
  return source && at !== null ? [{ source: source.id, at, url: source.url, body, item: null }] : []
}

/** Null if the file is damaged gzip. */
async function bytesOf(path: string): Promise<Buffer | null> {
  const bytes = await readFile(path)
  return path.endsWith('.gz') ? gunzipOrNull(bytes) : bytes
}

/**
 * The time in the file name. Without one the end of the day in the name or the time of the newest item, whichever is
 * later. Null if there is neither.
 */
async function fetchedAt(source: Source, name: string, body: Buffer): Promise<number | null> {
  const [, year, month, day, hour, minute, second] = name.match(STAMP) ?? []
  if (second !== undefined) return Date.parse(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`)
  const date = name.match(/(\d{4}-\d{2}-\d{2})(?=\.[a-z.]+$)/)?.[1]
  const end = date === undefined ? NaN : Date.parse(`${date}T23:59:00Z`)
  const newest = await newestIn(source, body)
  const known = [end, newest].filter((time) => Number.isFinite(time))
  return known.length === 0 ? null : Math.max(...known)
}

/** One minute after the newest item; NaN if the body cannot be parsed. */
async function newestIn(source: Source, body: Buffer): Promise<number> {
  try {
    const { items } = await parseBody(source, body, Infinity)
    return Math.max(...items.map(({ publishedAt }) => publishedAt)) + 60_000
  } catch (error) {
    if (error instanceof FeedError) return NaN
    throw error
  }
}

/** Polls of a log, and posts that were recorded one by one. Rows of unknown form and rows without a time are skipped. */
function rowsOf(bytes: Buffer, sources: ReadonlyMap<string, Source>): RecordedEntry[] {
  const logged = createLogReader()
  return bytes
    .toString('utf8')
    .split('\n')
    .flatMap((line): RecordedEntry[] => {
      const row = rowIn(line)
      const poll = row && logged(row)
      if (poll) return sources.has(poll.source) ? [{ ...poll, item: null }] : []
      const source = sources.get((row && recogniseRow(row)) ?? '')
      const item = row && source ? itemOf(row) : null
      return source && item ? [{ source: source.id, at: item.publishedAt, url: source.url, body: null, item }] : []
    })
}

function rowIn(line: string): JsonRow | null {
  try {
    return objectsOf([JSON.parse(line)])[0] ?? null
  } catch {
    return null
  }
}

/** A post from a row of the archive or of the mirror. */
function itemOf(row: JsonRow): Item | null {
  if (typeof row['id'] === 'string') return archivePost(row)
  const stringOf = (name: string): string => (typeof row[name] === 'string' ? row[name] : '')
  const [key, html, date, url] = [stringOf('post_id'), stringOf('text'), stringOf('timestamp_utc'), stringOf('url')]
  return postItem({ id: null, key, html, date, precise: false, url, media: [], counts: null })
}

/** Text that only the mirror's feed contains. */
const MIRRORED = /<truth:originalId>|https?:\/\/(?:www\.)?trumpstruth\.org\//
const POST_ID = /^\d{15,20}$/

/** Recognises the source of a body by its content. Returns its id, or null. */
function recogniseBody(body: Buffer, sources: ReadonlyMap<string, Source>): string | null {
  try {
    return sourceOfFeed(feedText(body), sources)
  } catch {
    // Not an XML feed; it may be JSON.
  }
  try {
    return sourceOfJson(jsonValue(body))
  } catch {
    return null
  }
}

/** Recognises the source of one recorded row. Returns its id, or null. */
function recogniseRow(row: JsonRow): string | null {
  if (typeof row['id'] === 'string' && POST_ID.test(row['id']) && 'created_at' in row) return 'truth.archive'
  return 'post_id' in row && 'timestamp_utc' in row ? 'truth.mirror' : null
}

/** The source with the longest address that the head of the feed repeats; otherwise the first whose host it names. */
function sourceOfFeed(text: string, sources: ReadonlyMap<string, Source>): string | null {
  if (MIRRORED.test(text)) return 'truth.mirror'
  const head = text.split(/<(?:item|entry)\b/, 1)[0] as string
  const feeds = [...sources.values()].filter(({ format }) => format === 'rss')
  const page = ({ url }: Source): string => url.replace(/^https?:\/\//, '').replace(/(?:feed\/)?(?:\?.*)?$/, '')
  const named = feeds.filter((source) => head.includes(`//${page(source)}`))
  const [longest] = named.toSorted((a, b) => page(b).length - page(a).length)
  const ofHost = (part: string): Source | undefined => feeds.find(({ url }) => part.includes(`//${new URL(url).host}/`))
  return (longest ?? ofHost(head) ?? ofHost(text))?.id ?? null
}

function sourceOfJson(value: unknown): string | null {
  const rows = Array.isArray(value) ? value : listIn(value)
  const [first] = objectsOf(rows)
  if (!first) return null
  if ('document_number' in first) return 'filed_at' in first ? 'fr.pi' : 'fr.docs'
  return recogniseRow(first)
}

function listIn(value: unknown): readonly unknown[] {
  const [{ results, orders } = {} as JsonRow] = objectsOf([value])
  return [results, orders].find((list) => Array.isArray(list)) ?? []
}
