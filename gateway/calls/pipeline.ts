/**
 * The eight stages of every call, over HTTP or MCP, in this order:
 *
 * 1. quote: an unpaid call of a priced route gets its 402, before anything is read, unless it is a trial call;
 * 2. check: so does a call whose token is not valid, or whose payment could not be accepted, whatever its input is; heavy
 *    free work is refused if its queue is full;
 * 3. read: the body is read and decoded; heavy free work is queued as soon as its body has arrived;
 * 4. replay: a payment that already bought an answer gets that answer again;
 * 5. validate: the input must fit the schema and the product must be available;
 * 6. admit: free access, access token or payment; a payment is checked in full, screened by hooks and reserved;
 * 7. handle: heavy paid work is queued, and the product makes its answer;
 * 8. settle: the answer is stored, the payment is settled, and only then does the answer leave.
 *
 * Each stage takes the state that the one before returned, and throws ServiceError to refuse. `serve` runs them.
 */
import { andThen, type Awaitable, isPromise } from '../awaitable.ts'
import { InvalidInput, ServiceError } from '../errors.ts'
import type { PresentedFields } from '../observe/terminal.ts'
import { traced } from '../observe/tracing.ts'
import { admitPayment, checkEarly, presentedPayment } from '../payments/admission.ts'
import type { OfflineCheck, PaidAnswer, PresentedPayment, UnreadPayment } from '../payments/payment.ts'
import type { Payments } from '../payments/payments.ts'
import { replay as replayPayment } from '../payments/replay.ts'
import type { Operation } from '../plugin/catalog.ts'
import { type Access, type Input, type Logger, Reply } from '../plugin/plugin.ts'
import type { RawInput } from '../products/edition.ts'
import { screen } from '../products/hooks.ts'
import { type RowFormat, takeFormat } from './rows/asked-format.ts'
import { rowsAnswer } from './rows/rows-answer.ts'
import { tableOf } from '../catalog/table.ts'
import type { PausedSales } from '../products/paused-sales.ts'
import type { CallCounts } from '../stores/call-counts.ts'
import type { Place, WorkQueues } from '../workers/queues.ts'
import { answerOf, isSaleable } from './answers.ts'
import { countBuyer } from './buyer-limit.ts'
import { fingerprint } from './fingerprint.ts'
import { listingOf, type Quotes } from './quotes.ts'
import type { Answer, CallRequest, IncomingCall } from './request-and-answer.ts'
import { endWithToken, readToken, type TokenCheck, type TokenReader } from './token-access.ts'
import { takeTrial, type TrialCall } from './trials.ts'

export interface PipelineParts {
  readonly payments: Payments
  readonly quotes: Quotes
  readonly tokens: TokenReader
  /** Admits heavy work. */
  readonly queues: WorkQueues
  /** What the operator has paused. */
  readonly paused: Pick<PausedSales, 'assertOpen' | 'confirmOpen'>
  /** Counts trial calls and the calls of buyers. */
  readonly counts: CallCounts
  /** The clock of the data. Payments and tokens have their own. */
  readonly now: () => Date
  readonly log: Logger
}

/** Permission to run the handler. */
interface Admission {
  readonly access: Access
  /** The handler serves data up to this moment: now, minus the delay of the plan or of the operation. */
  readonly asOf: Date
  /** Turns the product's answer into the caller's: a paid answer is stored, settled and gets its receipt. */
  settle(answer: Answer): Awaitable<Answer>
  /** Releases the reserved payment. Does nothing once a settlement was sent. Absent if nothing is reserved. */
  release?(error: unknown): Promise<void>
}

/** A call on its way, by the last stage that it passed. */
export type CallState = Arrived | Quoted | Checked | Read | Replayed | Validated | Admitted | Handled | Answered

interface Arrived {
  readonly stage: 'arrived'
  readonly call: IncomingCall
}

/** The route is free, or the call brings a payment or a token. */
interface Quoted {
  readonly stage: 'quoted'
  readonly call: IncomingCall
  /** Null if the call has none, or needs none. */
  readonly token: TokenCheck | null
  /** Set if the call is a trial call. */
  readonly trial: TrialCall | null
}

interface Checked {
  readonly stage: 'checked'
  readonly call: IncomingCall
  /** Null if none was sent, or it cannot be read and a token takes its place. */
  readonly payment: UnreadPayment | null
  /** The findings about the payment. Null: nothing was checked. */
  readonly check: OfflineCheck | null
  readonly trial: TrialCall | null
  /** The place of free work in its queue; null if it needs none. */
  readonly place: Place | null
}

interface Read {
  readonly stage: 'read'
  readonly call: IncomingCall
  readonly payment: PresentedPayment | null
  readonly trial: TrialCall | null
  readonly place: Place | null
  readonly raw: RawInput
}

interface Replayed extends Omit<Read, 'stage'> {
  readonly stage: 'replayed'
  /** The stream that the payment bought before, which has to be opened again. */
  readonly bought: PaidAnswer | null
}

interface Validated extends Omit<Replayed, 'stage' | 'raw'> {
  readonly stage: 'validated'
  readonly input: Input
  /** In which format the caller wants the rows of the answer; null for the whole answer in JSON. */
  readonly format: RowFormat | null
}

interface Admitted extends Omit<Validated, 'stage'> {
  readonly stage: 'admitted'
  readonly admission: Admission
}

interface Handled extends Omit<Admitted, 'stage' | 'input' | 'format'> {
  readonly stage: 'handled'
  /** The answer has not left, and nothing is charged yet. */
  readonly answer: Answer
}

export interface Answered {
  readonly stage: 'answered'
  readonly call: IncomingCall
  readonly payment: PresentedPayment | null
  readonly answer: Answer
}

/** Created once: capturing a stack trace per call would cost more than the rest of a 402. */
export const PAYMENT_REQUIRED = new ServiceError('payment_required')

/** Refuses a call without payment or token, unless the route is free or the call is a trial call. */
export function quote(parts: PipelineParts, { call }: Arrived): Awaitable<Quoted> {
  const { request, bound } = call
  const { operation } = bound
  const quoted = { stage: 'quoted', call, token: null, trial: null } as const
  if (!request.credential) {
    if (operation.retired) throw retiredError(operation.replacement)
    parts.paused.assertOpen(operation)
    if (operation.price !== null) {
      const { trial } = operation
      if (trial === null || request.isProbe) throw PAYMENT_REQUIRED
      return takeTrial(parts, { ...operation, trial }, request).then((trial) => ({ ...quoted, trial }))
    }
  }
  const token = request.credential?.token ?? null
  if (operation.price === null || token === null) return quoted
  return andThen(readToken(parts.tokens, call, token), (token) => ({ ...quoted, token }))
}

/** Refuses what can be refused before the request is read. */
export function check({ payments, queues, log }: PipelineParts, { call, token, trial }: Quoted): Awaitable<Checked> {
  const { request, bound } = call
  const { operation } = bound
  const passed = (payment: UnreadPayment | null, check: OfflineCheck | null = null): Checked => ({
    stage: 'checked',
    call,
    payment,
    check,
    trial,
    place: null,
  })
  if (operation.price === null || trial)
    return {
      ...passed(null),
      place: queues.open({ ...operation, queue: trial ? 'free' : operation.queue }, addressOf(request)),
    }
  const refusal = token && 'refusal' in token ? token.refusal : null
  if (request.credential?.payments.length === 0) {
    // A token is not bound to a request: without a payment there is nothing to digest.
    if (refusal) throw refused(operation, refusal)
    return passed(null)
  }
  const isOpen = token !== null && refusal === null
  const unread = readPayment(payments, request)
  if (unread instanceof ServiceError) {
    if (!isOpen) throw refused(operation, unread)
    return passed(null)
  }
  const presented: PresentedFields = { call: request.id, operation: operation.id, payment: unread.payment.key }
  log.info(presented, 'a payment was presented')
  return isOpen ? passed(unread) : checkPayment(payments, call, unread).then((found) => passed(unread, found))
}

/** Checks what can be known about a payment before its request is read. */
async function checkPayment(
  payments: Payments,
  { edition, bound: { operation } }: IncomingCall,
  unread: UnreadPayment,
): Promise<OfflineCheck | null> {
  try {
    const found = checkEarly(payments, operation, unread, edition.catalog.version)
    return isPromise(found) ? await found.catch(unreadable) : found
  } catch (error) {
    throw error instanceof ServiceError && error.status === 402 ? refused(operation, error) : error
  }
}

/**
 * Reports an unreadable journal as `ledger_unavailable`: the payment may have settled, so no error may call it
 * uncharged.
 */
function unreadable(error: unknown): never {
  if (error instanceof ServiceError) throw error
  throw new ServiceError('ledger_unavailable', undefined, { cause: error })
}

/** Reads and decodes the body, and digests it if it is paid for. */
export function read(_parts: PipelineParts, { call, payment, check, trial, place }: Checked): Awaitable<Read> {
  const { request, bound } = call
  const take = place ? () => place.take(request.bodyBytes) : undefined
  return andThen(request.read(take), (raw): Awaitable<Read> => {
    // A call without a body has nothing that could arrive.
    take?.()
    const state = { stage: 'read', call, trial, place, raw } as const
    if (payment === null) return { ...state, payment }
    return fingerprint(bound.operation, raw).then((fingerprint) => ({
      ...state,
      payment: { ...payment, fingerprint, checked: check },
    }))
  })
}

/** Returns the answer that the payment bought before. A stream is opened again by the stages that follow. */
export function replay({ payments }: PipelineParts, state: Read): Awaitable<Replayed | Answered> {
  const { call, payment } = state
  if (payment === null) return { ...state, stage: 'replayed', bought: null }
  return replayPayment(payments, call.bound.operation, payment).then((bought): Replayed | Answered => {
    if (bought && !bought.mustRefetch) return { stage: 'answered', call, payment, answer: bought }
    return { ...state, stage: 'replayed', bought }
  }, unreadable)
}

/** Checks the input against its schema. */
export function validate({ queues }: PipelineParts, { raw, ...state }: Replayed): Validated {
  const { bound, request } = state.call
  const { operation } = bound
  if (operation.retired) throw retiredError(operation.replacement)
  if (isQueuedLater(operation, state)) queues.assertRoom(operation, addressOf(request), request.bodyBytes)
  const { query, format } = takeFormat(operation, raw.query)
  const input = bound.validate(format === null ? raw : { ...raw, query })
  bound.assertAvailable()
  return { ...state, stage: 'validated', input, format }
}

/** Free work and trial calls have their place in the queue since their body arrived. Priced work takes it once its payment is reserved. */
const isQueuedLater = ({ price }: Operation, { bought, trial }: Pick<Replayed, 'bought' | 'trial'>): boolean =>
  price !== null && bought === null && trial === null

/**
 * Grants free access, access by token or by payment, or returns the answer that a duplicate request of the same payment
 * bought meanwhile. All three have the same shape, so the stages that follow have no branch on the kind of access.
 */
export function admit(parts: PipelineParts, state: Validated): Awaitable<Admitted | Answered> {
  const { call, bought } = state
  if (bought) return { ...state, stage: 'admitted', admission: reopening(parts, call, bought) }
  const traces = { id: call.request.id, operation: call.bound.operation.id }
  return traced('admit', traces, () => admitNew(parts, state))
}

/** Admits a call whose payment, if it has one, has bought nothing before. */
function admitNew(parts: PipelineParts, state: Validated): Awaitable<Admitted | Answered> {
  const { call, input } = state
  const { operation, fresh } = call.bound
  const admitted = (admission: Admission): Admitted => ({ ...state, stage: 'admitted', admission })
  if (operation.price === null) return admitted(unpaid(parts, { kind: 'free' }, operation.maxFreshnessSeconds))
  const { trial } = state
  if (trial)
    return andThen(confirmSale(parts, state, operation.maxFreshnessSeconds), () => {
      const admission = unpaid(parts, { kind: 'free' }, operation.maxFreshnessSeconds)
      return admitted({ ...admission, settle: (answer) => trial.answered(answer) })
    })
  const token = call.request.credential?.token ?? null
  if (token === null) return admitPaid(parts, state)
  return andThen(readToken(parts.tokens, call, token), (read) => {
    if ('refusal' in read) return admitPaid(parts, state, read.refusal)
    const { access, plan } = read
    // A token buys nothing more, so nothing else would tell its holder that the answer rests on old data.
    const checked = fresh?.assertFresh(input, plan.maxFreshnessSeconds)
    return andThen(checked, () => {
      const admission: Admission = {
        ...unpaid(parts, access, plan.maxFreshnessSeconds),
        settle: (answer) => endWithToken(parts.tokens, call, { token, access }, answer),
      }
      return operation.limit === null
        ? admitted(admission)
        : limited(parts, call, access.subject, admission).then(admitted)
    })
  })
}

/** Throws if the answer may not be sold now: the operator has paused it, or its data are not fresh. */
async function confirmSale(
  { paused }: PipelineParts,
  { call: { bound }, input }: Validated,
  delaySeconds: number,
): Promise<void> {
  await paused.confirmOpen(bound.operation)
  await bound.fresh?.assertFresh(input, delaySeconds)
}

async function admitPaid(
  parts: PipelineParts,
  state: Validated,
  refusal = PAYMENT_REQUIRED,
): Promise<Admitted | Answered> {
  const { call, payment } = state
  const { edition, bound, request } = call
  const { operation } = bound
  const { plan, maxFreshnessSeconds } = operation
  if (payment === null) throw refusal
  if (plan && !plan.enabled)
    throw new ServiceError(
      'product_suspended',
      'This plan is not sold at the moment; tokens already issued stay valid.',
    )
  if (operation.identifier === 'required' && payment.identifier === null) throw new ServiceError('identifier_required')
  await confirmSale(parts, state, maxFreshnessSeconds)
  const { catalog } = edition
  const purchase = await admitPayment(parts.payments, operation, payment, {
    version: catalog.version,
    listing: () => listingOf(parts.quotes.of(catalog), operation, request.url),
    screen: ({ payer, amount, network }) =>
      screen(edition.hooks, { call: request.id, operation, payer, amount, network }, parts.log),
  }).catch(unreadable)
  if ('status' in purchase) {
    await forgetUnpaid(payment, purchase)
    if (!purchase.mustRefetch) return { stage: 'answered', call, payment, answer: purchase }
    return { ...state, stage: 'admitted', bought: purchase, admission: reopening(parts, call, purchase) }
  }
  const admission = await limited(parts, call, purchase.payer, {
    access: { kind: 'payment', payer: purchase.payer, amount: purchase.amount, at: purchase.reservedAt },
    asOf: delayed(parts.now(), maxFreshnessSeconds),
    async settle(answer) {
      const paid = await purchase.settle(answer)
      await forgetUnpaid(payment, paid)
      return { ...answer, ...paid }
    },
    release: purchase.release,
  })
  return { ...state, stage: 'admitted', admission }
}

/** Admits a call of a buyer within the limit of the operation. A call that is refused, or not answered, does not count. */
async function limited(
  parts: PipelineParts,
  { bound: { operation }, request: { caller } }: IncomingCall,
  buyer: string,
  admission: Admission,
): Promise<Admission> {
  const counting = countBuyer(parts, operation, { buyer, caller })
  const counted = await counting.catch(async (error: unknown) => {
    await admission.release?.(error)
    throw error
  })
  if (!counted) return admission
  return {
    ...admission,
    async settle(answer) {
      if (!isSaleable(answer)) await counted.failed(null)
      return admission.settle(answer)
    },
    async release(error) {
      await counted.failed(error)
      await admission.release?.(error)
    },
  }
}

/** Takes back what was counted against the limits of those who do not pay, once a call is sold. */
async function forgetUnpaid({ counted }: PresentedPayment, { receipt }: PaidAnswer): Promise<void> {
  if (receipt?.success) await Promise.all(counted.splice(0).map((each) => each.takeBack()))
}

/** Permission to fetch again a stream that was already paid for. Nothing is settled or released. */
function reopening(parts: PipelineParts, { bound }: IncomingCall, { receipt, record }: PaidAnswer): Admission {
  const { payer = '', amount = 0n } = receipt ?? {}
  const access = { kind: 'payment', payer, amount, at: parts.now() } as const
  return {
    ...unpaid(parts, access, bound.operation.maxFreshnessSeconds),
    settle: (answer) => ({
      ...answer,
      headers: { ...answer.headers, 'idempotent-replay': 'true' },
      ...(receipt ? { receipt } : {}),
      ...(record ? { record } : {}),
    }),
  }
}

/** Permission to run where nothing has to be settled. */
function unpaid({ now }: PipelineParts, access: Access, delaySeconds: number): Admission {
  return { access, asOf: delayed(now(), delaySeconds), settle: (answer) => answer }
}

function delayed(now: Date, delaySeconds: number): Date {
  return new Date(now.getTime() - delaySeconds * 1000)
}

/** Runs the product. */
export function handle({ queues }: PipelineParts, { input, format, ...state }: Admitted): Awaitable<Handled> {
  const { call, admission } = state
  const { edition, bound, request } = call
  const { operation } = bound
  const { access, asOf } = admission
  const entered = isQueuedLater(operation, state)
    ? queues.enter(operation, addressOf(request), request.bodyBytes)
    : null
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
  const work = (): Awaitable<unknown> =>
    traced('handle', { id: request.id, operation: operation.id }, () => bound.handle(handled))
  return andThen(entered ? inPlace(entered, work) : work(), (value) => {
    state.place?.leave()
    if (isUnsoldEmpty(operation, access, value)) throw new ServiceError('empty_not_sold')
    const whole = answerOf(value, operation.view !== null && operation.response === null)
    const table = format && tableOf(operation, edition.catalog)
    const answer = table ? rowsAnswer(whole, table, format, { id: operation.id, url: request.url }) : whole
    return andThen(answer, (answer) => ({ ...state, stage: 'handled', answer }))
  })
}

async function inPlace<Value>(place: Place, work: () => Awaitable<Value>): Promise<Value> {
  try {
    return await work()
  } finally {
    place.leave()
  }
}

/** Stores and settles what was sold. */
export function settle(_parts: PipelineParts, state: Handled): Awaitable<Answered> {
  const { call, payment, admission, answer } = state
  const { request, bound } = call
  if (answer.events && request.transport === 'mcp') throw new InvalidInput([STREAM_IN_TOOL])
  if (answer.events) request.takeStreamPlace?.(admission.access.kind === 'token')
  const traces = { id: request.id, operation: bound.operation.id }
  const settled = traced('settle', traces, () => admission.settle(answer))
  return andThen(settled, (answer) => ({ stage: 'answered', call, payment, answer }))
}

const STREAM_IN_TOOL = {
  loc: ['tool'],
  msg: 'answers with a stream of events, which a tool call cannot carry; call its route over HTTP',
  type: 'stream',
} as const

/** True if an answer is not sold because it says that nothing happened. */
function isUnsoldEmpty({ sellEmpty }: Operation, { kind }: Access, value: unknown): boolean {
  return !sellEmpty && kind !== 'token' && value instanceof Reply && value.empty
}

/** Whose share of the queues of heavy work a call uses. Callers on this machine share one. */
const addressOf = ({ callerPlace = 'loopback' }: CallRequest): string => callerPlace

/** The payment of a call that has one. An unreadable one is returned as an error, because a token may take its place. */
function readPayment(payments: Payments, request: CallRequest): UnreadPayment | ServiceError {
  try {
    return presentedPayment(payments, request) ?? PAYMENT_REQUIRED
  } catch (error) {
    if (error instanceof ServiceError) return error
    throw error
  }
}

/** Refuses an invalid credential. As without a credential, a retired route says that it is retired. */
function refused({ retired, replacement }: Operation, error: ServiceError): ServiceError {
  return retired ? retiredError(replacement) : error
}

function retiredError(replacement: string | null): ServiceError {
  if (replacement === null) return new ServiceError('retired')
  return new ServiceError('retired', `This route is retired. Use ${replacement}.`, { fields: { replacement } })
}
