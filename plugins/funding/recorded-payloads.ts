/** Reads recorded answers of the venues from REPLAY_DIR. Streamed and shortened recordings become full request payloads. */
import type { VenueName } from './funding-rate.ts'
import { type History, readHistory, readTable, type Settlement, type TableRow } from './recorded-settlements.ts'
import { type Parsed, textOf, type Venue } from './venues/funding-venue.ts'
import { isRow, type Row } from '../lib/feeds/payloads.ts'
import { VENUES } from './venues/funding-venues.ts'
import { findRecordings, readRecordedText } from '../lib/feeds/recordings.ts'
import { epochSeconds, PAYLOAD_RULES } from '../lib/time/timestamps.ts'

/** The payloads of one poll. */
export interface Recording {
  readonly venue: VenueName
  /** When it was taken, epoch seconds. */
  readonly at: number
  readonly payloads: Readonly<Record<string, unknown>>
  /** The rates that the venue's parser reads from the payloads. */
  readonly parsed: Parsed
}

export interface Recordings {
  /** Oldest first. */
  readonly polls: readonly Recording[]
  readonly settled: History | null
  /** Files of a venue that could not be read. */
  readonly unread: readonly { readonly file: string; readonly reason: string }[]
}

type UnparsedPoll = Omit<Recording, 'parsed'>
/** Reads the answers of one file, each with its time. An answer without a time is not used. */
type Reader = (text: string) => readonly { readonly at: number | null; readonly payloads: UnparsedPoll['payloads'] }[]
const json = (text: string): Row => JSON.parse(text) as Row
const first = (value: unknown): Row => (Array.isArray(value) ? ((value as Row[])[0] ?? {}) : {})

/** Readers of known recordings, by file name. */
const READERS: readonly (readonly [RegExp, VenueName, Reader])[] = [
  [
    /^bybit__ws_ticker_\w+\.json$/,
    'bybit',
    (text) => {
      const { ts, data } = json(text)
      const answer = (list: readonly unknown[]) => ({ retCode: 0, time: ts, result: { list } })
      const [own, other] = [answer([data]), answer([])]
      // A contract quoted in USD, not in a dollar token, is inverse.
      const isInverse = isRow(data) && textOf(data['symbol']).endsWith('USD')
      const payloads = isInverse ? { linear: other, inverse: own } : { linear: own, inverse: other }
      return [{ at: epochSeconds(ts, PAYLOAD_RULES), payloads }]
    },
  ],
  [
    /^okx__ws_funding_rate\.json$/,
    'okx',
    (text) => {
      const { data } = json(text)
      return [{ at: epochSeconds(first(data)['ts'], PAYLOAD_RULES), payloads: { rates: { code: '0', data } } }]
    },
  ],
  [
    /^dydx__http_get_perpetual_markets\.json$/,
    'dydx',
    (text) => {
      const { isoTimestamp, result } = json(text)
      return [{ at: epochSeconds(isoTimestamp, PAYLOAD_RULES), payloads: { markets: result } }]
    },
  ],
  [
    /^kraken__http_futures_tickers\.json$/,
    'kraken',
    (text) => [{ at: epochSeconds(json(text)['serverTime'], PAYLOAD_RULES), payloads: { tickers: json(text) } }],
  ],
  [
    /^kraken__ws_futures_ticker\.json$/,
    'kraken',
    (text) => [
      {
        at: epochSeconds(json(text)['time'], PAYLOAD_RULES),
        payloads: { tickers: { result: 'success', tickers: [json(text)] } },
      },
    ],
  ],
  [
    /^bitmex__http_get_instrument_\w+\.json$/,
    'bitmex',
    (text) => {
      const instruments = [json(text)].flat()
      return [{ at: epochSeconds(first(instruments)['timestamp'], PAYLOAD_RULES), payloads: { instruments } }]
    },
  ],
  [
    /^hyperliquid_predicted_funding[\w-]*\.csv$/,
    'hyperliquid',
    (text) => {
      const moments = new Map<string, TableRow[]>()
      for (const row of readTable(text)) moments.set(row.time, [...(moments.get(row.time) ?? []), row])
      return [...moments].map(([time, rows]) => {
        const universe = rows.map(({ instrument }) => ({ name: instrument }))
        const contexts = rows.map(({ rate, markPrice }) => ({ funding: rate, markPx: markPrice }))
        return { at: epochSeconds(time, PAYLOAD_RULES), payloads: { contexts: [{ universe }, contexts] } }
      })
    },
  ],
]

const HISTORY = /^binance_usdm_funding[\w-]*\.csv(\.gz)?$/
const VENUE = new RegExp(`(${Object.keys(VENUES).join('|')}|funding).*\\.json(\\.gz)?$`, 'i')
/** Answers of one venue within this time belong to one poll. */
const TOGETHER_SECONDS = 600

/** Reads every recording of the folder that a venue's parser understands. A file that fails is listed as unread. */
export async function readFundingRecordings(folder: string): Promise<Recordings> {
  const polls: Recording[] = []
  const captures: Capture[] = []
  const settlements = new Map<string, Settlement[]>()
  const unread: { file: string; reason: string }[] = []
  const add = (poll: UnparsedPoll): void =>
    void polls.push({ ...poll, parsed: VENUES[poll.venue].parse(poll.payloads, poll.at) })
  const readerOf = (file: string) => READERS.find(([name]) => name.test(file))
  const isRecording = (file: string): boolean => !!readerOf(file) || HISTORY.test(file) || VENUE.test(file)
  for (const { name: file, path } of await findRecordings(folder, isRecording)) {
    const known = readerOf(file)
    try {
      const text = await readRecordedText(path)
      if (HISTORY.test(file)) merge(settlements, readHistory(text))
      else if (known) {
        for (const { at, payloads } of known[2](text)) if (at !== null) add({ venue: known[1], at, payloads })
      } else {
        const capture = captureOf(JSON.parse(text) as unknown, file)
        if (capture) captures.push(capture)
      }
    } catch (error) {
      unread.push({ file, reason: (error as Error).message })
    }
  }
  for (const poll of pollsOf(captures))
    try {
      add(poll)
    } catch (error) {
      unread.push({ file: poll.venue, reason: (error as Error).message })
    }
  const settled = settlements.size === 0 ? null : settlements
  return { polls: polls.toSorted((a, b) => a.at - b.at), settled, unread }
}

/** Merges two recordings of settlements; a settlement in both counts once. */
function merge(all: Map<string, Settlement[]>, more: History): void {
  for (const [instrument, list] of more) {
    const byTime = new Map([...(all.get(instrument) ?? []), ...list].map((one) => [one.time, one]))
    all.set(
      instrument,
      [...byTime.values()].toSorted((a, b) => a.time - b.time),
    )
  }
}

/** Combines the answers to the several requests of one poll. An answer without a time is not used. */
function pollsOf(captures: readonly Capture[]): UnparsedPoll[] {
  const polls: { venue: VenueName; at: number; payloads: Record<string, unknown> }[] = []
  for (const { venue, request, at, payload } of captures.toSorted((a, b) => (a.at ?? 0) - (b.at ?? 0))) {
    if (at === null) continue
    const open = polls.findLast(
      (poll) => poll.venue === venue && at - poll.at <= TOGETHER_SECONDS && !(request in poll.payloads),
    )
    if (open) open.payloads[request] = payload
    else polls.push({ venue, at, payloads: { [request]: payload } })
  }
  return polls.map(({ venue, at, payloads }) => {
    const { requests } = VENUES[venue]
    const absent = Object.keys(requests).filter((request) => requests[request]!.absent !== undefined)
    return {
      venue,
      at,
      payloads: { ...Object.fromEntries(absent.map((request) => [request, requests[request]!.absent])), ...payloads },
    }
  })
}

/** The answer to one request of a venue. */
interface Capture {
  readonly venue: VenueName
  /** Name of the request in the venue's definition. */
  readonly request: string
  /** When it was recorded, epoch seconds; null if unknown. */
  readonly at: number | null
  readonly payload: unknown
}

/** Fields in which an answer or one of its rows has its time. */
const TIMES = ['captured_at', 'serverTime', 'isoTimestamp', 'timestamp', 'time', 'ts']
const DATE_IN_NAME = /(\d{4})-?(\d{2})-?(\d{2})(?:[T_ -](\d{2})[:-]?(\d{2})(?:[:-]?(\d{2}))?)?/

/**
 * Recognises a recorded answer by its content: `{url, captured_at, body}`, or the bare answer in a file named after the
 * venue. Null if it is neither, or if the venue's parser finds no contracts in it.
 */
function captureOf(content: unknown, fileName: string): Capture | null {
  const envelope = isRow(content) && typeof content['url'] === 'string' && 'body' in content ? content : null
  const payload = envelope ? envelope['body'] : unwrapped(content)
  const lowerName = fileName.toLowerCase()
  for (const venue of Object.values(VENUES)) {
    const isFromVenue = envelope ? sameHost(String(envelope['url']), venue.url) : lowerName.includes(venue.name)
    const request = isFromVenue ? requestAnsweredBy(venue, payload) : null
    if (request === null) continue
    const at = timeIn(content) ?? timeIn(payload) ?? newestTimeIn(payload) ?? timeInName(fileName)
    return { venue: venue.name, request, at: at === null ? null : Math.floor(at), payload }
  }
  return null
}

/** A recording of a request with its answer may hold the answer one level down. */
function unwrapped(content: unknown): unknown {
  if (!isRow(content)) return content
  const inner = content['httpResponse'] ?? content['body'] ?? content['response']
  if (inner !== undefined) return inner
  return isRow(content['result']) && isRow(content['result']['markets']) ? content['result'] : content
}

function sameHost(url: string, base: string): boolean {
  return URL.canParse(url) && new URL(url).hostname === new URL(base).hostname
}

/** The name of the request that a payload answers: the first for which the parser finds contracts. */
function requestAnsweredBy({ requests, parse }: Venue, payload: unknown): string | null {
  const names = Object.keys(requests)
  const found = names.filter((name) => {
    const isAnswer = requests[name]!.answeredBy?.(payload)
    if (isAnswer === false) return false
    try {
      const others = Object.fromEntries(names.map((other) => [other, requests[other]!.absent]))
      const { rates, untold } = parse({ ...others, [name]: payload }, 0)
      return rates.length + untold.length > 0
    } catch {
      // Some answers cannot be read without another one.
      return isAnswer === true
    }
  })
  return found[0] ?? null
}

/** The time that an answer or a row states, epoch seconds; null if it states none. */
function timeIn(value: unknown): number | null {
  if (!isRow(value)) return null
  for (const name of TIMES) {
    const seconds = name in value ? epochSeconds(value[name], PAYLOAD_RULES) : null
    if (seconds !== null) return seconds
  }
  return null
}

/** The newest time among the rows of an answer. */
function newestTimeIn(payload: unknown): number | null {
  const lists = isRow(payload) ? Object.values(payload).flatMap(inner) : [payload]
  const rows = lists.filter((list) => Array.isArray(list)).flat() as unknown[]
  const times = rows.map(timeIn).filter((time) => time !== null)
  return times.length === 0 ? null : times.reduce((newest, time) => Math.max(newest, time))
}

const inner = (value: unknown): unknown[] => (isRow(value) ? [value, ...Object.values(value)] : [value])

/** The day, and the time of day if there is one, in a file name. */
function timeInName(fileName: string): number | null {
  const [, year, month, day, hour = '00', minute = '00', second = '00'] = DATE_IN_NAME.exec(fileName) ?? []
  return year === undefined ? null : epochSeconds(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`, PAYLOAD_RULES)
}
