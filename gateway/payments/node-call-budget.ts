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
import type { Peers } from '../stores/peers.ts'
import { type Counted, createSharedLimit, type SharedLimit } from '../stores/shared-limit.ts'
import type { Journal } from './journal/journal.ts'
import type { NodeCallAccount } from './payment.ts'

/** Calls of nodes in a minute, for strangers at one address and at all addresses. */
export const CALLS_OF_ADDRESS = 120
export const CALLS_OF_STRANGERS = 2_400
/** For a wallet that has settled a payment. */
export const CALLS_OF_BUYER = 1_200
/** Signatures of one wallet that code on the chain checks. */
const CODE_CHECKS_OF_WALLET = 60
const WINDOW_SECONDS = 60
const MAX_BUYERS = 50_000

interface NodeCallBudgetParts {
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
    // Each process counts for itself: a buyer's calls wait for nothing.
    this.#ofBuyer = create('buyer', CALLS_OF_BUYER, OF_BUYER)
    this.#codeChecks = create('code', CODE_CHECKS_OF_WALLET, OF_WALLET)
  }

  /**
   * Opens the account of one payment or one sign-in.
   * @param wallet the one that it names
   * @param callerPlace the caller that limits count; null: it is on this machine, which is not limited
   * @param counted gets the calls, so that they can be taken back
   */
  account(wallet: string, callerPlace: string | null, counted: Counted[] = []): NodeCallAccount {
    return {
      spend: async (calls, isProven) => {
        if (callerPlace !== null) counted.push(...(await this.#spend(wallet, callerPlace, calls, isProven)))
      },
      countCodeCheck: async (isProven) => {
        await this.#codeChecks.count(`${wallet} ${isProven ? '' : (callerPlace ?? '')}`)
      },
    }
  }

  async #spend(wallet: string, callerPlace: string, calls: number, isProven: boolean): Promise<readonly Counted[]> {
    if (isProven && (await this.#isBuyer(wallet))) return [await this.#ofBuyer.count(wallet, calls)]
    const ofAddress = await this.#ofAddress.count(callerPlace, calls)
    const isBuyer = !isProven && (await this.#isBuyer(wallet))
    return [ofAddress, await (isBuyer ? this.#ofBuyer.count(wallet, calls) : this.#ofStrangers.count('all', calls))]
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
