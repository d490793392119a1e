/**
 * An operation bound to its handler: input validation, a timeout, a check of the answer, and a circuit breaker. It
 * decides what counts as a failure of the product.
 */
import { validateHeaderName, validateHeaderValue } from 'node:http'
import { andThen, type Awaitable, isPromise } from '../awaitable.ts'
import { isShared } from '../plugin/immutable.ts'
import { promisesFreshData } from '../catalog/fresh-data.ts'
import type { Validators } from '../catalog/operation-validators.ts'
import { assertUsable, createAsk, createFreshnessOf } from './calls-between-products.ts'
import type { Breaker } from './breaker.ts'
import { isReadingClaim, keepClaim } from './claimed-request.ts'
import type { BoundOperation, Edition, HandledCall } from './edition.ts'
import { FRESHNESS_MS, type FreshnessLook, keepPlanGate, OperationGate, PlanGate } from './freshness.ts'
import type { Instance } from './instantiate.ts'
import type { PauseCheck } from './paused-sales.ts'
import { RUNNING, type RunningCall, type TimeoutOptions, withTimeout } from '../workers/timeout.ts'
import { StreamedReply } from './upstream.ts'
import { nameInput, type NamedInput } from './watched-inputs.ts'
import { InvalidInput, ServiceError, Unavailable } from '../errors.ts'
import type { FreshData, Operation, OperationId } from '../plugin/catalog.ts'
import {
  type Call,
  type Freshness,
  type FreshnessTools,
  type Handler,
  type Input,
  JsonReply,
  type Logger,
  Reply,
  type ServerEvent,
  type WatchedInput,
} from '../plugin/plugin.ts'
import { timeoutSignal } from '../plugin/timeout-signal.ts'

export interface BindParts {
  readonly operation: Operation
  readonly instance: Instance
  readonly validators: Validators
  readonly edition: () => Edition
  /** Operations of other products that this product calls. */
  readonly uses: readonly OperationId[]
  /** True checks every answer against its schema; false checks one in a hundred. */
  readonly checkAnswers: boolean
  /** What the operator has paused. Without it, nothing is. */
  readonly paused?: PauseCheck | undefined
  /** The clock of the data. */
  readonly now: () => Date
  readonly log: Logger
}

/** Shared by the functions of this file. */
interface Context extends BindParts {
  readonly breaker: Breaker
  readonly handler: Handler
  readonly timeout: TimeoutOptions
  /** Whether the handler reads what its caller sent as a proof of a purchase. */
  readonly readsClaim: boolean
  /** Shared answers that passed the check. They never change, so they are checked once. */
  readonly checked: WeakSet<object>
  /** The gate of the plan that the operation sells. */
  readonly planGate: PlanGate | null
}

const SAMPLE_EVERY = 100
/** A handler that computes this long without awaiting delays every other call. */
const BLOCKING_MS = 1_000

/** Binds an operation to its handler, or to the upstream of its product. */
export function bind(parts: BindParts): BoundOperation {
  const { operation, instance, validators } = parts
  const isUpstream = instance.plugin === null
  const handler = instance.handlers[operation.handler] as Handler
  const freshness = freshnessOf(parts)
  const context: Context = {
    ...parts,
    breaker: instance.breaker(operation.id),
    handler,
    timeout: {
      timeoutSeconds: operation.timeoutSeconds,
      queue: operation.queue,
      ...(instance.lost ? { lost: instance.lost } : {}),
    },
    readsClaim: !isUpstream && isReadingClaim(handler),
    checked: new WeakSet(),
    planGate: freshness.fresh instanceof PlanGate ? freshness.fresh : null,
  }
  return {
    operation,
    isUpstream,
    validate(raw) {
      const input = validators.input(raw)
      return isUpstream && raw.forwarded ? Object.assign(input, { forwarded: raw.forwarded }) : input
    },
    bodyRules: () => validators.bodyRules(),
    handle: (call) => handle(context, call),
    ...freshness,
    assertAvailable: () => assertAvailable(context),
  }
}

/** The plugin's report about the data, and the gates that use it to decide whether answers and plans are sold. */
function freshnessOf(parts: BindParts): Pick<BoundOperation, 'freshness' | 'fresh' | 'lookFor'> {
  const { operation, instance, edition, validators, now, log } = parts
  const { id, product, plan } = operation
  if (plan) {
    const opened = (): FreshnessLook[] =>
      plan.authorizes.flatMap((each) => edition().bound.get(each)?.lookFor?.(plan) ?? [])
    return { fresh: new PlanGate({ operation, opened }) }
  }
  const { freshness, watched, lost } = instance
  if (!freshness) return {}
  const read = (input: Input, asOf: Date): Awaitable<Freshness | null> => {
    const { params, query } = input
    const asked = {
      operation: id,
      params,
      query,
      // A large body is parsed when it is read.
      get body() {
        return input.body
      },
    }
    return freshness(asked, asOf, toolsOf(edition(), product, { id, asOf, now: now() }))
  }
  const usual = (): Input | null => usualInput(operation, validators)
  const named = (listed: readonly WatchedInput[]): readonly NamedInput[] => namedInputs(parts, listed, usual() ?? EMPTY)
  const list =
    watched && (() => andThen(watched(id, toolsOf(edition(), product, { id, asOf: now(), now: now() })), named))
  const gate = { read, usual, now, log, ...(list ? { watched: list } : {}), ...(lost ? { lost } : {}) }
  const gateOf = (fresh: FreshData): OperationGate => new OperationGate({ operation: { ...operation, fresh }, ...gate })
  if (promisesFreshData(operation)) {
    const fresh = gateOf(operation.fresh)
    return { freshness: read, fresh, lookFor: (plan) => (plan.fresh ? fresh.demanding(plan.fresh) : fresh.present) }
  }
  if (operation.fresh === 'request') return { freshness: read }
  return { freshness: read, lookFor: (plan) => (plan.fresh ? gateOf(plan.fresh).present : null) }
}

const EMPTY: Input = Object.freeze({ params: {}, query: {}, body: undefined })

/** Completes the inputs that a product lists. Leaves out those that do not fit the schema, and warns of them. */
function namedInputs(
  { operation, validators, log }: BindParts,
  listed: readonly WatchedInput[],
  usual: Input,
): readonly NamedInput[] {
  return listed.flatMap((watched) => {
    try {
      return nameInput(operation, watched, usual, validators) ?? []
    } catch (error) {
      log.warn({ err: error, operation: operation.id, watched }, 'an input cannot be watched, because it is not valid')
      return []
    }
  })
}

/** The tools with which a report asks other products. */
function toolsOf(
  edition: Edition,
  product: string,
  { id, asOf, now }: { readonly id: OperationId; readonly asOf: Date; readonly now: Date },
): FreshnessTools {
  let signal: AbortSignal | null = null
  const asking = {
    id: `freshness:${id}`,
    asOf,
    // Most reports need no I/O, so skip the timer.
    get signal() {
      return (signal ??= timeoutSignal(FRESHNESS_MS))
    },
  }
  const delaySeconds = Math.max(0, (now.getTime() - asOf.getTime()) / 1000)
  return {
    ask: createAsk(edition, product, asking, delaySeconds),
    freshnessOf: createFreshnessOf(edition, product, asOf),
  }
}

/** The input of a call without input if that is valid, otherwise that of the example. */
function usualInput({ example }: Operation, validators: Validators): Input | null {
  for (const { params = {}, query = {}, body } of [{}, example?.request ?? {}] as NonNullable<
    typeof example
  >['request'][])
    try {
      return validators.input({ params, query, body })
    } catch (error) {
      if (!(error instanceof InvalidInput)) throw error
    }
  return null
}

/** Produces the answer and tells the circuit breaker how that went. Throws ServiceError only. */
function handle(context: Context, call: HandledCall): unknown {
  if (context.operation.retired) throw new ServiceError('retired')
  const fail = (error: unknown): never => {
    throw failureOf(context, call, error)
  }
  let answer: unknown
  try {
    answer = produce(context, call)
  } catch (error) {
    return fail(error)
  }
  if (isPromise(answer)) return answer.then((made) => succeed(context, made), fail)
  return succeed(context, answer)
}

function succeed({ breaker }: Context, answer: unknown): unknown {
  breaker.succeeded()
  return answer
}

/** Runs the handler within the operation's timeout and checks its answer. Throws what the handler throws. */
function produce(context: Context, call: HandledCall): unknown {
  const streamEnd = call.stream ? new AbortController() : null
  const running = withTimeout(timeoutOf(context, call), call.caller, (timeout) =>
    run(context, callOf(context, call, timeout, streamEnd)),
  )
  return andThen(running, (answer) => {
    assertValid(context, answer)
    return streamEnd && answer instanceof Reply && answer.source
      ? new Reply(answer.body, answer, endWith(answer.source, call.caller.signal, streamEnd))
      : answer
  })
}

/** A trial call waits for a thread with the free work. */
function timeoutOf({ operation, timeout }: Context, { access, claimed }: HandledCall): TimeoutOptions {
  const isTrial = operation.price !== null && access.kind === 'free' && claimed !== undefined
  return isTrial ? { ...timeout, queue: 'free' } : timeout
}

/** The call as the handler gets it. Its signal also ends with the timeout, and with the stream if it asks for one. */
function callOf(
  { operation, edition, readsClaim, planGate }: Context,
  { id, catalog, input, access, asOf, stream, claimed }: HandledCall,
  timeout: RunningCall & { readonly signal: AbortSignal },
  streamEnd: AbortController | null,
): Call {
  const ending = streamEnd ? { signal: AbortSignal.any([timeout.signal, streamEnd.signal]) } : timeout
  const known = {
    id,
    operation,
    catalog,
    input,
    access,
    asOf,
    [ENDING]: ending,
    [RUNNING]: timeout,
    ...(stream ? { stream } : {}),
  }
  Object.defineProperty(known, 'client', CLIENT)
  const call = Object.defineProperty(known, 'signal', SIGNAL) as typeof known & Pick<Call, 'signal' | 'client'>
  if (readsClaim && claimed) keepClaim(call, claimed)
  if (planGate) keepPlanGate(call, planGate)
  return Object.assign(call, { ask: createAsk(edition(), operation.product, call, operation.maxFreshnessSeconds) })
}

const ENDING = Symbol('ending')

/**
 * The property `signal` of every call, created when it is read. A getter in a literal would be a new function for each
 * call, which V8 keeps until the next full garbage collection, with everything that belongs to the call.
 */
const SIGNAL = {
  enumerable: true,
  get(this: { readonly [ENDING]: { readonly signal: AbortSignal } }) {
    return this[ENDING].signal
  },
}

/** The property `client` of every call, made when it is read: few plugins do, and a keyed hash costs a microsecond. */
const CLIENT = {
  enumerable: true,
  get(this: { readonly [RUNNING]: RunningCall }) {
    return this[RUNNING].client
  },
}

/**
 * Aborts `end` when the caller leaves or the stream is closed. A generator that waits for its next event learns of
 * `return` only with that event, so the signal is what ends its wait.
 */
function endWith(
  source: AsyncIterable<ServerEvent>,
  caller: AbortSignal,
  end: AbortController,
): AsyncIterable<ServerEvent> {
  return {
    [Symbol.asyncIterator]() {
      const events = source[Symbol.asyncIterator]()
      const abort = (): void => end.abort()
      if (caller.aborted) abort()
      else caller.addEventListener('abort', abort, { once: true })
      return {
        next: async () => events.next(),
        async return() {
          caller.removeEventListener('abort', abort)
          abort()
          await events.return?.()
          return { done: true, value: undefined }
        },
      }
    },
  }
}

/** Calls the handler, and warns if it blocked the event loop. */
function run({ handler, operation, log }: Context, call: Call): unknown {
  const began = performance.now()
  const answer = handler(call)
  const ms = Math.round(performance.now() - began)
  if (ms >= BLOCKING_MS)
    log.warn(
      { call: call.id, operation: operation.id, ms },
      'a handler blocked the event loop and delayed every other call; move slow work to context.work or an upstream',
    )
  return answer
}

/** Throws an Error, not a ServiceError, if the answer breaks its schema or cannot be sent over HTTP. */
function assertValid({ operation, instance, validators, checkAnswers, checked }: Context, answer: unknown): void {
  if (operation.internal || (isShared(answer) && checked.has(answer))) return
  if (answer instanceof Reply && !(answer instanceof StreamedReply)) assertSendable(answer)
  const isSampled = instance.countAnswer(operation.id) % SAMPLE_EVERY === 1
  if (!checkAnswers && !isSampled) return
  if (answer instanceof StreamedReply) return
  if (answer instanceof Reply && (answer.source || answer.status >= 300)) return
  const wrong = validators.answer(valueToCheck(operation, answer))
  if (wrong !== null) throw new Error(`the answer of ${operation.id} breaks its schema: ${wrong}`)
  if (isShared(answer)) checked.add(answer)
}

/** The value to check against the schema. JSON that a handler wrote is parsed by the check, once. */
function valueToCheck({ response }: Operation, answer: unknown): unknown {
  if (!(answer instanceof Reply)) return answer
  return answer instanceof JsonReply && response?.['type'] !== 'string' ? answer.json.bytes : answer.body
}

/**
 * Returns the error to throw for what a handler threw. A refusal of the call passes unchanged, including one for lack
 * of capacity. A timeout counts as a failure of the product, unless the caller left; so does any other error, which
 * becomes `product_failed`. Time that the call lost because the machine was busy with others never causes a timeout
 * (ADR 77).
 */
function failureOf({ operation, breaker, log }: Context, call: HandledCall, error: unknown): unknown {
  const isRefusal = error instanceof ServiceError
  if (isRefusal && (error.code !== 'product_timeout' || call.caller.hasLeft)) return error
  breaker.failed()
  const cause = isRefusal ? {} : { err: error }
  log.error({ ...cause, call: call.id, operation: operation.id }, isRefusal ? error.message : 'a product failed')
  return isRefusal ? error : new ServiceError('product_failed', undefined, { cause: error })
}

/** Throws Unavailable if the operation cannot be sold now. A free page is shown even if a product it uses is down. */
function assertAvailable({ operation, breaker, edition, uses, paused }: Context): void {
  paused?.assertOpen(operation)
  if (operation.plan && !operation.plan.enabled)
    throw new Unavailable(`The plan ${operation.plan.plan} is not sold at the moment; nothing was charged.`)
  breaker.assertClosed()
  const isFreePage = operation.price === null && !operation.internal
  if (!isFreePage) assertUsable(edition(), operation.product, uses)
}

/** Headers that the transport and the payment write themselves. */
const RESERVED_HEADERS =
  /^(connection|content-encoding|content-length|keep-alive|te|trailer|transfer-encoding|upgrade|x-call-id|x-payment-response)$|^(access-control|payment|proxy)-/i

/** Throws if the status is not an HTTP status, or a header is malformed or reserved for the gateway. */
function assertSendable({ status, headers }: Reply): void {
  if (!Number.isInteger(status) || status < 200 || status > 599)
    throw new Error(`${status} is not a status that an answer can have`)
  for (const [name, value] of Object.entries(headers)) {
    validateHeaderName(name)
    validateHeaderValue(name, value)
    if (RESERVED_HEADERS.test(name)) throw new Error(`the header ${name} is reserved for the gateway`)
  }
}
