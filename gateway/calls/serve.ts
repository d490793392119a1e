/**
 * The flow of every call, over HTTP or MCP. It takes these steps, in this order:
 *
 * 1. quote: an unpaid call of a priced route gets its 402, before anything is read;
 * 2. check: so does a call whose token is not valid, or whose payment could not be accepted, whatever its input is;
 * 3. read: the body is read and decoded; heavy free work is refused before that if its queue is full, and queued as soon
 *    as its body has arrived;
 * 4. replay: a payment that already bought an answer gets that answer again;
 * 5. validate: the input must fit the schema and the product must be available;
 * 6. admit: free access, access token or payment; a payment is checked in full and reserved; heavy work is queued;
 * 7. handle: the product makes its answer;
 * 8. settle: the answer is stored, the payment is settled, and only then does the answer leave.
 */
import { andThen, type Awaitable, isPromise } from '../awaitable.ts'
import type { Operation } from '../plugin/catalog.ts'
import type { BoundOperation, Edition, RawInput } from '../editions/edition.ts'
import type { Place, WorkQueues } from '../editions/work-queues.ts'
import { type Access, type Input, Reply } from '../plugin/plugin.ts'
import { InvalidInput, ServiceError } from '../errors.ts'
import { traced } from '../observe/tracing.ts'
import type { PaymentKey } from '../methods/payment-method.ts'
import type { Payments } from '../payments/payments.ts'
import type { OfflineCheck, PresentedPayment, UnreadPayment } from '../payments/presented-payment.ts'
import { type PaidAnswer, SettlementError } from '../payments/purchase.ts'
import type { Logger } from '../plugin/plugin.ts'
import type { Quote } from '../x402/challenge.ts'
import { admit, type Admission, type AdmitParts, readmit, readToken, type TokenCheck } from './admit.ts'
import { answerOf, errorAnswer, quoteAnswer } from './answers.ts'
import type { Answer, CallRequest, IncomingCall } from './request-and-answer.ts'
import { fingerprint } from './fingerprint.ts'

/**
 * Answers one call: at once if nothing has to be waited for, otherwise with a promise. Never throws or rejects: a refusal
 * is an answer with `error`, and a 402 also has a `quote`.
 */
export type Serve = (edition: Edition, bound: BoundOperation, request: CallRequest) => Awaitable<Answer>

export interface ServeParts extends AdmitParts {
  readonly payments: Payments
  /** Admits heavy work. */
  readonly queues: WorkQueues
  readonly log: Logger
}

/** Builds `serve`. */
export function createServe(parts: ServeParts): Serve {
  return (edition, bound, request) => {
    const call = { edition, bound, request }
    try {
      const answer = answerCall(parts, call)
      return isPromise(answer) ? answer.catch((error: unknown) => refusalOf(parts, call, error)) : answer
    } catch (error) {
      return refusalOf(parts, call, error)
    }
  }
}

/** Steps 1 to 4, then the rest of the flow. Throws ServiceError to refuse. */
function answerCall(parts: ServeParts, call: IncomingCall): Awaitable<Answer> {
  const { request, bound } = call
  const { operation } = bound
  assertCredential(operation, request)
  const readAndProduce = (): Awaitable<Answer> =>
    andThen(request.read(), (raw) => produce(parts, call, raw, null, null))
  if (operation.price === null) {
    const place = parts.queues.open(operation, placeOf(request))
    return place ? produceInPlace(parts, call, place) : readAndProduce()
  }
  return andThen(readToken(parts, call), (token) => {
    if (request.credential?.payments.length !== 0) return answerPaid(parts, call, token)
    // A token is not bound to a request: without a payment there is nothing to digest.
    if (token && 'refusal' in token) throw refused(operation, token.refusal)
    return readAndProduce()
  })
}

/** Steps 3 to 8 for a free call that takes a place in its queue. */
async function produceInPlace(parts: ServeParts, call: IncomingCall, place: Place): Promise<Answer> {
  const { request } = call
  const take = (): void => place.take(request.bodyBytes)
  try {
    const raw = await request.read(take)
    // A call without a body has nothing that could arrive.
    take()
    return await produce(parts, call, raw, null, null)
  } finally {
    place.leave()
  }
}

/** Steps 2 to 4 for a call with a payment, then the rest of the flow. */
async function answerPaid(parts: ServeParts, call: IncomingCall, token: TokenCheck): Promise<Answer> {
  const { payments, log } = parts
  const { request, bound } = call
  const { operation } = bound
  const isOpen = token !== null && !('refusal' in token)
  const unread = readPayment(payments, request)
  if (unread instanceof ServiceError) {
    if (!isOpen) throw refused(operation, unread)
    return produce(parts, call, await request.read(), null, null)
  }
  log.info({ call: request.id, operation: operation.id, payment: unread.payment.key }, 'a payment was presented')
  const checked = isOpen ? null : await checkEarly(parts, call, unread)
  const raw = await request.read()
  const payment = { ...unread, fingerprint: await fingerprint(operation, raw), checked }
  const bought = await payments.replay(operation, payment)
  const answer = bought
    ? await sendAgain(parts, call, raw, payment, bought)
    : await produce(parts, call, raw, payment, null)
  if (!answer.receipt?.success) return answer
  if (!bought) await payments.sold(payment)
  const note = (): void => noteDelivery(parts, request.id, payment.payment.key)
  // A stream of events may never end: it is delivered when it opens.
  if (!('events' in answer)) request.onSent(note)
  else if (!request.caller.hasLeft) note()
  return answer
}

/** The answer that a payment has bought before. The product makes a stream again. */
async function sendAgain(
  parts: ServeParts,
  call: IncomingCall,
  raw: RawInput,
  payment: PresentedPayment,
  bought: PaidAnswer,
): Promise<Answer> {
  if (!bought.mustRefetch) return bought
  const produced = (async () => produce(parts, call, raw, payment, bought))()
  return orNotOpenedAgain(produced, bought)
}

/** The stream, or the error of one that cannot be opened again: products say that nothing was charged, which is wrong here. */
async function orNotOpenedAgain(opened: Awaitable<Answer>, { receipt }: PaidAnswer): Promise<Answer> {
  try {
    return await opened
  } catch (error) {
    throw error instanceof ServiceError && !(error instanceof InvalidInput) ? notOpenedAgain(error, receipt) : error
  }
}

function notOpenedAgain(error: ServiceError, receipt: PaidAnswer['receipt']): ServiceError {
  const { code, reason, headers, fields, retry } = error
  const advice =
    retry === 'after_delay' ? ' now. Send the same request with the same payment again until it expires.' : '.'
  return new ServiceError(
    code,
    `This payment was settled before, and its stream cannot be opened again${advice} Do not sign a new payment for it.`,
    {
      ...(reason === undefined ? {} : { reason }),
      headers,
      fields: { ...fields, transaction: receipt?.transaction ?? null },
      cause: error.cause ?? error,
    },
  )
}

/** Whose share of the queues of heavy work a call uses. Callers on this machine share one. */
const placeOf = ({ callerPlace = 'loopback' }: CallRequest): string => callerPlace

/** What can be known about a payment before its request is read. */
async function checkEarly(
  { payments }: ServeParts,
  { edition, bound: { operation } }: IncomingCall,
  unread: UnreadPayment,
): Promise<OfflineCheck | null> {
  try {
    return await payments.checkEarly(operation, unread, edition.catalog.version)
  } catch (error) {
    throw error instanceof ServiceError && error.status === 402 ? refused(operation, error) : error
  }
}

/**
 * Steps 5 to 8.
 *
 * @param payment null if none was sent, or it cannot be read and a token takes its place
 * @param bought set when the payment already bought a stream, which has to be fetched again
 */
function produce(
  parts: ServeParts,
  call: IncomingCall,
  raw: RawInput,
  payment: PresentedPayment | null,
  bought: PaidAnswer | null,
): Awaitable<Answer> {
  const { bound, request } = call
  const { operation } = bound
  if (operation.retired) throw retiredError(operation.replacement)
  // A free call already has its place in the queue. A priced one takes it once its payment is reserved.
  const isQueuedLater = operation.price !== null && bought === null
  if (isQueuedLater) parts.queues.assertRoom(operation, placeOf(request), request.bodyBytes)
  const input = bound.validate(raw)
  bound.assertAvailable()

  const traces = { id: request.id, operation: operation.id }
  const admitted = bought ?? traced('admit', traces, () => admit(parts, call, input, payment))
  return andThen(admitted, (admitted) => {
    if (!('status' in admitted)) return handle(call, input, admitted, isQueuedLater ? parts.queues : null)
    if (!admitted.mustRefetch) return admitted
    const opened = handle(call, input, readmit(parts, call, admitted), null)
    return bought ? opened : orNotOpenedAgain(opened, admitted)
  })
}

/**
 * Steps 7 and 8.
 *
 * @param queues the queues in which the call needs a place; null if it has one or needs none
 */
function handle(call: IncomingCall, input: Input, admission: Admission, queues: WorkQueues | null): Awaitable<Answer> {
  const { edition, bound, request } = call
  const { operation } = bound
  const traces = { id: request.id, operation: operation.id }
  let answer: Answer | null = null
  let place: Place | null = null
  const fail = async (error: unknown): Promise<never> => {
    place?.leave()
    answer?.stream?.discard()
    if (answer?.events) void endUnsent(answer.events)
    await admission.release(error)
    throw error
  }
  try {
    place = queues?.enter(operation, placeOf(request), request.bodyBytes) ?? null
    const { access, asOf } = admission
    const handled = {
      id: request.id,
      operation,
      catalog: edition.catalog,
      input,
      access,
      asOf,
      ...(request.stream ? { stream: request.stream } : {}),
      caller: request.caller,
      claimed: request,
    }
    const value = traced('handle', traces, () => bound.handle(handled))
    const settled = andThen(value, (value) => {
      place?.leave()
      if (isUnsoldEmpty(operation, access, value)) throw new ServiceError('empty_not_sold')
      const produced = answerOf(value, operation.view !== null && operation.response === null)
      answer = produced
      if (produced.events && request.transport === 'mcp') throw new InvalidInput([STREAM_IN_TOOL])
      if (produced.events) request.takeStreamPlace?.(access.kind === 'token')
      return traced('settle', traces, () => admission.settle(produced))
    })
    return isPromise(settled) ? settled.catch(fail) : settled
  } catch (error) {
    return fail(error)
  }
}

/**
 * Ends a stream that was never sent. Code of the product runs: that it fails or hangs must not keep the payment
 * reserved.
 */
async function endUnsent(events: AsyncIterable<unknown>): Promise<void> {
  try {
    await events[Symbol.asyncIterator]().return?.()
  } catch {
    // The call has ended with an error of its own.
  }
}

/** True if an answer is not sold because it says that nothing happened. */
function isUnsoldEmpty({ sellEmpty }: Operation, { kind }: Access, value: unknown): boolean {
  return !sellEmpty && kind === 'payment' && value instanceof Reply && value.empty
}

const STREAM_IN_TOOL = {
  loc: ['tool'],
  msg: 'answers with a stream of events, which a tool call cannot carry; call its route over HTTP',
  type: 'stream',
} as const

/**
 * The quotes of a priced route for calls of one address without payment or token. A quote is the same object as long as it
 * says the same.
 *
 * @param input the public URL with its query; absent if the call has neither a query nor path parameters
 */
export type Quotes = (input?: string) => Quote

/**
 * Returns the quotes of an address.
 *
 * @param url its public URL without a query
 */
type QuotesAt = (edition: Edition, bound: BoundOperation, url: string) => Quotes

/** The quotes of all addresses. */
export interface AllQuotes {
  readonly at: QuotesAt
  /** Returns the revision of the quotes. While it is the same, so is a quote that does not depend on data. */
  revision(): number
}

/** Builds the quotes. They are those of `serve`; of the request, only the URL is looked at. */
export function createQuotes({ payments }: { payments: Payments }): AllQuotes {
  return {
    at({ catalog }, { operation, fresh }, url) {
      const quotes = payments.quotesAt(catalog, operation, url)
      return fresh ? (input) => quotes(fresh.notice(input)) : () => quotes()
    },
    revision: () => payments.revision(),
  }
}

/** The 402 with a quote of `quotesAt`. */
export function offerAnswer(quote: Quote): Answer {
  return quoteAnswer(PAYMENT_REQUIRED, quote)
}

/** Created once: capturing a stack trace per call would cost more than the rest of a 402. */
const PAYMENT_REQUIRED = new ServiceError('payment_required')

/** Refuses a call without payment or token, unless the route is free. */
function assertCredential(operation: Operation, { credential }: CallRequest): void {
  if (credential) return
  if (operation.retired) throw retiredError(operation.replacement)
  if (operation.price !== null) throw PAYMENT_REQUIRED
}

/** The payment of a call that has one. An unreadable one is returned as an error, because a token may take its place. */
function readPayment(payments: Payments, request: CallRequest): UnreadPayment | ServiceError {
  try {
    return payments.present(request) ?? PAYMENT_REQUIRED
  } catch (error) {
    if (error instanceof ServiceError) return error
    throw error
  }
}

/** Refuses an invalid credential. As without a credential, a retired route says that it is retired. */
function refused({ retired, replacement }: Operation, error: ServiceError): ServiceError {
  return retired ? retiredError(replacement) : error
}

/** Records that the answer reached its buyer. If that fails, the address that bought it can fetch it for longer. */
function noteDelivery({ payments, log }: ServeParts, call: string, key: PaymentKey): void {
  payments.delivered(key).catch((error: unknown) => log.warn({ call, err: error }, 'a delivery could not be recorded'))
}

/** The answer to a refused or failed call. Logs what the operator has to know. */
function refusalOf({ payments, log }: ServeParts, { edition, bound, request }: IncomingCall, thrown: unknown): Answer {
  const { operation } = bound
  const receipt = thrown instanceof SettlementError ? { receipt: thrown.receipt } : {}
  // Whoever has to sign in gets the challenge, also on a free route.
  const isQuoted = operation.price !== null || (thrown instanceof ServiceError && thrown.code === 'sign_in_required')
  if (thrown instanceof ServiceError && thrown.status === 402 && isQuoted) {
    const quote = payments.quote(edition.catalog, operation, request.url, thrown, bound.fresh?.notice(request.url))
    return { ...quoteAnswer(thrown, quote), ...receipt }
  }
  const answer = errorAnswer(thrown, request.id)
  const error = answer.error as ServiceError
  if (error.status >= 500 && !request.caller.hasLeft) {
    const cause = error.cause ?? (error === thrown ? undefined : thrown)
    // The failure of a product was logged with its cause when it happened.
    const err = error.code === 'product_failed' ? {} : { err: cause }
    // A product that asks for a pause, or whose data are late, is not a failure.
    const isExpected = error.code === 'product_suspended' || error.code === 'data_stale'
    const level = isExpected ? 'warn' : 'error'
    log[level]({ call: request.id, operation: operation.id, code: error.code, ...err }, error.message)
  }
  return { ...answer, ...receipt }
}

function retiredError(replacement: string | null): ServiceError {
  if (replacement === null) return new ServiceError('retired')
  return new ServiceError('retired', `This route is retired. Use ${replacement}.`, { fields: { replacement } })
}
