/**
 * Settles by itself over JSON-RPC, with a key that holds gas and can move no revenue. Payments are sent one behind the
 * other without waiting, so a block takes as many as arrive; or in batches, where the operator asks for it.
 */
import { ServiceError } from '../../../errors.ts'
import type { Logger } from '../../../plugin/plugin.ts'
import type { Outcome, Settler } from '../../payment-method.ts'
import type { Hex, Network } from '../../../config/networks.ts'
import { createCheck, createSimulate } from '../check.ts'
import { batchGas, createDispatch } from './dispatch.ts'
import { TooDear } from './gas-fees.ts'
import type { PendingTransaction } from './pending-transaction.ts'
import { createHealth } from '../health.ts'
import { createJudge, type TransactionReceipt } from '../judge.ts'
import { MULTICALL3 } from '../multicall.ts'
import { createNodes, UNREACHABLE } from '../nodes/nodes.ts'
import { RpcError } from '../nodes/rpc.ts'
import { createSender } from './sender.ts'
import { createSigner } from './transaction-signer.ts'
import { type Transfer, transferOf } from '../eip3009.ts'
import { type ChainIntent, type EvmIntent, intentOf } from '../intent.ts'
import { createVerdicts, type Sent } from './verdict.ts'
import { createWallets, KEY_GAS } from '../wallets.ts'

export interface ChainSettlerOptions {
  /** One node, or several in a list: what the first cannot answer the next is asked. */
  readonly rpcUrl: string
  /** Private key of the account that pays the gas. */
  readonly key: Hex
  readonly network: Network
  readonly log: Logger
  /** How long a payment waits for its block before it is called pending. */
  readonly confirmSeconds: number
  /** How many blocks deep a payment is certain; 1: in the newest. */
  readonly confirmBlocks?: number
  /** The most a unit of gas may cost, in wei; above it nothing new is sent. Absent: whatever it costs. */
  readonly mostForGas?: bigint | null
  /** The most payments of one transaction; 1: each goes alone. */
  readonly batch?: number
  /** Factories whose wallets may pay before they exist (ERC-6492). */
  readonly factories?: readonly Hex[]
  /** How often the chain is looked at while something is under way. */
  readonly pollMs?: number
  /** A transaction not mined after this long is sent again. */
  readonly stuckMs?: number
}

/** A transaction offers several times the current price, so this many must be affordable for one to be taken. */
const LEAST_SETTLEMENTS = 5n
const LOOK_SECONDS = 15

/** Throws where a node is reached and is of another chain. Nodes that are down make the settler not ready. */
export async function createChainSettler(options: ChainSettlerOptions): Promise<Settler> {
  const { rpcUrl, key, network, log, confirmSeconds, confirmBlocks: depth = 1, batch = 1, factories = [] } = options
  const rpc = createNodes({ addresses: rpcUrl, network, log })
  const signer = createSigner(key, network.chainId)
  const { address } = signer
  const sender = createSender({ ...options, rpc, signer, depth })
  const mostGas = batch > 1 ? batchGas(batch) : KEY_GAS
  const dispatch = createDispatch({ sender, address, size: batch })
  const wallets = createWallets(rpc, network.asset, factories)
  const simulate = createSimulate(rpc, wallets)
  const check = createCheck({ rpc, network, wallets, simulate })
  const judge = createJudge(rpc, network, depth)
  const { concluded, awaited } = createVerdicts({ network, judge, simulate, depth, confirmSeconds, log, alone })
  const health = createHealth({ inspect, everySeconds: LOOK_SECONDS, unreachable: UNREACHABLE, log })
  /** Nonces of payments that go alone after all, until what they went with is over. */
  const going = new Set<Hex>()
  await health.look()
  const obstacle = rpc.foreign() ?? (batch > 1 ? await unbatchable() : null)
  if (obstacle !== null) {
    health.close()
    throw new Error(`Settling on ${network.name} is impossible: ${obstacle}.`)
  }

  /** A node that cannot be asked now is no obstacle: what a batch fails goes alone. */
  async function unbatchable(): Promise<string | null> {
    const code = await rpc.call<Hex>('eth_getCode', MULTICALL3, 'latest').catch(() => null)
    return code === '0x' ? `SETTLE_BATCH needs Multicall3 at ${MULTICALL3}, where there is no code` : null
  }

  async function inspect(): Promise<string | null> {
    const unusable = await rpc.look()
    if (unusable !== null) return unusable
    const balance = BigInt(await rpc.call<Hex>('eth_getBalance', address, 'latest'))
    try {
      const price = await sender.price()
      return balance < LEAST_SETTLEMENTS * mostGas * price ? `${address} holds too little to pay gas` : null
    } catch (error) {
      if (error instanceof TooDear) return error.message
      throw error
    }
  }

  /** A node that fails now is looked at again at once, so that nobody works for a payment that cannot be settled. */
  async function reading<Result>(work: () => Promise<Result>): Promise<Result> {
    try {
      return await work()
    } catch (error) {
      if (!(error instanceof RpcError || error instanceof TooDear)) throw error
      void health.look()
      throw new ServiceError('settler_unavailable', undefined, { cause: error })
    }
  }

  /** Sends a payment that has its record already, unless it is under way or would fail. Throws RpcError. */
  async function alone({ transfer }: Sent): Promise<PendingTransaction | null> {
    const { nonce } = transfer
    if (going.has(nonce)) return null
    going.add(nonce)
    let tx: PendingTransaction | null = null
    try {
      if ((await simulate(transfer)) !== null) return null
      const settlement = await wallets.settlementOf(transfer)
      if ('reason' in settlement) return null
      tx = await sender.prepare(settlement.to, settlement.data, settlement.gas)
      await sender.send(tx)
      log.info({ transaction: tx.hash }, 'a payment is sent again in a transaction of its own')
      return tx
    } catch (error) {
      if (error instanceof TooDear) return null
      throw error
    } finally {
      void (tx?.confirmed ?? Promise.resolve()).then(() => going.delete(nonce))
    }
  }

  return {
    kind: 'chain',

    check: (payment, _requirements, options) =>
      reading(async () => {
        await sender.price()
        return check(transferOf(payment), options)
      }),

    async settle(payment, _requirements, { record, wait }) {
      const transfer = transferOf(payment)
      const settlement = await reading(() => wallets.settlementOf(transfer))
      if ('reason' in settlement) return { state: 'refused', ...settlement }
      const dispatched = await reading(() => dispatch({ settlement, record }))
      if (dispatched === null) return { state: 'pending', transaction: null }
      if ('unsent' in dispatched) {
        log.error({ err: dispatched.unsent }, 'a settlement could not be sent')
        void health.look()
        const message = 'The payment could not be sent.'
        return { state: 'refused', reason: 'unexpected_settle_error', message, unsent: true }
      }
      const { tx, accepted, isShared } = dispatched
      const sent = { transfer, fromBlock: tx.fromBlock, isShared }
      const first =
        wait === 'submitted' && accepted
          ? ({ state: 'settled', transaction: tx.hash, provisional: true } as const)
          : await awaited(sent, tx, wait === 'confirmed' ? 'confirmed' : 'mined')
      if (first.state !== 'settled' || !first.provisional) return first
      return { ...first, later: followed(sent, tx) }
    },

    async status(payment) {
      const intent = intentOf(payment)
      const pending = { state: 'pending', transaction: intent?.kind === 'chain' ? intent.transaction : null } as const
      if (!intent) return pending
      try {
        return await decided(transferOf(payment), intent)
      } catch (error) {
        log.warn({ err: error, key: payment.key }, 'the chain could not be asked about a payment')
        return pending
      }
    },

    health() {
      const nodes = rpc.states()
      return { ...health.current(), ...(nodes.length > 1 ? { nodes } : {}) }
    },

    async close() {
      health.close()
      sender.close()
    },
  }

  /** After the answer has gone: a transaction that fails now is a loss the operator should hear of. */
  async function followed(sent: Sent, tx: PendingTransaction): Promise<Outcome> {
    const outcome = await awaited(sent, tx, 'confirmed')
    const details = { transaction: tx.hash, outcome }
    if (outcome.state === 'refused') log.error(details, 'a payment that was answered has failed')
    if (outcome.state === 'pending') log.warn(details, 'a payment that was answered is not final yet')
    return outcome
  }

  async function decided(transfer: Transfer, intent: EvmIntent): Promise<Outcome> {
    const { fromBlock } = intent
    if (intent.kind !== 'chain') return judge({ ...transfer, fromBlock })
    const { transaction, batch: shared } = intent
    const sent = { transfer, fromBlock, isShared: shared !== undefined }
    const [receipt, height] = await rpc.batch([['eth_getTransactionReceipt', transaction], ['eth_blockNumber']])
    if (receipt instanceof Error || height instanceof Error) throw receipt instanceof Error ? receipt : height
    if (receipt) return concluded(sent, receipt as TransactionReceipt, Number(height))
    const verdict = await judge({ ...transfer, fromBlock })
    if (verdict.state !== 'pending') return verdict
    await revive(sent, intent)
    return { state: 'pending', transaction }
  }

  /** Of a transaction that is in no block: the same again, or, where that can never be mined, the payment by itself. */
  async function revive(sent: Sent, intent: ChainIntent): Promise<void> {
    const isOurs = intent.sender.toLowerCase() === address.toLowerCase()
    if (intent.batch === undefined) {
      if (isOurs && !(await sender.resend(intent))) await alone(sent)
      return
    }
    const known = await rpc.call<unknown>('eth_getTransactionByHash', intent.transaction)
    if (known === null) await alone(sent)
  }
}
