/** What follows from the address of a caller, and what does not if his X-Forwarded-For comes from a peer nobody named. */
import { once } from 'node:events'
import { Agent, type IncomingMessage, request } from 'node:http'
import { expect } from 'chai'
import { pino } from 'pino'
import { payment, send } from '../support/agent.ts'
import { openGateway, type TestGateway, until } from '../support/gateway.ts'
import { diagnose } from '../../scripts/doctor/diagnose.ts'
import { openLiveGateway } from '../dynamic/live-gateway.ts'

/** Requests in ten seconds, as docs/operations.md says. */
const LIMIT = 600
const WINDOW_MS = 10_000

interface LogLine {
  readonly level: number
  readonly code?: string
}

describe('a proxy', () => {
  let shop: TestGateway
  let lines: LogLine[]
  const agent = new Agent({ keepAlive: true, maxSockets: 16 })
  after(() => agent.destroy())
  afterEach(() => shop.close())

  async function open(environment: Readonly<Record<string, string>> = {}): Promise<void> {
    // Lines of this gateway alone: the one before may still count its refusals.
    const own: LogLine[] = (lines = [])
    const log = pino({ level: 'warn' }, { write: (line: string) => void own.push(JSON.parse(line) as LogLine) })
    shop = await openGateway(environment, { log })
  }

  async function call(headers: Readonly<Record<string, string>>, path = '/v1/echo/hello'): Promise<number> {
    const sent = request(shop.url + path, { agent, headers })
    sent.end()
    const [answer] = (await once(sent, 'response')) as [IncomingMessage]
    answer.resume()
    await once(answer, 'end')
    return answer.statusCode ?? 0
  }

  /** Runs a test of a new gateway, again if it fails after more than one window: a busy machine may be too slow for it. */
  async function withinWindow(environment: Readonly<Record<string, string>>, test: () => Promise<void>): Promise<void> {
    await open(environment)
    const began = performance.now()
    try {
      await test()
    } catch (error) {
      if (performance.now() - began < WINDOW_MS) throw error
      await shop.close()
      await withinWindow(environment, test)
    }
  }

  /** How often each status was answered to calls with these headers. They are sent at once: the window is ten seconds. */
  async function statuses(calls: number, headers: (call: number) => Record<string, string>) {
    const all = await Promise.all(Array.from({ length: calls }, (_, at) => call(headers(at))))
    const counts: Record<number, number> = {}
    for (const status of all) counts[status] = (counts[status] ?? 0) + 1
    return counts
  }

  const address = (at: number): string => `198.51.${Math.floor(at / 250)}.${1 + (at % 250)}`

  for (const header of ['x-forwarded-for', 'forwarded', 'x-real-ip'])
    it(`that is not named cannot choose its address with ${header}, not even a private one or this machine`, () =>
      withinWindow({}, async () => {
        expect(await statuses(800, (at) => ({ [header]: address(at) }))).to.deep.equal({ 402: LIMIT, 429: 200 })
        // Whoever calls from this machine itself is not limited.
        expect(await call({})).to.equal(402)
      }))

  it('that is named has each of its callers counted, whatever they wrote into the header themselves', () =>
    withinWindow({ TRUSTED_PROXIES: '127.0.0.1 198.18.0.0/15' }, async () => {
      const proxied = (caller: string) => (at: number) => ({
        'x-forwarded-for': `${address(at)}, ${caller}, 198.18.7.${at % 250}`,
      })
      expect(await statuses(LIMIT, proxied('203.0.113.7'))).to.deep.equal({ 402: LIMIT })
      expect(await statuses(5, proxied('203.0.113.7:4711'))).to.deep.equal({ 429: 5 })
      expect(await statuses(5, proxied('203.0.113.8'))).to.deep.equal({ 402: 5 })
      expect(lines).to.deep.equal([])
    }))

  it('that is named and does not say who calls is limited itself, though it runs on this machine', () =>
    withinWindow({ TRUSTED_PROXIES: '127.0.0.1' }, async () => {
      expect(await statuses(LIMIT + 5, () => ({}))).to.deep.equal({ 402: LIMIT, 429: 5 })
    }))

  it('that is not named opens no stored answer to those who share its address', async () => {
    await open()
    const header = await payment(`${shop.url}/v1/echo/hello`, shop.wallet)
    const present = (caller: string) =>
      send(`${shop.url}/v1/echo/hello`, header, 2, { headers: { 'x-forwarded-for': caller } })
    const bought = await present('203.0.113.7')
    expect(bought.status).to.equal(200)
    await bought.text()
    const key = shop.settler.transfers[0]?.key as string
    await until(async () => (await shop.gateway.journal.find(key))?.deliveredAt !== null)
    for (const caller of ['203.0.113.7', '203.0.113.8']) expect((await present(caller)).status).to.equal(402)
  })

  it('that is not named is reported once in the log, and in /health', async () => {
    const live = await openLiveGateway({
      own: true,
      overrides: { log: pino({ level: 'warn' }, { write: (line) => void lines.push(JSON.parse(line) as LogLine) }) },
    })
    shop = live
    // On a first start the history is not there yet, and what rests on it is not sold.
    await until(async () => (await live.json('/health'))['status'] === 'ok')
    lines = []
    expect((await live.json('/health'))['warnings']).to.deep.equal([])
    for (let at = 0; at < 3; at++) await call({ 'x-forwarded-for': address(at) }, '/pricing.json')
    const { warnings, status } = (await live.json('/health')) as {
      warnings: { code: string; message: string }[]
      status: string
    }
    expect(warnings.map(({ code }) => code)).to.deep.equal(['proxy_not_named'])
    expect(warnings[0]?.message).to.contain('TRUSTED_PROXIES')
    expect(status).to.equal('ok')
    await until(() => lines.some(({ code }) => code === 'proxy_not_named'))
    expect(lines.filter(({ code }) => code === 'proxy_not_named')).to.have.length(1)
    const advice = (await diagnose(live.url)).findings.filter(({ rule }) => rule === 'warning')
    expect(advice.map(({ where, isFault }) => [where, isFault])).to.deep.equal([['/health', false]])
  })

  it('that hides all callers of a public address is reported at the start, in the log and in /health', async () => {
    const environment = { BASE_URL: 'https://gate.example' }
    // Lines of this gateway alone: the one before may still count its refusals.
    const own: LogLine[] = (lines = [])
    const log = pino({ level: 'warn' }, { write: (line: string) => void own.push(JSON.parse(line) as LogLine) })
    const live = await openLiveGateway({ own: true, environment, overrides: { log } })
    shop = live
    expect(lines.map(({ code }) => code)).to.include('callers_share_an_address')
    const codes = ((await live.json('/health'))['warnings'] as { code: string }[]).map(({ code }) => code)
    expect(codes).to.deep.equal(['callers_share_an_address'])
  })

  it('that hides all callers of a public address opens no stored answer to them, once that is known', async () => {
    const isOpen = async (environment: Readonly<Record<string, string>>, calls = 0): Promise<boolean> => {
      await open(environment)
      await statuses(calls, () => ({}))
      const header = await payment(`${shop.url}/v1/echo/hello`, shop.wallet)
      expect((await send(`${shop.url}/v1/echo/hello`, header)).status).to.equal(200)
      const { status } = await send(`${shop.url}/v1/echo/hello`, header)
      await shop.close()
      return status === 200
    }
    const PUBLIC = { BASE_URL: 'https://gate.example' }
    expect(await isOpen({}, 30), 'a service of this machine').to.equal(true)
    expect(await isOpen(PUBLIC), 'known at the start').to.equal(false)
    expect(await isOpen({ ...PUBLIC, HOST: '0.0.0.0' }, 30), 'known after 20 requests').to.equal(false)
    await open()
  })
})
