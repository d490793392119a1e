/** Truth Social posts, as a mirror's RSS with elements of its own, and as JSON: archive rows or the platform's form. */
import { XMLParser } from 'fast-xml-parser'
import { type Counts, FeedError, type Item, type Kind, type Media } from './source.ts'
import { feedText, jsonValue, objectsOf, type JsonRow, timeOf } from './feed-body.ts'
import { tidy, toText } from './html-text.ts'

const xml = new XMLParser({
  ignoreAttributes: true,
  parseTagValue: false,
  trimValues: true,
  isArray: (name) => name === 'item',
})

/** Beyond this a mirror's clock is wrong, and the id's own time is taken. */
const CLOCK_MS = 60_000

/** The mirror's feed. Its own address is the key where the post's id is missing. */
export function parseMirror(body: Buffer): (Item | null)[] {
  const text = feedText(body)
  let rows: JsonRow[]
  try {
    const { rss } = xml.parse(text) as { rss?: { channel?: { item?: unknown[] } } }
    rows = objectsOf(rss?.channel?.item ?? [])
  } catch (error) {
    throw new FeedError('malformed', `The feed cannot be read: ${(error as Error).message}`)
  }
  return rows.map((row) => {
    const word = (name: string): string => words(row[name])
    const id = word('truth:originalId')
    const [address, html] = [word('link') || word('guid'), word('description') || word('title')]
    return postItem({
      id: /^\d+$/.test(id) ? id : null,
      key: id || word('guid') || address,
      html,
      date: word('pubDate'),
      precise: false,
      url: word('truth:originalUrl') || address,
      media: shownIn(html),
      counts: null,
    })
  })
}

/** Archive rows, and statuses as the platform itself answers: one shape with small differences. */
export function parsePosts(body: Buffer): (Item | null)[] {
  const rows = jsonValue(body)
  if (!Array.isArray(rows)) throw new FeedError('wrong_shape', 'The body is not a list of posts.')
  return objectsOf(rows).map(archivePost)
}

/** One post of an archive; null where it has no date. Throws FeedError where its id cannot be trusted. */
export function archivePost(row: JsonRow): Item | null {
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
  return postItem({
    id,
    key: id,
    html: repostIn(row) ?? (words(row['content']) || words(row['text'])),
    date: words(row['created_at']),
    precise: true,
    url: typeof row['url'] === 'string' ? row['url'] : `https://truthsocial.com/@realDonaldTrump/${id}`,
    media: media.map(mediaOf),
    counts,
  })
}

/** The platform puts what is posted again aside, with its author; the archive writes it as text. */
function repostIn({ reblog }: JsonRow): string | null {
  const [again] = objectsOf([reblog])
  if (!again) return null
  const [account] = objectsOf([again['account']])
  return `RT @${words(account?.['acct'])} ${words(again['content'])}`
}

/** Pictures and films that a text shows. */
function shownIn(html: string): Media[] {
  const addresses = [...html.matchAll(/<(?:img|video|source)\b[^>]*?\ssrc\s*=\s*["']([^"']+)["']/gi)]
  return addresses.map(([, url]) => mediaOf({ url: toText(url as string) }))
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

/** The post as an item; null where it has no key, or neither a date nor an id that tells it. */
export function postItem({ id, key, html, date, precise, url, media, counts }: Post): Item | null {
  const said = timeOf(date)
  const born = id === null ? null : snowflakeTime(id)
  const trusted = born === null || (said !== null && Math.abs(born - said) <= CLOCK_MS)
  const published = trusted ? said : born
  if (key === '' || published === null) return null
  const written = repairLinks(toText(html))
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
    publishedAt: published,
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
export function repairLinks(text: string): string {
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

/* --- Ids of Mastodon-like platforms carry their time. They do not fit a JavaScript number: they stay text. --- */

/**
 * Time of a post in milliseconds since 1970: the id shifted right by 16 bits.
 *
 * @example snowflakeTime('116457972455781406') // 1777007636349, 2026-04-24T05:13:56.349Z
 */
export function snowflakeTime(id: string): number | null {
  return /^\d{15,20}$/.test(id) ? Number(BigInt(id) >> 16n) : null
}
