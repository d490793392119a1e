/** Node's HTTP server under Express, without the per-request prototype change that costs Express most of its time. */
import http from 'node:http'
import type { Socket } from 'node:net'
import express, { type Express } from 'express'
import { errorBody, InvalidInput } from '../errors.ts'

/** Wallet signatures of contracts make payment headers long; Node's default of 16 KiB is tight. */
const MAX_HEADER_BYTES = 32 * 1024
/** Above the idle timeout of common load balancers (60 s), so that it is never us who cuts first. */
const KEEP_ALIVE_MS = 65_000
const HEADERS_MS = 20_000
const UPLOAD_MS = 300_000

type Prepared = new (...args: never[]) => object

/** A server that tells streams and keep-alive connections when it begins to close. */
export class ClosingServer extends http.Server {
  readonly #closing: AbortController

  constructor(options: http.ServerOptions, app: Express, closing: AbortController) {
    super(options, app)
    this.#closing = closing
    this.keepAliveTimeout = KEEP_ALIVE_MS
    // The body is asked for when it is read: an unpaid upload never leaves the buyer's machine.
    this.on('checkContinue', app)
    this.on('clientError', answerMalformed)
  }

  override close(callback?: (error?: Error) => void): this {
    this.#closing.abort()
    return super.close(callback)
  }
}

/**
 * Creates the server of an Express application. Requests and responses are born with Express's methods on their
 * classes, so the prototypes Express sets are the ones they already have.
 */
export function createServer(app: Express, closing: AbortController): http.Server {
  class PreparedRequest extends http.IncomingMessage {}
  class PreparedResponse<Req extends http.IncomingMessage = http.IncomingMessage> extends http.ServerResponse<Req> {}
  prepare(PreparedRequest, express.request, app)
  prepare(PreparedResponse, express.response, app)
  app.request = PreparedRequest.prototype as typeof app.request
  app.response = PreparedResponse.prototype as typeof app.response
  const options = {
    IncomingMessage: PreparedRequest,
    ServerResponse: PreparedResponse,
    maxHeaderSize: MAX_HEADER_BYTES,
    headersTimeout: HEADERS_MS,
    requestTimeout: UPLOAD_MS,
  }
  return new ClosingServer(options, app, closing)
}

function prepare(target: Prepared, source: object, app: Express): void {
  for (const [name, property] of Object.entries(Object.getOwnPropertyDescriptors(source)))
    Object.defineProperty(target.prototype, name, property)
  Object.defineProperty(target.prototype, 'app', { value: app, writable: true, configurable: true, enumerable: true })
}

/** What Node's parser refuses never becomes a request; it still gets an answer in our shape. */
function answerMalformed(error: Error & { code?: string }, socket: Socket): void {
  if (!socket.writable || error.code === 'ECONNRESET') {
    socket.destroy()
    return
  }
  const tooLong = error.code === 'HPE_HEADER_OVERFLOW'
  const msg = tooLong ? `The headers are longer than ${MAX_HEADER_BYTES} bytes.` : 'This is not an HTTP/1.1 request.'
  const body = JSON.stringify(errorBody(new InvalidInput([{ loc: ['header'], msg, type: 'malformed' }])))
  const status = tooLong ? '431 Request Header Fields Too Large' : '400 Bad Request'
  const head = `HTTP/1.1 ${status}\r\ncontent-type: application/json; charset=utf-8\r\nconnection: close\r\n`
  socket.end(`${head}content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`)
}

const GRACE_MS = 10_000

/** Stops accepting, lets running requests end for a while, then cuts what is left. */
export async function closed(server: http.Server): Promise<void> {
  if (!server.listening) return
  await new Promise<void>((resolve) => {
    const cut = setTimeout(() => server.closeAllConnections(), GRACE_MS)
    server.close(() => {
      clearTimeout(cut)
      resolve()
    })
    server.closeIdleConnections()
  })
}
