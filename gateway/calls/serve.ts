/** The one flow: every call, over HTTP or MCP, from quote to receipt. */
import type { Operation } from '../plugin/catalog.ts'
import type { BoundOperation, Edition, RawInput } from '../editions/edition.ts'
import { askOf } from '../editions/ask.ts'
import { ServiceError } from '../errors.ts'
import type { PaymentKey } from '../methods/payment-method.ts'
import type { Payments } from '../payments/payments.ts'
import type { PresentedPayment } from '../payments/presented-payment.ts'
import { type PaidAnswer, SettlementError } from '../payments/purchase.ts'
import type { Call, Input, Logger } from '../plugin/plugin.ts'
import type { Tokens } from '../tokens/access-tokens.ts'
import { traced } from '../observe/tracing.ts'
import { type Admission, admit, readmit } from './admit.ts'
import { answerOf, errorAnswer, quoteAnswer } from './answers.ts'
import type { Answer, CallRequest } from './call.ts'
import { fingerprint } from './fingerprint.ts'

export type Serve = (edition: Edition, bound: BoundOperation, request: CallRequest) => Promise<Answer>

export interface ServeParts {
  readonly payments: Payments
  readonly tokens: Tokens
  /** The clock of the data; payments and tokens keep their own. */
  readonly now: () => Date
  readonly log: Logger
}

interface Read {
  readonly raw: RawInput
  /** An error where a payment came that cannot be read. */
  readonly presented: PresentedPayment | ServiceError | null
  readonly kept: PaidAnswer | null
}

/** Made once: collecting where it was thrown would cost more than the rest of a 402. */
const UNPAID = new ServiceError('payment_required')

/** Builds `serve`. It never rejects: a refusal is an answer with `error`, and with `quote` where it is a 402. */
export function createServe(parts: ServeParts): Serve {
  const { payments, log } = parts

  async function flow(edition: Edition, bound: BoundOperation, request: CallRequest): Promise<Answer> {
    const { operation } = bound
    if (operation.retired && !request.credential) throw retired(operation.replacement)
    if (operation.price !== null && !request.credential) throw UNPAID
    const raw = await request.read()
    const presented = operation.price === null ? null : present(operation, request, raw)
    if (presented === null || presented instanceof ServiceError)
      return work(edition, bound, request, { raw, presented, kept: null })
    const { key } = presented
    log.info({ call: request.id, operation: operation.id, payment: key }, 'a payment was presented')
    const kept = await payments.recall(operation, presented)
    const isKept = kept !== null && !kept.again
    const answer = isKept ? kept : await work(edition, bound, request, { raw, presented, kept })
    if (answer.receipt?.success) request.onSent(() => noteDelivery(request.id, key))
    return answer
  }

  /** Validates, admits, has the product make its answer, and settles. `kept`: a stream that is to be fetched again. */
  async function work(edition: Edition, bound: BoundOperation, request: CallRequest, read: Read): Promise<Answer> {
    const { operation } = bound
    const { raw, presented, kept } = read
    if (operation.retired) throw retired(operation.replacement)
    const input = bound.validate(raw)
    bound.assertAvailable()
    const attributes = { 'call.id': request.id, 'operation.id': operation.id }
    const entry = { edition, operation, request, presented }
    const admitted = kept ?? (await traced('admit', attributes, () => admit(parts, entry)))
    if ('status' in admitted && !admitted.again) return admitted
    const admission = 'status' in admitted ? readmit(parts, entry, admitted) : admitted
    let answer: Answer | null = null
    try {
      const call = callOf(edition, bound, request, input, admission)
      const value = await traced('handle', attributes, () => bound.handle(call))
      const made = answerOf(value, operation.view !== null && operation.response === null)
      answer = made
      return await traced('settle', attributes, () => admission.settle(made))
    } catch (error) {
      answer?.stream?.drop()
      await admission.release(error)
      throw error
    }
  }

  /** An answer of which this is not noted is given again more freely, so nothing is lost where it cannot be written. */
  function noteDelivery(call: string, key: PaymentKey): void {
    payments.delivered(key).catch((error: unknown) => log.warn({ call, err: error }, 'a delivery was not noted'))
  }

  /** What was presented, or why it cannot be read: said after validation, so a bad request is told of its own faults. */
  function present(operation: Operation, request: CallRequest, raw: RawInput): PresentedPayment | ServiceError | null {
    // A token alone binds no request, so nothing has to be digested.
    if (request.credential?.payments.length === 0) return null
    try {
      return payments.present(request, fingerprint(operation, raw))
    } catch (error) {
      if (error instanceof ServiceError) return error
      throw error
    }
  }

  return async (edition, bound, request) => {
    try {
      return await flow(edition, bound, request)
    } catch (error) {
      return refuse(error, edition, bound.operation, request)
    }
  }

  function refuse(thrown: unknown, edition: Edition, operation: Operation, request: CallRequest): Answer {
    if (thrown instanceof ServiceError && thrown.status === 402 && operation.price !== null) {
      const answer = quoteAnswer(thrown, payments.quote(edition.catalog, operation, request.url, thrown))
      return thrown instanceof SettlementError ? { ...answer, receipt: thrown.receipt } : answer
    }
    const answer = errorAnswer(thrown, request.id)
    const error = answer.error as ServiceError
    const cause = error.cause ?? (error === thrown ? undefined : thrown)
    // How a product failed has been logged where it did.
    const err = error.code === 'product_failed' ? {} : { err: cause }
    // A product that says it needs a moment is no error.
    const level = error.code === 'product_suspended' ? 'warn' : 'error'
    if (error.status >= 500 && !request.signal.aborted)
      log[level]({ call: request.id, operation: operation.id, code: error.code, ...err }, error.message)
    return thrown instanceof SettlementError ? { ...answer, receipt: thrown.receipt } : answer
  }

  function callOf(
    edition: Edition,
    bound: BoundOperation,
    request: CallRequest,
    input: Input,
    admission: Admission,
  ): Call {
    const { access, asOf, signal } = admission
    const ask = askOf(edition, bound, { callId: request.id, asOf, signal })
    const wish = request.stream ? { stream: request.stream } : {}
    const { operation } = bound
    return { id: request.id, operation, catalog: edition.catalog, input, access, asOf, signal, ask, ...wish }
  }
}

function retired(replacement: string | null): ServiceError {
  const fields = replacement === null ? {} : { replacement }
  return new ServiceError('retired', replacement === null ? undefined : `This route is retired. Use ${replacement}.`, {
    fields,
  })
}
