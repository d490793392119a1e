import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { getDefaultAsset } from '@x402/evm'
import { expect } from 'chai'
import { CatalogError } from '../../../gateway/validation/issue.ts'
import { findNetwork, readNetworks } from '../../../gateway/config/networks.ts'
import { createDigest } from '../../../gateway/methods/exact-evm/authorization-check.ts'

const catalog = resolve(import.meta.dirname, '../../../catalog')
const GNOSIS = {
  name: 'gnosis',
  chain_id: 100,
  asset: '0x2a22f9c3b484c3629090FeED35F17Ff8F88f76F0',
  domain: { name: 'Bridged USDC', version: '2' },
  decimals: 6,
  v1: false,
}

describe('the networks', () => {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-networks-'))
  after(() => rmSync(folder, { recursive: true, force: true }))
  const read = (...networks: unknown[]) => {
    writeFileSync(join(folder, 'networks.json'), JSON.stringify({ networks }))
    return readNetworks(folder)
  }
  const issuesOf = (...networks: unknown[]): string => {
    try {
      read(...networks)
      return ''
    } catch (error) {
      if (error instanceof CatalogError) return error.message
      throw error
    }
  }

  it('match the networks, tokens and EIP-712 domains of the x402 clients', () => {
    cpSync(join(catalog, 'networks.json'), join(folder, 'networks.json'))
    const networks = readNetworks(folder)
    expect(networks.map(({ name }) => name)).to.include.members(['base', 'base-sepolia', 'polygon', 'arbitrum'])
    for (const { caip2, asset, domain } of networks) {
      const { decimals, asset: token, name, version } = getDefaultAsset(caip2 as never)
      expect({ asset, ...domain, decimals }, caip2).to.deep.equal({ asset: token, name, version, decimals: 6 })
    }
  })

  it('are Base and Base Sepolia if the catalog adds none', () => {
    expect(readNetworks(join(folder, 'nowhere')).map(({ caip2 }) => caip2)).to.deep.equal([
      'eip155:8453',
      'eip155:84532',
    ])
  })

  it('include every network that networks.json adds', () => {
    const gnosis = findNetwork(read(GNOSIS), 'eip155:100')
    expect(gnosis).to.deep.equal({
      name: 'gnosis',
      caip2: 'eip155:100',
      chainId: 100,
      asset: GNOSIS.asset,
      domain: GNOSIS.domain,
      v2Only: true,
    })
    expect(createDigest(gnosis as never)).to.be.a('function')
  })

  it('are refused, with the position in the file, if an entry is invalid or repeats a network', () => {
    expect(issuesOf({ ...GNOSIS, decimals: 18 })).to.match(/networks\.json#\/networks\/0\/decimals .*Write 6/)
    expect(issuesOf({ ...GNOSIS, asset: '0x12' })).to.include('/networks/0/asset')
    expect(issuesOf({ ...GNOSIS, chain_id: 8453 })).to.include('is already known')
    expect(issuesOf(GNOSIS, { ...GNOSIS, chain_id: 7 })).to.include('/networks/1')
    writeFileSync(join(folder, 'networks.json'), '[')
    expect(() => readNetworks(folder)).to.throw(CatalogError)
  })
})
