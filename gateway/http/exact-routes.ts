/**
 * Answers requests at the exact address of an operation before Express sees them. Nearly every request is one: its raw
 * method and path are, byte for byte, those of an operation without path parameters, or of a request that the router led to
 * an operation with them. Every other request, every other spelling of a path included, goes to the router, which calls the
 * same handler.
 *
 * Two kinds of answers are made beforehand: the 402 of an unpaid call, whose head and body are built once per quote, and
 * the constant answers of free operations, such as documents.
 *
 * If a thousand addresses are called in turn, the processor has hardly any of their objects in its caches. So as few objects
 * as possible lie between an address and the bytes that are sent.
 */
import type { Request } from 'express'
import { LRUCache } from 'lru-cache'
import type { CallCount } from '../accounting/metrics.ts'
import { isConstantAnswer } from '../calls/answers.ts'
import { type Awaitable, isPromise } from '../awaitable.ts'
import type { Answer } from '../calls/request-and-answer.ts'
import { type AllQuotes, offerAnswer, type Quotes } from '../calls/serve.ts'
import type { BoundOperation, CurrentEdition, Edition } from '../editions/edition.ts'
import { type Operation, TOKEN_HEADER } from '../plugin/catalog.ts'
import type { Quote } from '../x402/challenge.ts'
import type { HeaderSets } from './headers.ts'
import type { Limits } from './rate-limit.ts'
import type { CallerAddresses } from './caller-address.ts'
import { beginVisit, headerToken, PAYMENT_HEADERS, type Visit } from './request.ts'
import { hasBody } from './request-body.ts'
import { RepeatedHead } from './repeated-head.ts'
import { parseTarget, publicUrl } from './request-target.ts'
import { challengeHeaders } from './respond.ts'
import type { Listener } from './server.ts'

/** What answers calls of priced routes without payment or token. */
export interface UnpaidCalls extends AllQuotes {
  /** The count of such calls of an operation. */
  countOf(operation: Operation): CallCount
}

export interface ExactRouteParts {
  readonly editions: CurrentEdition
  /** Logs a visit when it is over. */
  readonly logVisit: (visit: Visit) => void
  /** Answers unpaid calls of priced routes. If absent, `handle` answers them too. */
  readonly unpaid?: UnpaidCalls
  readonly headers: HeaderSets
  readonly baseUrl: string
  readonly callers: CallerAddresses
  readonly limits: Limits
  /** Aborts when the server begins to close. From then on the router answers, and closes connections. */
  readonly closing: { readonly signal: AbortSignal }
}

/** Handles requests as the router does. */
export interface Handlers {
  /** What answers at an exact address without being an operation, by method and path. */
  readonly endpoints: ReadonlyMap<string, (visit: Visit) => Promise<void>>
  /** Serves the operation, sends its answer and returns it. */
  handle(visit: Visit, bound: BoundOperation): Awaitable<Answer>
  /** Sends an answer that was made before. */
  repeat(visit: Visit, bound: BoundOperation, answer: Answer): void
  fail(visit: Visit, error: unknown): void
}

export interface ExactRoutes {
  /** Answers at exact addresses and passes all other requests to the router. */
  readonly listener: Listener
  /** Takes the address of a request that the router led to an operation with path parameters. */
  add(visit: Visit, bound: BoundOperation): void
}

interface ExactRoute {
  readonly bound: BoundOperation
  /** The name of its operation's route. */
  readonly name: string
  /** The values of the path's parameters; null without parameters. */
  readonly params: Request['params'] | null
  /** The public URL of the address. */
  readonly url: string
  readonly limit: keyof Limits
  readonly isPriced: boolean
  /** The count of its unpaid calls; null if they are not answered here. */
  readonly count: CallCount | null
  /** What they are answered with; null before the first. */
  quotes: Quotes | null
  /** The last 402. */
  offer: Offer | null
  /** The revision of the quotes that the last 402 is of; 0 if it has to be asked for each time. */
  revision: number
  /** The constant answer to calls without input, once a call has shown that it is constant. */
  constant: Answer | null
}

const CREDENTIALS = [...PAYMENT_HEADERS, TOKEN_HEADER.toLowerCase()]

/** The 402 of a quote. */
class Offer extends RepeatedHead {
  readonly quote: Quote
  readonly body: Buffer

  /** @param headers of every answer */
  constructor(operation: Operation, quote: Quote, headers: HeaderSets['data']) {
    const { status, headers: own, body } = offerAnswer(quote)
    super(status, Object.entries({ ...headers, ...own, ...challengeHeaders(operation, quote) }).flat())
    this.quote = quote
    this.body = body.bytes
  }
}

/** Addresses with path parameters that are known. Anybody can ask for any address, so not more, and no long ones. */
const MAX_ADDED = 2_000
const MAX_ADDED_CHARACTERS = 300

/** The routes of an edition by method and path. */
interface Table {
  readonly fixed: ReadonlyMap<string, ExactRoute>
  /** Those with path parameters. */
  readonly added: LRUCache<string, ExactRoute>
}

/** Creates the routes. Requests at all other addresses go to the router. */
export function createExactRoutes(parts: ExactRouteParts, handlers: Handlers, router: Listener): ExactRoutes {
  const { editions, unpaid, closing, logVisit, callers, limits, baseUrl } = parts
  const tables = new WeakMap<Edition, Table>()
  const offers = new WeakMap<Quote, Offer>()

  function tableOf(edition: Edition): Table {
    const known = tables.get(edition)
    if (known) return known
    const fixed = new Map<string, ExactRoute>()
    for (const bound of edition.bound.values()) {
      const { method, path } = bound.operation
      if (hasExactAddress(bound)) fixed.set(`${method} ${path}`, routeTo(bound, path, null))
    }
    const table = { fixed, added: new LRUCache<string, ExactRoute>({ max: MAX_ADDED }) }
    tables.set(edition, table)
    return table
  }

  function routeTo(bound: BoundOperation, path: string, params: ExactRoute['params']): ExactRoute {
    const { route: name, price, retired } = bound.operation
    const isPriced = price !== null && !retired
    return {
      bound,
      name,
      params,
      url: publicUrl(baseUrl, { path, search: '' }),
      limit: price === null ? 'free' : 'sales',
      isPriced,
      count: isPriced && unpaid ? unpaid.countOf(bound.operation) : null,
      quotes: null,
      offer: null,
      revision: 0,
      constant: null,
    }
  }

  function sendOffer(unpaid: UnpaidCalls, visit: Visit, route: ExactRoute): void {
    const revision = unpaid.revision()
    const known = route.revision === revision ? route.offer : null
    const offer = known ?? renewOffer(unpaid, visit, route, revision)
    if (route.count) route.count.untold += 1
    offer.write(visit.response, visit.id, offer.body.length)
    visit.response.end(offer.body)
  }

  /** The 402 for a call, kept for the calls that follow. */
  function renewOffer(unpaid: UnpaidCalls, { edition, target }: Visit, route: ExactRoute, revision: number): Offer {
    const { bound, params, url } = route
    const hasInput = target.search !== '' || params !== null
    const quotes = (route.quotes ??= unpaid.at(edition, bound, url))
    const quote = quotes(hasInput ? url + target.search : undefined)
    const offer = route.offer?.quote === quote ? route.offer : offerOf(bound, quote)
    route.offer = offer
    if (!bound.fresh) route.revision = revision
    return offer
  }

  function offerOf({ operation }: BoundOperation, quote: Quote): Offer {
    const known = offers.get(quote)
    if (known) return known
    const offer = new Offer(operation, quote, parts.headers.data)
    offers.set(quote, offer)
    return offer
  }

  function answer(visit: Visit, route: ExactRoute): Awaitable<void> {
    const { bound, params, isPriced, constant } = route
    const { request } = visit
    if (isPriced && unpaid && isBare(request)) return sendOffer(unpaid, visit, route)
    if (params) request.params = params
    const hasInput = params !== null || visit.target.search !== '' || hasBody(request)
    if (constant && !hasInput && isAvailable(bound)) return handlers.repeat(visit, bound, constant)
    const made = handlers.handle(visit, bound)
    const keep = (answer: Answer): void => {
      if (!hasInput && !isPriced && bound.operation.form === null && isConstantAnswer(answer)) route.constant = answer
    }
    return isPromise(made) ? made.then(keep) : keep(made)
  }

  const listener: Listener = (request, response) => {
    const { url, method } = request
    const edition = editions.current
    const mark = url.indexOf('?')
    const path = mark === -1 ? url : url.slice(0, mark)
    const address = `${method} ${path}`
    const { fixed, added } = tableOf(edition)
    const route = fixed.get(address) ?? added.get(address)
    const endpoint = route ? undefined : handlers.endpoints.get(address)
    if (!(route ?? endpoint) || closing.signal.aborted) return router(request, response)
    const target = { path, search: mark === -1 ? '' : url.slice(mark) }
    const from = callers.of(request)
    const visit = beginVisit(request, response, { edition, target, from, route: route?.name ?? address })
    logVisit(visit)
    try {
      // Endpoints apply the limits themselves.
      if (route) limits[route.limit](from, headerToken(request.headers))
      const answered = route ? answer(visit, route) : endpoint?.(visit)
      if (isPromise(answered)) answered.catch((error: unknown) => handlers.fail(visit, error))
    } catch (error) {
      handlers.fail(visit, error)
    }
  }

  return {
    listener,
    add({ edition, request, target: { path } }, bound) {
      const { method, originalUrl, params } = request
      const isExact = originalUrl.startsWith(path) && ['?', undefined].includes(originalUrl[path.length])
      if (!isExact || method !== bound.operation.method || path.length > MAX_ADDED_CHARACTERS) return
      if (Object.keys(params).length === 0) return
      tableOf(edition).added.set(`${method} ${path}`, routeTo(bound, path, params))
    },
  }
}

/** False if the path of an operation has parameters or leads nowhere. */
function hasExactAddress({ operation: { path, internal } }: BoundOperation): boolean {
  return !internal && path !== '' && !path.includes('{') && parseTarget(path)?.path === path
}

/** True for a request that carries neither a payment nor a token, and does not ask for a page. */
function isBare({ headers }: Request): boolean {
  return CREDENTIALS.every((name) => headers[name] === undefined) && !/text\/html/i.test(headers.accept ?? '')
}

function isAvailable(bound: BoundOperation): boolean {
  try {
    bound.assertAvailable()
    return true
  } catch {
    return false
  }
}
