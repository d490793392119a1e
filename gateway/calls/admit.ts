/**
 * Admission: free access, access token or payment. All three return the same shape, so the flow has no branch on the
 * kind of access. `asOf` is the whole delay model: now, minus the delay of the plan or of the operation.
 */
import { andThen, type Awaitable } from '../awaitable.ts'
import type { Operation, Plan } from '../plugin/catalog.ts'
import type { Edition } from '../editions/edition.ts'
import { ServiceError } from '../errors.ts'
import type { Payments } from '../payments/payments.ts'
import type { PresentedPayment } from '../payments/presented-payment.ts'
import type { PaidAnswer } from '../payments/purchase.ts'
import type { Access, Input } from '../plugin/plugin.ts'
import type { Tokens, VerifiedToken } from '../tokens/access-tokens.ts'
import type { Answer, IncomingCall } from './request-and-answer.ts'
import { cutWhenTokenExpires, type TokenValidity, untilTokenExpires } from './token-stream.ts'

export interface AdmitParts {
  readonly payments: Pick<Payments, 'admit'>
  readonly tokens: Pick<Tokens, 'recall' | 'verify' | 'remainingMs'>
  /** The clock of the data. Payments and tokens have their own. */
  readonly now: () => Date
}

/** Permission to run the handler. */
export interface Admission {
  readonly access: Access
  /** The handler serves data up to this moment. */
  readonly asOf: Date
  /** Turns the product's answer into the caller's: a paid answer is stored, settled and gets its receipt. */
  settle(answer: Answer): Awaitable<Answer>
  /** Releases the reserved payment. Does nothing once a settlement was sent. */
  release(error: unknown): Promise<void>
}

/**
 * Returns permission to run, or the answer that a duplicate request of the same payment bought meanwhile.
 *
 * @param input validated
 * @param payment the payment presented
 * @throws ServiceError to refuse the call
 */
export function admit(
  parts: AdmitParts,
  call: IncomingCall,
  input: Input,
  payment: PresentedPayment | null,
): Awaitable<Admission | PaidAnswer> {
  const { operation, fresh } = call.bound
  if (operation.price === null) return unpaid(parts, FREE, operation.maxFreshnessSeconds)
  return andThen(readToken(parts, call), (token) => {
    if (!token || 'refusal' in token) return admitPayment(parts, call, input, payment, token)
    // A token buys nothing more, so nothing else would tell its holder that the answer rests on old data.
    const checked = fresh?.assertFresh(input, token.plan.maxFreshnessSeconds)
    return andThen(checked, () => admitByToken(parts, call, token))
  })
}

const FREE: Access = { kind: 'free' }

function admitByToken(parts: AdmitParts, call: IncomingCall, { access, plan }: AcceptedToken): Admission {
  const refusal = async (): Promise<ServiceError | null> => {
    const current = await readToken(parts, call)
    return current !== null && 'refusal' in current ? current.refusal : null
  }
  const inItsTime: TokenValidity = {
    isValid: async () => (await refusal()) === null,
    remainingMs: () => parts.tokens.remainingMs(access),
  }
  // An answer of known length ends by itself, as one that is sent at once does.
  const unlessRevoked: TokenValidity = {
    isValid: async () => ['token_expired', undefined].includes((await refusal())?.code),
    remainingMs: () => Number.POSITIVE_INFINITY,
  }
  return {
    ...unpaid(parts, access, plan.maxFreshnessSeconds),
    settle(answer) {
      const { events, stream } = answer
      if (events) return { ...answer, events: untilTokenExpires(events, inItsTime) }
      if (!stream) return answer
      const ends = stream.headers['content-length'] !== undefined
      return { ...answer, stream: cutWhenTokenExpires(stream, ends ? unlessRevoked : inItsTime) }
    },
  }
}

async function admitPayment(
  parts: AdmitParts,
  { edition, bound: { operation, fresh }, request }: IncomingCall,
  input: Input,
  payment: PresentedPayment | null,
  token: RefusedToken | null,
): Promise<Admission | PaidAnswer> {
  if (payment === null) throw token?.refusal ?? new ServiceError('payment_required')
  if (operation.plan && !operation.plan.enabled)
    throw new ServiceError(
      'product_suspended',
      'This plan is not sold at the moment; tokens already issued stay valid.',
    )
  if (operation.identifier === 'required' && payment.identifier === null) throw new ServiceError('identifier_required')
  await fresh?.assertFresh(input, operation.maxFreshnessSeconds)
  const purchase = await parts.payments.admit(operation, payment, edition.catalog, request.url)
  if ('status' in purchase) return purchase
  return {
    access: { kind: 'payment', payer: purchase.payer, amount: purchase.amount, at: purchase.reservedAt },
    asOf: delayed(parts.now(), operation.maxFreshnessSeconds),
    settle: async (answer) => ({ ...answer, ...(await purchase.settle(answer)) }),
    release: (error) => purchase.release(error),
  }
}

/** Permission to fetch again a stream that was already paid for. Nothing is settled or released. */
export function readmit(parts: AdmitParts, { bound }: IncomingCall, { receipt, record }: PaidAnswer): Admission {
  const { payer = '', amount = 0n } = receipt ?? {}
  const access = { kind: 'payment', payer, amount, at: parts.now() } as const
  const settle = async (answer: Answer): Promise<Answer> => ({
    ...answer,
    headers: { ...answer.headers, 'idempotent-replay': 'true' },
    ...(receipt ? { receipt } : {}),
    ...(record ? { record } : {}),
  })
  return { ...unpaid(parts, access, bound.operation.maxFreshnessSeconds), settle }
}

/** Permission to run where nothing has to be settled. */
function unpaid({ now }: AdmitParts, access: Access, delaySeconds: number): Admission {
  return {
    access,
    asOf: delayed(now(), delaySeconds),
    settle: (answer) => answer,
    release: async () => {},
  }
}

function delayed(now: Date, delaySeconds: number): Date {
  return new Date(now.getTime() - delaySeconds * 1000)
}

interface AcceptedToken {
  readonly access: Extract<Access, { kind: 'token' }>
  readonly plan: Plan
}

interface RefusedToken {
  readonly refusal: ServiceError
}

export type TokenCheck = AcceptedToken | RefusedToken | null

/** Null without a token. A token that is expired, foreign or for another route is refused with a code that says which. */
export function readToken({ tokens }: AdmitParts, { edition, bound, request }: IncomingCall): Awaitable<TokenCheck> {
  const token = request.credential?.token ?? null
  if (token === null) return null
  try {
    const known = tokens.recall(token)
    if (known) return checkToken(edition, bound.operation, known)
    return tokens.verify(token).then((claims) => checkToken(edition, bound.operation, claims), refusedToken)
  } catch (error) {
    return refusedToken(error)
  }
}

function refusedToken(error: unknown): RefusedToken {
  if (error instanceof ServiceError) return { refusal: error }
  throw error
}

function checkToken({ catalog }: Edition, operation: Operation, { plan: name, ...claims }: VerifiedToken): TokenCheck {
  const plan = catalog.plans.plans.find((candidate) => candidate.plan === name)
  if (!plan) return { refusal: new ServiceError('token_invalid', `The plan ${name} is no longer offered.`) }
  if (!plan.authorizes.includes(operation.id)) return { refusal: new ServiceError('token_route') }
  return { access: { kind: 'token', plan: name, subject: claims.subject, expiresAt: claims.expiresAt }, plan }
}
