/** An operation with its validators and handler: guarded by a time budget, a schema check and a breaker. */
import type { Operation, OperationId } from '../plugin/catalog.ts'
import { isConstant } from '../catalog/frozen.ts'
import type { Validators } from '../catalog/validators.ts'
import { ServiceError, Unavailable } from '../errors.ts'
import { type Call, type Handler, type Input, type Logger, Reply } from '../plugin/plugin.ts'
import { askFrom } from './ask.ts'
import { withinBudget } from './budget.ts'
import type { BoundOperation, Edition, HandledCall } from './edition.ts'
import type { Instance } from './instance.ts'
import { StreamedReply } from './upstream-request.ts'
import { assertSendable } from './sendable.ts'

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
/** A handler that computes so long without awaiting holds every other call up. */
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

/** Throws Unavailable where an operation that the product asks is withheld or rests: it could not answer a payer. */
export function assertAskable(edition: Edition, product: string, uses: readonly OperationId[]): void {
  for (const id of uses) {
    const asked = edition.bound.get(id)
    if (!asked) throw new Unavailable(`${product} needs ${id}, which is withheld at the moment; nothing was charged.`)
    asked.assertAvailable()
  }
}
