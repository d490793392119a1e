/**
 * How many calls of our nodes callers may cause for nothing. A signature can be made up and a wallet can be empty, and only
 * a node can tell. So calls are counted before they are made, and taken back once the payment was sold:
 *
 * - Strangers share what their address may cause, and what all strangers together may.
 * - A wallet that has settled a payment before has a share of its own, and strangers who use up theirs keep it out of nothing.
 *   Anybody can name such a wallet. So a signature that only a node can check also counts for the address it comes from.
 * - Such signatures are checked by code of their wallet, which can be costly. Each wallet may have so many of them checked.
 *
 * Callers on this machine are not limited, but for the checks of each wallet.
 */
import { LRUCache } from 'lru-cache'
import type { NodeCallCounter } from '../methods/payment-method.ts'
import type { Peers } from '../stores/peers.ts'
import { type Counted, createSharedLimit, type SharedLimit } from '../stores/shared-limit.ts'
import type { Journal } from './journal/journal.ts'

/** Calls of nodes in a minute, for strangers at one address and at all addresses. */
export const CALLS_OF_ADDRESS = 120
export const CALLS_OF_STRANGERS = 2_400
/** For a wallet that has settled a payment. */
export const CALLS_OF_BUYER = 1_200
/** Signatures of one wallet that code on the chain checks. */
const CODE_CHECKS_OF_WALLET = 60
const WINDOW_SECONDS = 60
const MAX_BUYERS = 50_000

export interface NodeCallBudgetParts {
  readonly journal: Pick<Journal, 'list'>
  /** The other processes, which count strangers together with this one. */
  readonly peers?: Pick<Peers, 'addCalls'> | null
}

/** The budget of one gateway. */
export class NodeCallBudget {
  readonly #journal: NodeCallBudgetParts['journal']
  readonly #ofAddress: SharedLimit
  readonly #ofStrangers: SharedLimit
  readonly #ofBuyer: SharedLimit
  readonly #codeChecks: SharedLimit
  /** Wallets that have settled a payment. */
  readonly #buyers = new LRUCache<string, true>({ max: MAX_BUYERS })

  constructor({ journal, peers = null }: NodeCallBudgetParts) {
    const create = (name: string, points: number, message: string, shared: typeof peers = null): SharedLimit =>
      createSharedLimit({
        name,
        points,
        seconds: WINDOW_SECONDS,
        message: `${message} Nothing was charged.`,
        peers: shared,
      })
    this.#journal = journal
    this.#ofAddress = create('nodes', CALLS_OF_ADDRESS, OF_ADDRESS, peers)
    this.#ofStrangers = create('nodes', CALLS_OF_STRANGERS, OF_STRANGERS, peers)
    // Of each process: a buyer's calls wait for nothing.
    this.#ofBuyer = create('buyer', CALLS_OF_BUYER, OF_BUYER)
    this.#codeChecks = create('code', CODE_CHECKS_OF_WALLET, OF_WALLET)
  }

  /**
   * Returns what counts the calls for one payment or one sign-in.
   * @param wallet the one that it names
   * @param callerPlace what limits count as one caller; null: it is on this machine
   */
  account(wallet: string, callerPlace: string | null): NodeCallAccount {
    return new NodeCallAccount(this, wallet, callerPlace)
  }

  /** Counts calls. Returns what can be taken back. Throws RateLimited. */
  async spend(wallet: string, callerPlace: string, calls: number, isProven: boolean): Promise<readonly Counted[]> {
    if (isProven && (await this.#isBuyer(wallet))) return [await this.#ofBuyer.count(wallet, calls)]
    const ofAddress = await this.#ofAddress.count(callerPlace, calls)
    const isBuyer = !isProven && (await this.#isBuyer(wallet))
    return [ofAddress, await (isBuyer ? this.#ofBuyer.count(wallet, calls) : this.#ofStrangers.count('all', calls))]
  }

  /** Counts a signature that code on the chain checks. Throws RateLimited. */
  async countCodeCheck(wallet: string, callerPlace: string | null): Promise<void> {
    await this.#codeChecks.count(`${wallet} ${callerPlace ?? ''}`)
  }

  /** Whether a wallet has settled a payment. While the journal cannot be read, the others count as strangers. */
  async #isBuyer(wallet: string): Promise<boolean> {
    if (this.#buyers.has(wallet)) return true
    const settled = { payer: wallet, states: ['settled'], withoutAnswers: true, limit: 1 } as const
    const [found] = await this.#journal.list(settled).catch(() => [])
    if (found) this.#buyers.set(wallet, true)
    return found !== undefined
  }
}

const OF_ADDRESS = `Payments and sign-ins from this address needed more than ${CALLS_OF_ADDRESS} calls of the chain in a minute and bought nothing.`
const OF_STRANGERS =
  'Payments of wallets that have not bought anything here yet need too many calls of the chain at the moment.'
const OF_BUYER = `Payments of this wallet needed more than ${CALLS_OF_BUYER} calls of the chain in a minute and bought nothing.`
const OF_WALLET = `More than ${CODE_CHECKS_OF_WALLET} signatures of this wallet in a minute had to be checked on the chain.`

/** Counts the calls of nodes for one payment or one sign-in. */
export class NodeCallAccount implements NodeCallCounter {
  readonly #budget: NodeCallBudget
  readonly #wallet: string
  readonly #callerPlace: string | null
  readonly #counted: Counted[] = []

  constructor(budget: NodeCallBudget, wallet: string, callerPlace: string | null) {
    this.#budget = budget
    this.#wallet = wallet
    this.#callerPlace = callerPlace
  }

  async spend(calls: number, isProven: boolean): Promise<void> {
    if (this.#callerPlace === null) return
    this.#counted.push(...(await this.#budget.spend(this.#wallet, this.#callerPlace, calls, isProven)))
  }

  /**
   * Counts that code on the chain decides about the signature. Throws RateLimited. Anybody may send a signature that is not
   * proven, so those of one address count apart from those of others.
   */
  async countCodeCheck(isProven: boolean): Promise<void> {
    await this.#budget.countCodeCheck(this.#wallet, isProven ? null : this.#callerPlace)
  }

  /** Takes the calls back, because the payment was sold. */
  async sold(): Promise<void> {
    await Promise.all(this.#counted.splice(0).map((counted) => counted.takeBack()))
  }
}
