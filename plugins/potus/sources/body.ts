/** Is a body what it should be? A status of 200 says nothing about that. */
import { FeedError } from '../item.ts'

/**
 * The text of an XML feed, checked: a feed element at the root, and its end there. Throws FeedError `not_a_feed` for
 * pages, JSON and error texts, `truncated` where the end is missing, `empty`.
 */
export function feedText(body: Buffer): string {
  const text = withoutMark(body)
  const root = text.match(/^(?:<\?[\s\S]*?\?>|<!--[\s\S]*?-->|<!DOCTYPE[^>]*>|\s)*<([A-Za-z][\w:-]*)/)?.[1]
  if (!root || !['rss', 'feed', 'rdf:RDF'].includes(root))
    throw new FeedError('not_a_feed', `The body begins with ${JSON.stringify(text.slice(0, 40))}, not with a feed.`)
  if (!new RegExp(`</${root}>\\s*(?:<!--[\\s\\S]*?-->\\s*)*$`).test(text))
    throw new FeedError('truncated', `The feed breaks off before </${root}>.`)
  return text
}

/** A JSON body. Throws FeedError `not_json`. */
export function jsonValue(body: Buffer): unknown {
  const text = withoutMark(body)
  try {
    return JSON.parse(text)
  } catch {
    throw new FeedError('not_json', `The body begins with ${JSON.stringify(text.slice(0, 40))}, not with JSON.`)
  }
}

function withoutMark(body: Buffer): string {
  const text = body.toString('utf8').replace(/^\uFEFF/, '')
  if (text.trim() === '') throw new FeedError('empty', 'The body is empty.')
  return text
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

/** Milliseconds of a date in a feed. Throws FeedError `bad_date`. */
export function moment(text: string | undefined, what: string): number {
  const time = text === undefined ? NaN : Date.parse(text)
  if (Number.isNaN(time)) throw new FeedError('bad_date', `${what} has the date ${JSON.stringify(text ?? null)}.`)
  return time
}
