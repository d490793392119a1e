import { resolve } from 'node:path'
import { expect } from 'chai'
import * as chains from 'viem/chains'
import { readNetworks } from '../../../../gateway/config/networks.ts'
import { walletTerms } from '../../../../gateway/documents/pages/wallet-terms.ts'

const networks = readNetworks(resolve(import.meta.dirname, '../../../../catalog'))
const payTo = '0x00000000000000000000000000000000000000A1'

describe('what a page tells a wallet of its networks', () => {
  it('is what viem knows of each', () => {
    for (const network of networks) {
      const known = Object.values(chains).find(({ id }) => id === network.chainId)
      const [chain] = walletTerms({ network, payTo }, null).chains
      expect(chain, network.name).to.deep.include({
        chainId: `0x${network.chainId.toString(16)}`,
        chainName: known?.name,
        rpcUrls: known?.rpcUrls.default.http.slice(0, 1),
        blockExplorerUrls: [known?.blockExplorers?.default.url],
      })
      expect(chain, network.name).to.have.nested.property('nativeCurrency.symbol', known?.nativeCurrency.symbol)
    }
  })

  it('leaves out a network of which nothing is known', () => {
    const { wallet: _, ...network } = networks[0] as (typeof networks)[number]
    expect(walletTerms({ network, payTo }, null)).to.deep.equal({ chains: [], hasTestWallet: false })
  })

  it('is the local chain in the sandbox', () => {
    const [network] = networks.filter(({ name }) => name === 'base-sepolia')
    const { chains, hasTestWallet } = walletTerms(
      { network: network as NonNullable<typeof network>, payTo },
      'http://127.0.0.1:8545',
    )
    expect(hasTestWallet).to.equal(true)
    expect(chains).to.have.length(1)
    expect(chains[0])
      .to.deep.include({ rpcUrls: ['http://127.0.0.1:8545'] })
      .and.not.to.have.property('blockExplorerUrls')
  })
})
