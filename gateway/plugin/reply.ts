/** Answers of handlers that are more than a plain value. */
import { AnswerBody } from './answer-body.ts'
import { constant, frozen, isShared, share } from './immutable.ts'

export interface ReplyInit {
  /**
   * True if the answer says that nothing happened, from data that were watched. The catalog decides whether such an answer
   * is sold (`sell_empty`). What rests on no data is refused instead: throw NotHeld or Unavailable.
   */
  readonly empty?: boolean
  /** An HTTP status from 200 to 599. The default is 200. */
  readonly status?: number
  /**
   * Headers of the answer. If the object is frozen and used for several replies, it is prepared for sending once. Those
   * about the connection, the payment and CORS are reserved for the gateway.
   */
  readonly headers?: Readonly<Record<string, string>>
}

const NO_HEADERS: Readonly<Record<string, string>> = Object.freeze({})

/** One server-sent event. */
export interface ServerEvent {
  /** The id that a caller sends as Last-Event-ID to go on after this event. Without it, the event is not sent again. */
  readonly id?: string
  /** The name of the event, by which callers tell it from the others. Default: none, which callers read as `message`. */
  readonly event?: string
  /** A JSON value. */
  readonly data: unknown
}

/**
 * An answer with a status, headers, or a stream of events. A handler that needs none of them returns the body itself. A
 * string or Buffer is sent as it is if the headers name a content-type; do not change a Buffer afterwards.
 */
export class Reply<Body = unknown> {
  readonly #body: Body
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  /** True if the answer says that nothing happened. */
  readonly empty: boolean
  /** The events of a stream. */
  readonly source: AsyncIterable<ServerEvent> | undefined

  constructor(body: Body, init: ReplyInit = {}, source?: AsyncIterable<ServerEvent>) {
    this.#body = body
    this.status = init.status ?? 200
    this.headers = init.headers ?? NO_HEADERS
    this.empty = init.empty ?? false
    this.source = source
  }

  get body(): Body {
    return this.#body
  }

  /**
   * The answer to every call with this input, as long as the catalog stays the same. It is frozen, checked against its
   * schema, and serialised or rendered as a page once: make it once per catalog and return the same object each time.
   *
   * @example const replies = new WeakMap<Catalog, Reply>() // replies.set(catalog, Reply.constant({ word: 'gold' }))
   */
  static constant<Body>(body: Body, init: ReplyInit = {}): Reply<Body> {
    return constant(new Reply(frozen(body), init))
  }

  /**
   * Makes a reply that several calls may get, for example until the data behind it change. It is frozen, checked against
   * its schema and serialised once, however often a handler returns it. In each call the handler decides whether this
   * object is still the answer.
   *
   * @example if (price.at !== last?.at) last = { at: price.at, reply: Reply.shared(new Reply(price)) }
   */
  static shared<Body>(reply: Reply<Body>): Reply<Body> {
    // What was written as JSON is frozen when it is parsed.
    if (!(reply instanceof JsonReply)) frozen(reply.body)
    return share(reply)
  }

  /**
   * Answers with JSON that is written already, in UTF-8, as one buffer or in pieces. The bytes are sent unchanged, pieces
   * without a copy, so do not change a buffer afterwards. Whoever needs the value gets it parsed: pages, checks against the
   * schema, and products that ask.
   *
   * @example Reply.json<Rows>([Buffer.from('{"rows":['), rows, Buffer.from(']}')])
   */
  static json<Body>(json: Buffer | readonly Buffer[], init: ReplyInit = {}): Reply<Body> {
    return new JsonReply<Body>(json, init)
  }

  /**
   * Answers with server-sent events. The stream ends when its access token expires or is revoked, and when a new edition
   * replaces this one; clients then connect again with the id of the last event. A payment is settled before the first
   * event, and opens the stream again until the payment expires.
   */
  static events(source: AsyncIterable<ServerEvent>): Reply<never> {
    return new Reply(undefined as never, {}, source)
  }
}

/** A reply of JSON that a handler has written itself. `body` is its value, parsed when it is first read. */
export class JsonReply<Body = unknown> extends Reply<Body> {
  readonly json: AnswerBody
  #parsed: { readonly value: Body } | null = null

  constructor(json: Buffer | readonly Buffer[], init: ReplyInit = {}) {
    super(undefined as Body, init)
    this.json = new AnswerBody(Buffer.isBuffer(json) ? [json] : json)
  }

  override get body(): Body {
    return (this.#parsed ??= { value: this.#parse() }).value
  }

  #parse(): Body {
    const value = JSON.parse(this.json.toString()) as Body
    return isShared(this) ? frozen(value) : value
  }
}
