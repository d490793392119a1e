/**
 * Recorded payloads as a timeline of polls. A folder of polls is named after its source, its files after the time they
 * were fetched; other recordings are known by their names. Rows without a poll of their own count as seen when they
 * were published.
 */
import { readdir, readFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import type { Item } from '../item.ts'
import { jsonValue } from '../sources/body.ts'
import { parse } from '../sources/parse.ts'
import type { Source } from '../sources/source.ts'
import { postOf, postRow } from '../sources/truth.ts'

export interface Recorded {
  readonly source: string
  /** As recorded. */
  readonly at: number
  readonly url: string
  /** A body as it was fetched, or a row that was recorded by itself. */
  readonly body: Buffer | null
  readonly item: Item | null
}

/** Folders of polls that are not named after their source. */
const FOLDERS: Readonly<Record<string, string>> = { 'whitehouse-briefings-rss': 'wh.briefings' }
/** Single bodies; the date in the name is the day they were fetched. */
const BODIES: readonly (readonly [RegExp, string])[] = [
  [/^news_feed_/, 'wh.news'],
  [/^trumpstruth_rss_/, 'truth.mirror'],
  [/^truth_archive_/, 'truth.archive'],
  [/^(?:documents_executive_orders|executive_orders)_/, 'fr.docs'],
  [/^public_inspection_current_/, 'fr.pi'],
]
const ROWS: readonly (readonly [RegExp, string])[] = [
  [/^posts_.*\.jsonl$/, 'truth.archive'],
  [/^trumpstruth_.*\.jsonl$/, 'truth.mirror'],
]
const STAMP = /^(\d{4})-?(\d{2})-?(\d{2})T(\d{2})(\d{2})(\d{2})Z_/

/** Reads every recording below a folder, in order of time; files that are none are left alone. */
export async function readRecordings(folder: string, sources: ReadonlyMap<string, Source>): Promise<Recorded[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  const paths = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name))
  const recorded: Recorded[] = []
  for (const path of paths.sort()) recorded.push(...(await readOne(path, sources)))
  return recorded.sort((a, b) => a.at - b.at)
}

async function readOne(path: string, sources: ReadonlyMap<string, Source>): Promise<Recorded[]> {
  const name = basename(path)
  const parent = basename(dirname(path))
  const polled = sources.get(FOLDERS[parent] ?? parent)
  const stamp = name.match(STAMP)
  if (polled && stamp) {
    const [, year, month, day, hour, minute, second] = stamp
    const at = Date.parse(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`)
    return [{ source: polled.id, at, url: polled.url, body: await bytesOf(path), item: null }]
  }
  const rows = ROWS.find(([pattern]) => pattern.test(name))
  if (rows) return rowsOf(await bytesOf(path), sources.get(rows[1]) as Source)
  const body = BODIES.find(([pattern]) => pattern.test(name))
  if (!body) return []
  const source = sources.get(body[1]) as Source
  const bytes = await bytesOf(path)
  return [{ source: source.id, at: fetchedAt(source, name, bytes), url: source.url, body: bytes, item: null }]
}

async function bytesOf(path: string): Promise<Buffer> {
  const bytes = await readFile(path)
  return path.endsWith('.gz') ? gunzipSync(bytes) : bytes
}

/** The end of the day in the name, or when the newest item was out, whichever is later. */
function fetchedAt(source: Source, name: string, body: Buffer): number {
  const day = name.match(/(\d{4}-\d{2}-\d{2})(?=\.[a-z]+$)/)?.[1]
  const items = parse(source, body, Infinity)
  const newest = Math.max(...items.map(({ publishedAt }) => publishedAt)) + 60_000
  return day === undefined ? newest : Math.max(newest, Date.parse(`${day}T23:59:00Z`))
}

function rowsOf(bytes: Buffer, source: Source): Recorded[] {
  const lines = bytes.toString('utf8').split('\n').filter(Boolean)
  return lines.map((line) => {
    const item = itemOf(jsonValue(Buffer.from(line)) as Readonly<Record<string, unknown>>)
    return { source: source.id, at: item.publishedAt, url: source.url, body: null, item }
  })
}

/** A row of an archive, or one that a mirror was recorded by. */
function itemOf(row: Readonly<Record<string, unknown>>): Item {
  if (typeof row['id'] === 'string') return postRow(row)
  const word = (name: string): string => (typeof row[name] === 'string' ? row[name] : '')
  const [key, html, date, url] = [word('post_id'), word('text'), word('timestamp_utc'), word('url')]
  return postOf({ id: null, key, html, date, precise: false, url, media: [], counts: null })
}
