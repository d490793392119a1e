/**
 * The check on the chain before any work is done for a payment: whether the token would accept the transfer now,
 * whether a contract wallet can have signed it, and whether the balance covers it together with the payer's other
 * payments in progress.
 */
import { isErc6492Signature } from 'viem/utils'
import type { Hex, Network } from '../../config/networks.ts'
import type { Refusal } from '../../x402/payment-requirements.ts'
import type { CheckOptions, Commitment } from '../payment-method.ts'
import { balanceData, isKeySignature, refusalOf, revertText, stateData, type Transfer } from './eip3009.ts'
import { aggregateData, aggregateResults, MULTICALL3 } from './multicall.ts'
import { quantity, type Rpc, RpcError } from './nodes/rpc.ts'
import type { ContractWallets } from './contract-wallets.ts'
import { RecentRefusals } from './recent-refusals.ts'
import type { Fees } from './chain/transaction-signer.ts'

/** Simulates a transfer. Null: the token would accept it now. Throws RpcError if the chain cannot be read. */
export type Simulate = (transfer: Transfer) => Promise<Refusal | null>

/** The account that sends settlements, and the fees that it would offer now. */
export interface GasAccount {
  readonly address: Hex
  fees(): Promise<Fees>
}

/**
 * Creates the simulation of transfers: one call covers balance, used nonce, contract wallets and the token's blacklist.
 * @param gasAccount the simulation is sent as its transaction would be: the code of a payer may look at the sender and at
 *   the price of gas, and behave well only where they are those of a simulation. Null if somebody else sends it
 */
export function createSimulate(rpc: Rpc, wallets: ContractWallets, gasAccount: GasAccount | null = null): Simulate {
  return async (transfer) => {
    const settlement = await wallets.settlementOf(transfer)
    if ('reason' in settlement) return settlement
    const { to, gas, parts } = settlement
    // Each part may fail on its own, so that the token's reason is not lost.
    const data = parts ? aggregateData(parts.map((part) => ({ ...part, allowFailure: true }))) : settlement.data
    try {
      const call = { ...(gasAccount && (await senderFields(gasAccount))), to, data, gas: quantity(gas) }
      const returned = await rpc.call<Hex>('eth_call', call, 'latest')
      if (!parts) return null
      if (returned === '0x') return NO_MULTICALL
      const paid = aggregateResults(returned).at(-1)
      return paid && !paid.success ? refusalUnlessEarly(revertText(paid.returnData) ?? '') : null
    } catch (error) {
      const revert = revertOf(error)
      if (revert === null) throw error
      return refusalUnlessEarly(revert)
    }
  }
}

/** The newest block is some seconds old: a validAfter that has passed by the clock may still be ahead of it. */
function refusalUnlessEarly(revert: string): Refusal | null {
  return /not yet valid/i.test(revert) ? null : refusalOf(revert)
}

const NO_MULTICALL: Refusal = {
  reason: 'eip6492_factory_not_allowed',
  message:
    'The paying wallet is not deployed yet, and this network has no Multicall3, through which wallets are deployed. Deploy it first.',
}

async function senderFields({ address, fees }: GasAccount): Promise<Readonly<Record<string, Hex>>> {
  const { maxFeePerGas, maxPriorityFeePerGas } = await fees()
  return {
    from: address,
    maxFeePerGas: quantity(maxFeePerGas),
    maxPriorityFeePerGas: quantity(maxPriorityFeePerGas),
  }
}

/** The revert text; null if the error is about the node and not about the payment. */
function revertOf(error: unknown): string | null {
  if (!(error instanceof RpcError) || error.fault !== 'refused') return null
  return revertText(error.data) ?? (/revert|out of gas/i.test(error.message) ? error.message : null)
}

/** Null: the payment can be settled as far as the chain knows. Throws RpcError if the chain cannot be read. */
export type Check = (transfer: Transfer, options?: CheckOptions) => Promise<Refusal | null>

export interface CheckParts {
  readonly rpc: Rpc
  readonly network: Network
  readonly wallets: ContractWallets
  readonly simulate: Simulate
  /** Throws while no payment of this amount can be settled. */
  readonly assertReady: (amount: bigint) => Promise<unknown>
  /** Whether the code of every payer is looked up, because we pay the gas that it uses. */
  readonly looksUpCode?: boolean
}

/** Creates the check of one network. What it has refused within the last seconds, it refuses without asking a node. */
export function createCheck(parts: CheckParts): Check {
  const { rpc, network, wallets, simulate, assertReady, looksUpCode = false } = parts
  const refusals = new RecentRefusals()
  return async (transfer, { proven, ahead, nodeCalls } = { proven: true, ahead: [] }) => {
    const { from, signature, value } = transfer
    const known = refusals.find(transfer)
    if (known) return known
    const unsigned = proven ? null : await wallets.refuseWithoutCode(from, signature, nodeCalls)
    if (unsigned) return unsigned
    const readsCode = looksUpCode && proven && !wallets.isKnown(from)
    if (nodeCalls) {
      const simulating = !isKeySignature(signature) && isErc6492Signature(signature) ? 2 : 1
      const comparing = ahead.length > 0 ? 2 : 0
      await nodeCalls.spend(simulating + Number(readsCode) + comparing, proven)
    }
    await assertReady(value)
    const [refusal, isCovered] = await Promise.all([
      simulate(transfer),
      coversAll(rpc, network.asset, transfer, ahead),
      readsCode && wallets.lookUp(from),
    ])
    if (refusal) return refusals.add(transfer, refusal)
    return isCovered ? null : BALANCE_RESERVED
  }
}

const BALANCE_RESERVED: Refusal = {
  reason: 'insufficient_funds',
  message: "The payer's balance is reserved for other payments in progress. Wait for them, or add USDC.",
}

/** Whether the balance covers a payment together with those ahead of it. */
async function coversAll(
  rpc: Rpc,
  asset: Hex,
  { from, value }: Transfer,
  ahead: readonly Commitment[],
): Promise<boolean> {
  if (ahead.length === 0) return true
  const needed = (others: readonly Commitment[]): bigint => others.reduce((sum, { amount }) => sum + amount, value)
  const data = balanceData(from)
  if (BigInt(await rpc.call<Hex>('eth_call', { to: asset, data }, 'latest')) >= needed(ahead)) return true
  // Some of the payments may have left the balance already: which of them did must be read together with it.
  const readable = ahead.slice(0, MAX_NONCES)
  const [balance, ...states] = await readTogether(rpc, asset, [
    data,
    ...readable.map(({ identity }) => stateData(from, identity as Hex)),
  ])
  return BigInt(balance as Hex) >= needed(ahead.filter((_, at) => !isTrue(states[at])))
}

/** Nodes limit the gas of one eth_call. */
const MAX_NONCES = 100

/**
 * Reads several values of the token in one call, so that all are of one state. Several calls that name the same block
 * do not suffice: while a node adds a block, some answer from the state before it and some from the state after it.
 */
async function readTogether(rpc: Rpc, asset: Hex, calls: readonly Hex[]): Promise<readonly Hex[]> {
  const data = aggregateData(calls.map((callData) => ({ target: asset, allowFailure: false, callData })))
  const returned = await rpc.call<Hex>('eth_call', { to: MULTICALL3, data }, 'latest')
  if (returned !== '0x') return aggregateResults(returned).map(({ returnData }) => returnData)
  // A network without Multicall3: one block is the closest to one state.
  const block = await rpc.call<Hex>('eth_blockNumber')
  const results = await rpc.batch(calls.map((call) => ['eth_call', { to: asset, data: call }, block]))
  const failed = results.find((result) => result instanceof Error)
  if (failed) throw failed
  return results as readonly Hex[]
}

function isTrue(word: Hex | undefined): boolean {
  return word !== undefined && BigInt(word) !== 0n
}
