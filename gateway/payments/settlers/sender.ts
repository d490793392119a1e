/**
 * The account that pays the gas. Transactions are signed before they are recorded and sent without waiting for one
 * another. What is sent again under another nonce or fee needs no new record: the token takes an authorization once,
 * and the judge finds it by its own logs.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { parseTransaction } from 'viem/utils'
import type { Hex, Intent } from '../payment.ts'
import type { Logger } from '../../plugin.ts'
import { createFees, raised } from './fees.ts'
import type { TransactionReceipt } from './judge.ts'
import { createNonces } from './nonces.ts'
import { RpcError, type Rpc } from './rpc.ts'
import type { Fees, Signer } from './signer.ts'
import { createWatch, type InFlight } from './watch.ts'

/** A signed transaction. Sending may sign it anew; `hashes` keeps every form that may be mined. */
export interface Sending extends InFlight {
  nonce: number
  raw: Hex
  hash: Hex
  readonly hashes: Hex[]
  /** Height before sending. */
  readonly fromBlock: number
  /** The receipt, or null where it will never be known here. */
  readonly mined: Promise<TransactionReceipt | null>
}

export interface Sender {
  /** Allocates a nonce and signs; nothing is sent. Throws RpcError where the chain cannot be read. */
  prepare(to: Hex, data: Hex, gas: bigint): Promise<Sending>
  /** Gives back what was prepared and not sent. */
  abandon(sending: Sending): void
  /**
   * True: the node has it. False: it may have it. Throws where it certainly was not sent: RpcError `unsent` or
   * `refused`; the nonce is given back.
   */
  send(sending: Sending): Promise<boolean>
  /** Sends a recorded transaction again unchanged and watches it, unless it is watched already. */
  resend(intent: Extract<Intent, { kind: 'chain' }>): Promise<void>
  close(): void
}

export interface SenderOptions {
  readonly rpc: Rpc
  readonly signer: Signer
  readonly log: Logger
  readonly pollMs?: number
  /** A transaction not mined after this long is sent again, with a higher fee where fees have risen. */
  readonly stuckMs?: number
  /** A hole that holds back later transactions is filled after this long, if nobody else used it. */
  readonly fillMs?: number
}

interface Flying extends Sending {
  readonly to: Hex
  readonly data: Hex
  readonly gas: bigint
  fees: Fees
  /** Monotonic milliseconds of the last sending. */
  sentAt: number
  /** How often in a row the node has said no to sending it again, in words we do not know. */
  doubts: number
}

const ATTEMPTS = 4
const RETRY_MS = 250
const MOST_DOUBTS = 5
const PLAIN_GAS = 21_000n

export function createSender(options: SenderOptions): Sender {
  const { rpc, signer, log, pollMs = 250, stuckMs = 12_000, fillMs = 2_000 } = options
  const nonces = createNonces()
  const currentFees = createFees(rpc)
  const watch = createWatch<Flying>({
    rpc,
    address: signer.address,
    pollMs,
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

  function fly(fields: Pick<Flying, 'nonce' | 'to' | 'data' | 'gas' | 'fees' | 'fromBlock'>): Flying {
    const signed = signer.sign({ ...fields, ...fields.fees })
    const landing: Partial<Pick<Flying, 'land'>> = {}
    const mined = new Promise<TransactionReceipt | null>((resolve) => {
      landing.land = resolve
    })
    const land: Flying['land'] = (receipt) => landing.land?.(receipt)
    return { ...fields, ...signed, hashes: [signed.hash], mined, land, sentAt: performance.now(), doubts: 0 }
  }

  function signAgain(flying: Flying, change: { readonly nonce?: number; readonly fees?: Fees }): void {
    Object.assign(flying, change)
    Object.assign(flying, signer.sign({ ...flying, ...flying.fees }))
    flying.hashes.push(flying.hash)
  }

  async function prepare(to: Hex, data: Hex, gas: bigint): Promise<Flying> {
    await start()
    const { block, ...fees } = await currentFees()
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
    if (fault === 'fee') return signAgain(flying, { fees: await currentFees({ fresh: true }) })
    await syncNonce()
    signAgain(flying, { nonce: nonces.allocate() })
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
      if (flying === lowest) await raise(flying)
      const fault = await again(flying.raw)
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

  async function raise(flying: Flying): Promise<void> {
    const fees = raised(await currentFees({ fresh: true }), flying.fees)
    if (!fees) return
    signAgain(flying, { fees })
    log.info({ nonce: flying.nonce, transaction: flying.hash }, 'a transaction is sent again with a higher fee')
  }

  /** Null: the node has it now. */
  async function again(raw: Hex): Promise<Fault | null> {
    try {
      await rpc.call('eth_sendRawTransaction', raw)
      return null
    } catch (error) {
      const fault = faultOf(error)
      return fault === 'known' ? null : fault
    }
  }

  return {
    prepare,
    send,
    abandon: ({ nonce }) => nonces.release(nonce),
    async resend({ raw, transaction, senderNonce: nonce, fromBlock }) {
      await start()
      if (watch.has(nonce) || (await again(raw)) !== null || watch.has(nonce)) return
      nonces.adopt(nonce)
      const { to, data = '0x', gas = PLAIN_GAS, maxFeePerGas = 0n, maxPriorityFeePerGas = 0n } = parseTransaction(raw)
      const fees = { maxFeePerGas, maxPriorityFeePerGas }
      const flying = fly({ nonce, to: to as Hex, data, gas, fees, fromBlock })
      watch.add({ ...flying, raw, hash: transaction, hashes: [transaction] })
    },
    close: () => watch.close(),
  }
}

type Fault = 'known' | 'nonce' | 'fee' | 'unsent' | 'unknown' | 'refused' | 'doubtful'

/** Words of a node that has certainly not taken a transaction. */
const REFUSED =
  /insufficient funds|intrinsic gas|gas limit|invalid (sender|chain|signature)|not supported|too many|rate limit|cap|txpool is full|oversized/i

/** What a failed sending means. Nodes agree on the words, not on the codes; words we do not know prove nothing. */
function faultOf(error: unknown): Fault {
  if (!(error instanceof RpcError)) throw error
  if (error.fault !== 'refused') return error.fault
  if (/already (known|imported)|known transaction/i.test(error.message)) return 'known'
  if (/nonce (is )?too low|already used|replacement/i.test(error.message)) return 'nonce'
  if (/underpriced|max fee|fee cap|base fee|gas price/i.test(error.message)) return 'fee'
  return REFUSED.test(error.message) ? 'refused' : 'doubtful'
}
