import { expect } from 'chai'
import { createHash } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import directory from '../../../plugins/directory/index.ts'
import { readBazaar } from '../../../plugins/directory/sources/bazaar.ts'
import type { Directory } from '../../../schemas/types.d.ts'
import { openPluginHost, type PluginHost } from '../plugin-host.ts'

const folder = resolve(import.meta.dirname, '../../../../shared/data')
const settings = { sources: [], sweep_hours: 6, visit_hours: 24, pause_ms: 0, keep_hours: 48 }

describe('recorded listings', () => {
  before(function () {
    if (!existsSync(join(folder, 'agents'))) this.skip()
  })

  const hosts: PluginHost[] = []
  afterEach(async () => {
    for (const one of hosts.splice(0)) await one.stop()
  })
  const openHost = async (
    replayShift: string,
    now: string,
    pluginSettings: Readonly<Record<string, unknown>> = settings,
  ): Promise<PluginHost> => {
    const options = { dataMode: 'replay' as const, replayDir: folder, replayShift, now: () => new Date(now) }
    const host = await openPluginHost([{ plugin: directory, settings: pluginSettings }], options)
    hosts.push(host)
    return host
  }
  const ask = async (query: object = {}, shift = 'none', now = '2026-11-20T12:00:00Z'): Promise<Directory> => {
    const host = await openHost(shift, now)
    return host.call('getAgentDirectory', { sort: 'name', limit: 200, ...query })
  }

  it('drop unsupported schemes and private hosts, and keep the rest', async () => {
    const { records, sources } = await ask({ protocol: 'x402' })
    expect(sources.find(({ id }) => id === 'payai')).to.deep.include({
      rows: 20,
      dropped: { scheme: 6, private_host: 2 },
    })
    expect(records).to.have.length(13)
    for (const { url } of records) expect(url).to.match(/^https:\/\//)
  })

  it('of versions 1 and 2 of x402 become one record', async () => {
    const { records } = await ask({ q: 'premium-data' })
    expect(records).to.have.length(1)
    expect(records[0]).to.deep.include({
      url: 'https://api.example.com/premium-data',
      networks: ['eip155:84532'],
      description: 'Access to premium market data',
      tags: ['finance'],
    })
    expect(records[0]!.sources.map(({ id }) => id)).to.deep.equal(['x402_v1', 'x402_v2'])
    expect(records[0]!.prices).to.have.length(1)
    expect(records[0]!.prices[0]).to.include({ amount_atomic: '10000', amount_usd: 0.01 })
  })

  it('have the SHA-256 of their canonical address as their id', async () => {
    for (const { id, url, kind } of (await ask()).records) {
      if (url === null || kind === 'mcp_tool') continue
      expect(id).to.equal(`agt_${createHash('sha256').update(url).digest('hex').slice(0, 32)}`)
    }
  })

  it('with a change time in the future are dated five minutes from now instead', () => {
    const payload: unknown = JSON.parse(readFileSync(join(folder, 'agents/bazaar_payai_page_even.json'), 'utf8'))
    const now = 1_767_429_328
    const times = readBazaar(payload, now)!.listings.map(({ updated }) => updated)
    expect(times).to.deep.equal(times.map(() => now + 300))
  })

  it('include route templates, marked as such, with their price', async () => {
    const { records } = await ask({ q: 'laevitas perpetuals' })
    expect(records).to.have.length(1)
    expect(records[0]).to.deep.include({
      url: 'https://apiv2.laevitas.ch/api/v1/perpetuals/:var1',
      url_is_template: true,
      flags: ['template'],
    })
    expect(records[0]!.prices[0]).to.deep.include({
      network: 'eip155:8453',
      asset_symbol: 'USDC',
      amount_atomic: '100000',
      amount_usd: 0.1,
      pay_to: '0xdB5C2dF47e4A6Df74edeb6DE3159ae38b8Cc10fd',
    })
  })

  it('without a price have a null price', async () => {
    const { records } = await ask({ q: 'hyreagent whales' })
    expect(records[0]).to.deep.include({ prices: [], flags: ['no_prices'] })
  })

  it('of MCP servers are read in both registry formats, with the newest version, its packages and its address', async () => {
    const { records, total, sources } = await ask({ protocol: 'mcp' })
    expect(total).to.equal(121)
    expect(sources.find(({ id }) => id === 'mcp_registry')).to.deep.include({
      rows: 125,
      dropped: { malformed: 3, superseded: 1 },
    })
    const named = (name: string) => records.find((record) => record.name === name)
    expect(named('io.github.domdomegg/airtable-mcp-server')).to.include({ version: '1.7.3', url: null })
    expect(named('Cyphrex')).to.include({ url: 'https://mcp.cyphrex.io/mcp' })
    expect(named('io.github.21st-dev/magic-mcp')!.packages).to.deep.equal([
      { registry: 'npm', identifier: '@21st-dev/magic', version: '0.0.46' },
    ])
  })

  it('of A2A agents have one public address each', async () => {
    const { records, sources } = await ask({ protocol: 'a2a' })
    expect(records.map(({ url, provider }) => [url, provider.name])).to.deep.equal([
      ['https://georoute-agent.example.com/a2a/v1', 'Example Geo Services Inc.'],
    ])
    expect(sources.find(({ id }) => id === 'agent_cards')!.dropped).to.deep.equal({ private_host: 4 })
  })

  it('of an ERC-8004 registration are read only when that source is enabled', async () => {
    const erc8004 = { id: 'erc8004', kind: 'erc8004', enabled: true, url: 'http://127.0.0.1:9/' } as const
    const registry = { registry: '0x8004A169FB4a3325136EB29fA0ceB6D2e539a432', network: 'eip155:8453' }
    const enabledSettings = { ...settings, sources: [{ ...erc8004, ...registry }] }
    const host = await openHost('none', '2026-11-20T12:00:00Z', enabledSettings)
    const { records }: Directory = await host.call('getAgentDirectory', {
      sort: 'name',
      limit: 200,
      q: 'myAgentName',
    })
    expect(records.map(({ url, kind }) => [kind, url])).to.have.deep.members([
      ['a2a_agent', 'https://agent.example/.well-known/agent-card.json'],
      ['mcp_server', 'https://mcp.agent.eth/'],
    ])
    expect((await ask({ q: 'myAgentName' })).records).to.deep.equal([])
  })

  it('are visible from the time of their recording on', async () => {
    const host = await openHost('none', '2026-11-20T12:00:00Z')
    const totalAt = async (moment: string): Promise<number> => {
      const asOf = new Date(moment)
      const answer: Directory = await host.call('getAgentDirectory', { sort: 'name', limit: 1 }, { asOf })
      return answer.total
    }
    expect(await totalAt('2023-12-21T01:50:55Z')).to.equal(0)
    expect(await totalAt('2023-12-21T01:50:56Z')).to.equal(1)
    expect(await totalAt('2026-07-23T15:00:00Z')).to.equal(122)
    expect(await totalAt('2026-07-24T00:00:00Z')).to.equal(135)
  })

  it('are shifted so that they end when the service first starts, and keep that shift', async () => {
    const answer = await ask({ limit: 1 }, 'auto', '2030-01-01T00:00:00Z')
    expect(answer.replay!.shift_seconds).to.equal(Date.UTC(2030, 0, 1) / 1000 - 1_784_821_038)
    expect(answer.total).to.equal(135)
    expect(answer.sources.find(({ id }) => id === 'payai')).to.include({ fetched_at: '2030-01-01T00:00:00Z' })
  })

  it('give the same answer at every start', async () => {
    expect(await ask()).to.deep.equal(await ask())
  })
})

describe('the directory sample', () => {
  const hosts: PluginHost[] = []
  afterEach(async () => {
    for (const one of hosts.splice(0)) await one.stop()
  })
  const openHost = async (now = '2026-11-20T12:00:00Z'): Promise<PluginHost> => {
    const host = await openPluginHost([{ plugin: directory, settings }], { now: () => new Date(now) })
    hosts.push(host)
    return host
  }
  const ask = (host: PluginHost, query: object = {}, asOf?: Date): Promise<Directory> =>
    host.call('getAgentDirectory', { sort: 'name', limit: 200, ...query }, asOf ? { asOf } : {})

  it('is marked as a sample, names no real service, and is the same at every start', async () => {
    const [one, other] = [await openHost(), await openHost('2026-08-20T12:00:00Z')]
    const answer = await ask(one)
    expect(answer.data_mode).to.equal('sample')
    for (const { url } of answer.records) expect(new URL(url!).host).to.match(/\.example$/)
    const asOf = new Date('2026-08-20T12:00:00Z')
    expect(await ask(one, {}, asOf)).to.deep.equal(await ask(other, {}, asOf))
  })

  it('has services of every kind, alive and dead, some from two sources', async () => {
    const host = await openHost()
    for (const query of [
      { kind: 'http_endpoint' },
      { kind: 'mcp_server' },
      { kind: 'a2a_agent' },
      { alive: true },
      { alive: false },
      { max_price_usd: 0.01 },
    ])
      expect((await ask(host, query)).total, JSON.stringify(query)).to.be.above(3)
    const { records } = await ask(host)
    expect(records.some(({ sources }) => sources.length === 2)).to.equal(true)
  })
})
