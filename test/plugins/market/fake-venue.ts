/** A local server that answers as Coinbase and Binance do, from one invented market, with faults on demand. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface Fault {
  readonly status: number
  readonly headers?: Readonly<Record<string, string>>
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
  /** Called after each request is recorded, before its answer. */
  onRequest: () => void
  close(): Promise<void>
}

/** Close of the invented market in the minute that opens at `time`. */
export function closeAt(time: number): number {
  return Math.round(10_000 * (1 + 0.0004 * Math.sin(time / 60) + 0.01 * Math.sin(time / 40_000)) * 100) / 100
}

export async function openVenue(): Promise<FakeVenue> {
  const venue = {
    url: '',
    requests: [] as string[],
    missing: new Set<number>(),
    closes: new Map<number, number>(),
    faults: [] as Fault[],
    onRequest: () => {},
  }
  const bar = (time: number) => {
    const close = venue.closes.get(time) ?? closeAt(time)
    const open = venue.closes.get(time - 60) ?? closeAt(time - 60)
    return { open, high: Math.max(open, close), low: Math.min(open, close), close, volume: 1 + (time % 7) }
  }
  const times = (from: number, to: number): number[] =>
    Array.from({ length: Math.max(0, (to - from) / 60) }, (_, i) => from + i * 60).filter(
      (time) => !venue.missing.has(time),
    )

  function answer(request: IncomingMessage, response: ServerResponse): void {
    const url = new URL(request.url ?? '/', 'http://venue')
    venue.requests.push(`${url.pathname}${url.search}`)
    venue.onRequest()
    const fault = venue.faults.shift()
    if (fault) return void response.writeHead(fault.status, fault.headers).end('{"message":"no"}')
    const query = (name: string): string => url.searchParams.get(name) ?? ''
    const rows = url.pathname.startsWith('/products/')
      ? times(Date.parse(query('start')) / 1000, Date.parse(query('end')) / 1000 + 60)
          .slice(-300)
          .reverse()
          .map((time) => {
            const { open, high, low, close, volume } = bar(time)
            return [time, low, high, open, close, volume]
          })
      : times(Number(query('startTime')) / 1000, (Number(query('endTime')) + 1) / 1000)
          .slice(0, Number(query('limit')))
          .map((time) => {
            const { open, high, low, close, volume } = bar(time)
            return [
              time * 1000,
              ...[open, high, low, close, volume].map(String),
              time * 1000 + 59_999,
              '0',
              3,
              '0',
              '0',
              '0',
            ]
          })
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(rows))
  }

  const server: Server = createServer(answer)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  venue.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return Object.assign(venue, { close: () => new Promise<void>((resolve) => server.close(() => resolve())) })
}
