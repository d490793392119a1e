import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { expect } from 'chai'
import { pino } from 'pino'
import { type LiveGateway, openLiveGateway, root } from '../dynamic/live-gateway.ts'
import { NETWORKS } from '../../gateway/config/networks.ts'
import { createExactEvm } from '../../gateway/methods/exact-evm/exact-evm.ts'
import { openGateway, PAY_TO, type TestGateway } from '../support/gateway.ts'
import { createScriptedSettler } from '../support/settler.ts'
import { rawRequest, requestLine } from './raw.ts'
import { until } from '../support/until.ts'

interface LogLine {
  readonly msg: string
  readonly call?: string
  readonly method?: string
  readonly route?: string
  readonly status?: number
}

describe('an unpaid call of a priced route', () => {
  let shop: LiveGateway
  let port: number
  const lines: LogLine[] = []
  before(async () => {
    const log = pino({ level: 'info' }, { write: (line: string) => void lines.push(JSON.parse(line) as LogLine) })
    shop = await openLiveGateway({ own: true, overrides: { log } })
    port = Number(new URL(shop.url).port)
  })
  after(() => shop.close())

  /** Head and body without what differs from call to call. */
  async function answerTo(method: string, target: string, headers: readonly string[] = []) {
    const { status, head, body } = await rawRequest(port, requestLine(method, target, headers))
    const [, ...named] = head.toLowerCase().split('\r\n')
    const same = named.filter((line) => !/^(date|x-call-id|keep-alive):/.test(line)).sort()
    return { status, headers: same, body, call: /^x-call-id: (.+)$/im.exec(head)?.[1] }
  }

  const priced = () =>
    [...shop.gateway.current.catalog.operations.values()].filter(
      ({ price, path, internal }) => price !== null && path !== '' && !internal && !path.includes('{'),
    )

  it('gets the same 402 before the router as from it, on every route', async () => {
    expect(priced().length).to.be.greaterThan(10)
    for (const { method, path } of priced()) {
      let { call, ...early } = await answerTo(method, path)
      // An empty payment header is no payment, but only the router looks into it.
      const { call: other, ...routed } = await answerTo(method, path, ['X-PAYMENT: '])
      // The signed offer, or what is said of the data, may be renewed between two calls: then the next one has it too.
      if (!isDeepStrictEqual(early, routed)) ({ call, ...early } = await answerTo(method, path))
      expect(early, path).to.deep.equal(routed)
      expect(early.status, path).to.equal(402)
      expect(call)
        .to.match(/^[0-9a-f-]{36}$/)
        .and.not.equal(other)
    }
  })

  it('gets the same 402 with any query, and the 402 names the address without it', async () => {
    const { call: _, ...bare } = await answerTo('GET', '/v1/regime/history')
    for (const query of ['?', '?limit=10', '?a=b&a=c', '?%', `?filler=${'x'.repeat(9_000)}`]) {
      const { call: _, ...queried } = await answerTo('GET', `/v1/regime/history${query}`)
      expect(queried, query).to.deep.equal(bare)
    }
    const resources = (JSON.parse(bare.body) as { accepts: { resource: string }[] }).accepts
    expect(resources.map(({ resource }) => resource)).to.deep.equal([`${shop.url}/v1/regime/history`])
  })

  it('gets a page if it asks for one, and any other spelling of the path goes to the router', async () => {
    const page = await answerTo('GET', '/v1/regime/current', ['Accept: text/html'])
    expect(page.headers).to.include('content-type: text/html; charset=utf-8')
    for (const target of ['/v1/regime/current/', '/v1/Regime/current', '//v1/regime/current', '/v1/regime/%63urrent'])
      expect((await answerTo('GET', target)).status, target).to.not.equal(200)
    expect((await answerTo('HEAD', '/v1/regime/current')).body).to.equal('')
    expect((await answerTo('DELETE', '/v1/regime/current')).status).to.equal(405)
  })

  it('is told that its connection ends if it waits to be asked for its body', async () => {
    const head = 'POST /v1/audit HTTP/1.1\r\nHost: a\r\nContent-Length: 50\r\n'
    // The head of the first 402 on a connection that stays open is kept for those that follow.
    await rawRequest(port, `${head}\r\n`)
    const { status, head: answered } = await rawRequest(port, `${head}Expect: 100-continue\r\n\r\n`)
    expect(status).to.equal(402)
    expect(answered).to.match(/^connection: close$/im)
  })

  it('is logged with its route, and without its query', async () => {
    const { call } = await answerTo('GET', '/v1/regime/current?asked=1')
    await until(() => lines.some((line) => line.call === call))
    const line = lines.find((each) => each.call === call)
    expect(line).to.include({ msg: 'request', method: 'GET', route: 'GET /v1/regime/current', status: 402 })
  })

  it('is limited like every other call, and the refusal ends its connection', async () => {
    const from = ['X-Forwarded-For: 203.0.113.9']
    // The limit is 600 calls in ten seconds, so they are sent in one piece: a slow machine would space them out.
    const call = `GET /v1/regime/current HTTP/1.1\r\nHost: elsewhere.example\r\n${from.join('')}\r\n\r\n`
    const { head, body } = await rawRequest(port, call.repeat(700) + requestLine('GET', '/v1/regime/current', from))
    const statuses = [...`${head}\r\n\r\n${body}`.matchAll(/HTTP\/1\.1 (\d{3})/g)].map(([, status]) => status)
    expect(statuses).to.have.length(601)
    expect(new Set(statuses.slice(0, -1))).to.deep.equal(new Set(['402']))
    expect(statuses.at(-1)).to.equal('429')
    const refused = await answerTo('GET', '/v1/regime/current', from)
    expect(JSON.parse(refused.body)).to.include({ code: 'rate_limited' })
    expect(refused.headers.find((line) => line.startsWith('retry-after: '))).to.be.a('string')
  })

  it('shows a new price from the moment the edition has it', async () => {
    const document = JSON.parse(readFileSync(join(root, 'catalog/regime.json'), 'utf8')) as {
      operations: { getRegimeCurrent: { price: string } }
    }
    document.operations.getRegimeCurrent.price = '0.007'
    shop.writeCatalog('regime.json', document)
    await shop.gateway.reload()
    const { body } = await answerTo('GET', '/v1/regime/current')
    const [requirement] = (JSON.parse(body) as { accepts: { maxAmountRequired: string }[] }).accepts
    expect(requirement?.maxAmountRequired).to.equal('7000')
  })
})

describe('an unpaid call of a service that is paid on two networks', () => {
  const networks = [NETWORKS['base-sepolia'], NETWORKS.base] as const
  const [first, second] = networks
  const all = networks.map(({ caip2 }) => caip2)
  const down = new Set<string>()
  let shop: TestGateway
  before(async () => {
    const settler = {
      ...createScriptedSettler({ network: first }),
      health: (network = first) => ({ ready: !down.has(network.name) }),
    }
    const settlement = {
      network: first,
      payTo: PAY_TO,
      others: [{ network: second, payTo: PAY_TO }],
      methods: networks.map(createExactEvm),
      settler,
      sandbox: null,
      close: async () => {},
    }
    shop = await openGateway({}, { settlement })
  })
  after(() => shop.close())

  interface Offered {
    readonly accepts: readonly { readonly network: string }[]
    readonly extensions: { readonly 'offer-receipt': { readonly info: { readonly offers: readonly object[] } } }
  }
  async function offeredAt(path: string): Promise<Offered> {
    const response = await fetch(shop.url + path)
    expect(response.status).to.equal(402)
    return JSON.parse(Buffer.from(response.headers.get('payment-required') ?? '', 'base64').toString()) as Offered
  }
  const networksAt = async (path: string) => (await offeredAt(path)).accepts.map(({ network }) => network)
  const addresses = ['/v1/late', '/v1/late?asked=1', '/v1/echo/a']

  it('is not offered a network while nothing can be settled there', async () => {
    for (const path of [...addresses, ...addresses]) {
      expect(await networksAt(path), path).to.deep.equal(all)
      down.add(second.name)
      expect(await networksAt(path), path).to.deep.equal([first.caip2])
      down.delete(second.name)
      expect(await networksAt(path), path).to.deep.equal(all)
    }
  })

  it('gets offers that were signed lately', async () => {
    const offersAt = async (path: string) => (await offeredAt(path)).extensions['offer-receipt'].info.offers
    const before = await Promise.all(addresses.map(offersAt))
    shop.advance(600)
    for (const [at, path] of addresses.entries()) {
      const after = await offersAt(path)
      expect(after, path).to.have.length(before[at]?.length ?? 0)
      expect(after, path).to.not.deep.equal(before[at])
      expect(await offersAt(path), path).to.deep.equal(after)
    }
  })
})
