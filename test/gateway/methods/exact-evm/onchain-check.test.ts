import { expect } from 'chai'
import {
  encodeAbiParameters,
  encodeFunctionResult,
  parseAbi,
  parseAbiParameters,
  serializeErc6492Signature,
} from 'viem/utils'
import { type Hex, NETWORKS } from '../../../../gateway/config/networks.ts'
import { createContractWallets } from '../../../../gateway/methods/exact-evm/contract-wallets.ts'
import { createSimulate } from '../../../../gateway/methods/exact-evm/onchain-check.ts'
import type { Rpc } from '../../../../gateway/methods/exact-evm/nodes/rpc.ts'
import type { Refusal } from '../../../../gateway/x402/payment-requirements.ts'

const network = NETWORKS['base-sepolia']
const FACTORY: Hex = `0x${'fa'.repeat(20)}`
const MULTICALL = parseAbi([
  'struct Result { bool success; bytes returnData; }',
  'function aggregate3() returns (Result[])',
])

const transfer = {
  from: `0x${'a1'.repeat(20)}`,
  to: `0x${'b2'.repeat(20)}`,
  value: 5000n,
  validAfter: 0n,
  validBefore: 1_000n,
  nonce: `0x${'01'.repeat(32)}`,
  signature: serializeErc6492Signature({ address: FACTORY, data: '0x12', signature: `0x${'33'.repeat(90)}` }),
} as const

const revertWith = (text: string): Hex =>
  `0x08c379a0${encodeAbiParameters(parseAbiParameters('string'), [text]).slice(2)}`
const transferReverts = (text: string): Hex =>
  encodeFunctionResult({
    abi: MULTICALL,
    functionName: 'aggregate3',
    result: [
      { success: true, returnData: '0x' },
      { success: false, returnData: revertWith(text) },
    ],
  })

/** Simulates the payment of a wallet that is not deployed, on a node that answers `returned`. */
function simulate(returned: Hex): Promise<Refusal | null> {
  const call = async (method: string): Promise<Hex> => (method === 'eth_getCode' ? '0x' : returned)
  const rpc = { call, batch: async () => [] } as Rpc
  return createSimulate(rpc, createContractWallets(rpc, network, [FACTORY]))(transfer)
}

describe('the simulation of a payment whose wallet is deployed with it', () => {
  it('refuses what the token refuses, with its reason', async () => {
    expect(await simulate(transferReverts('ERC20: transfer amount exceeds balance'))).to.include({
      reason: 'insufficient_funds',
    })
  })

  it('accepts a payment that becomes valid within seconds, as that of any other wallet', async () => {
    expect(await simulate(transferReverts('FiatTokenV2: authorization is not yet valid'))).to.equal(null)
  })

  it('refuses it on a network without Multicall3, where nothing can deploy the wallet', async () => {
    const refusal = await simulate('0x')
    expect(refusal).to.include({ reason: 'eip6492_factory_not_allowed' })
    expect(refusal?.message).to.contain('Deploy it first.')
  })
})
