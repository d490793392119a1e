/** Checks and decodes the bodies of feeds, and reads their dates. A status of 200 does not mean that a body is a feed. */
import { western } from './html-text.ts'
import { FeedError } from './source.ts'

/**
 * The text of an XML feed. Throws FeedError `not_a_feed` if the root is not a feed element (a web page, JSON, an error
 * message), `truncated` if its end is missing, and `empty`.
 */
export function feedText(body: Buffer): string {
  const text = textOf(body)
  const root = text.match(/^(?:<\?[\s\S]*?\?>|<!--[\s\S]*?-->|<!DOCTYPE[^>]*>|\s)*<([A-Za-z][\w:-]*)/)?.[1]
  if (!root || !['rss', 'feed', 'rdf:RDF'].includes(root))
    throw new FeedError('not_a_feed', `The body begins with ${JSON.stringify(text.slice(0, 40))}, not with a feed.`)
  if (!new RegExp(`</${root}>\\s*(?:<!--[\\s\\S]*?-->\\s*)*$`).test(text))
    throw new FeedError('truncated', `The feed ends before </${root}>.`)
  return text
}

/** The value of a JSON body. Throws FeedError `not_json` or `empty`. */
export function jsonValue(body: Buffer): unknown {
  const text = textOf(body)
  try {
    return JSON.parse(text)
  } catch {
    throw new FeedError('not_json', `The body begins with ${JSON.stringify(text.slice(0, 40))}, not with JSON.`)
  }
}

function textOf(body: Buffer): string {
  const text = decoded(body)
  if (text.trim() === '') throw new FeedError('empty', 'The body is empty.')
  return text
}

const DECLARED = /^\s*<\?xml[^>]*?\sencoding\s*=\s*["']([\w.:-]+)["']/i

/**
 * Decodes by the byte-order mark, otherwise by the XML declaration, otherwise as UTF-8. Text that has more errors
 * than characters beyond ASCII in UTF-8 is read as Windows-1252.
 */
function decoded(body: Buffer): string {
  const mark = body.subarray(0, 2).toString('hex')
  if (mark === 'fffe' || mark === 'feff') return new TextDecoder(mark === 'fffe' ? 'utf-16le' : 'utf-16be').decode(body)
  const declared = DECLARED.exec(body.toString('latin1', 0, 200))?.[1] ?? 'utf-8'
  // A declaration that could be read byte by byte is not UTF-16, whatever it claims.
  const isPlain = /^utf-?(?:8|16)/i.test(declared)
  try {
    if (!isPlain) return read(body, declared, true)
  } catch {
    // The declared encoding is unknown, or the text does not match it.
  }
  const text = new TextDecoder().decode(body)
  const count = (pattern: RegExp): number => text.match(pattern)?.length ?? 0
  return count(/\uFFFD/g) > count(/[\u0080-\uFFFC]/g) ? read(body, 'latin1') : text
}

/** Node decodes Windows-1252 as Latin 1, without its quotes and dashes. */
function read(body: Buffer, encoding: string, fatal = false): string {
  const decoder = new TextDecoder(encoding, { fatal })
  const text = decoder.decode(body)
  return decoder.encoding === 'windows-1252' ? western(text) : text
}

export type JsonRow = Readonly<Record<string, unknown>>

/** The members of a list that are objects. */
export function objectsOf(list: readonly unknown[]): JsonRow[] {
  return list.filter((one): one is JsonRow => typeof one === 'object' && one !== null && !Array.isArray(one))
}

/**
 * Removes what changes with every request although nothing happened: build dates, and our own cache-buster, which the source
 * repeats.
 */
export function withoutNoise(text: string): string {
  return text
    .replace(/<lastBuildDate>[^<]*<\/lastBuildDate>/g, '')
    .replace(/"next_page_url":"[^"]*"/g, '"next_page_url":""')
}

/** A time zone at the end of a date: an offset, an offset from GMT of one or two digits, or a name, and an optional remark. */
const ZONED =
  /(?:(?:\b(?:GMT|UTC?)|:\d\d)\s*[+-]\d{1,2}(?::?\d{2})?|[+-]\d{2}:?\d{2}|\dZ|\b(?!am\b|pm\b)[a-z]{1,5})\s*(?:\([^)]*\))?$/i

/**
 * Milliseconds of a date in a feed; null if it is not a date, or names a day that its month does not have. A date without a
 * zone is UTC. Feeds write more forms than the shared parser of timestamps accepts, so this uses Date.parse.
 *
 * @example timeOf('Fri, 02 Oct 2026 14:00:00 EDT') // 1790964000000
 */
export function timeOf(written: string | undefined): number | null {
  const text = written?.trim() ?? ''
  const time = Date.parse(ZONED.test(text) ? text : /\dT\d/.test(text) ? `${text}Z` : `${text} UTC`)
  return Number.isNaN(time) || !hasItsDay(text) ? null : time
}

/** The day of a date in numbers: "2026-09-30", or "9/30/2026" as Date.parse reads it. */
const NUMBERED_DAY = /^\s*(?:\d{4}[-/]\d{1,2}[-/](\d{1,2})|\d{1,2}[-/](\d{1,2})[-/]\d{2,4})/

/** False for 31 September, which Date.parse takes for 1 October. */
function hasItsDay(text: string): boolean {
  const [date = ''] = text.split(/[T\s,]*\d{1,2}:\d{2}/, 1)
  const read = new Date(Date.parse(`${date} UTC`)).getUTCDate()
  const [, last, middle] = NUMBERED_DAY.exec(date) ?? []
  const numbered = last ?? middle
  const days = numbered === undefined ? (date.match(/\d+/g) ?? []) : [numbered]
  return Number.isNaN(read) || days.some((day) => Number(day) === read)
}

/** The day of a date as "2026-10-02"; null if it is not a date. */
export function dayOf(written: string): string | null {
  const time = timeOf(written)
  return time === null ? null : new Date(time).toISOString().slice(0, 10)
}
