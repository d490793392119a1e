/**
 * Admission: free, by token, or by payment. Three ways in, one shape, so the flow has no branch on the kind of access.
 * `asOf` is the whole freshness model: now, minus what the plan or the operation holds back.
 */
import type { Operation, Plan } from '../plugin/catalog.ts'
import type { Edition } from '../editions/edition.ts'
import { ServiceError } from '../errors.ts'
import type { PresentedPayment } from '../payments/presented-payment.ts'
import type { PaidAnswer } from '../payments/purchase.ts'
import type { Access } from '../plugin/plugin.ts'
import type { Answer, CallRequest } from './call.ts'
import { lasting } from './token-stream.ts'
import type { ServeParts } from './serve.ts'

export interface Admission {
  readonly access: Access
  readonly asOf: Date
  readonly signal: AbortSignal
  /** Turns the product's answer into the caller's: a paid one is stored, settled and carries its receipt. */
  settle(answer: Answer): Promise<Answer>
  /** Gives the reservation back. Does nothing once a settlement has been sent. */
  release(error: unknown): Promise<void>
}

export interface Entry {
  readonly edition: Edition
  readonly operation: Operation
  readonly request: CallRequest
  /** An error where a payment came that cannot be read. */
  readonly presented: PresentedPayment | ServiceError | null
}

/** Returns permission to run, or the answer the caller gets instead (a twin's). Throws ServiceError to refuse. */
export async function admit(parts: ServeParts, entry: Entry): Promise<Admission | PaidAnswer> {
  const { edition, operation, request, presented } = entry
  const asOf = (maxFreshnessSeconds: number): Date => new Date(parts.now().getTime() - maxFreshnessSeconds * 1000)
  const unpaid = (access: Access, maxFreshnessSeconds: number): Admission => ({
    access,
    asOf: asOf(maxFreshnessSeconds),
    signal: request.signal,
    settle: async (answer) => answer,
    release: async () => {},
  })
  if (operation.price === null) return unpaid({ kind: 'free' }, operation.maxFreshnessSeconds)

  const readToken = () => admitToken(parts, edition, operation, request.credential?.token ?? null)
  const token = await readToken()
  if (token && !('refusal' in token)) {
    const isValid = async (): Promise<boolean> => {
      const again = await readToken()
      return again !== null && !('refusal' in again)
    }
    const left = (): number => parts.tokens.left(token.access)
    const settle = async (answer: Answer): Promise<Answer> =>
      answer.events ? { ...answer, events: lasting(answer.events, { isValid, left }) } : answer
    return { ...unpaid(token.access, token.plan.maxFreshnessSeconds), settle }
  }
  if (presented instanceof ServiceError) throw presented
  if (presented === null) throw token?.refusal ?? new ServiceError('payment_required')
  if (operation.plan && !operation.plan.enabled)
    throw new ServiceError('product_suspended', 'This plan is not sold at the moment; issued tokens go on working.')

  if (operation.identifier === 'required' && presented.identifier === null)
    throw new ServiceError('identifier_required')
  const purchase = await parts.payments.admit(operation, presented, edition.catalog.version)
  if ('status' in purchase) return purchase
  return {
    access: { kind: 'payment', payer: purchase.payer, amount: purchase.amount, at: purchase.reservedAt },
    asOf: asOf(operation.maxFreshnessSeconds),
    signal: request.signal,
    settle: async (answer) => ({ ...answer, ...(await purchase.settle(answer)) }),
    release: (error) => purchase.release(error),
  }
}

/** Permission to fetch once more a stream that has been paid for; nothing is settled or released. */
export function readmit(parts: ServeParts, { operation, request }: Entry, { receipt }: PaidAnswer): Admission {
  const { payer = '', amount = 0n } = receipt ?? {}
  return {
    access: { kind: 'payment', payer, amount, at: parts.now() },
    asOf: new Date(parts.now().getTime() - operation.maxFreshnessSeconds * 1000),
    signal: request.signal,
    settle: async (answer) => ({
      ...answer,
      headers: { ...answer.headers, 'idempotent-replay': 'true' },
      ...(receipt ? { receipt } : {}),
    }),
    release: async () => {},
  }
}

type TokenAdmission =
  | { readonly access: Extract<Access, { kind: 'token' }>; readonly plan: Plan }
  | { readonly refusal: ServiceError }
  | null

/** A token that is expired, foreign or for another route is refused with a code that says which. */
async function admitToken(
  parts: ServeParts,
  edition: Edition,
  operation: Operation,
  token: string | null,
): Promise<TokenAdmission> {
  if (token === null) return null
  try {
    const claims = await parts.tokens.verify(token)
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
