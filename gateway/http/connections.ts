/**
 * Bounds the cost of a connection. A few of its requests are answered at once, and the socket is paused meanwhile. If
 * an answer leaves before its request has arrived, the rest is dropped: a caller that reads only after it has written
 * still gets its answer (RFC 9112, section 9.6), and one that never stops writing costs next to nothing.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { detachParser, hookParser, isPaused, skipBody } from './http-parser.ts'
import { announcedBytes, hasBody } from './request-body.ts'

/** How many requests of a connection are answered at once. */
const MAX_RUNNING = 4
/** A connection stays open for a body in chunks, or of at most this length, that never pauses for `SHORT_REST_MS`. */
const SHORT_REST_BYTES = 65_536
const SHORT_REST_MS = 1_000
/** A longer rest is dropped for as long as so much of it arrives in each stretch of `DRAIN_MS`. */
const DRAIN_BYTES_PER_SECOND = 16_384
const DRAIN_MS = 15_000
/** Chunk sizes and line ends come on top of a body. */
const FRAMING_BYTES = 65_536
const SWEEP_MS = 100
/** On a connection that stays open after a 429, what was sent behind it waits this long: refusals are not free. */
const REFUSED_MS = 100
/**
 * Answers stay in memory until they are read. A caller that reads nothing of them for this long loses its connection.
 * The system takes more of them only once it has a third of its buffer free, of up to 4 MB: a slow caller needs a
 * minute for that.
 */
const UNREAD_MS = 120_000
/** Pipelined requests are parsed head by head, and bodies between them in pieces of this size. */
const PIECE_BYTES = 4_096
const HEAD_END = '\r\n\r\n'
const [CR, LF] = [13, 10]
const NOTHING = Buffer.alloc(0)

export interface ConnectionOptions {
  /** The size of the largest request body that is accepted anywhere. */
  readonly maxBodyBytes: () => number
  /** Default: 1 s. */
  readonly shortRestMs?: number
  /** Default: 15 s. */
  readonly drainMs?: number
  /** Default: 120 s. */
  readonly unreadMs?: number
}

const CONNECTION = Symbol('connection')
type ConnectedSocket = Socket & {
  [CONNECTION]?: Connection
  /** Where net keeps how many bytes the system has not taken yet. `writableLength` shrinks only after a whole write. */
  readonly _handle?: { readonly writeQueueSize: number } | null
}

/** The connections of a server. */
export class Connections {
  readonly options: Required<ConnectionOptions>
  /** Connections on which an answered request still arrives. */
  readonly #unfinished = new Set<Connection>()
  #sweeper: NodeJS.Timeout | undefined
  readonly #open = new Set<Connection>()
  #unreadTimer: NodeJS.Timeout | undefined

  constructor(options: ConnectionOptions) {
    this.options = { shortRestMs: SHORT_REST_MS, drainMs: DRAIN_MS, unreadMs: UNREAD_MS, ...options }
  }

  /** Watches a new connection. */
  add(socket: Socket): void {
    const connection = new Connection(socket, this)
    ;(socket as ConnectedSocket)[CONNECTION] = connection
    this.#open.add(connection)
    this.#unreadTimer ??= setInterval(() => this.#closeUnread(), this.options.unreadMs).unref()
    socket.once('close', () => this.#forget(connection))
  }

  #forget(connection: Connection): void {
    this.#open.delete(connection)
    if (this.#open.size > 0) return
    clearInterval(this.#unreadTimer)
    this.#unreadTimer = undefined
  }

  #closeUnread(): void {
    for (const connection of this.#open) connection.closeIfUnread()
  }

  /** Watches a connection until its `isFinished` returns true. */
  watch(connection: Connection): void {
    this.#unfinished.add(connection)
    this.#sweeper ??= setInterval(() => this.#sweep(), SWEEP_MS).unref()
  }

  #sweep(): void {
    const now = performance.now()
    for (const connection of this.#unfinished) if (connection.isFinished(now)) this.#unfinished.delete(connection)
    if (this.#unfinished.size > 0) return
    clearInterval(this.#sweeper)
    this.#sweeper = undefined
  }
}

/** The connection of a socket that was added. */
export const connectionOf = (socket: Socket): Connection | undefined => (socket as ConnectedSocket)[CONNECTION]

export class Connection {
  readonly #socket: Socket
  readonly #all: Connections
  /** How many requests are not answered. */
  #running = 0
  /** The last request and its answer. */
  #request: IncomingMessage | null = null
  #response: ServerResponse | null = null
  /** Parses bytes; null while node:http reads by itself. */
  #parse: ((bytes: Buffer) => void) | null = null
  /** Bytes received and not parsed. */
  #unparsed: Buffer[] = []
  /** How much of the last request's body was not parsed, if its length is known. */
  #bodyLeft = 0
  /** Whether more of it is about to be parsed. */
  #isParsingSoon = false
  /** Whether no further request is parsed. */
  #isEnding = false
  /** Whether the body of the last request was not parsed. */
  #isCut = false
  /** Whether all that arrives is dropped. */
  #isDraining = false
  /** The request whose rest is waited for. */
  #rest: IncomingMessage | null = null
  /** The most bytes the socket may have received while that arrives. */
  #mostBytes = 0
  /** Bytes received at the last check, and when that last grew. */
  #last = { bytes: 0, at: 0 }
  /** Bytes received at the last rate check. */
  #measured = { bytes: 0, at: 0 }
  /** Bytes written, and how many of them were not read, at the last check. */
  #sent = { bytes: 0, unread: 0 }

  constructor(socket: Socket, all: Connections) {
    this.#socket = socket
    this.#all = all
    hookParser(socket, {
      accepts: () => this.#accepts(),
      stopsAt: (request) => this.#stopsAt(request),
      onStopped: (rest) => this.#takeOver(rest),
    })
    // node:http calls it after the last answer of a connection.
    socket.destroySoon = () => this.end()
  }

  get #isFull(): boolean {
    return this.#running >= MAX_RUNNING
  }

  /** Whether what was received of the last request's body is not read yet. node:http has paused the socket then. */
  get #isUnread(): boolean {
    const request = this.#request
    return request?.complete === false && request.readableLength >= request.readableHighWaterMark
  }

  /** Notes a request that begins to be answered. */
  begin(request: IncomingMessage, response: ServerResponse): void {
    this.#running += 1
    this.#request = request
    this.#response = response
    const announced = hasBody(request) ? announcedBytes(request) : 0
    this.#bodyLeft = Number.isFinite(announced) ? announced : 0
    if (!response.shouldKeepAlive || announced <= SHORT_REST_BYTES || announced === Number.POSITIVE_INFINITY) return
    // An answer that leaves before the body has arrived says that the connection ends, so no request is sent after it.
    response.shouldKeepAlive = false
    request.once('end', () => void (response.shouldKeepAlive = true))
  }

  /** Notes that an answer was sent, or its connection was lost. */
  answered(request: IncomingMessage): void {
    this.#running -= 1
    if (this.#socket.destroyed || this.#isDraining) return
    if (!request.complete) this.#dropRest(request)
    else if (this.#isEnding && this.#running === 0) this.#drain()
    else if (this.#unparsed.length > 0) this.#parseSoon()
  }

  /** Ends the connection: answers that were written still reach the caller. */
  end(): void {
    if (this.#socket.destroyed) return
    // With nothing left to read, closing loses no answer.
    if (this.#request?.complete && this.#parse === null) Socket.prototype.destroySoon.call(this.#socket)
    else this.#drain()
  }

  /** Closes the connection if its caller has read nothing since the last look, and has answers to read. */
  closeIfUnread(): void {
    const { bytesWritten: bytes, _handle: handle } = this.#socket as ConnectedSocket
    const unread = handle?.writeQueueSize ?? 0
    if (unread > 0 && unread === this.#sent.unread && bytes === this.#sent.bytes) this.#socket.destroy()
    this.#sent = { bytes, unread }
  }

  /** False for a request that was sent behind too many others. Its caller sends it again (RFC 9112, section 9.3.2). */
  #accepts(): boolean {
    if (this.#isFull) this.#isEnding = true
    return !this.#isEnding
  }

  #stopsAt(request: IncomingMessage): boolean {
    const response = this.#response
    // Nearly every answer that needs nothing but the head of its request was written by now.
    if (response?.req === request && response.writableEnded) {
      if (!response.shouldKeepAlive) this.#isEnding = true
      if (hasBody(request)) skipBody(this.#socket)
      this.#isCut = this.#isEnding && hasBody(request)
    }
    return this.#isEnding || (this.#parse === null && this.#isFull && !hasBody(request))
  }

  /** Parses from now on, or drops what arrives, in place of node:http. */
  #takeOver(rest: Buffer): void {
    this.#parse ??= detachParser(this.#socket, (bytes) => this.#receive(bytes))
    this.#receive(rest)
  }

  #receive(bytes: Buffer): void {
    if (this.#isDraining && this.#socket.bytesRead > this.#mostBytes) this.#socket.destroy()
    if (this.#isEnding) return
    if (bytes.length > 0) this.#unparsed.push(bytes)
    this.#parseMore()
  }

  /** Parses a few requests in the next turn, or later behind a refusal. Once for all answers: else each would start more. */
  #parseSoon(): void {
    if (this.#isParsingSoon) return
    this.#isParsingSoon = true
    const parse = (): void => {
      this.#isParsingSoon = false
      this.#parseMore()
    }
    if (this.#response?.statusCode === 429) setTimeout(parse, REFUSED_MS).unref()
    else setImmediate(parse)
  }

  /** Parses requests until enough of them are running and the last one has arrived. */
  #parseMore(): void {
    const socket = this.#socket
    while (!this.#isEnding && !isPaused(socket) && !socket.destroyed) {
      const [first, ...others] = this.#unparsed
      if (!first || (this.#isFull && this.#request?.complete)) break
      const end = this.#bodyLeft > 0 ? Math.min(this.#bodyLeft, first.length) : pieceEnd(first)
      this.#bodyLeft = Math.max(0, this.#bodyLeft - end)
      this.#unparsed = end < first.length ? [first.subarray(end), ...others] : others
      this.#parse?.(first.subarray(0, end))
    }
    if (this.#isEnding) this.#unparsed = []
    if (this.#unparsed.length > 0) socket.pause()
    else if (!this.#isUnread) socket.resume()
  }

  /**
   * Waits for the rest of a request that was answered, or drops it if it is long. The length of a body in chunks is
   * known only at its end. So it is parsed up to there, without a call for each chunk: else the next request would be
   * dropped with it.
   */
  #dropRest(request: IncomingMessage): void {
    skipBody(this.#socket)
    if (announcedBytes(request) > SHORT_REST_BYTES && !isChunked(request)) this.#drain()
    else this.#watchRest()
  }

  /** Drops what still arrives. What was written reaches the caller, and then the end of the connection. */
  #drain(): void {
    if (this.#isDraining) return
    this.#isDraining = true
    this.#isEnding = true
    this.#unparsed = []
    this.#watchRest()
    this.#takeOver(NOTHING)
    this.#socket.resume()
    // A caller that still sends a body may take the end of the connection for an error, and not read its answer.
    if (this.#request?.complete !== false && !this.#isCut) this.#socket.end()
  }

  #watchRest(): void {
    const now = { bytes: this.#socket.bytesRead, at: performance.now() }
    this.#rest = this.#request
    this.#mostBytes = now.bytes + this.#all.options.maxBodyBytes() + FRAMING_BYTES
    this.#last = now
    this.#measured = now
    this.#all.watch(this)
  }

  /** Decides what becomes of a connection on which an answered request arrives. Returns true once that is settled. */
  isFinished(at: number): boolean {
    const socket = this.#socket
    const { shortRestMs, drainMs } = this.#all.options
    if (socket.destroyed || (!this.#isDraining && this.#rest?.complete)) return true
    const bytes = socket.bytesRead
    const ms = at - this.#measured.at
    if (bytes > this.#last.bytes) this.#last = { bytes, at }
    const isPausing = at - this.#last.at > shortRestMs
    const isSlow = ms >= drainMs && bytes - this.#measured.bytes < (DRAIN_BYTES_PER_SECOND * ms) / 1000
    if (ms >= drainMs) this.#measured = { bytes, at }
    if (bytes > this.#mostBytes || (this.#isDraining && isSlow)) {
      socket.destroy()
      return true
    }
    if (!this.#isDraining && (isPausing || isSlow)) this.#drain()
    else if (isPausing && !socket.writableEnded) socket.end()
    return false
  }
}

const isChunked = ({ headers }: IncomingMessage): boolean => headers['transfer-encoding'] !== undefined

/** Where the first piece of pipelined requests ends: behind the first head or body in chunks, or after 4 kB. */
function pieceEnd(bytes: Buffer): number {
  // The end of a head may be cut.
  let start = 0
  while (bytes[start] === CR || bytes[start] === LF) start += 1
  if (start > 0) return start
  const at = bytes.subarray(0, PIECE_BYTES).indexOf(HEAD_END)
  return at === -1 ? Math.min(bytes.length, PIECE_BYTES) : at + HEAD_END.length
}
