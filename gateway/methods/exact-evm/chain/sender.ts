/**
 * Sends transactions from the account that pays the gas. A transaction is signed before its intent is recorded, and
 * transactions are sent without waiting for one another. Sending one again with another nonce or fee needs no new
 * record: the token accepts an authorization once, and the outcome is read from the token's logs.
 */
import { randomInt } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { LRUCache } from 'lru-cache'
import { parseTransaction } from 'viem/utils'
import type { ChainIntent } from '../settlement-intent.ts'
import type { Hex } from '../../../config/networks.ts'
import type { Logger } from '../../../plugin/plugin.ts'
import { createFeeReader, type FeeQuote, GasPriceTooHigh, replacementFees } from './gas-fees.ts'
import {
  createTransaction,
  type OwnTransaction,
  type PendingTransaction,
  signAgain,
  signedTransaction,
} from './pending-transaction.ts'
import { costOf } from '../authorization-outcome.ts'
import { ALREADY_KNOWN, type Nodes } from '../nodes/nodes.ts'
import { createNonces, type Nonces } from './nonces.ts'
import { type Rpc, RpcError } from '../nodes/rpc.ts'
import type { Fees, Signer } from './transaction-signer.ts'
import { createTracker, type TransactionTracker } from './transaction-tracker.ts'

export interface Sender {
  /** The current price of gas in wei, read every few seconds. Throws GasPriceTooHigh above the limit, and RpcError. */
  price(): Promise<bigint>
  /** The fees that a transaction would offer now. Throws as `price` does. */
  fees(): Promise<Fees>
  /**
   * Allocates a nonce and signs a transaction, without sending it. Throws GasPriceTooHigh, and RpcError if the chain
   * cannot be read.
   */
  prepare(to: Hex, data: Hex, gas: bigint): Promise<PendingTransaction>
  /** Signs a prepared transaction again with another call. If it throws RpcError `unsent`, the nonce is free again. */
  amend(tx: PendingTransaction, to: Hex, data: Hex, gas: bigint): Promise<void>
  /** Returns the nonce of a prepared transaction that will not be sent. */
  abandon(tx: PendingTransaction): void
  /**
   * Sends a prepared transaction. True: the node has it. False: the node may have it. If it was certainly not sent,
   * this throws RpcError `unsent` or `refused` and the nonce is free again.
   */
  send(tx: PendingTransaction): Promise<boolean>
  /**
   * Sends a recorded transaction again unchanged and tracks it, unless it is tracked already. False: another
   * transaction has used its nonce, so it can never be mined.
   */
  resend(intent: ChainIntent): Promise<boolean>
  /** Wei that transactions of this process have cost once they were in a block, and how much of that for failed ones. */
  spent(): { readonly all: bigint; readonly onFailures: bigint }
  /** Whether this process has sent a transaction with this hash. It remembers its newest ones. */
  hasSent(hash: Hex): boolean
  close(): void
}

export interface SenderOptions {
  /** If it has `broadcast`, transactions that are not mined in time are sent again to all nodes. */
  readonly rpc: Rpc & Partial<Pick<Nodes, 'broadcast'>>
  readonly signer: Signer
  readonly log: Logger
  readonly pollMs?: number
  /** How many blocks deep a transaction is confirmed; 1: the newest block is enough. */
  readonly depth?: number
  /** The highest gas price to pay, in wei. No limit if absent or null. */
  readonly maxGasPrice?: bigint | null
  /** A transaction that is not mined after this long is sent again, with a higher fee if fees have risen. */
  readonly stuckMs?: number
  /** A nonce gap that blocks later transactions is filled after this long. */
  readonly fillMs?: number
}

/** Shared by the functions of this file. */
interface Context {
  readonly rpc: SenderOptions['rpc']
  readonly signer: Signer
  readonly log: Logger
  readonly depth: number
  readonly maxGasPrice: bigint | null
  readonly stuckMs: number
  readonly fillMs: number
  readonly nonces: Nonces
  readonly readFees: ReturnType<typeof createFeeReader>
  readonly tracker: TransactionTracker<OwnTransaction>
  /** Hashes of transactions that were sent, each version of a replaced one included. */
  readonly sent: LRUCache<Hex, true>
  readonly spent: { all: bigint; onFailures: bigint }
  /** Settles once the account's nonce has been read; null before that. */
  started: Promise<void> | null
  /** Nonces below this one were used before this process started. */
  inherited: number
}

const MAX_ATTEMPTS = 4
const RETRY_MS = 250
/** A transaction is given up after this many unexplained refusals in a row. */
const MAX_UNEXPLAINED = 5
const MAX_REMEMBERED = 20_000
/** Gas of a transfer without data. */
const EMPTY_CALL_GAS = 21_000n

/** Creates the sender of one account. The account's nonce is read with the first transaction. */
export function createSender(options: SenderOptions): Sender {
  const { rpc, signer, log, pollMs = 250, depth = 1, maxGasPrice = null, stuckMs = 12_000, fillMs = 2_000 } = options
  const tracker = createTracker<OwnTransaction>({
    rpc,
    address: signer.address,
    pollMs,
    depth,
    onPoll: (count) => resendStuck(context, count),
    onError: (error) => log.warn({ err: error }, 'the chain could not be read; pending transactions wait'),
  })
  const nonces = createNonces()
  const readFees = createFeeReader({ rpc, maxGasPrice })
  const settings = { rpc, signer, log, depth, maxGasPrice, stuckMs, fillMs }
  const sent = new LRUCache<Hex, true>({ max: MAX_REMEMBERED })
  const spent = { all: 0n, onFailures: 0n }
  const context: Context = { ...settings, nonces, readFees, tracker, sent, spent, started: null, inherited: 0 }
  return {
    price: async () => (await affordableFees(context)).price,
    fees: () => affordableFees(context),
    prepare: (to, data, gas) => prepare(context, to, data, gas),
    amend: (tx, to, data, gas) =>
      orRelease(context, tx.nonce, signAgain(signer, tx as OwnTransaction, { to, data, gas })),
    send: (tx) => send(context, tx as OwnTransaction),
    abandon: ({ nonce }) => nonces.release(nonce),
    resend: (intent) => resend(context, intent),
    spent: () => ({ ...spent }),
    hasSent: (hash) => sent.has(hash),
    close: () => tracker.close(),
  }
}

/** Tracks a transaction that was sent, and counts what it costs once it is in a block. */
function follow({ tracker, spent }: Context, tx: OwnTransaction): void {
  tracker.add(tx)
  void tx.mined.then((receipt) => {
    if (receipt === null) return
    const cost = costOf(receipt)
    spent.all += cost
    if (BigInt(receipt.status) === 0n) spent.onFailures += cost
  })
}

async function prepare(context: Context, to: Hex, data: Hex, gas: bigint): Promise<OwnTransaction> {
  await start(context)
  const { block, price: _, ...quoted } = await affordableFees(context)
  const fees = distinctFees(quoted, context.maxGasPrice)
  const nonce = context.nonces.allocate()
  return orRelease(context, nonce, createTransaction(context, { nonce, to, data, gas, fees, fromBlock: block }))
}

/** Waits for a signature, and frees the nonce if there is none. */
async function orRelease<Value>({ nonces }: Context, nonce: number, signing: Promise<Value>): Promise<Value> {
  try {
    return await signing
  } catch (error) {
    nonces.release(nonce)
    throw error
  }
}

/**
 * Raises the fee limit by up to one percent, at random; the fee paid stays the same. Otherwise two gateways that share
 * a gas key could sign the same transaction for the same payment, and each would take it for its own.
 */
function distinctFees({ maxFeePerGas, maxPriorityFeePerGas }: Fees, limit: bigint | null): Fees {
  const raised = maxFeePerGas + (maxFeePerGas * BigInt(randomInt(MAX_RANDOM))) / BigInt(100 * MAX_RANDOM)
  return { maxFeePerGas: limit !== null && raised > limit ? maxFeePerGas : raised, maxPriorityFeePerGas }
}

const MAX_RANDOM = 1_000_000_000

/** Reads the account's nonce once. After an error, the next call tries again. */
async function start(context: Context): Promise<void> {
  context.started ??= readNonce(context).then((count) => {
    context.inherited = count
  })
  try {
    await context.started
  } catch (error) {
    context.started = null
    throw error
  }
}

/** Reads the next nonce: that of the chain, and of the transactions that the node holds. */
async function readNonce(context: Context): Promise<number> {
  const count = await pendingCount(context)
  context.nonces.atLeast(count)
  return count
}

async function pendingCount({ rpc, signer }: Context): Promise<number> {
  return Number(await rpc.call<Hex>('eth_getTransactionCount', signer.address, 'pending'))
}

/** The current fees. Throws GasPriceTooHigh. */
async function affordableFees({ readFees, maxGasPrice }: Context): Promise<FeeQuote> {
  const quote = await readFees()
  if (maxGasPrice !== null && quote.price > maxGasPrice) throw new GasPriceTooHigh(quote, maxGasPrice)
  return quote
}

async function send(context: Context, tx: OwnTransaction): Promise<boolean> {
  const { rpc, nonces } = context
  const track = (accepted: boolean): boolean => {
    // A transaction that the node may not have is sent again at the tracker's next poll.
    tx.sentAt = accepted ? performance.now() : Number.NEGATIVE_INFINITY
    follow(context, tx)
    return accepted
  }
  for (let attempt = 1; ; attempt++) {
    try {
      context.sent.set(tx.hash, true)
      await rpc.call('eth_sendRawTransaction', tx.raw)
      return track(true)
    } catch (error) {
      const fault = faultOf(error)
      if (fault === 'known') return track(true)
      if (fault === 'unknown' || fault === 'unexplained') return track(false)
      if (attempt === MAX_ATTEMPTS || fault === 'refused') {
        nonces.release(tx.nonce)
        throw error
      }
      await prepareRetry(context, tx, fault, attempt)
    }
  }
}

/** Waits for the node, or signs the transaction again with another nonce or fee. */
async function prepareRetry(
  context: Context,
  tx: OwnTransaction,
  fault: 'unsent' | 'nonce' | 'fee',
  attempt: number,
): Promise<void> {
  const { signer, log, nonces, readFees } = context
  if (fault === 'unsent') return delay(RETRY_MS * attempt)
  log.warn({ nonce: tx.nonce, fault }, 'the node refused a transaction; it is signed again')
  if (fault === 'fee')
    return orRelease(context, tx.nonce, signAgain(signer, tx, { fees: await readFees({ fresh: true }) }))
  await readNonce(context)
  const nonce = nonces.allocate()
  await orRelease(context, nonce, signAgain(signer, tx, { nonce }))
}

/**
 * Sends transactions again that are not mined in time, and fills the nonce gap that blocks them.
 * @param count the account's transaction count: nonces from here on are not mined
 */
async function resendStuck(context: Context, count: number): Promise<void> {
  const { tracker, stuckMs, fillMs } = context
  const now = performance.now()
  const waiting = tracker.all().filter(({ nonce }) => nonce >= count)
  const [lowest] = waiting
  if (!lowest) return
  if (lowest.nonce > count && now - lowest.sentAt > fillMs) await fillGap(context, lowest, count)
  for (const tx of waiting.filter(({ sentAt }) => now - sentAt > stuckMs)) {
    tx.sentAt = now
    // A node's pool may hold the account's next transaction back without end, until a replacement makes it look again.
    const isHeldBack = tx.isKnown && tx.nonce === count && tx.hashes.length === 1
    if (tx === lowest) await raiseFees(context, tx, isHeldBack)
    context.sent.set(tx.hash, true)
    const fault = await broadcast(context, tx.raw)
    tx.isKnown = fault === 'known'
    tx.unexplained = fault === 'unexplained' ? tx.unexplained + 1 : 0
    if (fault === 'refused' || tx.unexplained === MAX_UNEXPLAINED) giveUp(context, tx)
  }
}

/**
 * Stops tracking a transaction that the node does not accept, so that it does not block the ones behind it. Its
 * payment's outcome is read from the token's logs.
 */
function giveUp({ log, tracker, nonces }: Context, tx: OwnTransaction): void {
  log.error({ nonce: tx.nonce, transaction: tx.hash }, 'the node does not accept a transaction; it is given up')
  tracker.drop(tx)
  nonces.release(tx.nonce)
}

/**
 * Uses a free nonce below a blocked transaction for an empty transaction to ourselves.
 * @param count the account's transaction count: the chain waits for this nonce
 */
async function fillGap(context: Context, blocked: OwnTransaction, count: number): Promise<void> {
  const { signer, log, nonces } = context
  const nonce = nonces.allocateBelow(blocked.nonce) ?? ((await isLost(context, count)) ? count : null)
  if (nonce === null) return
  const { fees, fromBlock } = blocked
  log.info({ nonce }, 'an unused nonce is filled with an empty transaction')
  const fields = { nonce, to: signer.address, data: '0x', gas: EMPTY_CALL_GAS, fees, fromBlock } as const
  await send(context, await orRelease(context, nonce, createTransaction(context, fields)))
}

/**
 * Whether an earlier process sent a transaction with this nonce that the node has lost since. It is not sent again:
 * batches are not, and those that replaced another one are in no intent. Its payments are sent with other nonces.
 */
async function isLost(context: Context, nonce: number): Promise<boolean> {
  return nonce < context.inherited && (await pendingCount(context)) <= nonce
}

/** Signs a transaction again with higher fees, if fees have risen or `always` is set, and the limit allows it. */
async function raiseFees(context: Context, tx: OwnTransaction, always: boolean): Promise<void> {
  const { signer, log, readFees, maxGasPrice } = context
  const fees = replacementFees(await readFees({ fresh: true }), tx.fees, maxGasPrice, always)
  if (!fees) return
  await signAgain(signer, tx, { fees })
  log.info({ nonce: tx.nonce, transaction: tx.hash }, 'a transaction is sent again with a higher fee')
}

async function resend(context: Context, intent: ChainIntent): Promise<boolean> {
  const { nonces, tracker } = context
  const { raw, transaction, senderNonce: nonce, fromBlock } = intent
  await start(context)
  if (tracker.has(nonce)) return true
  context.sent.set(transaction, true)
  const fault = await broadcast(context, raw)
  const isSent = fault === null || fault === 'known'
  if (!isSent || tracker.has(nonce)) return fault !== 'nonce'
  nonces.adopt(nonce)
  const { to, data = '0x', gas = EMPTY_CALL_GAS, maxFeePerGas = 0n, maxPriorityFeePerGas = 0n } = parseTransaction(raw)
  const fees = { maxFeePerGas, maxPriorityFeePerGas }
  const fields = { nonce, to: to as Hex, data, gas, fees, fromBlock }
  follow(context, signedTransaction(context, fields, { raw, hash: transaction }))
  return true
}

/** Sends a signed transaction. Null: a node accepted it. `known`: the nodes already had it. */
async function broadcast({ rpc }: Context, raw: Hex): Promise<SendFault | null> {
  try {
    await (rpc.broadcast ? rpc.broadcast(raw) : rpc.call('eth_sendRawTransaction', raw))
    return null
  } catch (error) {
    return faultOf(error)
  }
}

/**
 * Interprets a failed send.
 * - `known`: the node already has the transaction.
 * - `nonce`, `fee`: it has to be signed again with another nonce or fee.
 * - `unsent`, `refused`: the node certainly does not have it.
 * - `unknown`, `unexplained`: the node may have it.
 */
type SendFault = 'known' | 'nonce' | 'fee' | 'unsent' | 'unknown' | 'refused' | 'unexplained'

/** Messages of a node that certainly did not accept the transaction. */
const REFUSED =
  /insufficient funds|intrinsic gas|gas limit|invalid (sender|chain|signature)|not supported|too many|rate limit|cap|txpool is full|oversized/i

/**
 * Classifies the error of a send by its message, because nodes agree on messages more than on error codes. A message
 * that is not listed here proves nothing. Rethrows everything but RpcError.
 */
function faultOf(error: unknown): SendFault {
  if (!(error instanceof RpcError)) throw error
  if (error.fault !== 'refused') return error.fault
  if (ALREADY_KNOWN.test(error.message)) return 'known'
  if (/nonce (is )?too low|already used|replacement/i.test(error.message)) return 'nonce'
  if (/underpriced|max fee|fee cap|base fee|gas price/i.test(error.message)) return 'fee'
  return REFUSED.test(error.message) ? 'refused' : 'unexplained'
}
