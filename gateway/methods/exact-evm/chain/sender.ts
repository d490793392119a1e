/**
 * The account that pays the gas. Transactions are signed before they are recorded and sent without waiting for one
 * another. What is sent again under another nonce or fee needs no new record: the token takes an authorization once,
 * and the judge finds it by its own logs.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { parseTransaction } from 'viem/utils'
import type { ChainIntent } from '../intent.ts'
import type { Hex } from '../../../config/networks.ts'
import type { Logger } from '../../../plugin/plugin.ts'
import { faultOf, type Fault } from './send-errors.ts'
import { createFees, type Quotation, raised, TooDear } from './gas-fees.ts'
import { createFlying, type Flying, type Sending, signAgain } from './pending-transaction.ts'
import type { Nodes } from '../nodes/nodes.ts'
import { createNonces } from './nonces.ts'
import type { Rpc } from '../nodes/rpc.ts'
import type { Signer } from './transaction-signer.ts'
import { createWatch } from './transaction-tracker.ts'

export interface Sender {
  /** What gas costs, looked up every few seconds. Throws TooDear where that is above the limit, RpcError. */
  price(): Promise<bigint>
  /** Allocates a nonce and signs; nothing is sent. Throws TooDear, and RpcError where the chain cannot be read. */
  prepare(to: Hex, data: Hex, gas: bigint): Promise<Sending>
  /** Signs anew what was prepared and not sent, with other call data. */
  amend(sending: Sending, to: Hex, data: Hex, gas: bigint): void
  /** Gives back what was prepared and not sent. */
  abandon(sending: Sending): void
  /**
   * True: the node has it. False: it may have it. Throws where it certainly was not sent: RpcError `unsent` or
   * `refused`; the nonce is given back.
   */
  send(sending: Sending): Promise<boolean>
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
  const watch = createWatch<Flying>({
    rpc,
    address: signer.address,
    pollMs,
    depth,
    mend,
    onError: (error) => log.warn({ err: error }, 'the chain could not be read; transactions in flight wait'),
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

  const fly = (fields: Parameters<typeof createFlying>[1]): Flying => createFlying({ signer, depth, log }, fields)

  async function prepare(to: Hex, data: Hex, gas: bigint): Promise<Flying> {
    await start()
    const { block, price: _, ...fees } = await affordable()
    return fly({ nonce: nonces.allocate(), to, data, gas, fees, fromBlock: block })
  }

  async function send(sending: Sending): Promise<boolean> {
    const flying = sending as Flying
    const launch = (accepted: boolean): boolean => {
      // What the node may not have is sent again at the next look.
      flying.sentAt = accepted ? performance.now() : Number.NEGATIVE_INFINITY
      watch.add(flying)
      return accepted
    }
    for (let attempt = 1; ; attempt++) {
      try {
        await rpc.call('eth_sendRawTransaction', flying.raw)
        return launch(true)
      } catch (error) {
        const fault = faultOf(error)
        if (fault === 'known') return launch(true)
        if (fault === 'unknown' || fault === 'doubtful') return launch(false)
        if (attempt === ATTEMPTS || fault === 'refused') {
          nonces.release(flying.nonce)
          throw error
        }
        await mendRefused(flying, fault, attempt)
      }
    }
  }

  async function mendRefused(flying: Flying, fault: 'unsent' | 'nonce' | 'fee', attempt: number): Promise<void> {
    if (fault === 'unsent') return delay(RETRY_MS * attempt)
    log.warn({ nonce: flying.nonce, fault }, 'the node refused a transaction; it is signed again')
    if (fault === 'fee') return signAgain(signer, flying, { fees: await currentFees({ fresh: true }) })
    await syncNonce()
    signAgain(signer, flying, { nonce: nonces.allocate() })
  }

  /** Sends again what stands still, and fills the holes that hold others back. */
  async function mend(count: number): Promise<void> {
    const now = performance.now()
    const waiting = watch.all().filter(({ nonce }) => nonce >= count)
    const [lowest] = waiting
    if (!lowest) return
    if (lowest.nonce > count && now - lowest.sentAt > fillMs) await fill(lowest)
    for (const flying of waiting.filter(({ sentAt }) => now - sentAt > stuckMs)) {
      flying.sentAt = now
      // A pool may hold the account's next transaction back for ever, and look at it anew only where it is replaced.
      const isHeld = flying.isKnown && flying.nonce === count && flying.hashes.length === 1
      if (flying === lowest) await raise(flying, isHeld)
      const fault = await again(flying.raw)
      flying.isKnown = fault === 'known'
      flying.doubts = fault === 'doubtful' ? flying.doubts + 1 : 0
      if (fault === 'refused' || flying.doubts === MOST_DOUBTS) giveUp(flying)
    }
  }

  /** What the node will not take must not hold back the others. The judge decides what became of the payment. */
  function giveUp(flying: Flying): void {
    log.error({ nonce: flying.nonce, transaction: flying.hash }, 'the node does not take a transaction; it is given up')
    watch.drop(flying)
    nonces.release(flying.nonce)
  }

  async function fill(blocked: Flying): Promise<void> {
    const nonce = nonces.allocateBelow(blocked.nonce)
    if (nonce === null) return
    const { fees, fromBlock } = blocked
    log.info({ nonce }, 'an unused nonce is filled')
    await send(fly({ nonce, to: signer.address, data: '0x', gas: PLAIN_GAS, fees, fromBlock }))
  }

  /** Offers more where fees have risen, or `anyway`. */
  async function raise(flying: Flying, anyway: boolean): Promise<void> {
    const fees = raised(await currentFees({ fresh: true }), flying.fees, mostForGas, anyway)
    if (!fees) return
    signAgain(signer, flying, { fees })
    log.info({ nonce: flying.nonce, transaction: flying.hash }, 'a transaction is sent again with a higher fee')
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
    amend: (sending, to, data, gas) => signAgain(signer, sending as Flying, { to, data, gas }),
    send,
    abandon: ({ nonce }) => nonces.release(nonce),
    async resend({ raw, transaction, senderNonce: nonce, fromBlock }) {
      await start()
      if (watch.has(nonce)) return true
      const fault = await again(raw)
      const isThere = fault === null || fault === 'known'
      if (!isThere || watch.has(nonce)) return fault !== 'nonce'
      nonces.adopt(nonce)
      const { to, data = '0x', gas = PLAIN_GAS, maxFeePerGas = 0n, maxPriorityFeePerGas = 0n } = parseTransaction(raw)
      const fees = { maxFeePerGas, maxPriorityFeePerGas }
      const flying = fly({ nonce, to: to as Hex, data, gas, fees, fromBlock })
      watch.add(Object.assign(flying, { raw, hash: transaction, hashes: [transaction] }))
      return true
    },
    close: () => watch.close(),
  }
}
