import { expect } from 'chai'
import { idOf } from '../../../plugins/directory/listing.ts'
import { readBazaar } from '../../../plugins/directory/sources/bazaar.ts'
import { readCard } from '../../../plugins/directory/sources/agent-cards.ts'
import { readOrigin } from '../../../plugins/directory/sources/well-known-x402.ts'
import { readRegistry } from '../../../plugins/directory/sources/mcp-registry.ts'
import { PAYEE, USDC, V1, V2 } from './payment-requirements.ts'

const NOW = Date.UTC(2026, 10, 20, 12) / 1000
const listingOf = (item: object) => readBazaar({ items: [item] }, NOW)!.listings[0]!

describe('a facilitator listing', () => {
  it('yields the same service in both versions of x402', () => {
    const v1 = listingOf({
      resource: 'https://api.example.com/weather',
      type: 'http',
      x402Version: 1,
      accepts: [V1],
      lastUpdated: NOW - 60,
    })
    const v2 = listingOf({
      resource: 'https://api.example.com/weather',
      type: 'http',
      x402Version: 2,
      accepts: [V2],
      lastUpdated: new Date((NOW - 60) * 1000).toISOString(),
      description: 'Weather',
    })
    expect(v1).to.deep.equal({ ...v2, x402Version: 1 })
    expect(v1.prices).to.deep.equal([
      {
        scheme: 'exact',
        network: 'eip155:8453',
        asset: USDC,
        asset_symbol: 'USDC',
        amount_atomic: '10000',
        amount_usd: 0.01,
        pay_to: PAYEE,
      },
    ])
  })

  it('is recognised by its shape, whatever version it states', () => {
    expect(listingOf({ resource: 'https://api.example.com/', x402Version: 1, accepts: [V2] }).x402Version).to.equal(2)
    expect(listingOf({ resource: 'https://api.example.com/', x402Version: 2, accepts: [V1] }).x402Version).to.equal(1)
    expect(listingOf({ resource: 'https://api.example.com/', x402Version: 2, accepts: [] }).x402Version).to.equal(2)
  })

  it('may have its address in resource, url or an object, and may be wrapped', () => {
    const items = [
      { resource: 'https://a.example.com/' },
      { url: 'https://a.example.com/' },
      { resource: { url: 'https://a.example.com/', description: 'Hello' } },
    ]
    const bare = readBazaar({ x402Version: 2, items }, NOW)!
    const wrapped = readBazaar({ success: true, data: { items, pagination: { total: 3 } } }, NOW)!
    expect(bare.listings.map(({ url }) => url)).to.deep.equal(Array(3).fill('https://a.example.com/'))
    expect(bare.listings[2]!.description).to.equal('Hello')
    expect(wrapped.listings).to.deep.equal(bare.listings)
    expect([wrapped.total, bare.total]).to.deep.equal([3, null])
  })

  it('drops an entry whose list of prices is none', () => {
    const items = [null, {}, 'free'].map((accepts) => ({ resource: 'https://a.example.com/', accepts }))
    expect(readBazaar({ items }, NOW)).to.deep.include({ listings: [], dropped: { malformed: 3 } })
  })

  it('drops invalid entries and counts them by reason', () => {
    const urls = [
      'monopoly://game/agent0',
      'solana-transfer://a/b',
      'http://localhost:3000/',
      'https://abcd.ngrok-free.app/',
      'nothing',
      'https://ok.example.com/',
    ]
    const page = readBazaar({ items: [...urls.map((url) => ({ url })), 'text', null] }, NOW)!
    expect(page.listings.map(({ url }) => url)).to.deep.equal(['https://ok.example.com/'])
    expect(page).to.deep.include({ rows: 8, dropped: { scheme: 2, private_host: 1, preview: 1, malformed: 3 } })
  })

  it('keeps route templates and marks them', () => {
    expect(listingOf({ url: 'https://api.example.com/perpetuals/:var1', accepts: [V2] })).to.include({
      url: 'https://api.example.com/perpetuals/:var1',
      isTemplate: true,
    })
  })

  it('limits a time in the future to five minutes from now', () => {
    const updatedOf = (lastUpdated: unknown) => listingOf({ url: 'https://api.example.com/', lastUpdated }).updated
    expect(updatedOf(4_102_444_800)).to.equal(NOW + 300)
    expect(updatedOf('2099-01-01T00:00:00Z')).to.equal(NOW + 300)
    expect(updatedOf(1_767_429_328)).to.equal(1_767_429_328)
    expect(updatedOf(1_767_429_328_000)).to.equal(1_767_429_328)
    expect(updatedOf('2026-01-03T08:35:28Z')).to.equal(1_767_429_328)
    for (const junk of [0, -5, NaN, 'yesterday', null, {}, undefined])
      expect(updatedOf(junk), JSON.stringify(junk)).to.equal(null)
  })

  it('keeps the tools of one MCP address apart', () => {
    const tool = (name: string) =>
      listingOf({
        resource: 'https://mcp.example.com/mcp',
        type: 'mcp',
        accepts: [V2],
        extensions: { bazaar: { info: { input: { type: 'mcp', tool: name } } } },
      })
    expect(tool('a')).to.deep.include({ kind: 'mcp_tool', tool: 'a', protocols: ['x402', 'mcp'], hasSchema: true })
    expect(idOf(tool('a'))).to.not.equal(idOf(tool('b')))
    expect(idOf(tool('a'))).to.equal(idOf(tool('a')))
  })

  it('is refused as a whole if it is not a listing', () => {
    for (const junk of [null, '<html>', [], {}, { items: 'x' }, { data: {} }])
      expect(readBazaar(junk, NOW)).to.equal(null)
  })
})

describe('the MCP registry', () => {
  const server = {
    name: 'io.github.me/tools',
    description: 'Tools',
    version: '1.2.0',
    remotes: [{ type: 'streamable-http', url: 'https://mcp.example.com/mcp' }],
  }
  const meta = (status: string, isLatest = true) => ({
    'io.modelcontextprotocol.registry/official': { status, isLatest, updatedAt: '2026-11-01T00:00:00Z' },
  })

  it('lists a server at its remote address', () => {
    const page = readRegistry(
      { servers: [{ server, _meta: meta('active') }], metadata: { nextCursor: 'c2', count: 1 } },
      NOW,
    )!
    expect(page.nextCursor).to.equal('c2')
    expect(page.listings[0]).to.deep.include({
      kind: 'mcp_server',
      url: 'https://mcp.example.com/mcp',
      name: 'io.github.me/tools',
      provider: 'io.github.me',
      protocols: ['mcp'],
      version: '1.2.0',
      updated: Date.UTC(2026, 10, 1) / 1000,
    })
  })

  it('keeps the newest version and drops deleted servers', () => {
    const servers = [
      { server: { ...server, version: '1.10.0' } },
      { server: { ...server, version: '1.9.9' } },
      { server: { ...server, name: 'io.github.me/old' }, _meta: meta('deleted') },
      { server: { ...server, name: 'io.github.me/older' }, _meta: meta('active', false) },
      { server: { name: '' } },
    ]
    const page = readRegistry({ servers }, NOW)!
    expect(page.listings.map(({ version }) => version)).to.deep.equal(['1.10.0'])
    expect(page).to.deep.include({ rows: 5, dropped: { superseded: 3, malformed: 1 } })
  })

  it('lists servers without an address by name and packages, in both formats', () => {
    const old = {
      name: 'io.github.me/x',
      version_detail: { version: '0.1', release_date: '2025-05-16T18:56:49Z' },
      packages: [{ registry_name: 'npm', name: '@me/x', version: '0.1' }],
    }
    const current = {
      name: 'io.github.me/x',
      version: '0.2',
      packages: [{ registryType: 'npm', identifier: '@me/x', version: '0.2' }],
      remotes: [{ type: 'sse', url: 'http://localhost:5008/sse' }],
    }
    const [oldServer, currentServer] = [
      readRegistry([old], NOW)!.listings[0]!,
      readRegistry([current], NOW)!.listings[0]!,
    ]
    expect(oldServer).to.deep.include({
      url: null,
      tool: 'io.github.me/x',
      version: '0.1',
      packages: [{ registry: 'npm', identifier: '@me/x', version: '0.1' }],
    })
    expect(currentServer.packages).to.deep.equal([{ registry: 'npm', identifier: '@me/x', version: '0.2' }])
    expect(idOf(oldServer)).to.equal(idOf(currentServer))
  })
})

describe('an agent card', () => {
  it('has its address in url (version 0.x) or in its interfaces (version 1.0)', () => {
    const old = readCard({ name: 'A', url: 'https://a.example.com/', skills: [{ tags: ['Maps'] }] }, null)!
    expect(old.listings[0]).to.deep.include({
      kind: 'a2a_agent',
      url: 'https://a.example.com/',
      tags: ['maps'],
      protocols: ['a2a'],
      isOwn: false,
    })
    const supportedInterfaces = [
      { url: 'https://a.example.com/grpc', protocolBinding: 'GRPC' },
      { url: 'https://a.example.com/rpc', protocolBinding: 'JSONRPC' },
    ]
    const card = readCard({ name: 'A', supportedInterfaces, provider: { organization: 'Maps Inc.' } }, 'a.example.com')!
    expect(card.listings[0]).to.include({ url: 'https://a.example.com/rpc', provider: 'Maps Inc.', isOwn: true })
  })

  it('is trusted only for its own host, and dropped for a private one', () => {
    expect(readCard({ name: 'A', url: 'https://other.example.com/' }, 'a.example.com')!.listings[0]!.isOwn).to.equal(
      false,
    )
    expect(readCard({ name: 'A', url: 'http://localhost:10103/' }, null)!.dropped).to.deep.equal({ private_host: 1 })
    for (const junk of [null, [], {}, { name: '' }]) expect(readCard(junk, null)).to.equal(null)
  })
})

describe('the document of an origin', () => {
  it('is trusted only for its own addresses', () => {
    const page = readOrigin(
      {
        version: 1,
        resources: ['https://a.example.com/x', 'https://b.example.com/y', 'http://a.example.com/x', 'http://10.0.0.1/'],
      },
      'https://a.example.com',
    )!
    expect(page.listings.map(({ url, isOwn }) => [url, isOwn])).to.deep.equal([['https://a.example.com/x', true]])
    expect(page.dropped).to.deep.equal({ other_origin: 2, private_host: 1 })
  })

  it('includes prices that it lists beside its resources', () => {
    const document = {
      service: 'Shop',
      resources: ['https://a.example.com/x', 'https://a.example.com/y/{id}'],
      paid_endpoints: { 'GET /x': '$0.005', 'GET /y/*': '$12.50' },
      payment: { network: 'base', currency: 'USDC', pay_to: PAYEE },
    }
    const { listings } = readOrigin(document, 'https://a.example.com')!
    expect(listings.map(({ name, isTemplate }) => [name, isTemplate])).to.deep.equal([
      ['Shop: GET /x', false],
      ['Shop: GET /y/*', true],
    ])
    expect(listings.map(({ prices }) => [prices[0]!.amount_atomic, prices[0]!.amount_usd])).to.deep.equal([
      ['5000', 0.005],
      ['12500000', 12.5],
    ])
  })
})
