/**
 * Trial calls: an operation with `trial` answers the first calls of a wallet, or of an address, without payment. A call is
 * counted before its request is read, and given back unless its whole answer was sent. Trial calls share what free calls
 * share: the budgets of bodies, the queue of free work. A caller who leaves before the answer was sent had its work done
 * for nothing, so it gets the call back only as often as wallets may leave calls unpaid.
 */
import { PER } from '../catalog/call-limits.ts'
import { ERRORS, ServiceError } from '../errors.ts'
import type { Payments } from '../payments/payments.ts'
import type { Operation, Trial } from '../plugin/catalog.ts'
import type { Logger } from '../plugin/plugin.ts'
import type { CallCount, CallCounts } from '../stores/call-counts.ts'
import { addressOfSignIn } from '../x402/sign-in-with-x.ts'
import { isSaleable } from './answers.ts'
import type { Answer, CallRequest } from './request-and-answer.ts'

interface TrialParts {
  readonly payments: Pick<Payments, 'signIn' | 'unpaidCalls'>
  readonly counts: CallCounts
  readonly log: Logger
}

/** A trial call that was counted. */
export interface TrialCall {
  /** Gives the call back. */
  cancel(): Promise<void>
  /** Returns the answer with what is left of the trial. Gives the call back if nothing was sold, or it was not sent. */
  answered(answer: Answer): Promise<Answer>
}

/**
 * Counts a trial call. Throws `payment_required` if it cannot be one, with what is left of the trial in the field `trial`.
 */
export async function takeTrial(
  parts: TrialParts,
  { id, trial }: Operation & { readonly trial: Trial },
  request: CallRequest,
): Promise<TrialCall> {
  const caller = await callerOf(parts, trial, request)
  const counted = await parts.counts.count(`trial ${id}`, caller, trial).catch((error: unknown) => {
    parts.log.warn({ err: error, call: request.id, operation: id }, 'a trial call could not be counted')
    throw new ServiceError('payment_required')
  })
  if (!counted.isWithin) throw notFree(trial, `${freeCalls(trial)}, and all are used.`, counted)
  return new CountedTrial(parts, request, { counted, caller })
}

/** The wallet or the address that a trial call counts for. Callers on this machine are one. */
async function callerOf({ payments }: TrialParts, trial: Trial, request: CallRequest): Promise<string> {
  const { signIn: presented, callerPlace = null } = request
  if (trial.by === 'ip') return callerPlace ?? 'loopback'
  const wallet = presented === undefined ? null : addressOfSignIn(presented)
  if (presented === undefined || wallet === null || !payments.signIn) throw notFree(trial, `${freeCalls(trial)}.`)
  // The message counts once, and only keys can sign it: to ask a contract would cost calls of nodes that nobody pays.
  const refused = await payments.signIn(presented, { payer: wallet, network: null }, callerPlace)
  if (refused) throw notFree(trial, `${freeCalls(trial)}. ${refused.message}`, null, refused.reason)
  return wallet.toLowerCase()
}

const freeCalls = ({ calls, per, by }: Trial): string =>
  by === 'ip'
    ? `${calls} calls ${PER[per]} of a network address need no payment`
    : `${calls} calls ${PER[per]} of a wallet need no payment if it signs in: sign the challenge of the extension sign-in-with-x and repeat the request with it in SIGN-IN-WITH-X`

/** The 402 of a call that is not free. */
function notFree(trial: Trial, message: string, counted: CallCount | null = null, reason?: string): ServiceError {
  const state = counted ? { left: counted.left, renews_at: counted.renewsAt.toISOString() } : {}
  return new ServiceError('payment_required', `${ERRORS.payment_required.message} ${message}`, {
    fields: { trial: { calls: trial.calls, per: trial.per, by: trial.by, ...state } },
    headers: counted ? headersOf(counted) : {},
    ...(reason === undefined ? {} : { reason }),
  })
}

function headersOf({ left, renewsAt }: CallCount): Record<string, string> {
  return { 'trial-calls-left': String(left), 'trial-renews-at': renewsAt.toISOString() }
}

class CountedTrial implements TrialCall {
  readonly #parts: TrialParts
  readonly #request: CallRequest
  readonly #counted: CallCount
  readonly #caller: string

  constructor(
    parts: TrialParts,
    request: CallRequest,
    { counted, caller }: { readonly counted: CallCount; readonly caller: string },
  ) {
    this.#parts = parts
    this.#request = request
    this.#counted = counted
    this.#caller = caller
  }

  async cancel(): Promise<void> {
    if (this.#request.caller.hasLeft && !this.#mayLeave()) return
    await this.#giveBack()
  }

  async answered(answer: Answer): Promise<Answer> {
    if (!isSaleable(answer)) {
      await this.#giveBack()
      return answer
    }
    const { caller } = this.#request
    if (caller.hasLeft) await this.cancel()
    // A stream may never end: it is delivered when it opens.
    else if (!answer.events && !answer.stream) caller.onLeave(() => void this.cancel())
    return { ...answer, headers: { ...answer.headers, ...headersOf(this.#counted) } }
  }

  /** Whether this caller may leave one more call without an answer. Counts it. */
  #mayLeave(): boolean {
    const { unpaidCalls } = this.#parts.payments
    const hasRoom = unpaidCalls.roomOf(this.#caller) >= 1
    unpaidCalls.leftUnpaid(this.#caller)
    return hasRoom
  }

  async #giveBack(): Promise<void> {
    const { log } = this.#parts
    await this.#counted
      .giveBack()
      .catch((error: unknown) => log.warn({ err: error, call: this.#request.id }, 'a trial call was not given back'))
  }
}
