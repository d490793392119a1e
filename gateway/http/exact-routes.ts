/**
 * Answers requests at the exact address of an operation before Express sees them. Nearly every request is one: its raw
 * method and path are, byte for byte, those of an operation without path parameters. Every other request, every other
 * spelling of a path included, goes to the router, which calls the same handler.
 *
 * Two kinds of answers are made beforehand: the 402 of an unpaid call, whose head and body are built once per quote, and
 * the constant answers of free operations, such as documents.
 */
import type { Request } from 'express'
import { isConstantAnswer } from '../calls/answers.ts'
import { type Awaitable, isPromise } from '../awaitable.ts'
import type { Answer } from '../calls/request-and-answer.ts'
import type { OfferPrice } from '../calls/serve.ts'
import type { BoundOperation, CurrentEdition, Edition } from '../editions/edition.ts'
import { type Operation, TOKEN_HEADER } from '../plugin/catalog.ts'
import type { Quote } from '../x402/challenge.ts'
import type { HeaderSets } from './headers.ts'
import type { Limits } from './rate-limit.ts'
import type { CallerAddresses } from './caller-address.ts'
import { beginVisit, headerToken, PAYMENT_HEADERS, type Visit } from './request.ts'
import { hasBody } from './request-body.ts'
import { RepeatedHead } from './repeated-head.ts'
import { parseTarget } from './request-target.ts'
import { challengeHeaders } from './respond.ts'
import type { Listener } from './server.ts'

export interface ExactRouteParts {
  readonly editions: CurrentEdition
  /** Logs a visit when it is over. */
  readonly logVisit: (visit: Visit) => void
  /** Answers unpaid calls of priced routes. If absent, `handle` answers them too. */
  readonly offerPrice?: OfferPrice
  readonly headers: HeaderSets
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

interface ExactRoute {
  readonly answer: (visit: Visit) => Awaitable<void>
  readonly bound: BoundOperation
  readonly isPriced: boolean
  /** The constant answer to calls without input, once a call has shown that it is constant. */
  constant: Answer | null
}

const CREDENTIALS = [...PAYMENT_HEADERS, TOKEN_HEADER.toLowerCase()]

/** Returns a listener that answers at the exact addresses of operations and passes all other requests to `otherwise`. */
export function answerExactRoutes(parts: ExactRouteParts, handlers: Handlers, otherwise: Listener): Listener {
  const { editions, offerPrice, closing, logVisit, callers, limits } = parts
  const tables = new WeakMap<Edition, ReadonlyMap<string, ExactRoute>>()
  const heads = new WeakMap<Quote, RepeatedHead>()

  function tableOf(edition: Edition): ReadonlyMap<string, ExactRoute> {
    const known = tables.get(edition)
    if (known) return known
    const table = new Map<string, ExactRoute>()
    for (const bound of edition.bound.values()) {
      const { method, path, price, retired } = bound.operation
      if (!hasExactAddress(bound)) continue
      const isPriced = price !== null && !retired
      const route: ExactRoute = { answer: (visit) => answer(visit, route), bound, isPriced, constant: null }
      table.set(`${method} ${path}`, route)
    }
    tables.set(edition, table)
    return table
  }

  function sendOffer(offer: OfferPrice, { edition, id, response, target }: Visit, operation: Operation): void {
    const { status, headers, body, quote } = offer(edition, operation, target.search)
    if (!quote) throw new Error(`the 402 of ${operation.id} has no quote`)
    let head = heads.get(quote)
    if (!head) {
      const fixed = { ...parts.headers.data, ...headers, ...challengeHeaders(operation, quote) }
      head = new RepeatedHead(status, Object.entries(fixed).flat())
      heads.set(quote, head)
    }
    head.write(response, id, body.length)
    response.end(body)
  }

  function answer(visit: Visit, route: ExactRoute): Awaitable<void> {
    const { bound, isPriced, constant } = route
    const { request } = visit
    if (isPriced && offerPrice && isBare(request)) return sendOffer(offerPrice, visit, bound.operation)
    const hasInput = visit.target.search !== '' || hasBody(request)
    if (constant && !hasInput && isAvailable(bound)) return handlers.repeat(visit, bound, constant)
    const made = handlers.handle(visit, bound)
    const keep = (answer: Answer): void => {
      if (!hasInput && !isPriced && bound.operation.form === null && isConstantAnswer(answer)) route.constant = answer
    }
    return isPromise(made) ? made.then(keep) : keep(made)
  }

  return (request, response) => {
    const { url, method } = request
    const edition = editions.current
    const mark = url.indexOf('?')
    const path = mark === -1 ? url : url.slice(0, mark)
    const address = `${method} ${path}`
    const route = tableOf(edition).get(address)
    const answerVisit = route?.answer ?? handlers.endpoints.get(address)
    if (!answerVisit || closing.signal.aborted) return otherwise(request, response)
    const target = { path, search: mark === -1 ? '' : url.slice(mark) }
    const from = callers.of(request)
    const visit = beginVisit(request, response, {
      edition,
      target,
      from,
      route: route?.bound.operation.route ?? address,
    })
    logVisit(visit)
    try {
      // Endpoints apply the limits themselves.
      if (route) limits[route.bound.operation.price === null ? 'free' : 'sales'](from, headerToken(request.headers))
      const answered = answerVisit(visit)
      if (isPromise(answered)) answered.catch((error: unknown) => handlers.fail(visit, error))
    } catch (error) {
      handlers.fail(visit, error)
    }
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
