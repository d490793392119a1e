/** A local server that answers as any of the venues does, from one invented market, with faults on demand. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface Fault {
  readonly status: number
  readonly headers?: Readonly<Record<string, string>>
  /** Default: a short JSON message. */
  readonly body?: string
  /** Sends the body a byte at a time, for ever. */
  readonly drips?: boolean
}

export interface InventedBar {
  readonly open: number | null
  readonly high: number
  readonly low: number
  readonly close: number | null
  readonly volume: number
}

export interface FakeVenue {
  readonly url: string
  /** Requests so far, as `path?query`. */
  readonly requests: string[]
  /** Minutes (epoch seconds) that the venue leaves out. */
  readonly missing: Set<number>
  /** Closes that differ from the invented market. */
  readonly closes: Map<number, number>
  /** Answers of the next requests, in order, instead of bars. */
  readonly faults: Fault[]
  /** Answers of every request about a path that contains the text, instead of bars. */
  readonly broken: Map<string, Fault>
  /** Changes the bars before they are sent. */
  change: (time: number, bar: InventedBar) => InventedBar
  /** Called after each request is recorded, before its answer. */
  onRequest: () => void
  /** Requests whose path contains the text. */
  asked(text: string): number
  close(): Promise<void>
}

/** Close of the invented market in the minute that opens at `time`. */
export function closeAt(time: number): number {
  return Math.round(10_000 * (1 + 0.0004 * Math.sin(time / 60) + 0.01 * Math.sin(time / 40_000)) * 100) / 100
}

/** @param now epoch seconds, by which a venue that is not told where to end knows its last minute */
export async function openVenue(now: () => number = () => Infinity): Promise<FakeVenue> {
  const venue = {
    url: '',
    requests: [] as string[],
    missing: new Set<number>(),
    closes: new Map<number, number>(),
    faults: [] as Fault[],
    broken: new Map<string, Fault>(),
    change: (_: number, bar: InventedBar) => bar,
    onRequest: () => {},
  }
  const bar = (time: number): InventedBar => {
    const close = venue.closes.get(time) ?? closeAt(time)
    const open = venue.closes.get(time - 60) ?? closeAt(time - 60)
    const made = { open, high: Math.max(open, close), low: Math.min(open, close), close, volume: 1 + (time % 7) }
    return venue.change(time, made)
  }
  const times = (from: number, to: number): number[] =>
    Array.from({ length: Math.max(0, (to - from) / 60) }, (_, i) => from + i * 60).filter(
      (time) => !venue.missing.has(time),
    )

  /** The rows of a request, in the shape of the venue whose path it has. */
  function rowsOf(url: URL): unknown {
    const query = (name: string): string => url.searchParams.get(name) ?? ''
    const list = (from: number, to: number, row: (time: number, of: InventedBar) => unknown): unknown[] =>
      times(from, to).map((time) => row(time, bar(time)))
    if (url.pathname.startsWith('/products/'))
      return list(Date.parse(query('start')) / 1000, Date.parse(query('end')) / 1000 + 60, (time, of) => [
        time,
        of.low,
        of.high,
        of.open,
        of.close,
        of.volume,
      ])
        .slice(-300)
        .reverse()
    if (url.pathname.startsWith('/0/public')) {
      const since = Number(query('since')) + 60
      const end = Math.min(since + 720 * 60, Math.floor(now() / 60) * 60 + 60)
      const of = list(since, end, (time, { open, high, low, close, volume }) => [
        time,
        ...[open, high, low, close, close, volume].map((value) => value && String(value)),
        3,
      ])
      return { error: [], result: { XXBTZUSD: of, last: since } }
    }
    if (url.pathname.startsWith('/api/v2/ohlc'))
      return {
        data: {
          pair: 'BTC/USD',
          ohlc: list(Number(query('start')), Number(query('end')) + 60, (time, of) => ({
            timestamp: String(time),
            ...Object.fromEntries(Object.entries(of).map(([name, value]) => [name, value && String(value)])),
          })).slice(0, Number(query('limit'))),
        },
      }
    if (url.pathname.startsWith('/v2/candles'))
      return list(Number(query('start')) / 1000, Number(query('end')) / 1000 + 60, (time, of) => [
        time * 1000,
        of.open,
        of.close,
        of.high,
        of.low,
        of.volume,
      ])
    return list(Number(query('startTime')) / 1000, (Number(query('endTime')) + 1) / 1000, (time, of) => [
      time * 1000,
      ...[of.open, of.high, of.low, of.close, of.volume].map((value) => value && String(value)),
      time * 1000 + 59_999,
    ])
  }

  function answer(request: IncomingMessage, response: ServerResponse): void {
    const url = new URL(request.url ?? '/', 'http://venue')
    venue.requests.push(`${url.pathname}${url.search}`)
    venue.onRequest()
    const fault = venue.faults.shift() ?? [...venue.broken].find(([text]) => url.href.includes(text))?.[1]
    if (!fault)
      return void response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(rowsOf(url)))
    response.writeHead(fault.status, fault.headers)
    if (!fault.drips) return void response.end(fault.body ?? '{"message":"no"}')
    const drip = setInterval(() => response.write(' '), 20)
    response.on('close', () => clearInterval(drip))
  }

  const server: Server = createServer(answer)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  venue.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return Object.assign(venue, {
    asked: (text: string) => venue.requests.filter((request) => request.includes(text)).length,
    close: () =>
      new Promise<void>((resolve) => {
        server.closeAllConnections()
        server.close(() => resolve())
      }),
  })
}
