/** Files of REPLAY_DIR as payloads of the venues: what was streamed or shortened is put into the form of the request. */
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { readHistory, type History } from './history.ts'
import type { VenueName } from './rate.ts'
import { VENUES } from './venues/index.ts'
import { isRow, type Row } from './venues/venue.ts'

/** Payloads of one moment, as a poll would have got them. */
export interface Recording {
  readonly venue: VenueName
  /** When it was taken, epoch seconds. */
  readonly at: number
  readonly payloads: Readonly<Record<string, unknown>>
}

export interface Recordings {
  readonly polls: readonly Recording[]
  readonly settled: History | null
}

const seconds = (time: unknown): number =>
  typeof time === 'number' || /^\d+$/.test(String(time)) ? Number(time) / 1000 : Date.parse(String(time)) / 1000

type Reader = (text: string) => Omit<Recording, 'venue'> & { readonly venue?: VenueName }
const json = (text: string): Row => JSON.parse(text) as Row
const first = (value: unknown): Row => (Array.isArray(value) ? ((value as Row[])[0] ?? {}) : {})

/** Known recordings by file name. */
const READERS: readonly (readonly [RegExp, VenueName, Reader])[] = [
  [
    /^bybit__ws_ticker_linear\.json$/,
    'bybit',
    (text) => {
      const { ts, data } = json(text)
      const answer = (list: readonly unknown[]) => ({ retCode: 0, time: ts, result: { list } })
      return { at: seconds(ts), payloads: { linear: answer([data]), inverse: answer([]) } }
    },
  ],
  [
    /^okx__ws_funding_rate\.json$/,
    'okx',
    (text) => {
      const { data } = json(text)
      return { at: seconds(first(data)['ts']), payloads: { rates: { code: '0', data } } }
    },
  ],
  [
    /^dydx__http_get_perpetual_markets\.json$/,
    'dydx',
    (text) => {
      const { isoTimestamp, result } = json(text)
      return { at: seconds(isoTimestamp), payloads: { markets: result } }
    },
  ],
  [
    /^kraken__http_futures_tickers\.json$/,
    'kraken',
    (text) => ({ at: seconds(json(text)['serverTime']), payloads: { tickers: json(text) } }),
  ],
  [
    /^kraken__ws_futures_ticker\.json$/,
    'kraken',
    (text) => ({
      at: seconds(json(text)['time']),
      payloads: { tickers: { result: 'success', tickers: [json(text)] } },
    }),
  ],
  [
    /^bitmex__http_get_instrument_\w+\.json$/,
    'bitmex',
    (text) => ({ at: seconds(json(text)['timestamp']), payloads: { instruments: [json(text)] } }),
  ],
  [
    /^hyperliquid_predicted_funding[\w-]*\.csv$/,
    'hyperliquid',
    (text) => {
      const rows = text
        .trim()
        .split('\n')
        .slice(1)
        .map((line) => line.trim().split(','))
      const universe = rows.map(([, name]) => ({ name }))
      const contexts = rows.map(([, , funding, markPx]) => ({ funding, markPx }))
      return { at: seconds(rows[0]?.[0]), payloads: { contexts: [{ universe }, contexts] } }
    },
  ],
]

/** Everything of the folder that one of the venues' adapters can read. */
export async function readRecordings(folder: string): Promise<Recordings> {
  const polls: Recording[] = []
  let settled: History | null = null
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue
    const read = async (): Promise<string> => {
      const bytes = await readFile(join(entry.parentPath, entry.name))
      return (entry.name.endsWith('.gz') ? gunzipSync(bytes) : bytes).toString('utf8')
    }
    if (/^binance_usdm_funding[\w-]*\.csv(\.gz)?$/.test(entry.name)) settled = readHistory(await read())
    const known = READERS.find(([name]) => name.test(entry.name))
    if (known) polls.push({ venue: known[1], ...known[2](await read()) })
    else if (/^gate_futures_usdt_contracts[\w-]*\.json$/.test(entry.name)) polls.push(...captured(json(await read())))
  }
  return { polls: polls.toSorted((a, b) => a.at - b.at), settled }
}

/** A request with its answer: `{url, captured_at, body}`, of any venue that is asked once. */
function captured({ url, captured_at, body }: Row): Recording[] {
  if (typeof url !== 'string' || !(isRow(body) || Array.isArray(body))) return []
  for (const { name, url: base, requests } of Object.values(VENUES))
    for (const [word, { path }] of Object.entries(requests))
      if (url === base + path)
        return [{ venue: name, at: Math.floor(seconds(captured_at)), payloads: { [word]: body } }]
  return []
}
