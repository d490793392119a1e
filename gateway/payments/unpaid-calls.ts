/**
 * Calls that did their work and were not paid for because of their payer: it left before its payment was sent, or the payment
 * could not be settled. A handler runs before its payment is settled, so a wallet could have any number of answers made for
 * nothing. It may have ten such calls, one more every two minutes, and one more with each payment that settles. Beyond that
 * its calls are refused before the work. What fails at our end, or is refused by a product, does not count.
 *
 * A wallet that has left none lately may have any number under way: its balance covers all of them.
 *
 * Processes tell each other of unpaid calls, and a process that knows of some asks for those of the others. So a wallet may
 * leave one call more at each process that knows of none.
 */
import { LRUCache } from 'lru-cache'
import { RateLimited } from '../errors.ts'
import type { PaymentMethod, RefusedOutcome } from '../methods/payment-method.ts'
import type { Peers } from '../stores/peers.ts'
import { sharedName } from '../stores/shared-limit.ts'

/** How many calls of a wallet may end unpaid, and the seconds after which one of them is forgotten. */
export const MAX_UNPAID_CALLS = 10
export const SECONDS_PER_CALL = 120

const MS_PER_CALL = SECONDS_PER_CALL * 1000
/** After this long, nothing is left of the calls before it. */
const WINDOW_MS = MAX_UNPAID_CALLS * MS_PER_CALL
const MAX_WALLETS = 50_000

interface UnpaidCallsParts {
  readonly now: () => Date
  /** The other processes. */
  readonly peers?: Pick<Peers, 'addCalls'> | null
}

/** Hears how purchases end. */
export type CallEnds = Pick<UnpaidCalls, 'sold' | 'leftUnpaid'>

/** The unpaid calls of every wallet. */
export class UnpaidCalls {
  readonly #now: () => Date
  readonly #peers: UnpaidCallsParts['peers']
  /** By payer: how many there were at a moment, in milliseconds. */
  readonly #counts = new LRUCache<string, { readonly calls: number; readonly at: number }>({ max: MAX_WALLETS })

  constructor({ now, peers = null }: UnpaidCallsParts) {
    this.#now = now
    this.#peers = peers
  }

  /** Asks the other processes for their count of a wallet, if this one knows of unpaid calls. */
  async hear(payer: string): Promise<void> {
    if (this.#callsOf(payer) > 0) await this.#tell(payer, 0)
  }

  /** How many calls of a wallet may be under way at once, because all of them may end unpaid. No bound if none has lately. */
  roomOf(payer: string): number {
    const calls = this.#callsOf(payer)
    return calls === 0 ? Number.POSITIVE_INFINITY : Math.floor(MAX_UNPAID_CALLS - calls)
  }

  /** The 429 of a wallet without room. */
  refusal(payer: string): RateLimited {
    const calls = this.#callsOf(payer)
    return new RateLimited(REFUSED, (calls - MAX_UNPAID_CALLS + 1) * SECONDS_PER_CALL)
  }

  /** Counts a call that its payer left unpaid. */
  leftUnpaid(payer: string): void {
    const calls = this.#callsOf(payer)
    this.#set(payer, Math.min(calls + 1, MAX_UNPAID_CALLS))
    if (calls < MAX_UNPAID_CALLS) void this.#tell(payer, 1)
  }

  /** Counts a payment that was settled. */
  sold(payer: string): void {
    const calls = this.#callsOf(payer)
    if (calls === 0) return
    this.#set(payer, calls - 1)
    void this.#tell(payer, -1)
  }

  #callsOf(payer: string): number {
    const count = this.#counts.get(payer.toLowerCase())
    return count ? Math.max(0, count.calls - (this.#now().getTime() - count.at) / MS_PER_CALL) : 0
  }

  #set(payer: string, calls: number): void {
    if (calls <= 0) this.#counts.delete(payer.toLowerCase())
    else this.#counts.set(payer.toLowerCase(), { calls, at: this.#now().getTime() })
  }

  /** Tells the other processes of a call, and hears of theirs. While they cannot be reached, each process counts alone. */
  async #tell(payer: string, calls: number): Promise<void> {
    const caller = sharedName('unpaid', payer.toLowerCase())
    const totals = await this.#peers?.addCalls([{ caller, calls, msLeft: WINDOW_MS }]).catch(() => [])
    const total = totals?.[0]
    if (!total) return
    // Since the window of all began, this many were forgotten, or fewer.
    const forgotten = (WINDOW_MS - total.msLeft) / MS_PER_CALL
    const ofAll = total.calls - forgotten
    if (ofAll > this.#callsOf(payer)) this.#set(payer, Math.min(ofAll, MAX_UNPAID_CALLS))
    // No more than ten are remembered: whoever has more waits no longer.
    if (calls > 0 && ofAll > MAX_UNPAID_CALLS) await this.#tell(payer, -calls)
  }
}

const REFUSED = `${MAX_UNPAID_CALLS} calls of this wallet did their work and were not paid for: it left before its payment was sent, or the payment could not be settled. Nothing was charged. Wait for each answer, and send the same payment again if the connection breaks. One more call is possible after ${SECONDS_PER_CALL / 60} minutes, and one more with each payment that settles.`

/** Counts only the sales of a payment whose answer was made before: nothing is done for nothing if its payer leaves again. */
export function onlySales(calls: CallEnds): CallEnds {
  return { sold: (payer) => calls.sold(payer), leftUnpaid() {} }
}

/**
 * Whether the payer has it in hand that a settlement was refused: its balance, its nonce, its signature. Not if it could not be
 * sent, nor if it was sent and got into no block before it expired.
 */
export function isOfPayer(
  { reason: code, unsent, burnt }: RefusedOutcome,
  { expiredReason }: Pick<PaymentMethod, 'expiredReason'>,
): boolean {
  if (code.startsWith('unexpected_')) return false
  return code !== expiredReason || unsent === true || burnt !== undefined
}
