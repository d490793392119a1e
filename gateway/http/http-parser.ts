/**
 * The parts of node:http's parser that have no public name. node:http parses all that one read brings, up to 64 kB, before
 * anything else runs: a thousand requests, or ten thousand chunks with a call for each. That can be stopped only from
 * inside the parser. Where a version of Node lacks one of these parts, nothing is stopped.
 */
import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'

/** Indexes of callbacks, as in HTTPParser of node:http. */
const ON_BODY = 3
const ON_EXECUTE = 5
/** Return value of `onIncoming` that stops parsing this read. The request ends with its head then. */
const STOP = 2

interface Parser {
  onIncoming: ((request: IncomingMessage & { upgrade?: boolean }, keepAlive: boolean) => number) | null
  [ON_BODY]: ((piece: Buffer) => void) | null
  [ON_EXECUTE]: ((parsed: number | Error) => void) | null
  /** Returns how many bytes were parsed. */
  execute(bytes: Buffer): number | Error
  /** Copies what this read has brought. */
  getCurrentBuffer(): Buffer
}

type ParsedSocket = Socket & {
  readonly parser?: Parser | null
  /** True while node:http does not read, because answers wait for their caller to read them. */
  readonly _paused?: boolean
  readonly _handle?: { reading: boolean; readStart(): void } | null
}

/** Callbacks for the requests of a connection. */
export interface ParserHooks {
  /** Whether a request is answered, once its head was parsed. */
  accepts(): boolean
  /** Called after that. Returns whether to parse no further in this read: then the request gets no body. */
  stopsAt(request: IncomingMessage): boolean
  /** Gets what the read has brought beyond the point where parsing was stopped. */
  onStopped(rest: Buffer): void
}

/** The parsers of open connections that call hooks. */
const hooked = new WeakSet<Parser>()

/** Calls the hooks for the requests of a new connection. */
export function hookParser(socket: Socket, hooks: ParserHooks): void {
  const { parser } = socket as ParsedSocket
  if (!parser?.onIncoming || !parser[ON_BODY] || !parser[ON_EXECUTE]) return
  const { onIncoming, [ON_BODY]: onBody, [ON_EXECUTE]: onExecute } = parser
  hooked.add(parser)
  let isStopped = false
  parser.onIncoming = (request, keepAlive) => {
    parser[ON_BODY] = onBody
    const isAccepted = hooks.accepts()
    // node:http would let go of the socket, and of its errors, for a protocol that an ignored request asks for.
    if (!isAccepted) request.upgrade = false
    const result = isAccepted ? onIncoming(request, keepAlive) : 0
    isStopped = hooks.stopsAt(request)
    return isStopped ? STOP : result
  }
  parser[ON_EXECUTE] = (parsed) => {
    const rest = isStopped && typeof parsed === 'number' ? parser.getCurrentBuffer().subarray(parsed) : null
    isStopped = false
    onExecute(parsed)
    if (rest) hooks.onStopped(rest)
  }
  // node:http uses the parser again, for another connection.
  socket.once('close', () => {
    hooked.delete(parser)
    parser[ON_BODY] = onBody
  })
}

/** Parses the rest of the current request without a call for each chunk: its body is lost. */
export function skipBody(socket: Socket): void {
  const { parser } = socket as ParsedSocket
  if (parser && hooked.has(parser)) parser[ON_BODY] = null
}

/** Takes the parser off a connection, and passes what arrives to `listener`. Returns what parses bytes. */
export function detachParser(socket: Socket, listener: (bytes: Buffer) => void): (bytes: Buffer) => void {
  const { parser, _handle: handle } = socket as ParsedSocket
  const [parse] = socket.listeners('data') as ((bytes: Buffer) => void)[]
  socket.removeAllListeners('data')
  socket.on('data', listener)
  if (parser) reportErrors(parser, socket)
  // While no body was read, node:http stopped the handle without the socket's knowledge.
  if (handle) {
    handle.reading = true
    handle.readStart()
  }
  return parse ?? listener
}

/** Makes a parser report errors, though it was stopped: it expects another protocol until the next head is complete. */
function reportErrors(parser: Parser, socket: Socket): void {
  const { execute } = parser
  parser.execute = (bytes) => {
    const parsed = execute.call(parser, bytes)
    return typeof parsed === 'number' && parsed < bytes.length ? new Error('not HTTP') : parsed
  }
  socket.once('close', () => {
    parser.execute = execute
  })
}

/** Whether node:http waits for a caller to read its answers before it parses on. */
export const isPaused = (socket: Socket): boolean => (socket as ParsedSocket)._paused === true
