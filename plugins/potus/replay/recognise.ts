/** Which source a recorded body is of: known by what is inside, whatever the file is called. */
import { feedText, jsonValue, objectsOf, type Row } from '../sources/body.ts'
import type { Source } from '../sources/source.ts'

/** Posts of this platform, however a mirror's address is written. */
const MIRRORED = /<truth:originalId>|https?:\/\/(?:www\.)?trumpstruth\.org\//
const POST_ID = /^\d{15,20}$/

/** Id of the source of a whole body, null where it is of none. */
export function sourceOf(body: Buffer, sources: ReadonlyMap<string, Source>): string | null {
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
export function sourceOfRow(row: Row): string | null {
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
  return sourceOfRow(first)
}

function listIn(value: unknown): readonly unknown[] {
  const [{ results, orders } = {} as Row] = objectsOf([value])
  return [results, orders].find((list) => Array.isArray(list)) ?? []
}
