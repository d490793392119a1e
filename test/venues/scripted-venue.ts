/**
 * A server on loopback that answers as one venue does: its routes, its limits, its errors, a Date header from the
 * clock of the test, and the faults that the test has switched on.
 */
import { createHash } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { gzipSync } from 'node:zlib'
import { type Fault, type FaultName, type Faults, UNDISTURBED } from './faults.ts'
import { type ScriptedMarket, unit } from './scripted-market.ts'
import type { VenueClock } from './venue-clock.ts'
import { createView, type VenueView } from './venue-view.ts'

export interface VenueRequest {
  readonly method: string
  readonly path: string
  readonly query: URLSearchParams
  /** The parsed JSON body of a POST; undefined if there is none. */
  readonly body: unknown
  readonly headers: IncomingMessage['headers']
}

/** An answer before it is written: its rows can be dropped, shuffled, doubled or emptied by a fault. */
export interface VenueAnswer {
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
  /** `application/json` by default. */
  readonly type?: string
  readonly rows: readonly unknown[]
  /** Wraps the rows as the venue does. Text is sent as it is, any other value as JSON. */
  wrap(rows: readonly unknown[]): unknown
  /** Sends ETag and Last-Modified, and 304 to a client that has the body. */
  readonly validators?: { readonly lastModified: number }
}

export interface VenueRoute {
  readonly name: string
  readonly method?: 'GET' | 'POST'
  /** Decides by the path alone. Groups of the match are given to `symbol` and `answer`. */
  readonly path: RegExp
  /** Tells routes apart that share a path. */
  readonly accepts?: (request: VenueRequest) => boolean
  /** What a request costs of the venue's limit; 1 by default. */
  readonly weight?: (request: VenueRequest) => number
  /** The market's symbol that a request asks for; null if it asks for all, undefined if the venue does not list it. */
  readonly symbol?: (match: RegExpExecArray, request: VenueRequest) => string | null | undefined
  answer(request: VenueRequest, view: VenueView, symbol: string): VenueAnswer
}

export interface VenueScript {
  readonly name: string
  readonly routes: readonly VenueRoute[]
  /** The venue's limit: weight per seconds, with a burst. */
  readonly limit: { readonly weight: number; readonly seconds: number; readonly burst?: number }
  /** The venue's own answers to what it does not serve. */
  readonly refusals: {
    readonly unknownSymbol: (request: VenueRequest) => Refusal
    readonly rateLimited: Refusal
    readonly unknownRoute?: Refusal
  }
}

export interface Refusal {
  readonly status: number
  readonly body: unknown
  readonly type?: string
}

/** One request, for assertions. */
export interface ServedRequest {
  /** Epoch milliseconds on the clock of the test. */
  readonly at: number
  readonly venue: string
  readonly route: string
  readonly symbol: string | null
  /** Path and query. */
  readonly url: string
  readonly faults: readonly FaultName[]
  status: number | null
}

export interface ScriptedVenue {
  readonly name: string
  /** Base address, without a trailing slash. */
  readonly url: string
  readonly requests: ServedRequest[]
  /** Ends every connection, also those that a fault holds open. */
  close(): Promise<void>
}

export interface VenueParts {
  readonly market: ScriptedMarket
  readonly clock: VenueClock
  readonly faults: Faults
  /**
   * How many times the real limit of requests a venue allows. Limits count real time, because a test moves its clock
   * faster than a client can ask. Infinity switches them off.
   */
  readonly limits?: number
}

const RETRY_AFTER = 30
const HUGE = 80 * 1024 * 1024

/** Starts a venue on a free port. */
export async function openScriptedVenue(script: VenueScript, parts: VenueParts): Promise<ScriptedVenue> {
  const { market, clock, faults } = parts
  const requests: ServedRequest[] = []
  const allows = createLimit(script.limit, parts.limits ?? Infinity)
  const timers = new Set<NodeJS.Timeout>()

  async function serve(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(incoming.url ?? '/', 'http://venue')
    const headers = incoming.headers
    const method = incoming.method ?? 'GET'
    const request: VenueRequest = {
      method,
      path: url.pathname,
      query: url.searchParams,
      body: await bodyOf(incoming),
      headers,
    }
    const found = find(script.routes, request)
    const symbol = found?.route.symbol?.(found.match, request) ?? null
    const isListed = found?.route.symbol?.(found.match, request) !== undefined || !found?.route.symbol
    const route = found?.route.name ?? 'none'
    const isUndisturbed = headers[UNDISTURBED] !== undefined
    const all = isUndisturbed ? [] : faults.take({ venue: script.name, symbol, route })
    // Those of one symbol bend a list of all symbols, but do not break it.
    const on = all.filter((fault) => fault.symbol === undefined || fault.symbol === symbol)
    const served: ServedRequest = {
      at: clock.now(),
      venue: script.name,
      route,
      symbol,
      url: `${url.pathname}${url.search}`,
      faults: all.map(({ name }) => name),
      status: null,
    }
    if (!isUndisturbed) requests.push(served)
    const view = createView(market, script.name, clock.now(), all)
    response.sendDate = false
    response.setHeader('Date', new Date(view.now).toUTCString())
    response.on('finish', () => (served.status = response.statusCode))
    if (breaksConnection(on, incoming, response, timers)) return
    const refusal = refusalOf(on)
    if (refusal) return send(response, refusal.status, refusal.body, refusal.type, on, incoming, refusal.headers)
    const { unknownSymbol, rateLimited, unknownRoute } = script.refusals
    const refuse = (refused: Refusal, more: Readonly<Record<string, string>> = {}): void =>
      send(response, refused.status, refused.body, refused.type ?? JSON_TYPE, [], incoming, more)
    if (!found) return refuse(unknownRoute ?? { status: 404, body: { message: 'NotFound' } })
    if (!allows(found.route.weight?.(request) ?? 1)) return refuse(rateLimited, { 'retry-after': '1' })
    if (!isListed || on.some(({ name }) => name === 'delisted')) return refuse(unknownSymbol(request))
    const answer = found.route.answer(request, view, symbol ?? '')
    const body = answer.wrap(
      answer.status === undefined || answer.status === 200 ? bentRows(answer.rows, on) : answer.rows,
    )
    send(response, answer.status ?? 200, body, answer.type ?? JSON_TYPE, on, incoming, {
      ...answer.headers,
      ...(answer.validators ? validatorsOf(body, answer.validators.lastModified) : {}),
    })
  }

  const server = createServer((incoming, response) => {
    serve(incoming, response).catch((error: unknown) => {
      process.stderr.write(`the scripted venue ${script.name} failed: ${String((error as Error).stack)}\n`)
      response.destroy()
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    name: script.name,
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    close: () =>
      new Promise((resolve) => {
        timers.forEach(clearInterval)
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

const JSON_TYPE = 'application/json; charset=utf-8'
const HTML_TYPE = 'text/html; charset=utf-8'

function find(
  routes: readonly VenueRoute[],
  request: VenueRequest,
): { readonly route: VenueRoute; readonly match: RegExpExecArray } | null {
  for (const route of routes) {
    const match = route.path.exec(request.path)
    if (match && (route.method ?? 'GET') === request.method && (route.accepts?.(request) ?? true))
      return { route, match }
  }
  return null
}

async function bodyOf(incoming: IncomingMessage): Promise<unknown> {
  const chunks: Buffer[] = []
  for await (const chunk of incoming) chunks.push(chunk as Buffer)
  const text = Buffer.concat(chunks).toString('utf8')
  if (text === '') return undefined
  try {
    return JSON.parse(text) as unknown
  } catch {
    return text
  }
}

/** A bucket that refills in real time. */
function createLimit({ weight, seconds, burst = weight }: VenueScript['limit'], times: number) {
  if (times === Infinity) return () => true
  const [perMs, size] = [(weight / seconds / 1000) * times, burst * times]
  let [left, at] = [size, performance.now()]
  return (cost: number): boolean => {
    const now = performance.now()
    left = Math.min(size, left + (now - at) * perMs)
    at = now
    if (left < cost) return false
    left -= cost
    return true
  }
}

/** Breaks the connection if a fault says so. Returns true if nothing more is to be sent. */
function breaksConnection(
  faults: readonly Fault[],
  incoming: IncomingMessage,
  response: ServerResponse,
  timers: Set<NodeJS.Timeout>,
): boolean {
  const has = (name: FaultName): boolean => faults.some((fault) => fault.name === name)
  if (has('reset')) incoming.socket.resetAndDestroy()
  else if (has('silent')) return true
  else if (has('tls_failure')) {
    // A fatal alert, handshake_failure: what a TLS server with nothing in common sends.
    incoming.socket.end(Buffer.from([0x15, 0x03, 0x03, 0x00, 0x02, 0x02, 0x28]))
  } else if (has('truncated')) {
    response.writeHead(200, { 'content-type': JSON_TYPE, 'content-length': '4096' })
    response.write('[[', () => incoming.socket.destroy())
  } else if (has('slow_drip')) {
    response.writeHead(200, { 'content-type': JSON_TYPE, 'content-length': '4096' })
    response.flushHeaders()
    const timer = setInterval(() => response.write(' '), 1000)
    timer.unref()
    timers.add(timer)
    response.on('close', () => {
      clearInterval(timer)
      timers.delete(timer)
    })
  } else if (has('huge_body')) {
    response.writeHead(200, { 'content-type': JSON_TYPE })
    const block = Buffer.alloc(1024 * 1024, ' ')
    let sent = 0
    const more = (): void => {
      while (sent < HUGE && !response.destroyed) {
        sent += block.length
        if (!response.write(block)) return void response.once('drain', more)
      }
      response.end()
    }
    response.on('error', () => undefined)
    more()
  } else return false
  return true
}

/** The answer that a fault puts in the place of the venue's. */
function refusalOf(
  faults: readonly Fault[],
): (Required<Refusal> & { readonly headers: Readonly<Record<string, string>> }) | null {
  for (const { name, seconds = RETRY_AFTER } of faults) {
    const wait = { 'retry-after': String(seconds) }
    const page = (status: number, title: string, headers = {}) => ({
      status,
      body: html(title),
      type: HTML_TYPE,
      headers,
    })
    if (name === 'rate_limited')
      return { status: 429, body: { message: 'Public rate limit exceeded' }, type: JSON_TYPE, headers: wait }
    if (name === 'banned')
      return {
        status: 418,
        body: { code: -1003, msg: 'Way too many requests; IP banned.' },
        type: JSON_TYPE,
        headers: wait,
      }
    if (name === 'restricted')
      return {
        status: 451,
        body: { code: 0, msg: 'Service unavailable from a restricted location.' },
        type: JSON_TYPE,
        headers: {},
      }
    if (name === 'forbidden') return page(403, 'Attention Required! | Cloudflare')
    if (name === 'server_error') return page(500, 'Internal Server Error')
    if (name === 'unavailable') return page(503, 'Service Temporarily Unavailable', wait)
    if (name === 'maintenance') return page(200, 'We are down for scheduled maintenance')
    if (name === 'redirect')
      return {
        status: 302,
        body: '',
        type: HTML_TYPE,
        headers: { location: 'http://status.venue.invalid/maintenance' },
      }
  }
  return null
}

const html = (title: string): string =>
  `<!DOCTYPE html>\n<html lang="en"><head><title>${title}</title></head><body><h1>${title}</h1></body></html>\n`

/** The rows of an answer, bent by the faults of rows. Shuffles are the same each time. */
function bentRows(rows: readonly unknown[], faults: readonly Fault[]): readonly unknown[] {
  let bent = rows
  for (const { name } of faults) {
    if (name === 'empty') bent = []
    if (name === 'out_of_order')
      bent = bent
        .map((row, i) => ({ row, at: unit('shuffle', i, bent.length) }))
        .toSorted((a, b) => a.at - b.at)
        .map(({ row }) => row)
    if (name === 'duplicates')
      bent = bent.flatMap((row, i) => (i % 3 === 0 ? [row, otherRow(row, bent[i + 1])] : [row]))
    // In a feed of bars, newest first or oldest first, one of the two ends is the minute that a client waits for.
    if (name === 'null_rows')
      bent = bent.map((row, i) => (i === 0 || i === bent.length - 1 || i % 7 === 3 ? nullRow(row) : row))
  }
  return bent
}

/** The row again, with the values of its neighbour. */
function otherRow(row: unknown, neighbour: unknown): unknown {
  if (Array.isArray(row) && Array.isArray(neighbour)) return [row[0], ...(neighbour as unknown[]).slice(1)]
  return row
}

/** The row with its first field as it was and every other one null. A row of text becomes an empty item. */
function nullRow(row: unknown): unknown {
  if (Array.isArray(row)) return row.map((value: unknown, i) => (i === 0 ? value : null))
  if (typeof row === 'object' && row !== null)
    return Object.fromEntries(Object.entries(row).map(([name, value], i) => [name, i === 0 ? value : null]))
  return typeof row === 'string' ? '<item></item>' : null
}

function validatorsOf(body: unknown, lastModified: number): Record<string, string> {
  const etag = `"${createHash('sha256').update(textOf(body)).digest('hex').slice(0, 24)}"`
  return { etag, 'last-modified': new Date(Math.floor(lastModified / 1000) * 1000).toUTCString() }
}

const textOf = (body: unknown): string => (typeof body === 'string' ? body : JSON.stringify(body))

/** Writes an answer: 304 if the client has it, compressed if the client accepts that or a fault says so. */
function send(
  response: ServerResponse,
  status: number,
  body: unknown,
  type: string,
  faults: readonly Fault[],
  { headers }: IncomingMessage,
  more: Readonly<Record<string, string>> = {},
): void {
  const has = (name: FaultName): boolean => faults.some((fault) => fault.name === name)
  for (const [name, value] of Object.entries(more)) response.setHeader(name, value)
  const { etag, 'last-modified': modified } = more
  const isKnown =
    headers['if-none-match'] === undefined
      ? modified !== undefined && headers['if-modified-since'] === modified
      : headers['if-none-match'].replace(/^W\//, '') === etag
  if (status === 200 && etag !== undefined && isKnown) return void response.writeHead(304).end()
  const whole = Buffer.from(textOf(body))
  const bytes = has('truncated_json') ? whole.subarray(0, Math.floor(whole.length / 2)) : whole
  response.setHeader('content-type', has('wrong_type') ? HTML_TYPE : type)
  const isAccepted = (headers['accept-encoding'] ?? '').includes('gzip')
  if (has('bad_gzip')) return void response.writeHead(status, { 'content-encoding': 'gzip' }).end(bytes)
  if (has('gzip_unasked') || (isAccepted && bytes.length > 1024))
    return void response.writeHead(status, { 'content-encoding': 'gzip' }).end(compressed(bytes))
  response.writeHead(status).end(bytes)
}

/** Compressed bodies by their bytes, in latin1: tests ask for the same days again and again. */
const compressedBodies = new Map<string, Buffer>()
const KEPT_BODIES = 100
/** Shorter bodies, in bytes, are of the last minutes, which are asked for once. */
const LEAST_KEPT = 8_000

function compressed(bytes: Buffer): Buffer {
  if (bytes.length < LEAST_KEPT) return gzipSync(bytes, { level: 1 })
  const text = bytes.toString('latin1')
  const known = compressedBodies.get(text)
  if (known) return known
  if (compressedBodies.size >= KEPT_BODIES) compressedBodies.clear()
  const body = gzipSync(bytes, { level: 1 })
  compressedBodies.set(text, body)
  return body
}
