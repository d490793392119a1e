/** Answers of the venues as somebody kept them, known by what is inside and not by the name of a file. */
import { epochSeconds, PAYLOAD_RULES } from '../lib/time/timestamps.ts'
import type { VenueName } from './rate.ts'
import { VENUES } from './venues/index.ts'
import { isRow, type Venue } from './venues/venue.ts'

/** The answer to one request of a venue. */
export interface Capture {
  readonly venue: VenueName
  /** The venue's own word for the request. */
  readonly word: string
  /** When it was taken, epoch seconds; null where nothing tells. */
  readonly at: number | null
  readonly payload: unknown
}

/** Where an answer, or one of its rows, writes the time. */
const TIMES = ['captured_at', 'serverTime', 'isoTimestamp', 'timestamp', 'time', 'ts']
const DAY = /(\d{4})-?(\d{2})-?(\d{2})(?:[T_ -](\d{2})[:-]?(\d{2})(?:[:-]?(\d{2}))?)?/

/**
 * What a file holds, as `{url, captured_at, body}` or as the bare answer in a file whose name has the venue's in it.
 * Null where it is neither, or the venue's adapter finds nothing in it.
 */
export function captureOf(content: unknown, fileName: string): Capture | null {
  const kept = isRow(content) && typeof content['url'] === 'string' && 'body' in content ? content : null
  const payload = kept ? kept['body'] : unwrapped(content)
  const named = fileName.toLowerCase()
  for (const venue of Object.values(VENUES)) {
    const isMeant = kept ? sameHost(String(kept['url']), venue.url) : named.includes(venue.name)
    const word = isMeant ? wordOf(venue, payload) : null
    if (word === null) continue
    const at = toldBy(kept) ?? toldBy(content) ?? toldBy(payload) ?? newestOf(payload) ?? dayOf(fileName)
    return { venue: venue.name, word, at: at === null ? null : Math.floor(at), payload }
  }
  return null
}

/** A recording of a request and its answer may have the answer one level down. */
function unwrapped(content: unknown): unknown {
  if (!isRow(content)) return content
  const inner = content['httpResponse'] ?? content['body'] ?? content['response']
  if (inner !== undefined) return inner
  return isRow(content['result']) && isRow(content['result']['markets']) ? content['result'] : content
}

function sameHost(url: string, base: string): boolean {
  return URL.canParse(url) && new URL(url).hostname === new URL(base).hostname
}

/** The request that this answers: the one that makes the adapter find contracts. */
function wordOf({ requests, parse }: Venue, payload: unknown): string | null {
  const words = Object.keys(requests)
  const found = words.filter((word) => {
    const isAnswer = requests[word]!.answeredBy?.(payload)
    if (isAnswer === false) return false
    try {
      const others = Object.fromEntries(words.map((other) => [other, requests[other]!.absent]))
      const { rates, untold } = parse({ ...others, [word]: payload }, 0)
      return rates.length + untold.length > 0
    } catch {
      // Some answers cannot be read without another one.
      return isAnswer === true
    }
  })
  return found[0] ?? null
}

/** The time that an answer or a row tells. */
function toldBy(value: unknown): number | null {
  if (!isRow(value)) return null
  for (const name of TIMES) {
    const seconds = name in value ? epochSeconds(value[name], PAYLOAD_RULES) : null
    if (seconds !== null) return seconds
  }
  return null
}

/** The newest time that a row tells. */
function newestOf(payload: unknown): number | null {
  const lists = isRow(payload) ? Object.values(payload).flatMap(inner) : [payload]
  const rows = lists.filter((list) => Array.isArray(list)).flat() as unknown[]
  const times = rows.map(toldBy).filter((time) => time !== null)
  return times.length === 0 ? null : times.reduce((newest, time) => Math.max(newest, time))
}

const inner = (value: unknown): unknown[] => (isRow(value) ? [value, ...Object.values(value)] : [value])

function dayOf(fileName: string): number | null {
  const [, year, month, day, hour = '00', minute = '00', second = '00'] = DAY.exec(fileName) ?? []
  return year === undefined ? null : epochSeconds(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`, PAYLOAD_RULES)
}
