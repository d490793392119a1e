/** Truth Social posts, as a mirror's RSS with elements of its own, and as JSON: archive rows or the platform's form. */
import { XMLParser } from 'fast-xml-parser'
import { tidy, toText } from '../ingest/text.ts'
import { FeedError, type Counts, type Item, type Kind, type Media } from '../item.ts'
import { feedText, jsonValue, moment } from './body.ts'
import { snowflakeTime } from './snowflake.ts'

const xml = new XMLParser({
  ignoreAttributes: true,
  parseTagValue: false,
  trimValues: true,
  isArray: (name) => name === 'item',
})

/** Beyond this a mirror's clock is wrong, and the id's own time is taken. */
const CLOCK_MS = 60_000

/** The mirror's feed. Its own address is the key where the post's id is missing. */
export function parseMirror(body: Buffer): Item[] {
  const text = feedText(body)
  let rows: Readonly<Record<string, unknown>>[]
  try {
    const { rss } = xml.parse(text) as { rss?: { channel?: { item?: Readonly<Record<string, unknown>>[] } } }
    rows = rss?.channel?.item ?? []
  } catch (error) {
    throw new FeedError('malformed', `The feed cannot be read: ${(error as Error).message}`)
  }
  const word = (row: Readonly<Record<string, unknown>>, name: string): string => words(row[name])
  return rows.map((row) => {
    const id = word(row, 'truth:originalId')
    return postOf({
      id: /^\d+$/.test(id) ? id : null,
      key: id || word(row, 'guid') || word(row, 'link'),
      html: word(row, 'description') || word(row, 'title'),
      date: word(row, 'pubDate'),
      precise: false,
      url: word(row, 'truth:originalUrl') || word(row, 'link'),
      media: [],
      counts: null,
    })
  })
}

/** Archive rows, and statuses as the platform itself answers: one shape with small differences. */
export function parsePosts(body: Buffer): Item[] {
  const rows = jsonValue(body)
  if (!Array.isArray(rows)) throw new FeedError('wrong_shape', 'The body is not a list of posts.')
  return rows.map((row: Readonly<Record<string, unknown>>) => postRow(row))
}

/** One post of an archive. */
export function postRow(row: Readonly<Record<string, unknown>>): Item {
  const id = typeof row['id'] === 'string' ? row['id'] : ''
  if (!/^\d+$/.test(id))
    throw new FeedError('wrong_shape', 'A post has no id, or one that is a number: digits are lost then.')
  const media = Array.isArray(row['media'])
    ? row['media']
    : Array.isArray(row['media_attachments'])
      ? row['media_attachments']
      : []
  const count = (name: string): number => (typeof row[name] === 'number' ? row[name] : 0)
  const counts = {
    replies: count('replies_count'),
    reblogs: count('reblogs_count'),
    favourites: count('favourites_count'),
  }
  return postOf({
    id,
    key: id,
    html: words(row['content']) || words(row['text']),
    date: words(row['created_at']),
    precise: true,
    url: typeof row['url'] === 'string' ? row['url'] : `https://truthsocial.com/@realDonaldTrump/${id}`,
    media: media.map(mediaOf),
    counts,
  })
}

const words = (value: unknown): string => (typeof value === 'string' ? value : '')

export interface Post {
  readonly id: string | null
  readonly key: string
  readonly html: string
  readonly date: string
  /** The date has milliseconds. */
  readonly precise: boolean
  readonly url: string
  readonly media: readonly Media[]
  readonly counts: Counts | null
}

export function postOf({ id, key, html, date, precise, url, media, counts }: Post): Item {
  const said = moment(date, key)
  const born = id === null ? null : snowflakeTime(id)
  const trusted = born === null || Math.abs(born - said) <= CLOCK_MS
  const written = mended(toText(html))
  const text = written.startsWith('[No Title] - Post from ') ? '' : written
  return {
    key,
    kind: kindOf(text),
    title: null,
    text,
    lang: 'en',
    url,
    media,
    occurredAt: born,
    publishedAt: trusted ? said : born,
    precision: precise ? 'ms' : 's',
    post: id,
    signedOn: null,
    counts,
  }
}

/** Handles that the archive glues to the text that follows. */
const GLUED =
  /^(RT:? ?@(?:realDonaldTrump|DanScavino|StevenCheung|TeamTrump|WhiteHouse|PressSec|JMclghln|DevinNunes|DonaldJTrumpJr|EricTrump|JDVance|VP|POTUS))(?=[A-Z0-9“"‘'])/

/**
 * Text as it was written: links that a mirror cut where the platform hides their ends are joined again (30 characters
 * are shown), and a handle is parted from the text glued to it.
 *
 * @example mended('https:// www. example.org/a/very/long/path/x yz') // "https://www.example.org/a/very/long/path/xyz"
 */
export function mended(text: string): string {
  return tidy(
    text
      .replace(/(https?:\/\/)[ ]?(www\.)?[ ]?(?=\S)/g, (_, scheme: string, www?: string) => scheme + (www ?? ''))
      .replace(/(https?:\/\/(?:www\.)?\S{30}) (\S+)/g, '$1$2')
      .replace(/(^|\s)@ (?=\w)/g, '$1@')
      .replace(GLUED, '$1 '),
  )
}

/** A dataset's own flag misses re-posts, so the text decides. */
function kindOf(text: string): Kind {
  if (/^RT:? ?(@|https?:)/.test(text)) return 'social.repost'
  const rest = text.replace(/https?:\/\/\S+/g, '').trim()
  if (rest !== '') return 'social.post'
  return text === '' ? 'social.media' : 'social.link'
}

function mediaOf(media: unknown): Media {
  const { url, type } = (typeof media === 'object' && media !== null ? media : {}) as { url?: unknown; type?: unknown }
  const address = words(media) || words(url)
  const isVideo = type === 'video' || /\.(mp4|m3u8|mov|webm)(\?|$)/i.test(address)
  const isImage = type === 'image' || /\.(jpe?g|png|gif|webp)(\?|$)/i.test(address)
  return { type: isVideo ? 'video' : isImage ? 'image' : 'other', url: address }
}
