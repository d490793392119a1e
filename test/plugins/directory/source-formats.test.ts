/** Times, networks and addresses as different sources write them. */
import { expect } from 'chai'
import { networkOf } from '../../../plugins/directory/payment-terms.ts'
import { sourceTime, tagsOf } from '../../../plugins/directory/listing-fields.ts'
import { readCard } from '../../../plugins/directory/sources/agent-cards.ts'
import { readRegistration } from '../../../plugins/directory/sources/erc8004.ts'

const NOW = Date.UTC(2026, 10, 1) / 1000
const AT = Date.UTC(2025, 9, 1, 12) / 1000

describe('a time in a source', () => {
  it('may be seconds, milliseconds or ISO 8601, and is UTC without a zone', () => {
    const zone = process.env['TZ']
    process.env['TZ'] = 'America/New_York'
    try {
      for (const time of [
        AT,
        String(AT),
        AT * 1000,
        '2025-10-01T12:00:00Z',
        '2025-10-01T14:00:00+02:00',
        '2025-10-01T12:00:00.123456',
        '2025-10-01 12:00:00',
        '2025-10-01T12:00',
      ])
        expect(sourceTime(time, NOW), String(time)).to.equal(AT)
      expect(sourceTime('2025-10-01', NOW)).to.equal(AT - 43_200)
      for (const invalid of ['', 'soon', null, 0, -1, {}])
        expect(sourceTime(invalid, NOW), JSON.stringify(invalid)).to.equal(null)
    } finally {
      if (zone === undefined) delete process.env['TZ']
      else process.env['TZ'] = zone
    }
  })

  it('is at most five minutes in the future', () => {
    for (const time of ['2099-01-01T00:00:00Z', '4102444800', 4102444800000])
      expect(sourceTime(time, NOW)).to.equal(NOW + 300)
  })
})

describe('a tag', () => {
  it('is cut to 60 characters, and never to half of one', () => {
    expect(tagsOf('A'.repeat(70), `${'b'.repeat(59)}🚀`)).to.deep.equal(['a'.repeat(60), `${'b'.repeat(59)}�`])
  })
})

describe('a network of x402 version 1', () => {
  it('is recognised by every known name of its chain', () => {
    const names = ['base', 'Base-Sepolia', 'story', 'educhain', 'skale-base-sepolia', 'eip155:8453', 'unheard-of']
    expect(names.map(networkOf)).to.deep.equal([
      'eip155:8453',
      'eip155:84532',
      'eip155:1514',
      'eip155:41923',
      'eip155:324705682',
      'eip155:8453',
      'unheard-of',
    ])
  })
})

describe('an agent with several addresses', () => {
  const urlsOf = (fields: object): (string | null)[] | undefined =>
    readCard({ name: 'A', ...fields }, null)?.listings.map(({ url }) => url)
  const interfaceAt = (url: string, protocolBinding: string): object => ({ url, protocolBinding })

  it('is listed with the first public address, in the order in which clients try them', () => {
    const [rest, rpc] = [
      interfaceAt('https://a.example.com/rest', 'HTTP+JSON'),
      interfaceAt('https://a.example.com/rpc', 'JSONRPC'),
    ]
    const local = interfaceAt('http://localhost/rpc', 'JSONRPC')
    expect(urlsOf({ supportedInterfaces: [rest, rpc] })).to.deep.equal(['https://a.example.com/rpc'])
    expect(urlsOf({ supportedInterfaces: [local, rest] })).to.deep.equal(['https://a.example.com/rest'])
    expect(urlsOf({ supportedInterfaces: [local], url: 'https://a.example.com/' })).to.deep.equal([
      'https://a.example.com/',
    ])
    expect(readCard({ name: 'A', supportedInterfaces: [local] }, null)?.dropped).to.deep.equal({ private_host: 1 })
  })

  it('keeps its registry number even beyond the range of JavaScript numbers', () => {
    const agent = (agentId: unknown): string | null | undefined =>
      readRegistration({
        type: 'https://eips.ethereum.org/EIPS/eip-8004#registration-v1',
        name: 'A',
        services: [{ name: 'MCP', endpoint: 'https://a.example.com/mcp' }],
        registrations: [{ agentId, agentRegistry: `eip155:8453:0x${'8'.repeat(40)}` }],
      })?.listings[0]?.erc8004?.split(':')[3]
    const ids = [22, 0, '22', '115792089237316195423570985008687907853', -1, 2 ** 60, 'x', null].map(agent)
    expect(ids.map((id) => id ?? null)).to.deep.equal([
      '22',
      '0',
      '22',
      '115792089237316195423570985008687907853',
      null,
      null,
      null,
      null,
    ])
  })
})
