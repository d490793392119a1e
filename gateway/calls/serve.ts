/** Serves every call, over HTTP or MCP: runs the stages of the pipeline, and undoes what a failed call has taken. */
import { andThen, type Awaitable, isPromise } from '../awaitable.ts'
import { ERRORS, InvalidInput, ServiceError } from '../errors.ts'
import type { PaymentKey } from '../methods/payment-method.ts'
import type { RefusalFields } from '../observe/terminal.ts'
import { presentedPayment } from '../payments/admission.ts'
import type { PaidAnswer } from '../payments/payment.ts'
import type { Payments } from '../payments/payments.ts'
import { SettlementError } from '../payments/purchase.ts'
import type { Refusal } from '../plugin/plugin.ts'
import type { BoundOperation, Edition } from '../products/edition.ts'
import type { HookEvents } from '../products/hook-events.ts'
import type { Swap } from '../products/swap.ts'
import { errorAnswer, quoteAnswer } from './answers.ts'
import {
  admit,
  type Answered,
  type CallState,
  check,
  handle,
  type PipelineParts,
  quote,
  read,
  replay,
  settle,
  validate,
} from './pipeline.ts'
import type { Answer, CallRequest, IncomingCall } from './request-and-answer.ts'

/**
 * Answers one call: at once if nothing has to be waited for, otherwise with a promise. Never throws or rejects: a
 * refusal is an answer with `error`, and a 402 also has a `quote`.
 */
export type Serve = (edition: Edition, bound: BoundOperation, request: CallRequest) => Awaitable<Answer>

interface ServeParts extends PipelineParts {
  /** Keeps the edition of a call alive while the call runs. */
  readonly editions: Pick<Swap, 'during'>
  /** Tells hooks of refused calls. */
  readonly hooks: Pick<HookEvents, 'wantsRefusals' | 'refused'>
}

/** Builds `serve`. */
export function createServe({ editions, hooks, ...parts }: ServeParts): Serve {
  const refuse = (parts: PipelineParts, call: IncomingCall, error: unknown): Answer => {
    const answer = refusalOf(parts, call, error)
    if (call.request.credential?.payments.length && hooks.wantsRefusals) hooks.refused(refusalFor(parts, call, answer))
    return answer
  }
  return (edition, bound, request) =>
    editions.during(edition, () => {
      const call = { edition, bound, request }
      try {
        const answer = run(parts, call)
        return isPromise(answer) ? answer.catch((error: unknown) => refuse(parts, call, error)) : answer
      } catch (error) {
        return refuse(parts, call, error)
      }
    })
}

/** Runs the stages in their order. Throws ServiceError to refuse. */
function run(parts: PipelineParts, call: IncomingCall): Awaitable<Answer> {
  const quoted = step(parts, { stage: 'arrived', call }, quote)
  const checked = step(parts, quoted, check)
  const wasRead = step(parts, checked, read)
  const replayed = step(parts, wasRead, replay)
  const validated = step(parts, replayed, validate)
  const admitted = step(parts, validated, admit)
  const handled = step(parts, admitted, handle)
  return andThen(step(parts, handled, settle), (answered) => noteDelivery(parts, answered))
}

/** Runs one stage, unless an earlier one has answered the call. If it fails, what the call has taken so far is given back. */
function step<State extends Exclude<CallState, Answered>, Next extends CallState>(
  parts: PipelineParts,
  state: Awaitable<State | Answered>,
  stage: (parts: PipelineParts, state: State) => Awaitable<Next>,
): Awaitable<Next | Answered> {
  return andThen(state, (state): Awaitable<Next | Answered> => {
    if (isAnswered(state)) return state
    try {
      const next = stage(parts, state)
      return isPromise(next) ? next.catch((error: unknown) => fail(state, error)) : next
    } catch (error) {
      return fail(state, error)
    }
  })
}

const isAnswered = (state: CallState): state is Answered => state.stage === 'answered'

/** Gives back what a call has taken, and throws the error that says why it failed. */
function fail(state: CallState, error: unknown): Awaitable<never> {
  if ('place' in state) state.place?.leave()
  if (state.stage === 'handled') {
    state.answer.stream?.discard()
    if (state.answer.events) void endUnsent(state.answer.events)
  }
  const bought = 'bought' in state ? state.bought : null
  const thrown = bought ? notOpenedAgain(error, bought) : error
  const release = releaseOf(state)
  if (!release) throw thrown
  return release(error).then(() => {
    throw thrown
  })
}

/** Gives back what was counted or reserved for a call. Undefined if that is nothing. */
function releaseOf(state: CallState): ((error: unknown) => Promise<void>) | undefined {
  const trial = 'trial' in state ? state.trial : null
  if (trial) return () => trial.cancel()
  return 'admission' in state ? state.admission.release : undefined
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

/** The error of a stream that cannot be opened again: products say that nothing was charged, which is wrong here. */
function notOpenedAgain(error: unknown, { receipt }: PaidAnswer): unknown {
  if (!(error instanceof ServiceError) || error instanceof InvalidInput) return error
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

/** Has the delivery of a paid answer recorded, and returns the answer. */
function noteDelivery(parts: PipelineParts, { call: { request }, payment, answer }: Answered): Answer {
  if (!payment || !answer.receipt?.success) return answer
  const note = (): void => recordDelivery(parts, request.id, payment.payment.key)
  // A stream of events may never end: it is delivered when it opens.
  if (!('events' in answer)) request.onSent(note)
  else if (!request.caller.hasLeft) note()
  return answer
}

/** Records that the answer reached its buyer. If that fails, the address that bought it can fetch it for longer. */
function recordDelivery({ payments, log }: PipelineParts, call: string, key: PaymentKey): void {
  payments.journal
    .delivered(key)
    .catch((error: unknown) => log.warn({ call, err: error }, 'a delivery could not be recorded'))
}

/** What hooks are told of a refused call. */
function refusalFor({ payments }: PipelineParts, { bound, request }: IncomingCall, { error }: Answer): Refusal {
  const { code = 'internal', reason = null } = error ?? {}
  return { call: request.id, operation: bound.operation.id, payer: payerOf(payments, request), code, reason }
}

/** The payer that a payment names; null if it cannot be read. */
function payerOf(payments: Payments, request: CallRequest): Refusal['payer'] {
  try {
    return presentedPayment(payments, request)?.payment.payer ?? null
  } catch {
    return null
  }
}

/** The answer to a refused or failed call. Logs what the operator has to know. */
function refusalOf({ quotes, log }: PipelineParts, { edition, bound, request }: IncomingCall, thrown: unknown): Answer {
  const { operation } = bound
  const receipt = thrown instanceof SettlementError ? { receipt: thrown.receipt } : {}
  if (request.credential && thrown instanceof ServiceError && thrown.status < 500) {
    const { code, reason } = thrown
    const named = { call: request.id, operation: operation.id, code }
    const refusal: RefusalFields = reason === undefined ? named : { ...named, reason }
    // Not the message of this refusal, which may quote the caller.
    log.debug(refusal, ERRORS[code].message)
  }
  // A caller who has to sign in gets the challenge, also on a free route.
  const isQuoted = operation.price !== null || (thrown instanceof ServiceError && thrown.code === 'sign_in_required')
  if (thrown instanceof ServiceError && thrown.status === 402 && isQuoted) {
    const notice = bound.fresh?.notice(request.url)
    const quote = quotes.of(edition.catalog).write(operation, request.url, thrown, notice)
    return { ...quoteAnswer(thrown, quote), ...receipt }
  }
  const answer = errorAnswer(thrown, request.id)
  const error = answer.error as ServiceError
  // The operator knows what is paused.
  if (error.status >= 500 && error.code !== 'paused' && !request.caller.hasLeft) {
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
