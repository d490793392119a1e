import { expect } from 'chai'
import { getAddress } from 'viem'
import { findNetwork, NETWORKS } from '../../../gateway/payments/networks.ts'

describe('networks', () => {
  const { base, 'base-sepolia': sepolia } = NETWORKS

  it('name the USDC of each chain, and its own EIP-712 domain', () => {
    expect(base).to.include({ chainId: 8453, asset: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913' })
    expect(sepolia).to.include({ chainId: 84532, asset: '0x036CbD53842c5426634e7929541eC2318f3dCF7e' })
    expect(base.domain).to.deep.equal({ name: 'USD Coin', version: '2' })
    expect(sepolia.domain).to.deep.equal({ name: 'USDC', version: '2' })
  })

  it('agree with themselves: key, CAIP-2 and chain id, and a checksummed address', () => {
    for (const [key, network] of Object.entries(NETWORKS)) {
      expect(network.name).to.equal(key)
      expect(network.caip2).to.equal(`eip155:${network.chainId}`)
      expect(getAddress(network.asset)).to.equal(network.asset)
    }
  })

  it('are found by either name, and by nothing else', () => {
    const networks = [base, sepolia]
    expect(findNetwork(networks, 'base')).to.equal(base)
    expect(findNetwork(networks, 'eip155:84532')).to.equal(sepolia)
    for (const other of ['Base', '8453', 'eip155:1', '', null, undefined, 8453])
      expect(findNetwork(networks, other)).to.equal(undefined)
  })
})
