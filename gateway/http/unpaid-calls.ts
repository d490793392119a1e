/**
 * Answers unpaid calls of priced routes before Express sees them. They are most of what a gateway gets, and each is
 * answered by the same bytes: a 402 whose head and body are built once per quote. A request is answered here only if its
 * raw method and path are exactly those of a priced route. Everything else, every other spelling included, goes to the
 * router.
 */
import { randomUUID } from 'node:crypto'
import type { Request, Response } from 'express'
import type { OfferPrice } from '../calls/serve.ts'
import type { CurrentEdition, Edition } from '../editions/edition.ts'
import { type Operation, TOKEN_HEADER } from '../plugin/catalog.ts'
import type { Logger } from '../plugin/plugin.ts'
import type { Quote } from '../x402/challenge.ts'
import type { HeaderSets } from './headers.ts'
import type { Limiter } from './rate-limit.ts'
import { clientOf, PAYMENT_HEADERS } from './request.ts'
import { logWhenDone } from './request-log.ts'
import { challengeHeaders } from './respond.ts'
import type { Listener } from './server.ts'

export interface UnpaidCallParts {
  readonly editions: CurrentEdition
  readonly offerPrice: OfferPrice
  readonly headers: HeaderSets
  readonly admit: Limiter
  readonly log: Logger
  /** Aborts when the server begins to close. From then on the router answers, and closes connections. */
  readonly closing: { readonly signal: AbortSignal }
}

const CREDENTIALS = [...PAYMENT_HEADERS, TOKEN_HEADER.toLowerCase()]

/** Returns a listener that answers unpaid calls and passes all other requests to `otherwise`. */
export function answerUnpaidCalls(parts: UnpaidCallParts, otherwise: Listener): Listener {
  const routes = new WeakMap<Edition, ReadonlyMap<string, Operation>>()
  const heads = new WeakMap<Quote, readonly string[]>()

  /** The priced operations of an edition by raw method and path. Paths with parameters are left to the router. */
  function routesOf(edition: Edition): ReadonlyMap<string, Operation> {
    const known = routes.get(edition)
    if (known) return known
    const operations = [...edition.bound.values()].map(({ operation }) => operation)
    const found = new Map(operations.filter(isPricedRoute).map((each) => [`${each.method} ${each.path}`, each]))
    routes.set(edition, found)
    return found
  }

  function send(edition: Edition, operation: Operation, request: Request, response: Response): void {
    const { status, headers, body, quote } = parts.offerPrice(edition, operation)
    if (!quote) throw new Error(`the 402 of ${operation.id} has no quote`)
    let head = heads.get(quote)
    if (!head) {
      const fixed = { ...parts.headers.data, ...headers, ...challengeHeaders(operation, quote) }
      head = [...Object.entries(fixed).flat(), 'content-length', String(body.length)]
      heads.set(quote, head)
    }
    const call = randomUUID()
    logWhenDone(parts.log, request, response, () => ({ call, route: operation.route }))
    response.writeHead(status, [...head, 'x-call-id', call])
    response.end(body)
  }

  return (request, response) => {
    if (!isBare(request) || parts.closing.signal.aborted) return otherwise(request, response)
    const edition = parts.editions.current
    const operation = routesOf(edition).get(`${request.method} ${rawPath(request.url)}`)
    if (!operation) return otherwise(request, response)
    parts
      .admit(clientOf(request), null)
      .then(() => send(edition, operation, request, response))
      // The router meets the same obstacle, for example the rate limit, and answers with the right error.
      .catch(() => otherwise(request, response))
  }
}

function isPricedRoute({ price, retired, internal, path }: Operation): boolean {
  return price !== null && !retired && !internal && path !== '' && !path.includes('{')
}

/** True for a request that carries neither a payment nor a token, and does not ask for a page. */
function isBare({ headers }: Request): boolean {
  return CREDENTIALS.every((name) => headers[name] === undefined) && !/text\/html/i.test(headers.accept ?? '')
}

/** The request target up to its query, as it was sent. */
function rawPath(url: string): string {
  const mark = url.indexOf('?')
  return mark === -1 ? url : url.slice(0, mark)
}
