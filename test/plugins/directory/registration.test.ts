import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect } from 'chai'
import { decodeFunctionData, encodeFunctionResult, type Hex, parseAbi } from 'viem'
import { openDatabase } from '../../../gateway/stores/database.ts'
import { readRegistration } from '../../../plugins/directory/sources/erc8004.ts'
import { openOnlineDirectory, type OnlineDirectory } from './online-directory.ts'

const REGISTRY = '0x8004A169FB4a3325136EB29fA0ceB6D2e539a432'
const ABI = parseAbi(['function tokenURI(uint256 agentId) view returns (string)'])
const FILE = {
  type: 'https://eips.ethereum.org/EIPS/eip-8004#registration-v1',
  name: 'Weather agent',
  description: 'Tells the weather.',
  services: [
    { name: 'web', endpoint: 'https://weather.example.org/' },
    { name: 'A2A', endpoint: 'https://weather.example.org/.well-known/agent-card.json', version: '0.3.0' },
    { name: 'MCP', endpoint: 'https://weather.example.org/mcp', version: '2025-06-18' },
    { name: 'ENS', endpoint: 'weather.eth' },
    { name: 'email', endpoint: 'mail@weather.example.org' },
  ],
  x402Support: false,
  active: true,
  registrations: [{ agentId: 22, agentRegistry: `eip155:8453:${REGISTRY}` }],
}
const kinds = (file: object) => readRegistration(file)!.listings.map(({ kind, protocols }) => [kind, ...protocols])

describe('an ERC-8004 registration', () => {
  it('yields the callable services and the number of the agent', () => {
    expect(kinds(FILE)).to.deep.equal([
      ['a2a_agent', 'a2a'],
      ['mcp_server', 'mcp'],
    ])
    const [agent] = readRegistration(FILE)!.listings
    expect(agent).to.deep.include({
      name: 'Weather agent',
      description: 'Tells the weather.',
      version: '0.3.0',
      erc8004: `eip155:8453:${REGISTRY}:22`,
      isOwn: false,
    })
    expect(readRegistration({ ...FILE, services: undefined, endpoints: FILE.services })!.listings).to.have.length(2)
  })

  it('yields a web service only if it accepts x402, and nothing of an inactive agent', () => {
    expect(kinds({ ...FILE, x402Support: true })).to.deep.equal([
      ['http_endpoint', 'x402'],
      ['a2a_agent', 'a2a', 'x402'],
      ['mcp_server', 'mcp', 'x402'],
    ])
    expect(readRegistration({ ...FILE, active: false })).to.deep.include({ listings: [], dropped: { inactive: 1 } })
  })

  it('drops private hosts, other schemes and placeholders', () => {
    const services = ['http://127.0.0.1/mcp', 'ipfs://{cid}', 7].map((endpoint) => ({ name: 'MCP', endpoint }))
    const page = readRegistration({ ...FILE, services: [...services, 'junk', null] })
    expect(page).to.deep.include({ listings: [], dropped: { private_host: 1, scheme: 1, malformed: 1 } })
    const registrations = [{ agentId: 22, agentRegistry: '{namespace}:{chainId}:{identityRegistry}' }]
    expect(readRegistration({ ...FILE, registrations })!.listings[0]!.erc8004).to.equal(null)
  })

  it('is refused if it is another kind of document', () => {
    for (const junk of [null, [], {}, 'x', { type: 'other', services: [] }])
      expect(readRegistration(junk)).to.equal(null)
  })
})

describe('an ERC-8004 registry', () => {
  let directory: OnlineDirectory
  let chain: Server
  let uris: readonly string[]
  let fault: number | null
  /** What the chain answers in place of an agent; undefined: nothing at all. */
  let unanswered: ((agent: number) => object | undefined) | null

  before(async () => {
    chain = createServer((request, response) => {
      const chunks: Buffer[] = []
      request.on('data', (chunk: Buffer) => chunks.push(chunk))
      request.on('end', () => {
        if (fault !== null) return void response.writeHead(fault).end('no')
        const calls = JSON.parse(Buffer.concat(chunks).toString()) as { id: number; params: [{ to: Hex; data: Hex }] }[]
        const answers = calls.map(({ id, params: [{ to, data }] }) => {
          expect(to).to.equal(REGISTRY)
          const [agent] = decodeFunctionData({ abi: ABI, data }).args
          const uri = uris[Number(agent) - 1]
          if (unanswered && uri === undefined) return { jsonrpc: '2.0', id, ...unanswered(Number(agent)) }
          if (uri === undefined) return { jsonrpc: '2.0', id, error: { code: 3, message: 'execution reverted' } }
          return {
            jsonrpc: '2.0',
            id,
            result: encodeFunctionResult({ abi: ABI, functionName: 'tokenURI', result: uri }),
          }
        })
        response.end(JSON.stringify(answers))
      })
    })
    await new Promise<void>((resolve) => chain.listen(0, '127.0.0.1', resolve))
    const url = `http://127.0.0.1:${(chain.address() as AddressInfo).port}`
    const network = 'eip155:8453'
    const sources = [{ id: 'agents', kind: 'erc8004', enabled: true, url, registry: REGISTRY, network }]
    directory = await openOnlineDirectory(openDatabase({ file: ':memory:' }), { sources })
  })
  after(async () => {
    await directory.close()
    await new Promise((resolve) => chain.close(resolve))
  })
  beforeEach(() => {
    fault = null
    unanswered = null
  })

  const inline = (file: object): string =>
    `data:application/json;base64,${Buffer.from(JSON.stringify(file)).toString('base64')}`

  it('is read agent by agent, from files on the chain and from files on hosts, which are visited like any untrusted address', async () => {
    directory.internet.site('files.example.org', '93.184.216.34', (_, response) =>
      response.end(JSON.stringify({ ...FILE, name: 'From a host', services: [FILE.services[2]] })),
    )
    directory.internet.name('inside.example.org', ['10.0.0.1'])
    directory.internet.site('down.example.org', '93.184.216.35', (_, response) => response.writeHead(503).end())
    const inlineService = { name: 'MCP', endpoint: 'https://inline.example.org/mcp' }
    uris = [
      inline({ ...FILE, services: [inlineService] }),
      'http://files.example.org/22.json',
      'ipfs://bafy',
      'http://inside.example.org/',
      'http://127.0.0.1/',
      'http://down.example.org/7.json',
      'http://gone.example.org/8.json',
      'data:application/json;base64,AAAA',
      // A file that is the JSON text "scheme" is no registration, and no reason either.
      'data:application/json,"scheme"',
      ...Array.from({ length: 50 }, () => ''),
    ]
    await directory.run('sweep')
    const { records, sources } = await directory.find()
    expect(records.map(({ url, name, reputation }) => [url, name, reputation.erc8004])).to.deep.equal([
      ['https://weather.example.org/mcp', 'From a host', `eip155:8453:${REGISTRY}:2`],
      ['https://inline.example.org/mcp', 'Weather agent', `eip155:8453:${REGISTRY}:1`],
    ])
    expect(directory.internet.dialled).to.deep.equal(['93.184.216.34:80', '93.184.216.35:80'])
    expect(sources.find(({ id }) => id === 'agents')).to.deep.include({
      status: 'ok',
      dropped: { scheme: 51, refused: 2, unreachable: 2, malformed: 2 },
    })
  })

  const failures: readonly (readonly [what: string, answer: object | undefined, error: string])[] = [
    ['limits the rate', { error: { code: -32005, message: 'rate limit' } }, 'the chain answered the error -32005'],
    ['has an internal error', { error: { code: -32603, message: 'internal' } }, 'the chain answered the error -32603'],
    ['answers some calls only', undefined, 'the chain did not answer every call'],
    ['has no code at that address', { result: '0x' }, 'there is no registry at this address'],
  ]
  for (const [what, answer, error] of failures)
    it(`reports an error and removes nothing if its chain ${what}`, async () => {
      unanswered = () => answer
      directory.clock += 24 * 3600
      const known = uris
      uris = []
      await directory.run('sweep')
      uris = known
      const { total, sources } = await directory.find()
      expect(total).to.equal(2)
      expect(sources.find(({ id }) => id === 'agents')).to.include({ status: 'degraded', error })
    })

  it('ends where its chain says in other words that an agent does not exist', async () => {
    const refusals = [
      { code: -32000, message: 'execution reverted: ERC721: invalid token ID' },
      { code: -32015, message: 'VM execution error.', data: 'Reverted 0x7e2732890000' },
      { code: 3, message: 'execution failed', data: '0x7e273289' },
    ]
    unanswered = (agent) => ({ error: refusals[agent % refusals.length] })
    directory.clock += 24 * 3600
    await directory.run('sweep')
    const { total, sources } = await directory.find()
    expect(total).to.equal(2)
    expect(sources.find(({ id }) => id === 'agents')).to.include({ status: 'ok' })
  })

  it('reports an error and removes nothing if its chain does not answer', async () => {
    fault = 503
    directory.clock += 6 * 3600
    await directory.run('sweep')
    const { total, sources } = await directory.find()
    expect(total).to.equal(2)
    expect(sources.find(({ id }) => id === 'agents')).to.include({
      status: 'degraded',
      error: 'the chain answered 503',
    })
  })
})
