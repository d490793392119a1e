/** An operation bound to its handler: input validation, a timeout, a check of the answer, and a circuit breaker. */
import { validateHeaderName, validateHeaderValue } from 'node:http'
import { isConstant } from '../catalog/frozen.ts'
import type { Validators } from '../catalog/validators.ts'
import { askFrom } from './ask.ts'
import type { BoundOperation, Edition, HandledCall } from './edition.ts'
import type { Instance } from './instance.ts'
import { StreamedReply } from './upstream.ts'
import { ServiceError, Unavailable } from '../errors.ts'
import type { Operation, OperationId } from '../plugin/catalog.ts'
import { type Call, type Handler, type Input, type Logger, Reply } from '../plugin/plugin.ts'

export interface BindParts {
  readonly operation: Operation
  readonly instance: Instance
  readonly validators: Validators
  readonly edition: () => Edition
  /** Operations that the product asks. */
  readonly uses: readonly OperationId[]
  /** False: only a sample of the answers is checked. */
  readonly checkAnswers: boolean
  readonly log: Logger
}

const SAMPLE_EVERY = 100
/** A handler that computes this long without awaiting delays every other call. */
const HELD_UP_MS = 1_000

export function bind({ operation, instance, validators, edition, uses, checkAnswers, log }: BindParts): BoundOperation {
  const breaker = instance.breaker(operation.id)
  const isUpstream = instance.plugin === null
  const handler = instance.handlers[operation.handler] as Handler

  const { freshness } = instance
  const fitting = new WeakSet<object>()

  function assertFits(answer: unknown): void {
    if (operation.internal || (isConstant(answer) && fitting.has(answer))) return
    if (answer instanceof Reply && !(answer instanceof StreamedReply)) assertSendable(answer)
    const isSampled = instance.answered(operation.id) % SAMPLE_EVERY === 1
    if (!checkAnswers && !isSampled) return
    if (answer instanceof StreamedReply) return
    if (answer instanceof Reply && (answer.source || answer.status >= 300)) return
    const wrong = validators.answer(answer instanceof Reply ? answer.body : answer)
    if (wrong !== null) throw new Error(`the answer of ${operation.id} breaks its schema: ${wrong}`)
    if (isConstant(answer)) fitting.add(answer)
  }

  function run(call: Call): unknown {
    const began = performance.now()
    const answer = handler(call)
    const ms = Math.round(performance.now() - began)
    if (ms >= HELD_UP_MS)
      log.warn({ call: call.id, operation: operation.id, ms }, 'a handler held every other call up; see "upstream"')
    return answer
  }

  async function handle(call: HandledCall): Promise<unknown> {
    const { asOf, id: callId } = call
    const heldBackSeconds = operation.maxFreshnessSeconds
    const answer = await withinBudget(operation.timeoutSeconds, call.signal, (signal) =>
      run({
        ...call,
        signal,
        ask: askFrom(edition(), operation.product, { asOf, signal, callId, heldBackSeconds }),
      }),
    )
    assertFits(answer)
    return answer
  }

  return {
    operation,
    isUpstream,
    validate(raw) {
      const input = validators.input(raw)
      return isUpstream && raw.forwarded ? { ...input, forwarded: raw.forwarded } : input
    },
    async handle(call) {
      if (operation.retired) throw new ServiceError('retired')
      try {
        const answer = await handle(call)
        breaker.succeeded()
        return answer
      } catch (error) {
        const isOurs = error instanceof ServiceError
        const isFailure = !isOurs || (error.code === 'product_timeout' && !call.signal.aborted)
        if (!isFailure) throw error
        breaker.failed()
        const cause = isOurs ? {} : { err: error }
        log.error({ ...cause, call: call.id, operation: operation.id }, isOurs ? error.message : 'a product failed')
        throw isOurs ? error : new ServiceError('product_failed', undefined, { cause: error })
      }
    },
    ...(freshness
      ? { freshness: async (input: Input, asOf: Date) => freshness({ ...input, operation: operation.id }, asOf) }
      : {}),
    assertAvailable() {
      if (operation.plan && !operation.plan.enabled)
        throw new Unavailable(`The plan ${operation.plan.plan} is not sold at the moment; nothing was charged.`)
      breaker.assertClosed()
      const isFreePage = operation.price === null && !operation.internal
      if (!isFreePage) assertAskable(edition(), operation.product, uses)
    },
  }
}

/** Throws Unavailable if an operation that the product uses is disabled or paused: the product could not answer a payer. */
export function assertAskable(edition: Edition, product: string, uses: readonly OperationId[]): void {
  for (const id of uses) {
    const asked = edition.bound.get(id)
    if (!asked) throw new Unavailable(`${product} needs ${id}, which is withheld at the moment; nothing was charged.`)
    asked.assertAvailable()
  }
}

/**
 * Runs the work with a signal that aborts when the time is spent or the outer signal aborts. Then the promise is
 * abandoned and ServiceError product_timeout is thrown at once.
 */
export async function withinBudget<Value>(
  seconds: number,
  outer: AbortSignal,
  work: (signal: AbortSignal) => Value | Promise<Value>,
): Promise<Value> {
  const budget = new AbortController()
  const { signal } = budget
  const ended = new Promise<never>((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason as ServiceError), { once: true })
  })
  const stop = (message: string): void => budget.abort(new ServiceError('product_timeout', message))
  const leave = (): void => stop('The caller left before the answer; nothing was charged.')
  const timer = setTimeout(
    () => stop(`The product took longer than ${seconds} second${seconds === 1 ? '' : 's'}; nothing was charged.`),
    seconds * 1000,
  )
  if (outer.aborted) leave()
  else outer.addEventListener('abort', leave, { once: true })
  try {
    return await Promise.race([ended, signal.aborted ? ended : (async () => work(signal))()])
  } finally {
    clearTimeout(timer)
    outer.removeEventListener('abort', leave)
  }
}

/** Headers that the transport and the payment write themselves. */
const OURS =
  /^(connection|content-encoding|content-length|keep-alive|te|trailer|transfer-encoding|upgrade|x-call-id|x-payment-response)$|^(access-control|payment|proxy)-/i

/** Throws if the status is not an HTTP status, or a header is malformed or reserved for the gateway. */
export function assertSendable({ status, headers }: Reply): void {
  if (!Number.isInteger(status) || status < 200 || status > 599) throw new Error(`${status} is no status of an answer`)
  for (const [name, value] of Object.entries(headers)) {
    validateHeaderName(name)
    validateHeaderValue(name, value)
    if (OURS.test(name)) throw new Error(`the header ${name} is not a product's to write`)
  }
}
