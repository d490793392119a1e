/**
 * The 402s of calls without payment or token. Anybody may ask for any number of them, so they are sent without `serve`, and
 * the head and body of each quote are written once.
 */
import type { Request } from 'express'
import type { CallCount } from '../accounting/metrics.ts'
import { quoteAnswer } from '../calls/answers.ts'
import { PAYMENT_REQUIRED } from '../calls/pipeline.ts'
import type { Quotes } from '../calls/quotes.ts'
import type { BoundOperation } from '../products/edition.ts'
import { type Operation, TOKEN_HEADER } from '../plugin/catalog.ts'
import type { Quote } from '../x402/challenge.ts'
import type { HeaderSets } from './headers.ts'
import { PAYMENT_HEADERS, type Visit } from './request.ts'
import { publicUrl } from './request-target.ts'
import { challengeHeaders } from './respond.ts'

/** Answers calls of priced routes without payment or token. */
export interface UnpaidCalls extends Quotes {
  /** The count of such calls of an operation. */
  countOf(operation: Operation): CallCount
  /** Whether an operation is paused: then it has no 402. */
  isPaused(operation: Operation): boolean
}

/** The 402 of a quote. */
interface Offer {
  readonly status: number
  /** Names and values in turn, without the id of the call. */
  readonly headers: readonly string[]
  readonly body: Buffer
}

const CREDENTIALS = [...PAYMENT_HEADERS, TOKEN_HEADER.toLowerCase()]

/** True for a request to a priced route that has neither a payment nor a token, is no trial call, and wants no page. */
export function isUnpaid({ headers }: Request, { price, retired, trial }: Operation): boolean {
  if (price === null || retired || trial) return false
  return CREDENTIALS.every((name) => headers[name] === undefined) && !/text\/html/i.test(headers.accept ?? '')
}

/** Returns the function that sends the 402 of an unpaid call. */
export function createUnpaidAnswers(
  unpaid: UnpaidCalls,
  { data }: HeaderSets,
  baseUrl: string,
): (visit: Visit, bound: BoundOperation) => void {
  const offers = new WeakMap<Quote, Offer>()

  function offerOf(operation: Operation, quote: Quote): Offer {
    const known = offers.get(quote)
    if (known) return known
    const { status, headers, body } = quoteAnswer(PAYMENT_REQUIRED, quote)
    const length = { 'content-length': String(body.length) }
    const all = { ...data, ...headers, ...challengeHeaders(operation, quote), ...length }
    const offer = { status, headers: Object.entries(all).flat(), body: body.bytes }
    offers.set(quote, offer)
    return offer
  }

  return ({ response, edition, target: { path, search }, id }, bound) => {
    const { operation } = bound
    const url = publicUrl(baseUrl, { path, search: '' })
    const hasInput = search !== '' || operation.path.includes('{')
    const notice = bound.fresh?.notice(hasInput ? url + search : undefined)
    const quote = unpaid.of(edition.catalog).at(operation, url)(notice)
    const { status, headers, body } = offerOf(operation, quote)
    unpaid.countOf(operation).unreported += 1
    response.writeHead(status, headers.concat('x-call-id', id)).end(body)
  }
}
