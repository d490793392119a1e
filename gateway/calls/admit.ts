/**
 * Admission: free access, access token or payment. All three return the same shape, so the flow has no branch on the
 * kind of access. `asOf` is the whole delay model: now, minus the delay of the plan or of the operation.
 */
import type { Operation, Plan } from '../plugin/catalog.ts'
import type { Edition } from '../editions/edition.ts'
import { ServiceError } from '../errors.ts'
import type { Payments } from '../payments/payments.ts'
import type { PresentedPayment } from '../payments/presented-payment.ts'
import type { PaidAnswer } from '../payments/purchase.ts'
import type { Access } from '../plugin/plugin.ts'
import type { Tokens } from '../tokens/access-tokens.ts'
import type { Answer, IncomingCall } from './request-and-answer.ts'
import { untilTokenExpires } from './token-stream.ts'

export interface AdmitParts {
  readonly payments: Pick<Payments, 'admit'>
  readonly tokens: Pick<Tokens, 'verify' | 'remainingMs'>
  /** The clock of the data. Payments and tokens have their own. */
  readonly now: () => Date
}

/** Permission to run the handler. */
export interface Admission {
  readonly access: Access
  /** The handler serves data up to this moment. */
  readonly asOf: Date
  readonly signal: AbortSignal
  /** Turns the product's answer into the caller's: a paid answer is stored, settled and gets its receipt. */
  settle(answer: Answer): Promise<Answer>
  /** Releases the reserved payment. Does nothing once a settlement was sent. */
  release(error: unknown): Promise<void>
}

/**
 * Returns permission to run, or the answer that a duplicate request of the same payment bought meanwhile.
 *
 * @param payment the payment presented; an error if it cannot be read
 * @throws ServiceError to refuse the call
 */
export async function admit(
  parts: AdmitParts,
  { edition, bound, request }: IncomingCall,
  payment: PresentedPayment | ServiceError | null,
): Promise<Admission | PaidAnswer> {
  const { operation } = bound
  const { signal } = request
  if (operation.price === null) return unpaid(parts, { kind: 'free' }, operation.maxFreshnessSeconds, signal)

  const readToken = () => checkToken(parts.tokens, edition, operation, request.credential?.token ?? null)
  const token = await readToken()
  if (token && !('refusal' in token)) {
    const isValid = async (): Promise<boolean> => {
      const current = await readToken()
      return current !== null && !('refusal' in current)
    }
    const remainingMs = (): number => parts.tokens.remainingMs(token.access)
    const settle = async (answer: Answer): Promise<Answer> =>
      answer.events ? { ...answer, events: untilTokenExpires(answer.events, { isValid, remainingMs }) } : answer
    return { ...unpaid(parts, token.access, token.plan.maxFreshnessSeconds, signal), settle }
  }

  if (payment instanceof ServiceError) throw payment
  if (payment === null) throw token?.refusal ?? new ServiceError('payment_required')
  if (operation.plan && !operation.plan.enabled)
    throw new ServiceError(
      'product_suspended',
      'This plan is not sold at the moment; tokens already issued stay valid.',
    )
  if (operation.identifier === 'required' && payment.identifier === null) throw new ServiceError('identifier_required')
  const purchase = await parts.payments.admit(operation, payment, edition.catalog.version)
  if ('status' in purchase) return purchase
  return {
    access: { kind: 'payment', payer: purchase.payer, amount: purchase.amount, at: purchase.reservedAt },
    asOf: delayed(parts.now(), operation.maxFreshnessSeconds),
    signal,
    settle: async (answer) => ({ ...answer, ...(await purchase.settle(answer)) }),
    release: (error) => purchase.release(error),
  }
}

/** Permission to fetch again a stream that was already paid for. Nothing is settled or released. */
export function readmit(
  parts: AdmitParts,
  { bound, request }: IncomingCall,
  { receipt, record }: PaidAnswer,
): Admission {
  const { payer = '', amount = 0n } = receipt ?? {}
  const access = { kind: 'payment', payer, amount, at: parts.now() } as const
  const settle = async (answer: Answer): Promise<Answer> => ({
    ...answer,
    headers: { ...answer.headers, 'idempotent-replay': 'true' },
    ...(receipt ? { receipt } : {}),
    ...(record ? { record } : {}),
  })
  return { ...unpaid(parts, access, bound.operation.maxFreshnessSeconds, request.signal), settle }
}

/** Permission to run where nothing has to be settled. */
function unpaid({ now }: AdmitParts, access: Access, delaySeconds: number, signal: AbortSignal): Admission {
  return {
    access,
    asOf: delayed(now(), delaySeconds),
    signal,
    settle: async (answer) => answer,
    release: async () => {},
  }
}

function delayed(now: Date, delaySeconds: number): Date {
  return new Date(now.getTime() - delaySeconds * 1000)
}

type TokenCheck =
  | { readonly access: Extract<Access, { kind: 'token' }>; readonly plan: Plan }
  | { readonly refusal: ServiceError }
  | null

/** Null without a token. A token that is expired, foreign or for another route is refused with a code that says which. */
async function checkToken(
  tokens: Pick<Tokens, 'verify'>,
  edition: Edition,
  operation: Operation,
  token: string | null,
): Promise<TokenCheck> {
  if (token === null) return null
  try {
    const claims = await tokens.verify(token)
    const plan = edition.catalog.plans.plans.find((candidate) => candidate.plan === claims.plan)
    if (!plan) return { refusal: new ServiceError('token_invalid', `The plan ${claims.plan} is no longer offered.`) }
    if (!plan.authorizes.includes(operation.id)) return { refusal: new ServiceError('token_route') }
    const access = { kind: 'token', plan: plan.plan, subject: claims.subject, expiresAt: claims.expiresAt } as const
    return { access, plan }
  } catch (error) {
    if (error instanceof ServiceError) return { refusal: error }
    throw error
  }
}
