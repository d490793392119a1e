/**
 * Settles by itself over JSON-RPC, with a key that holds gas and can move no revenue. Payments are sent one behind the
 * other without waiting, so a block takes as many as arrive.
 */
import { ServiceError } from '../../errors.ts'
import type { Logger } from '../../plugin.ts'
import type { Hex, Intent, Network, Outcome, PaymentPayload, PaymentRecord, Settler } from '../payment.ts'
import { createHealth } from './health.ts'
import { createJudge, hasTransfer, type Question, type TransactionReceipt } from './judge.ts'
import { createRpc, RpcError } from './rpc.ts'
import { createSender, type Sending } from './sender.ts'
import { createSigner } from './signer.ts'
import { createSimulate } from './simulate.ts'
import { type Transfer, transferOf } from './token.ts'
import { createWallets, KEY_GAS } from './wallets.ts'

export interface ChainSettlerOptions {
  readonly rpcUrl: string
  /** Private key of the account that pays the gas. */
  readonly key: Hex
  readonly network: Network
  readonly log: Logger
  /** How long a payment waits for its block before it is called pending. */
  readonly confirmSeconds: number
  /** Factories whose wallets may pay before they exist (ERC-6492). */
  readonly factories?: readonly Hex[]
}

/** A transaction offers several times the current price, so this many must be affordable for one to be taken. */
const LEAST_SETTLEMENTS = 5n
const LOOK_SECONDS = 15

/** Throws where the node is reached and is of another chain. A node that is down makes the settler not ready. */
export async function createChainSettler(options: ChainSettlerOptions): Promise<Settler> {
  const { rpcUrl, key, network, log, confirmSeconds, factories = [] } = options
  const rpc = createRpc(rpcUrl)
  const signer = createSigner(key, network.chainId)
  const sender = createSender({ rpc, signer, log })
  const wallets = createWallets(rpc, network.asset, factories)
  const simulate = createSimulate(rpc, wallets)
  const judge = createJudge(rpc, network)
  const health = createHealth({ inspect, everySeconds: LOOK_SECONDS, unreachable: 'the node cannot be reached' })
  const wrongChain = `the node is not of ${network.name}, chain ${network.chainId}`
  await health.look()
  if (health.current().reason === wrongChain)
    throw new Error(`Settling on ${network.name} is impossible: ${wrongChain}.`)

  async function inspect(): Promise<string | null> {
    if (Number(await rpc.call<Hex>('eth_chainId')) !== network.chainId) return wrongChain
    const balance = BigInt(await rpc.call<Hex>('eth_getBalance', signer.address, 'latest'))
    const price = BigInt(await rpc.call<Hex>('eth_gasPrice'))
    return balance < LEAST_SETTLEMENTS * KEY_GAS * price ? `${signer.address} holds too little to pay gas` : null
  }

  /** A node that fails now is looked at again at once, so that nobody works for a payment that cannot be settled. */
  async function reading<Result>(work: () => Promise<Result>): Promise<Result> {
    try {
      return await work()
    } catch (error) {
      if (!(error instanceof RpcError)) throw error
      void health.look()
      throw new ServiceError('settler_unavailable', undefined, { cause: error })
    }
  }

  /** What a transaction in a block did. One that failed may have lost against another that moved the same payment. */
  async function concluded(transfer: Transfer, question: Question, receipt: TransactionReceipt): Promise<Outcome> {
    const transaction = receipt.transactionHash
    if (hasTransfer(receipt, network, question)) return { state: 'settled', transaction }
    const verdict = await judge(question)
    if (verdict.state !== 'pending') return verdict
    const named = await simulate(transfer)
    if (named?.reason === 'invalid_transaction_state') return { state: 'pending', transaction }
    const unnamed = { reason: 'invalid_transaction_state', message: 'The transaction failed on the chain.' }
    return { state: 'refused', ...(named ?? unnamed), transaction }
  }

  async function confirmed(transfer: Transfer, question: Question, sending: Sending): Promise<Outcome> {
    const receipt = await within(confirmSeconds, sending.mined)
    const pending = { state: 'pending', transaction: sending.hash } as const
    try {
      if (receipt) return await concluded(transfer, question, receipt)
      const verdict = await judge(question)
      return verdict.state === 'pending' ? pending : verdict
    } catch (error) {
      log.warn({ err: error, transaction: sending.hash }, 'the outcome of a settlement could not be read')
      return pending
    }
  }

  /** After the answer has gone: a transaction that fails now is a loss the operator should hear of. */
  async function followed(transfer: Transfer, question: Question, sending: Sending): Promise<void> {
    const outcome = await confirmed(transfer, question, sending)
    if (outcome.state !== 'settled')
      log.error({ transaction: sending.hash, outcome }, 'a payment that was answered on submission is not settled')
  }

  return {
    kind: 'chain',

    check: (payload, _requirements, { proven } = { proven: true }) =>
      reading(
        async () => (proven ? null : await wallets.foreign(payload.from, payload.signature)) ?? simulate(payload),
      ),

    async settle(payload, { payTo, amount }, { record, wait }) {
      const settlement = await reading(() => wallets.settlementOf(payload))
      if ('reason' in settlement) return { state: 'refused', ...settlement }
      const { to, data, gas } = settlement
      const sending = await reading(() => sender.prepare(to, data, gas))
      const { nonce: senderNonce, raw, hash: transaction, fromBlock } = sending
      const intent: Intent = { kind: 'chain', transaction, raw, sender: signer.address, senderNonce, fromBlock }
      let recorded = false
      try {
        recorded = await record(intent)
      } finally {
        if (!recorded) sender.abandon(sending)
      }
      if (!recorded) return { state: 'pending', transaction: null }
      let accepted: boolean
      try {
        accepted = await sender.send(sending)
      } catch (error) {
        log.error({ err: error, transaction }, 'a settlement could not be sent')
        void health.look()
        const message = 'The payment could not be sent.'
        return { state: 'refused', reason: 'unexpected_settle_error', message, unsent: true }
      }
      const question = questionOf(payload, payTo, amount, fromBlock)
      if (wait === 'confirmed' || !accepted) return confirmed(payload, question, sending)
      void followed(payload, question, sending)
      return { state: 'settled', transaction: sending.hash }
    },

    async status(record) {
      const { intent } = record
      const pending = { state: 'pending', transaction: intent?.kind === 'chain' ? intent.transaction : null } as const
      if (!intent) return pending
      try {
        return await decided(record, intent)
      } catch (error) {
        log.warn({ err: error, key: record.key }, 'the chain could not be asked about a payment')
        return pending
      }
    },

    health: () => health.current(),

    async close() {
      health.close()
      sender.close()
    },
  }

  async function decided(record: PaymentRecord, intent: Intent): Promise<Outcome> {
    const question = { ...record, fromBlock: intent.fromBlock }
    if (intent.kind !== 'chain') return judge(question)
    const { transaction } = intent
    const receipt = await rpc.call<TransactionReceipt | null>('eth_getTransactionReceipt', transaction)
    if (receipt) return concluded(transferOf(record), question, receipt)
    const verdict = await judge(question)
    if (verdict.state !== 'pending') return verdict
    if (intent.sender.toLowerCase() === signer.address.toLowerCase()) await sender.resend(intent)
    return { state: 'pending', transaction }
  }
}

function questionOf(payload: PaymentPayload, payTo: Hex, amount: bigint, fromBlock: number): Question {
  return { payer: payload.from, payTo, amount, nonce: payload.nonce, validBefore: payload.validBefore, fromBlock }
}

/** The value, or null after so many seconds. */
async function within<Value>(seconds: number, promise: Promise<Value | null>): Promise<Value | null> {
  let timer: NodeJS.Timeout | undefined
  const expiry = new Promise<null>((resolve) => {
    timer = setTimeout(resolve, seconds * 1000, null)
  })
  try {
    return await Promise.race([promise, expiry])
  } finally {
    clearTimeout(timer)
  }
}
