/**
 * Recorded payloads as a timeline of polls. A folder of polls is named after its source, its files after the time they
 * were fetched; other recordings are known by what is in them. Rows without a poll of their own count as seen when they
 * were published. A recording that cannot be read takes nothing along.
 */
import { readdir, readFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { feedText, jsonValue, objectsOf, type JsonRow } from '../sources/feed-body.ts'
import { parseBody } from '../sources/parsers.ts'
import { FeedError, type Item, type Source } from '../sources/source.ts'
import { postItem, archivePost } from '../sources/truth-social.ts'
import { type Answer, createLogReader, unpacked } from './poll-log.ts'

export interface RecordedEntry {
  readonly source: string
  /** As recorded. */
  readonly at: number
  readonly url: string
  /** A body as it was fetched, or a row that was recorded by itself. */
  readonly body: Buffer | null
  readonly item: Item | null
  /** Absent where only the body was recorded: it came with a status of 200. */
  readonly answer?: Answer
}

/** Folders of polls that are not named after their source. */
const FOLDERS: Readonly<Record<string, string>> = { 'whitehouse-briefings-rss': 'wh.briefings' }
const STAMP = /^(\d{4})-?(\d{2})-?(\d{2})T(\d{2})(\d{2})(\d{2})Z_/
const BODY = /\.(?:xml|rss|atom|jsonc?)(?:\.gz)?$/
const ROWS = /\.(?:jsonl|ndjson)(?:\.gz)?$/

/** Reads every recording below a folder, in order of time; files that are none are left alone. */
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
  const at = source ? fetchedAt(source, name, body) : null
  return source && at !== null ? [{ source: source.id, at, url: source.url, body, item: null }] : []
}

/** Null where the file is packed and broken. */
async function bytesOf(path: string): Promise<Buffer | null> {
  const bytes = await readFile(path)
  return path.endsWith('.gz') ? unpacked(bytes) : bytes
}

/**
 * The moment in the name; else the end of the day in it, or when the newest item was out, whichever is later. Null where
 * nothing tells.
 */
function fetchedAt(source: Source, name: string, body: Buffer): number | null {
  const [, year, month, day, hour, minute, second] = name.match(STAMP) ?? []
  if (second !== undefined) return Date.parse(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`)
  const date = name.match(/(\d{4}-\d{2}-\d{2})(?=\.[a-z.]+$)/)?.[1]
  const end = date === undefined ? NaN : Date.parse(`${date}T23:59:00Z`)
  const newest = newestIn(source, body)
  const known = [end, newest].filter((time) => Number.isFinite(time))
  return known.length === 0 ? null : Math.max(...known)
}

/** A minute after the newest item; not a number where the body is broken. */
function newestIn(source: Source, body: Buffer): number {
  try {
    const { items } = parseBody(source, body, Infinity)
    return Math.max(...items.map(({ publishedAt }) => publishedAt)) + 60_000
  } catch (error) {
    if (error instanceof FeedError) return NaN
    throw error
  }
}

/** Polls of a log, and posts recorded by themselves; rows that do not say what they are and when are left alone. */
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

/** A row of an archive, or one that a mirror was recorded by. */
function itemOf(row: JsonRow): Item | null {
  if (typeof row['id'] === 'string') return archivePost(row)
  const word = (name: string): string => (typeof row[name] === 'string' ? row[name] : '')
  const [key, html, date, url] = [word('post_id'), word('text'), word('timestamp_utc'), word('url')]
  return postItem({ id: null, key, html, date, precise: false, url, media: [], counts: null })
}

/* --- Which source a recorded body is of: known by what is inside, whatever the file is called. --- */

/** Posts of this platform, however a mirror's address is written. */
const MIRRORED = /<truth:originalId>|https?:\/\/(?:www\.)?trumpstruth\.org\//
const POST_ID = /^\d{15,20}$/

/** Id of the source of a whole body, null where it is of none. */
export function recogniseBody(body: Buffer, sources: ReadonlyMap<string, Source>): string | null {
  try {
    return ofFeed(feedText(body), sources)
  } catch {
    // No feed; it may be JSON.
  }
  try {
    return ofJson(jsonValue(body))
  } catch {
    return null
  }
}

/** Id of the source of one recorded row. */
export function recogniseRow(row: JsonRow): string | null {
  if (typeof row['id'] === 'string' && POST_ID.test(row['id']) && 'created_at' in row) return 'truth.archive'
  return 'post_id' in row && 'timestamp_utc' in row ? 'truth.mirror' : null
}

/** The feed whose address its head repeats, the longest one; else the first of a host that it names. */
function ofFeed(text: string, sources: ReadonlyMap<string, Source>): string | null {
  if (MIRRORED.test(text)) return 'truth.mirror'
  const head = text.split(/<(?:item|entry)\b/, 1)[0] as string
  const feeds = [...sources.values()].filter(({ format }) => format === 'rss')
  const page = ({ url }: Source): string => url.replace(/^https?:\/\//, '').replace(/(?:feed\/)?(?:\?.*)?$/, '')
  const named = feeds.filter((source) => head.includes(`//${page(source)}`))
  const [longest] = named.toSorted((a, b) => page(b).length - page(a).length)
  const ofHost = (part: string): Source | undefined => feeds.find(({ url }) => part.includes(`//${new URL(url).host}/`))
  return (longest ?? ofHost(head) ?? ofHost(text))?.id ?? null
}

function ofJson(value: unknown): string | null {
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
