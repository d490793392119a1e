/** Node's HTTP server under Express, without the prototype change per request that costs Express most of its time. */
import http from 'node:http'
import { Server as NetServer, type Socket } from 'node:net'
import express, { type Express } from 'express'
import { errorBody, InvalidInput, ServiceError } from '../errors.ts'
import { createChunkLimit } from './chunk-limit.ts'
import { connectionOf, type ConnectionOptions, Connections } from './connections.ts'

/** Signatures of contract wallets make payment headers long. Node's default is 16 KiB. */
const MAX_HEADER_BYTES = 32 * 1024
/** Longer than the idle timeout of common load balancers (60 s), so that they close idle connections first. */
const KEEP_ALIVE_MS = 65_000
const HEADERS_TIMEOUT_MS = 20_000
/** A large body from a phone takes minutes. The rate of bodies cuts slow ones off before (body-storage.ts). */
const REQUEST_TIMEOUT_MS = 900_000
/** How long running requests may take to finish before their connections are closed. */
const CLOSE_GRACE_MS = 10_000
/** How long a server that is replaced waits for the next request of each open connection. */
const DRAIN_MS = 5_000
/**
 * How many connections are renewed in each stretch of time. Node's primary hands a worker one connection per turn of its
 * event loop, so if all were opened again at once, calls would wait for it for seconds.
 */
const RENEWED = { connections: 10, everyMs: 100 } as const
const JSON_TYPE = 'application/json; charset=utf-8'

/** Handles a request whose class has Express's methods. */
export type Listener = (request: express.Request, response: express.Response) => void

type MessageClass = new (...args: never[]) => object

/** A server that aborts `closing` when it begins to close, and drops each connection as it becomes idle from then on. */
export class ClosingServer extends http.Server {
  readonly #closing: AbortController
  #isDraining = false
  /** Connections that were opened since the last renewal; null before the first one. */
  #renewed: WeakSet<Socket> | null = null
  readonly #renewal = { startedAt: 0, left: 0 }
  /** Resolves when it has closed; null if it has never listened. */
  closed: Promise<void> | null = null

  constructor(options: http.ServerOptions, listener: Listener, closing: AbortController, connections: Connections) {
    // One function for all responses: a closure for each would cost the cheapest calls more than it is worth.
    const closeIdle = (): void => {
      if (!this.#isDraining) setImmediate(() => this.closeIdleConnections())
    }
    function answered(this: http.ServerResponse): void {
      connectionOf(this.req.socket)?.answered(this.req)
      if (closing.signal.aborted) closeIdle()
    }
    const handle = (request: http.IncomingMessage, response: http.ServerResponse): void => {
      if (closing.signal.aborted || this.#isToRenew(request.socket)) response.shouldKeepAlive = false
      connectionOf(request.socket)?.begin(request, response)
      response.on('close', answered)
      if (hasHost(request)) listener(request as express.Request, response as express.Response)
      else refuseHost(response)
    }
    super(options, handle)
    this.#closing = closing
    this.keepAliveTimeout = KEEP_ALIVE_MS
    // "100 Continue" is sent when the body is read, so an unpaid upload is never sent at all.
    this.on('checkContinue', handle)
    // Other expectations may be ignored (RFC 9110, section 10.1.1). Node would answer an empty 417.
    this.on('checkExpectation', handle)
    this.on('clientError', answerMalformed)
    this.on('connection', (socket: Socket) => {
      connections.add(socket)
      this.#renewed?.add(socket)
    })
    this.once('listening', () => {
      this.closed = new Promise((resolve) => this.once('close', resolve))
    })
  }

  /** Tells each open connection with one of its next answers that it ends. One without a request stays open. */
  renewConnections(): void {
    this.#renewed = new WeakSet()
  }

  #isToRenew(socket: Socket): boolean {
    if (this.#renewed === null || this.#renewed.has(socket)) return false
    const now = performance.now()
    const renewal = this.#renewal
    if (now - renewal.startedAt >= RENEWED.everyMs) {
      renewal.startedAt = now
      renewal.left = RENEWED.connections
    }
    if (renewal.left === 0) return false
    renewal.left -= 1
    this.#renewed.add(socket)
    return true
  }

  override close(callback?: (error?: Error) => void): this {
    this.#closing.abort()
    return super.close(callback)
  }

  /**
   * Stops accepting connections, and tells each open one with its next answer that it ends. An idle connection that the
   * server just closed would lose the request that is on its way. Resolves when all have ended, or after five seconds.
   */
  async drain(): Promise<void> {
    this.#isDraining = true
    this.#closing.abort()
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, DRAIN_MS)
      // Without the part of http.Server that closes idle connections.
      NetServer.prototype.close.call(this, () => {
        clearTimeout(timer)
        resolve()
      })
    })
    this.#isDraining = false
  }
}

export interface ServerParts extends ConnectionOptions {
  /** Gets every request, and may pass it to the application. */
  readonly listener: Listener
  /** Aborted when the server begins to close. */
  readonly closing: AbortController
  /** Counts a request that has sent many small chunks. Throws if its caller has sent too many. */
  readonly countChunks: (request: http.IncomingMessage) => void
}

/**
 * Creates a server whose requests and responses already have Express's methods on their classes, so that Express finds
 * the prototypes it sets in place.
 */
export function createServer(app: Express, parts: ServerParts): ClosingServer {
  const { listener, closing, countChunks } = parts
  class ExpressRequest extends createChunkLimit(countChunks) {}
  class ExpressResponse<Req extends http.IncomingMessage = http.IncomingMessage> extends http.ServerResponse<Req> {}
  addMethods(ExpressRequest, express.request, app)
  addMethods(ExpressResponse, express.response, app)
  app.request = ExpressRequest.prototype as typeof app.request
  app.response = ExpressResponse.prototype as typeof app.response
  const options = {
    IncomingMessage: ExpressRequest,
    ServerResponse: ExpressResponse,
    maxHeaderSize: MAX_HEADER_BYTES,
    headersTimeout: HEADERS_TIMEOUT_MS,
    requestTimeout: REQUEST_TIMEOUT_MS,
    // Node would answer an empty 400.
    requireHostHeader: false,
  }
  return new ClosingServer(options, listener, closing, new Connections(parts))
}

function addMethods(target: MessageClass, source: object, app: Express): void {
  for (const [name, property] of Object.entries(Object.getOwnPropertyDescriptors(source)))
    Object.defineProperty(target.prototype, name, property)
  Object.defineProperty(target.prototype, 'app', { value: app, writable: true, configurable: true, enumerable: true })
}

/** True for a request with one Host header, or of an earlier version with none (RFC 9112, section 3.2). */
function hasHost({ rawHeaders, httpVersion }: http.IncomingMessage): boolean {
  let hosts = 0
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] as string
    if (name.length === 4 && name.toLowerCase() === 'host') hosts += 1
  }
  return hosts === 1 || (hosts === 0 && httpVersion !== '1.1')
}

function refuseHost(response: http.ServerResponse): void {
  const body = JSON.stringify(errorBody(malformed('Send exactly one Host header.', ['header', 'Host'])))
  response.writeHead(400, { 'content-type': JSON_TYPE, 'content-length': Buffer.byteLength(body), connection: 'close' })
  response.end(body)
}

/** Answers bytes that Node's parser rejects before they become a request, in the shape of every other error. */
function answerMalformed(error: Error & { code?: string }, socket: Socket): void {
  // The caller would read this answer as that of the call before, or as a part of it. Node's own handler looks at the
  // same field.
  const { _httpMessage: open } = socket as Socket & { readonly _httpMessage?: http.ServerResponse | null }
  const isOfNext = open?.headersSent || open?.req.complete
  if (!socket.writable || error.code === 'ECONNRESET' || isOfNext) {
    socket.destroy()
    return
  }
  switch (error.code) {
    case 'HPE_HEADER_OVERFLOW': {
      const msg = `The headers are longer than ${MAX_HEADER_BYTES} bytes.`
      return endWith(socket, '431 Request Header Fields Too Large', malformed(msg))
    }
    case 'ERR_HTTP_REQUEST_TIMEOUT': {
      const message = 'The request arrives too slowly; nothing was charged. Send it again.'
      return endWith(socket, '408 Request Timeout', new ServiceError('body_too_slow', message))
    }
    case 'HPE_INVALID_METHOD': {
      const msg = 'The request does not begin with a known HTTP method in capital letters.'
      return endWith(socket, '400 Bad Request', malformed(msg))
    }
    case 'HPE_INVALID_CHUNK_SIZE':
      return endWith(socket, '400 Bad Request', malformed('The size of a chunk is not a hexadecimal number.', ['body']))
    default:
      return endWith(socket, '400 Bad Request', malformed('This is not an HTTP/1.1 request.'))
  }
}

function malformed(msg: string, loc: readonly string[] = ['header']): InvalidInput {
  return new InvalidInput([{ loc, msg, type: 'malformed' }])
}

/** Sends an error on a connection that has no response object, and closes it. */
function endWith(socket: Socket, status: string, error: ServiceError): void {
  const body = JSON.stringify(errorBody(error))
  const head = `HTTP/1.1 ${status}\r\ncontent-type: ${JSON_TYPE}\r\nconnection: close\r\n`
  socket.write(`${head}content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`)
  connectionOf(socket)?.end()
}

/**
 * Stops accepting connections, gives running requests 10 seconds to finish, and closes the connections that remain.
 * @param drains lets open connections end with an answer first, because another process accepts new ones
 */
export async function closeServer(server: ClosingServer, { drains = false } = {}): Promise<void> {
  if (server.closed === null) return
  if (drains) await server.drain()
  const timer = setTimeout(() => server.closeAllConnections(), CLOSE_GRACE_MS)
  // The primary may have closed the port of a worker already, which leaves open what is connected.
  server.close()
  server.closeIdleConnections()
  await server.closed
  clearTimeout(timer)
}
