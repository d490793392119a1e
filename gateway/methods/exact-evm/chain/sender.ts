/**
 * The account that pays the gas. It signs a transaction before the intent is recorded, and sends transactions without
 * waiting for one another. A transaction that is sent again with another nonce or fee needs no new record: the token
 * takes an authorization once, and the judge finds it in the token's logs.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { parseTransaction } from 'viem/utils'
import type { ChainIntent } from '../intent.ts'
import type { Hex } from '../../../config/networks.ts'
import type { Logger } from '../../../plugin/plugin.ts'
import { createFees, type Quotation, raised, TooDear } from './gas-fees.ts'
import { createTransaction, type OwnTransaction, type PendingTransaction, signAgain } from './pending-transaction.ts'
import { KNOWN, type Nodes } from '../nodes/nodes.ts'
import { createNonces } from './nonces.ts'
import { type Rpc, RpcError } from '../nodes/rpc.ts'
import type { Signer } from './transaction-signer.ts'
import { createTracker } from './transaction-tracker.ts'

export interface Sender {
  /** What gas costs, looked up every few seconds. Throws TooDear where that is above the limit, RpcError. */
  price(): Promise<bigint>
  /** Allocates a nonce and signs; nothing is sent. Throws TooDear, and RpcError where the chain cannot be read. */
  prepare(to: Hex, data: Hex, gas: bigint): Promise<PendingTransaction>
  /** Signs anew what was prepared and not sent, with other call data. */
  amend(tx: PendingTransaction, to: Hex, data: Hex, gas: bigint): void
  /** Gives back what was prepared and not sent. */
  abandon(tx: PendingTransaction): void
  /**
   * True: the node has it. False: it may have it. Throws where it certainly was not sent: RpcError `unsent` or
   * `refused`; the nonce is given back.
   */
  send(tx: PendingTransaction): Promise<boolean>
  /**
   * Sends a recorded transaction again unchanged and watches it, unless it is watched already. False: its nonce has
   * gone to another, so it will never be in a block.
   */
  resend(intent: ChainIntent): Promise<boolean>
  close(): void
}

export interface SenderOptions {
  /** `broadcast`, where there is one, sends again what stands still. */
  readonly rpc: Rpc & Partial<Pick<Nodes, 'broadcast'>>
  readonly signer: Signer
  readonly log: Logger
  readonly pollMs?: number
  /** How many blocks deep is `confirmed`; 1: in the newest. */
  readonly depth?: number
  /** The most a unit of gas may cost, in wei. Absent: whatever it costs. */
  readonly mostForGas?: bigint | null
  /** A transaction not mined after this long is sent again, with a higher fee where fees have risen. */
  readonly stuckMs?: number
  /** A hole that holds back later transactions is filled after this long, if nobody else used it. */
  readonly fillMs?: number
}

const ATTEMPTS = 4
const RETRY_MS = 250
const MOST_DOUBTS = 5
const PLAIN_GAS = 21_000n

export function createSender(options: SenderOptions): Sender {
  const { rpc, signer, log, pollMs = 250, depth = 1, mostForGas = null, stuckMs = 12_000, fillMs = 2_000 } = options
  const nonces = createNonces()
  const currentFees = createFees({ rpc, most: mostForGas })
  const tracker = createTracker<OwnTransaction>({
    rpc,
    address: signer.address,
    pollMs,
    depth,
    mend,
    onError: (error) => log.warn({ err: error }, 'the chain could not be read; pending transactions wait'),
  })
  let started: Promise<void> | null = null

  async function syncNonce(): Promise<void> {
    nonces.atLeast(Number(await rpc.call<Hex>('eth_getTransactionCount', signer.address, 'pending')))
  }

  async function start(): Promise<void> {
    started ??= syncNonce()
    try {
      await started
    } catch (error) {
      started = null
      throw error
    }
  }

  /** Current fees, or TooDear. */
  async function affordable(): Promise<Quotation> {
    const quotation = await currentFees()
    if (mostForGas !== null && quotation.price > mostForGas) throw new TooDear(quotation, mostForGas)
    return quotation
  }

  const create = (fields: Parameters<typeof createTransaction>[1]): OwnTransaction =>
    createTransaction({ signer, depth, log }, fields)

  async function prepare(to: Hex, data: Hex, gas: bigint): Promise<OwnTransaction> {
    await start()
    const { block, price: _, ...fees } = await affordable()
    return create({ nonce: nonces.allocate(), to, data, gas, fees, fromBlock: block })
  }

  async function send(prepared: PendingTransaction): Promise<boolean> {
    const tx = prepared as OwnTransaction
    const track = (accepted: boolean): boolean => {
      // What the node may not have is sent again at the next look.
      tx.sentAt = accepted ? performance.now() : Number.NEGATIVE_INFINITY
      tracker.add(tx)
      return accepted
    }
    for (let attempt = 1; ; attempt++) {
      try {
        await rpc.call('eth_sendRawTransaction', tx.raw)
        return track(true)
      } catch (error) {
        const fault = faultOf(error)
        if (fault === 'known') return track(true)
        if (fault === 'unknown' || fault === 'doubtful') return track(false)
        if (attempt === ATTEMPTS || fault === 'refused') {
          nonces.release(tx.nonce)
          throw error
        }
        await mendRefused(tx, fault, attempt)
      }
    }
  }

  async function mendRefused(tx: OwnTransaction, fault: 'unsent' | 'nonce' | 'fee', attempt: number): Promise<void> {
    if (fault === 'unsent') return delay(RETRY_MS * attempt)
    log.warn({ nonce: tx.nonce, fault }, 'the node refused a transaction; it is signed again')
    if (fault === 'fee') return signAgain(signer, tx, { fees: await currentFees({ fresh: true }) })
    await syncNonce()
    signAgain(signer, tx, { nonce: nonces.allocate() })
  }

  /** Sends again what stands still, and fills the holes that hold others back. */
  async function mend(count: number): Promise<void> {
    const now = performance.now()
    const waiting = tracker.all().filter(({ nonce }) => nonce >= count)
    const [lowest] = waiting
    if (!lowest) return
    if (lowest.nonce > count && now - lowest.sentAt > fillMs) await fill(lowest)
    for (const tx of waiting.filter(({ sentAt }) => now - sentAt > stuckMs)) {
      tx.sentAt = now
      // A pool may hold the account's next transaction back for ever, and look at it anew only where it is replaced.
      const isHeld = tx.isKnown && tx.nonce === count && tx.hashes.length === 1
      if (tx === lowest) await raise(tx, isHeld)
      const fault = await again(tx.raw)
      tx.isKnown = fault === 'known'
      tx.doubts = fault === 'doubtful' ? tx.doubts + 1 : 0
      if (fault === 'refused' || tx.doubts === MOST_DOUBTS) giveUp(tx)
    }
  }

  /** What the node will not take must not hold back the others. The judge decides what became of the payment. */
  function giveUp(tx: OwnTransaction): void {
    log.error({ nonce: tx.nonce, transaction: tx.hash }, 'the node does not take a transaction; it is given up')
    tracker.drop(tx)
    nonces.release(tx.nonce)
  }

  async function fill(blocked: OwnTransaction): Promise<void> {
    const nonce = nonces.allocateBelow(blocked.nonce)
    if (nonce === null) return
    const { fees, fromBlock } = blocked
    log.info({ nonce }, 'an unused nonce is filled')
    await send(create({ nonce, to: signer.address, data: '0x', gas: PLAIN_GAS, fees, fromBlock }))
  }

  /** Offers more where fees have risen, or `anyway`. */
  async function raise(tx: OwnTransaction, anyway: boolean): Promise<void> {
    const fees = raised(await currentFees({ fresh: true }), tx.fees, mostForGas, anyway)
    if (!fees) return
    signAgain(signer, tx, { fees })
    log.info({ nonce: tx.nonce, transaction: tx.hash }, 'a transaction is sent again with a higher fee')
  }

  /** Null: the node has taken it; known: it had it. */
  async function again(raw: Hex): Promise<Fault | null> {
    try {
      await (rpc.broadcast ? rpc.broadcast(raw) : rpc.call('eth_sendRawTransaction', raw))
      return null
    } catch (error) {
      return faultOf(error)
    }
  }

  return {
    price: async () => (await affordable()).price,
    prepare,
    amend: (tx, to, data, gas) => signAgain(signer, tx as OwnTransaction, { to, data, gas }),
    send,
    abandon: ({ nonce }) => nonces.release(nonce),
    async resend({ raw, transaction, senderNonce: nonce, fromBlock }) {
      await start()
      if (tracker.has(nonce)) return true
      const fault = await again(raw)
      const isThere = fault === null || fault === 'known'
      if (!isThere || tracker.has(nonce)) return fault !== 'nonce'
      nonces.adopt(nonce)
      const { to, data = '0x', gas = PLAIN_GAS, maxFeePerGas = 0n, maxPriorityFeePerGas = 0n } = parseTransaction(raw)
      const fees = { maxFeePerGas, maxPriorityFeePerGas }
      const tx = create({ nonce, to: to as Hex, data, gas, fees, fromBlock })
      tracker.add(Object.assign(tx, { raw, hash: transaction, hashes: [transaction] }))
      return true
    },
    close: () => tracker.close(),
  }
}

/**
 * What a failed send means. known: the node has the transaction already. nonce, fee: it has to be signed again. unsent,
 * refused: certainly not taken. unknown, doubtful: perhaps taken. Nodes agree on messages, not on error codes.
 */
type Fault = 'known' | 'nonce' | 'fee' | 'unsent' | 'unknown' | 'refused' | 'doubtful'

/** Messages of a node that has certainly not taken a transaction. */
const REFUSED =
  /insufficient funds|intrinsic gas|gas limit|invalid (sender|chain|signature)|not supported|too many|rate limit|cap|txpool is full|oversized/i

/** The fault behind an error of a send. A message that is not known here proves nothing. Rethrows what is no RpcError. */
function faultOf(error: unknown): Fault {
  if (!(error instanceof RpcError)) throw error
  if (error.fault !== 'refused') return error.fault
  if (KNOWN.test(error.message)) return 'known'
  if (/nonce (is )?too low|already used|replacement/i.test(error.message)) return 'nonce'
  if (/underpriced|max fee|fee cap|base fee|gas price/i.test(error.message)) return 'fee'
  return REFUSED.test(error.message) ? 'refused' : 'doubtful'
}
