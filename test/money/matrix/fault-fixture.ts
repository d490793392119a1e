/** Shared by the fault matrices: a gateway on a local chain, and the ways the chain can change during a payment. */
import { expect } from 'chai'
import { createLog } from '../../../gateway/observe/log.ts'
import { decodePayment } from '../../../gateway/methods/payment-method.ts'
import { createExactEvm } from '../../../gateway/methods/exact-evm/exact-evm.ts'
import type { PaymentState } from '../../../gateway/payments/journal/payment-states.ts'
import type { Hex } from '../../../gateway/config/networks.ts'
import { type ChainSettlerOptions, createChainSettler } from '../../../gateway/methods/exact-evm/chain/chain-settler.ts'
import { settleData, transferOf, word } from '../../../gateway/methods/exact-evm/eip3009.ts'
import type { PaymentRequirements } from '../../../gateway/x402/payment-requirements.ts'
import { ask } from '../../support/agent.ts'
import { until } from '../../support/until.ts'
import { newSettleKey } from '../../support/payments.ts'
import {
  type ChainGateway,
  type ChainGatewayOptions,
  openChainGateway,
  type SignedPayment,
} from '../../support/chain-gateway.ts'

export const PRICE = 5_000n
export const PLAN_PRICE = 1_500_000n
export const PLAN = '/v1/passes/late/1h'
export const STRANGER: Hex = '0x00000000000000000000000000000000000000d4'
export const GATED = { method: 'POST', body: { text: 'held', fault: 'gate' } }
export const GATED_PRICE = 10_000n

export const SETTLED = ['reserved', 'submitted', 'settled'] as const
export const RELEASED = ['reserved', 'submitted', 'released'] as const
export const OWED = [...RELEASED, 'settled', 'owed'] as const

export interface GatewayFixture {
  gateway: ChainGateway
  /** The gas key of its settler. */
  key: Hex
}

/** Opens a gateway on a local chain before the tests of a suite. The fields are set once the hooks have run. */
export function useChainGateway(
  options: Partial<ChainSettlerOptions>,
  gatewayOptions: ChainGatewayOptions = {},
): GatewayFixture {
  const fixture = {} as GatewayFixture
  before(async function () {
    const open = async (chain: ChainGateway['chain'], [first, second]: ChainGateway['nodes']) => {
      const { network } = chain
      fixture.key = await newSettleKey(chain)
      const rpcUrl = `${first.url},${second.url}`
      const timing = { confirmSeconds: 3, pollMs: 30, stuckMs: 4_000 }
      return createChainSettler({ rpcUrl, key: fixture.key, network, log: createLog('silent'), ...timing, ...options })
    }
    fixture.gateway = await openChainGateway(this, open, gatewayOptions)
  })
  afterEach(async () => {
    const { chain, nodes } = fixture.gateway
    for (const node of nodes) node.script(() => 'pass')
    await chain.rpc.call('evm_setAutomine', true)
    await chain.rpc.call('evm_mine')
  })
  after(() => fixture.gateway?.close())
  return fixture
}

/** Sends a transaction from any account without its key. */
export async function sendAs(
  { chain }: ChainGateway,
  from: Hex,
  to: Hex,
  data: Hex,
  tip = 2_000_000_000n,
): Promise<Hex> {
  await chain.fund(from)
  await chain.rpc.call('anvil_impersonateAccount', from)
  const fees = { maxPriorityFeePerGas: hex(tip), maxFeePerGas: hex(400_000_000_000n), gas: hex(200_000n) }
  const hash = await chain.rpc.call<Hex>('eth_sendTransaction', { from, to, data, ...fees })
  // A node that mines on demand answers before it has mined.
  if (await chain.rpc.call<boolean>('anvil_getAutomine'))
    await until(async () => (await chain.rpc.call('eth_getTransactionReceipt', hash)) !== null)
  return hash
}

/** Moves the buyer's whole balance elsewhere. */
export async function drain(gateway: ChainGateway, buyer: Hex): Promise<void> {
  const balance = await gateway.chain.balanceOf(buyer)
  await sendAs(
    gateway,
    buyer,
    gateway.chain.network.asset,
    `0xa9059cbb${word(STRANGER)}${word(balance)}`,
    50_000_000_000n,
  )
}

/** Sends the buyer's authorization from another account. */
export async function sendFor(gateway: ChainGateway, payment: SignedPayment): Promise<void> {
  await sendAs(gateway, STRANGER, gateway.chain.network.asset, settlementData(gateway, payment))
}

/** Waits until a payment has passed as many states as given, and expects exactly these. */
export async function expectStates(payment: SignedPayment, states: readonly PaymentState[]): Promise<void> {
  await until(async () => (await payment.states()).length >= states.length)
  expect(await payment.states()).to.deep.equal(states)
}

/** Starts a paid call whose handler waits until `finish`, so that the chain can change meanwhile. */
export async function startHeldCall(
  gateway: ChainGateway,
  payment: SignedPayment,
  statesBefore = 0,
): Promise<{ readonly finish: () => Promise<Response> }> {
  const response = payment.pay()
  await until(async () => (await payment.states()).length > statesBefore)
  return {
    async finish() {
      await ask(`${gateway.url}/v1/gate`, { method: 'POST' })
      return response
    },
  }
}

/**
 * Has the settler read the fees of gas, which it remembers for three seconds. A settlement that follows at once sends without
 * asking the nodes for them.
 */
export async function readFees({ settler, nodes, chain }: ChainGateway, { header }: SignedPayment): Promise<void> {
  const payment = decodePayment(header, [createExactEvm(chain.network)])
  const requirements = payment.envelope.accepted as unknown as PaymentRequirements
  const readings = (): number =>
    nodes.flatMap(({ requests }) => requests).filter((body) => body.includes('eth_feeHistory')).length
  const before = readings()
  await until(async () => {
    await settler.check(payment, requirements)
    return readings() > before
  }, 50)
}

export const hex = (value: bigint): Hex => `0x${value.toString(16)}`

/** Call data that settles a payment. */
export function settlementData({ chain }: ChainGateway, { header }: SignedPayment): Hex {
  return settleData(transferOf(decodePayment(header, [createExactEvm(chain.network)])))
}
