/**
 * Settles payments over JSON-RPC with a gas key of our own. The key pays gas and cannot move any revenue. Payments are
 * sent without waiting for blocks: alone while it is quiet, several per transaction under load.
 */
import type { Logger } from '../../../plugin/plugin.ts'
import type {
  DecodedPayment,
  GasAccount,
  Outcome,
  SettlementCost,
  Settler,
  SettleOptions,
  SubmittedPayment,
} from '../../payment-method.ts'
import type { Hex, Network } from '../../../config/networks.ts'
import { createCheck, createSimulate } from '../onchain-check.ts'
import { createPaymentSender, paymentsWithin } from './batches.ts'
import { GasPriceTooHigh } from './gas-fees.ts'
import type { PendingTransaction } from './pending-transaction.ts'
import { createSettlerHealth, orUnavailable, type SettlerHealthCheck } from '../settler-health.ts'
import { createFinalityReader } from '../finality.ts'
import { createOutcomeReader } from '../authorization-outcome.ts'
import { MULTICALL3 } from '../multicall.ts'
import { createPayerCheck } from '../payer-check.ts'
import { createCanAgree } from '../nodes/agreement.ts'
import { createNodes, UNREACHABLE } from '../nodes/nodes.ts'
import { RpcError } from '../nodes/rpc.ts'
import { createSender, type Sender } from './sender.ts'
import { readSettlementCost } from './settlement-cost.ts'
import { createSigner, type Signer } from './transaction-signer.ts'
import { type Transfer, transferOf } from '../eip3009.ts'
import { type ChainIntent, type EvmIntent, intentOf } from '../settlement-intent.ts'
import { awaitOutcome, type OutcomeParts, outcomeOfTransaction, type SentPayment } from './transaction-outcome.ts'
import { type ContractWallets, createContractWallets, KEY_GAS } from '../contract-wallets.ts'

export interface ChainSettlerOptions {
  /** One node, or several in order of preference, separated by commas. */
  readonly rpcUrl: string
  /** The account that pays the gas: its private key, or what signs for it. */
  readonly key: Hex | Signer
  readonly network: Network
  readonly log: Logger
  /** How long a payment waits for its block before its outcome is pending. */
  readonly confirmSeconds: number
  /** How many blocks deep a payment is final; 1: in the newest block. */
  readonly confirmBlocks?: number
  /** From this amount on, in atomic units, two nodes must say the same, where there are two. Null, the default: never. */
  readonly twoNodesFrom?: bigint | null
  /** The highest gas price to pay, in wei; above it nothing new is sent. No limit if absent or null. */
  readonly maxGasPrice?: bigint | null
  /**
   * The most payments per transaction; 1: no batches. If absent or null, up to 50 where Multicall3 is deployed and 1
   * elsewhere.
   */
  readonly batch?: number | null
  /** Factories whose wallets may pay before they are deployed (ERC-6492). */
  readonly factories?: readonly Hex[]
  /** Whether only transactions of ours buy something: a payment that others send is then owed to its payer. */
  readonly isStrict?: boolean
  /** How often the chain is read while transactions are pending. */
  readonly pollMs?: number
  /** A transaction that is not mined after this long is sent again. */
  readonly stuckMs?: number
}

/**
 * Each transaction reserves several times the current gas price, so this many must be affordable to accept payments.
 */
const MIN_SETTLEMENTS = 5n
const HEALTH_SECONDS = 15
const DEFAULT_BATCH = 50

/** Shared by the functions of this file. */
interface Context extends Omit<OutcomeParts, 'sendAlone'> {
  readonly sender: Sender
  /** The account that pays the gas. */
  readonly address: Hex
  readonly sendPayment: ReturnType<typeof createPaymentSender>
  readonly wallets: ContractWallets
  readonly health: SettlerHealthCheck
  /** Why the signer would sign nothing now, or null. */
  readonly signerObstacle: () => string | null
  readonly sharing: Sharing
  /** The gas account as it was last read; null before the first time. */
  readonly gasAccount: { current: Pick<GasAccount, 'balance' | 'settlementCost'> | null }
  readonly isStrict: boolean
  /** Payers and nonces of the payments that `sendAlone` is sending, or has sent and that are not confirmed yet. */
  readonly sentAlone: Set<string>
}

/** How many payments may share a transaction. */
interface Sharing {
  /** The most payments per transaction that are configured. */
  readonly limit: number
  /** Null until a node has answered. */
  hasMulticall: boolean | null
  /** The most payments in a transaction that the gas account can pay for several times over. */
  affordable: number
}

/**
 * Opens a settler with its own gas key. If all nodes are down, it opens and is not ready.
 * @throws Error if a reachable node is of another chain, or if batches are requested on a network without Multicall3
 */
export async function createChainSettler(options: ChainSettlerOptions): Promise<Settler> {
  const { rpcUrl, key, network, log, confirmSeconds, confirmBlocks: depth = 1, batch = null, factories = [] } = options
  const { twoNodesFrom = null } = options
  const rpc = createNodes({ addresses: rpcUrl, network, log })
  const signer = typeof key === 'string' ? createSigner(key, network.chainId) : key
  const { address } = signer
  const signerObstacle = (): string | null => signer.obstacle?.() ?? null
  const sender = createSender({ ...options, rpc, signer, depth })
  const sharing: Sharing = { limit: batch ?? DEFAULT_BATCH, hasMulticall: null, affordable: 1 }
  const sendPayment = createPaymentSender({ sender, address, size: () => mostPayments(sharing) })
  const wallets = createContractWallets(rpc, network, factories)
  const simulate = createSimulate(rpc, wallets, { address, fees: sender.fees })
  const lookAtPayer = createPayerCheck(rpc, network.asset, wallets)
  const agreement = { from: twoNodesFrom, nodes: rpc, log }
  const assertCanAgree = createCanAgree(agreement)
  const assertReady = async (amount: bigint): Promise<void> => {
    await sender.price()
    await assertCanAgree(amount)
  }
  const check = createCheck({ rpc, network, wallets, simulate, assertReady, looksUpCode: true })
  const readOutcome = createOutcomeReader(rpc, network, { depth, agreement })
  const inspect = (): Promise<string | null> => inspectAccount(context)
  const health = createSettlerHealth({ inspect, everySeconds: HEALTH_SECONDS, unreachable: UNREACHABLE, log })
  const outcomes = { rpc, network, agreement, readOutcome, simulate, depth, confirmSeconds, log }
  const parts = { ...outcomes, sender, address, sendPayment, wallets, health }
  const gasAccount: Context['gasAccount'] = { current: null }
  const context: Context = {
    ...parts,
    signerObstacle,
    sharing,
    gasAccount,
    isStrict: options.isStrict ?? false,
    sentAlone: new Set(),
  }
  await health.refresh()
  const lacksMulticall = batch !== null && batch > 1 && sharing.hasMulticall === false
  const obstacle = rpc.wrongChain() ?? (lacksMulticall ? NO_MULTICALL : null)
  if (obstacle !== null) {
    health.close()
    throw new Error(`Settling on ${network.name} is impossible: ${obstacle}.`)
  }

  return {
    kind: 'chain',

    check: (payment, _requirements, checkOptions) =>
      orUnavailable(health, isOutage, () => check(transferOf(payment), checkOptions)),

    codeHashOf: ({ payer }) => wallets.codeHashOf(payer),

    mayPay: (payment, _requirements, { proven, nodeCalls }) =>
      orUnavailable(health, isOutage, () => lookAtPayer(transferOf(payment), proven, nodeCalls)),

    settle: (payment, _requirements, settleOptions) => settle(context, payment, settleOptions),
    status: (payment, { maySend = true } = {}) => statusOf(context, payment, maySend),
    finality: createFinalityReader(network, agreement),

    health() {
      const nodes = rpc.states()
      return { ...health.current(), ...(nodes.length > 1 ? { nodes } : {}) }
    },

    gasAccounts() {
      if (gasAccount.current === null) return []
      const { all: spent, onFailures: spentOnFailures } = sender.spent()
      return [{ network, address, ...gasAccount.current, spent, spentOnFailures }]
    },

    async close() {
      health.close()
      sender.close()
    },
  }
}

const NO_MULTICALL = `SETTLE_BATCH needs Multicall3 at ${MULTICALL3}, where there is no code`

/** The most payments that one transaction may settle now. */
function mostPayments({ limit, hasMulticall, affordable }: Sharing): number {
  return hasMulticall === true ? Math.min(limit, affordable) : 1
}

/** Only payers without code share a transaction. Without an answer, a payment is sent alone. */
async function lookUpCode({ wallets, sharing }: Context, payer: Hex): Promise<void> {
  if (mostPayments(sharing) > 1) await wallets.lookUp(payer).catch(() => {})
}

/** Why payments cannot be settled, or null: no usable node, too little balance for gas, gas or its price above a limit. */
async function inspectAccount(context: Context): Promise<string | null> {
  const { rpc, sender, address, sharing, gasAccount, network, log } = context
  const unusable = context.signerObstacle() ?? (await rpc.refresh())
  if (unusable !== null) return unusable
  if (sharing.limit > 1 && sharing.hasMulticall === null) {
    sharing.hasMulticall = (await rpc.call<Hex>('eth_getCode', MULTICALL3, 'latest')) !== '0x'
    if (!sharing.hasMulticall)
      log.warn({ network: network.name }, 'Multicall3 is not deployed: every payment is settled in its own transaction')
  }
  const balance = BigInt(await rpc.call<Hex>('eth_getBalance', address, 'latest'))
  try {
    const price = await sender.price()
    const settlementCost = await costOfSettlement(context, price)
    gasAccount.current = settlementCost && { balance, settlementCost }
    const affordableGas = (balance / MIN_SETTLEMENTS - (settlementCost?.l1Fee ?? 0n)) / price
    sharing.affordable = paymentsWithin(affordableGas)
    return affordableGas < KEY_GAS ? `${address} holds too little to pay gas` : null
  } catch (error) {
    if (error instanceof GasPriceTooHigh) return error.message
    throw error
  }
}

/** The cost of one settlement now. Null: the chain does not say what data cost, so nothing is concluded from it. */
async function costOfSettlement({ rpc, network, log }: Context, price: bigint): Promise<SettlementCost | null> {
  try {
    return await readSettlementCost(rpc, network, price)
  } catch (error) {
    if (!(error instanceof RpcError) || error.fault !== 'refused') throw error
    log.warn({ err: error, network: network.name }, 'the chain does not say what the data of a settlement cost')
    return null
  }
}

/** Whether an error is about the node or the gas price, and not about the payment. */
function isOutage(error: unknown): boolean {
  return error instanceof RpcError || error instanceof GasPriceTooHigh
}

async function settle(
  context: Context,
  payment: DecodedPayment,
  { record: store, wait, minBlocks = 1 }: SettleOptions,
): Promise<Outcome> {
  const { log, health, wallets, sendPayment, isStrict } = context
  const transfer = transferOf(payment)
  await lookUpCode(context, transfer.from)
  const settlement = await orUnavailable(health, isOutage, () => wallets.settlementOf(transfer))
  if ('reason' in settlement) return { state: 'refused', ...settlement }
  const record = (intent: ChainIntent): Promise<boolean> => store(minBlocks > 1 ? { ...intent, minBlocks } : intent)
  const result = await orUnavailable(health, isOutage, () => sendPayment({ settlement, record }))
  if (result === null) return { state: 'pending', transaction: null }
  if ('unsent' in result) {
    log.error({ err: result.unsent }, 'a settlement could not be sent')
    void health.refresh()
    const message = 'The payment could not be sent.'
    return { state: 'refused', reason: 'unexpected_settle_error', message, unsent: true }
  }
  const { tx, accepted, payments } = result
  const sent = { transfer, fromBlock: tx.fromBlock, minBlocks, isShared: payments > 1, payments }
  // In strict mode nothing counts before the chain shows whose transaction moved the money.
  if (wait === 'submitted' && accepted && !isStrict) {
    const later = finalOutcome(context, sent, tx)
    return { state: 'settled', transaction: tx.hash, provisional: true, later }
  }
  const outcome = await awaitOutcome(outcomeParts(context), sent, tx, wait === 'confirmed' ? 'confirmed' : 'mined')
  const first = await withSender(context, outcome, tx.hash)
  if (first.state !== 'settled' || !first.provisional || first.isOwed) return first
  return { ...first, later: finalOutcome(context, sent, tx) }
}

/**
 * Adds to an outcome who sent the transaction, if it is none of ours. A transaction of ours that was signed again by a
 * process that has ended cannot be told from one of another gateway with the same gas key. It counts as ours, but not in
 * strict mode.
 * @param recorded the transaction in the intent of the payment; null if there is none
 */
async function withSender(
  context: Context,
  outcome: Outcome,
  recorded: Hex | null,
  recordedBy?: Hex,
): Promise<Outcome> {
  const { rpc, sender, address, isStrict, log } = context
  if (outcome.state !== 'settled') return outcome
  const { transaction } = outcome
  if (transaction === recorded || sender.hasSent(transaction)) return outcome
  const found = await rpc.call<{ readonly from: Hex } | null>('eth_getTransactionByHash', transaction).catch(() => null)
  if (!found) return isStrict ? { state: 'pending', transaction } : outcome
  const isOurAccount = [address, recordedBy].some((each) => each?.toLowerCase() === found.from.toLowerCase())
  const isCertain = !isOurAccount || (recorded !== null && sender.hasSent(recorded))
  if (!isCertain && !isStrict) return outcome
  const { gasUsed: _, ...others } = outcome
  log.warn(
    { transaction, sender: found.from },
    'a payment was settled by a transaction that this gateway did not send: by another gateway with a journal of its own, or a stranger',
  )
  return { ...others, foreignSender: found.from, ...(isStrict ? { isOwed: true as const } : {}) }
}

/** The final outcome of a payment whose answer has left. A failure now is a loss, which the operator should know. */
async function finalOutcome(context: Context, sent: SentPayment, tx: PendingTransaction): Promise<Outcome> {
  const { log } = context
  const outcome = await withSender(context, await awaitOutcome(outcomeParts(context), sent, tx, 'confirmed'), tx.hash)
  const details = { transaction: tx.hash, outcome }
  if (outcome.state === 'refused') log.error(details, 'a payment failed after its answer was delivered')
  if (outcome.state === 'pending') log.warn(details, 'a payment whose answer was delivered is not final yet')
  return outcome
}

async function statusOf(context: Context, payment: SubmittedPayment, maySend: boolean): Promise<Outcome> {
  const intent = intentOf(payment)
  const pending = { state: 'pending', transaction: intent?.kind === 'chain' ? intent.transaction : null } as const
  if (!intent) return pending
  try {
    const outcome = await outcomeOfIntent(context, transferOf(payment), intent, maySend)
    if (intent.kind !== 'chain') return await withSender(context, outcome, null)
    return await withSender(context, outcome, intent.transaction, intent.sender)
  } catch (error) {
    context.log.warn({ err: error, key: payment.key }, 'the outcome of a payment could not be read from the chain')
    return pending
  }
}

/** Reads the outcome of a recorded payment, and sends it again if its transaction was lost. Throws RpcError. */
async function outcomeOfIntent(
  context: Context,
  transfer: Transfer,
  intent: EvmIntent,
  maySend: boolean,
): Promise<Outcome> {
  const { readOutcome } = context
  const { fromBlock, minBlocks = 1 } = intent
  if (intent.kind !== 'chain') return readOutcome({ ...transfer, fromBlock, minBlocks })
  const { transaction, batch } = intent
  const isShared = batch !== undefined && maySend
  const sent = { transfer, fromBlock, minBlocks, isShared, payments: batch ?? 1 }
  const outcome = await outcomeOfTransaction(outcomeParts(context), sent, transaction)
  if (outcome.state === 'pending' && outcome.transaction === null && maySend) await resend(context, sent, intent)
  if (outcome.state !== 'pending') return outcome
  return { state: 'pending', transaction }
}

/** Sends the same transaction again, or the payment alone if that transaction can never be mined. Throws RpcError. */
async function resend(context: Context, sent: SentPayment, intent: ChainIntent): Promise<void> {
  const { rpc, sender, address } = context
  const isOurs = intent.sender.toLowerCase() === address.toLowerCase()
  if (intent.batch === undefined) {
    if (isOurs && !(await sender.resend(intent))) await sendAlone(context, sent)
    return
  }
  const known = await rpc.call<unknown>('eth_getTransactionByHash', intent.transaction)
  if (known === null) await sendAlone(context, sent)
}

/**
 * Sends a recorded payment in a transaction of its own. Null: it is being sent already, would fail, or costs too much
 * gas now. Throws RpcError.
 */
async function sendAlone(context: Context, { transfer }: SentPayment): Promise<PendingTransaction | null> {
  const { log, sender, simulate, wallets, sentAlone } = context
  // A nonce is the payer's own: others may use the same one.
  const payment = `${transfer.from} ${transfer.nonce}`
  if (sentAlone.has(payment)) return null
  sentAlone.add(payment)
  let tx: PendingTransaction | null = null
  try {
    if ((await simulate(transfer)) !== null) return null
    const settlement = await wallets.settlementOf(transfer)
    if ('reason' in settlement) return null
    const prepared = await sender.prepare(settlement.to, settlement.data, settlement.gas)
    await sender.send(prepared)
    tx = prepared
    log.info({ transaction: tx.hash }, 'a payment is sent again in a transaction of its own')
    return tx
  } catch (error) {
    if (error instanceof GasPriceTooHigh) return null
    throw error
  } finally {
    // An unsent payment is never confirmed, and may be tried again at once.
    if (tx === null) sentAlone.delete(payment)
    else void tx.confirmed.then(() => sentAlone.delete(payment))
  }
}

function outcomeParts(context: Context): OutcomeParts {
  return { ...context, sendAlone: (sent) => sendAlone(context, sent) }
}
