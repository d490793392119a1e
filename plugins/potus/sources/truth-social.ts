/** Truth Social posts: a mirror's RSS with its own elements, and JSON from an archive or from the platform itself. */
import { once } from 'tollgate/plugin'
import { type Counts, FeedError, type Item, type Kind, type Media } from './source.ts'
import { feedText, jsonValue, objectsOf, type JsonRow, timeOf } from './feed-body.ts'
import { tidy, toText } from './html-text.ts'

/** The parser is loaded with the first feed, so that no start waits for it. */
const loadXml = once(async () => {
  const { XMLParser } = await import('fast-xml-parser')
  return new XMLParser({
    ignoreAttributes: true,
    parseTagValue: false,
    trimValues: true,
    isArray: (name) => name === 'item',
  })
})

/** If a mirror's time differs by more than this from the time in the post's id, the id's time counts. */
const CLOCK_MS = 60_000

/** Posts of the mirror's feed. If the post's id is missing, the mirror's own address is the key. */
export async function parseMirror(body: Buffer): Promise<(Item | null)[]> {
  const text = feedText(body)
  const xml = await loadXml()
  let rows: readonly unknown[]
  try {
    const { rss } = xml.parse(text) as { rss?: { channel?: { item?: unknown[] } } }
    rows = rss?.channel?.item ?? []
  } catch (error) {
    throw new FeedError('malformed', `The feed cannot be read: ${(error as Error).message}`)
  }
  return rows.map((listed) => {
    const [row] = objectsOf([listed])
    if (!row) return null
    const word = (name: string): string => stringOf(row[name])
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

/** Posts from an archive or from the platform's API, whose forms differ only slightly. */
export function parsePosts(body: Buffer): (Item | null)[] {
  const rows = jsonValue(body)
  if (!Array.isArray(rows)) throw new FeedError('wrong_shape', 'The body is not a list of posts.')
  return objectsOf(rows).map(archivePost)
}

/** One post of an archive; null if it has no date. Throws FeedError if its id is missing or has lost digits. */
export function archivePost(row: JsonRow): Item | null {
  const id = typeof row['id'] === 'string' ? row['id'] : ''
  if (!/^\d+$/.test(id))
    throw new FeedError('wrong_shape', 'A post has no id, or its id is a JSON number, which loses digits.')
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
    html: repostIn(row) ?? (stringOf(row['content']) || stringOf(row['text'])),
    date: stringOf(row['created_at']),
    precise: true,
    url: typeof row['url'] === 'string' ? row['url'] : `https://truthsocial.com/@realDonaldTrump/${id}`,
    media: media.map(mediaOf),
    counts,
  })
}

/** The text of a repost. The platform nests the original post; the archive writes it as text. */
function repostIn({ reblog }: JsonRow): string | null {
  const [again] = objectsOf([reblog])
  if (!again) return null
  const [account] = objectsOf([again['account']])
  return `RT @${stringOf(account?.['acct'])} ${stringOf(again['content'])}`
}

/** Images and videos in a text. */
function shownIn(html: string): Media[] {
  const addresses = [...html.matchAll(/<(?:img|video|source)\b[^>]*?\ssrc\s*=\s*["']([^"']+)["']/gi)]
  return addresses.map(([, url]) => mediaOf({ url: toText(url as string) }))
}

const stringOf = (value: unknown): string => (typeof value === 'string' ? value : '')

export interface Post {
  readonly id: string | null
  readonly key: string
  readonly html: string
  readonly date: string
  /** True if the date has milliseconds. */
  readonly precise: boolean
  readonly url: string
  readonly media: readonly Media[]
  readonly counts: Counts | null
}

/** The post as an item; null if it has no key, or neither a date nor an id that contains one. */
export function postItem({ id, key, html, date, precise, url, media, counts }: Post): Item | null {
  const dated = timeOf(date)
  const created = id === null ? null : snowflakeTime(id)
  const trusted = created === null || (dated !== null && Math.abs(created - dated) <= CLOCK_MS)
  const published = trusted ? dated : created
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
    occurredAt: created,
    publishedAt: published,
    precision: precise ? 'ms' : 's',
    post: id,
    signedOn: null,
    counts,
  }
}

/** Handles that the archive joins with the text after them. */
const GLUED =
  /^(RT:? ?@(?:realDonaldTrump|DanScavino|StevenCheung|TeamTrump|WhiteHouse|PressSec|JMclghln|DevinNunes|DonaldJTrumpJr|EricTrump|JDVance|VP|POTUS))(?=[A-Z0-9“"‘'])/

/**
 * Repairs the text of a mirror: joins links that it cut where the platform hides their ends (after 30 characters), and
 * separates a handle from the text after it.
 *
 * @example repairLinks('https:// www. example.org/a/very/long/path/x yz') // "https://www.example.org/a/very/long/path/xyz"
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

/** Decides by the text, because the archive's own flag misses reposts. */
function kindOf(text: string): Kind {
  if (/^RT:? ?(@|https?:)/.test(text)) return 'social.repost'
  const rest = text.replace(/https?:\/\/\S+/g, '').trim()
  if (rest !== '') return 'social.post'
  return text === '' ? 'social.media' : 'social.link'
}

function mediaOf(media: unknown): Media {
  const { url, type } = (typeof media === 'object' && media !== null ? media : {}) as { url?: unknown; type?: unknown }
  const address = stringOf(media) || stringOf(url)
  const isVideo = type === 'video' || /\.(mp4|m3u8|mov|webm)(\?|$)/i.test(address)
  const isImage = type === 'image' || /\.(jpe?g|png|gif|webp)(\?|$)/i.test(address)
  return { type: isVideo ? 'video' : isImage ? 'image' : 'other', url: address }
}

/**
 * Time of a post in milliseconds since 1970: its id shifted right by 16 bits (Mastodon snowflake ids). Ids do not fit a
 * JavaScript number, so they are text. Null if the text is not such an id.
 *
 * @example snowflakeTime('116457972455781406') // 1777007636349, 2026-04-24T05:13:56.349Z
 */
export function snowflakeTime(id: string): number | null {
  return /^\d{15,20}$/.test(id) ? Number(BigInt(id) >> 16n) : null
}
