/** Is a body what it should be? A status of 200 says nothing about that. */
import { western } from './html-text.ts'
import { FeedError } from './source.ts'

/**
 * The text of an XML feed, checked: a feed element at the root, and its end there. Throws FeedError `not_a_feed` for
 * pages, JSON and error texts, `truncated` where the end is missing, `empty`.
 */
export function feedText(body: Buffer): string {
  const text = textOf(body)
  const root = text.match(/^(?:<\?[\s\S]*?\?>|<!--[\s\S]*?-->|<!DOCTYPE[^>]*>|\s)*<([A-Za-z][\w:-]*)/)?.[1]
  if (!root || !['rss', 'feed', 'rdf:RDF'].includes(root))
    throw new FeedError('not_a_feed', `The body begins with ${JSON.stringify(text.slice(0, 40))}, not with a feed.`)
  if (!new RegExp(`</${root}>\\s*(?:<!--[\\s\\S]*?-->\\s*)*$`).test(text))
    throw new FeedError('truncated', `The feed breaks off before </${root}>.`)
  return text
}

/** A JSON body. Throws FeedError `not_json`. */
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
 * As the byte-order mark says, else as the XML declaration does, else UTF-8; a text that says neither and is more
 * broken than whole in UTF-8 is of the Western code page.
 */
function decoded(body: Buffer): string {
  const mark = body.subarray(0, 2).toString('hex')
  if (mark === 'fffe' || mark === 'feff') return new TextDecoder(mark === 'fffe' ? 'utf-16le' : 'utf-16be').decode(body)
  const declared = DECLARED.exec(body.toString('latin1', 0, 200))?.[1] ?? 'utf-8'
  // What could be read up to here is no UTF-16, whatever it says.
  const isPlain = /^utf-?(?:8|16)/i.test(declared)
  try {
    if (!isPlain) return read(body, declared, true)
  } catch {
    // Not an encoding, or not the one of this text.
  }
  const text = new TextDecoder().decode(body)
  const count = (pattern: RegExp): number => text.match(pattern)?.length ?? 0
  return count(/\uFFFD/g) > count(/[\u0080-\uFFFC]/g) ? read(body, 'latin1') : text
}

/** Node takes the Western code page for Latin 1, without its quotes and dashes. */
function read(body: Buffer, encoding: string, fatal = false): string {
  const decoder = new TextDecoder(encoding, { fatal })
  const text = decoder.decode(body)
  return decoder.encoding === 'windows-1252' ? western(text) : text
}

export type JsonRow = Readonly<Record<string, unknown>>

/** Those of a list that are objects. */
export function objectsOf(list: readonly unknown[]): JsonRow[] {
  return list.filter((one): one is JsonRow => typeof one === 'object' && one !== null && !Array.isArray(one))
}

/**
 * The body without what changes at each request although nothing happened: build dates, and our own cache-buster as
 * the source repeats it.
 */
export function withoutNoise(text: string): string {
  return text
    .replace(/<lastBuildDate>[^<]*<\/lastBuildDate>/g, '')
    .replace(/"next_page_url":"[^"]*"/g, '"next_page_url":""')
}

/** A zone at the end of a date: an offset or a name, and perhaps a remark. */
const ZONED = /(?:[+-]\d{2}:?\d{2}|\dZ|\b(?!am\b|pm\b)[a-z]{1,5})\s*(?:\([^)]*\))?$/i

/**
 * Milliseconds of a date in a feed, null where it is none. A date without a zone is of UTC, wherever this runs.
 *
 * @example timeOf('Fri, 02 Oct 2026 14:00:00 EDT') // 1790964000000
 */
export function timeOf(written: string | undefined): number | null {
  const text = written?.trim() ?? ''
  const time = Date.parse(ZONED.test(text) ? text : /\dT\d/.test(text) ? `${text}Z` : `${text} UTC`)
  return Number.isNaN(time) ? null : time
}

/** Day of a date, "2026-10-02"; null where it is none. */
export function dayOf(written: string): string | null {
  const time = timeOf(written)
  return time === null ? null : new Date(time).toISOString().slice(0, 10)
}
