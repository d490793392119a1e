/**
 * Recorded payloads as a timeline of polls. A folder of polls is named after its source, its files after the time they
 * were fetched; other recordings are known by what is in them. Rows without a poll of their own count as seen when they
 * were published. A recording that cannot be read takes nothing along.
 */
import { readdir, readFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { FeedError, type Item } from '../item.ts'
import { objectsOf, type Row } from '../sources/body.ts'
import { parse } from '../sources/parse.ts'
import type { Source } from '../sources/source.ts'
import { postOf, postRow } from '../sources/truth.ts'
import { type Answer, createLogReader, unpacked } from './log.ts'
import { sourceOf, sourceOfRow } from './recognise.ts'

export interface Recorded {
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
  const polled = STAMP.test(name) ? sources.get(FOLDERS[parent] ?? parent) : undefined
  const isRows = !polled && ROWS.test(name)
  if (!polled && !isRows && !BODY.test(name)) return []
  const body = await bytesOf(path)
  if (body === null) return []
  if (isRows) return rowsOf(body, sources)
  const source = polled ?? sources.get(sourceOf(body, sources) ?? '')
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
    const { items } = parse(source, body, Infinity)
    return Math.max(...items.map(({ publishedAt }) => publishedAt)) + 60_000
  } catch (error) {
    if (error instanceof FeedError) return NaN
    throw error
  }
}

/** Polls of a log, and posts recorded by themselves; rows that do not say what they are and when are left alone. */
function rowsOf(bytes: Buffer, sources: ReadonlyMap<string, Source>): Recorded[] {
  const logged = createLogReader()
  return bytes
    .toString('utf8')
    .split('\n')
    .flatMap((line): Recorded[] => {
      const row = rowIn(line)
      const poll = row && logged(row)
      if (poll) return sources.has(poll.source) ? [{ ...poll, item: null }] : []
      const source = sources.get((row && sourceOfRow(row)) ?? '')
      const item = row && source ? itemOf(row) : null
      return source && item ? [{ source: source.id, at: item.publishedAt, url: source.url, body: null, item }] : []
    })
}

function rowIn(line: string): Row | null {
  try {
    return objectsOf([JSON.parse(line)])[0] ?? null
  } catch {
    return null
  }
}

/** A row of an archive, or one that a mirror was recorded by. */
function itemOf(row: Row): Item | null {
  if (typeof row['id'] === 'string') return postRow(row)
  const word = (name: string): string => (typeof row[name] === 'string' ? row[name] : '')
  const [key, html, date, url] = [word('post_id'), word('text'), word('timestamp_utc'), word('url')]
  return postOf({ id: null, key, html, date, precise: false, url, media: [], counts: null })
}
