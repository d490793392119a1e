/** What a wallet gets that has work done and does not pay for it: some calls, then 429 before the work. */
import { once } from 'node:events'
import { expect } from 'chai'
import type { LocalAccount } from 'viem'
import { createChainSettler } from '../../gateway/methods/exact-evm/chain/chain-settler.ts'
import { createLog } from '../../gateway/observe/log.ts'
import { json, offer, payment, type RequestOptions, send } from '../support/agent.ts'
import type { TestChain } from '../support/chain.ts'
import { type ChainGateway, openChainGateway } from '../support/chain-gateway.ts'
import { newWallet, nextRequest, openGateway, type TestGateway, until } from '../support/gateway.ts'
import { newSettleKey } from '../support/payments.ts'
import { signPayment } from '../support/wallet.ts'

/** How many calls of a wallet may end unpaid, and the seconds after which one more may. */
const CALLS = 10
const SECONDS = 120

const POST = (fault?: string): RequestOptions => ({
  method: 'POST',
  body: { text: 'hello', ...(fault === undefined ? {} : { fault }) },
})

describe('a wallet whose calls end unpaid', function () {
  this.timeout(20_000)
  let shop: TestGateway
  let account: LocalAccount
  let url: string
  beforeEach(async () => {
    shop = await openGateway()
    account = shop.wallet
    url = `${shop.url}/v1/echo`
  })
  afterEach(() => shop.close())

  const runs = (): Promise<number> => runsOf(shop)
  const sign = (fault?: string): Promise<string> => payment(url, account, 2, POST(fault))
  const buy = async (fault?: string): Promise<Response> => send(url, await sign(fault), 2, POST(fault))

  const leaveEarly = async (): Promise<void> =>
    leaveAtWork({ url: shop.url, journal: shop.gateway.journal }, await sign('hang'))

  /** Hangs up when the answer is made and before its payment is sent. */
  async function leaveLate(header?: string): Promise<void> {
    const settle = shop.settler.settle.bind(shop.settler)
    const leaving = new AbortController()
    const signed = header ?? (await sign())
    const closed = nextRequest(shop).then(({ response }) => once(response, 'close'))
    const isRecorded = new Promise<void>((resolve) => {
      shop.settler.settle = async (_payment, _requirements, { record }) => {
        leaving.abort()
        await closed
        await record({ kind: 'chain' })
        resolve()
        return { state: 'pending', transaction: null }
      }
    })
    await send(url, signed, 2, { ...POST(), signal: leaving.signal }).catch(() => null)
    await isRecorded
    shop.settler.settle = settle
    await until(() => isIdle(shop.gateway))
  }

  /** Empties its purse while the answer is made. */
  async function sweep(): Promise<void> {
    shop.settler.next('revert')
    const answer = await buy()
    expect(answer.status).to.equal(402)
    expect(await json(answer)).to.include({ code: 'settlement_failed' })
  }

  /** Signs a payment that ends while the answer is made. */
  async function expire(): Promise<void> {
    const { v2 } = await offer(url, POST('gate'))
    const validBefore = String(Math.floor(shop.now().getTime() / 1000) + 11)
    const signed = await signPayment({
      account,
      requirement: v2.accepts[0] as never,
      version: 2,
      signed: { validBefore },
    })
    const before = await runs()
    const sent = send(url, signed, 2, POST('gate'))
    await until(async () => (await runs()) > before)
    shop.advance(10)
    await fetch(`${shop.url}/v1/gate`, { method: 'POST' })
    expect(await json(await sent)).to.include({ code: 'settlement_failed' })
  }

  for (const [name, end] of [
    ['left while its answer was made', leaveEarly],
    ['left before its payment was sent', leaveLate],
    ['emptied its purse meanwhile', sweep],
    ['signed payments that ended meanwhile', expire],
  ] as const)
    it(`is refused before the work once it has often enough ${name}`, async () => {
      for (let nth = 0; nth < CALLS; nth++) await end()
      const before = await runs()
      const refused = await buy()
      expect(refused.status).to.equal(429)
      expect(Number(refused.headers.get('retry-after'))).to.be.within(1, SECONDS)
      const { code, retry, message } = await json(refused)
      expect([code, retry]).to.deep.equal(['rate_limited', 'after_delay'])
      expect(message).to.match(/^10 calls of this wallet .+were not paid.+Nothing was charged/)
      expect(await runs()).to.equal(before)
      expect(shop.settler.transfers).to.have.length(0)
      const other = newWallet()
      expect((await send(url, await payment(url, other, 2, POST()), 2, POST())).status, 'another wallet').to.equal(200)
    })

  it('is refused over MCP as well', async () => {
    for (let nth = 0; nth < CALLS; nth++) await sweep()
    const header = await payment(`${shop.url}/v1/echo/hello`, account)
    const response = await fetch(`${shop.url}/mcp`, {
      method: 'POST',
      body: JSON.stringify({
        jsonrpc: '2.0',
        id: 1,
        method: 'tools/call',
        params: { name: 'get_echo', arguments: { word: 'hello', payment_signature: header } },
      }),
      headers: { accept: 'application/json, text/event-stream', 'content-type': 'application/json' },
    })
    expect(await response.text()).to.contain('rate_limited')
  })

  it('may make one more call every two minutes, and one more after each that it pays for', async () => {
    // A clock that stands still: on a busy machine more than the last second passes between two calls.
    await shop.close()
    let time = Date.now()
    shop = await openGateway({}, { now: () => new Date(time) })
    account = shop.wallet
    url = `${shop.url}/v1/echo`
    for (let nth = 0; nth < CALLS; nth++) await sweep()
    time += (SECONDS - 1) * 1000
    expect((await buy()).status).to.equal(429)
    time += 1000
    await sweep()
    expect((await buy()).status).to.equal(429)
    time += SECONDS * 1000
    // Each one that is paid allows the next, so a buyer who pays again is served at once.
    for (let nth = 0; nth < 5; nth++) expect((await buy()).status).to.equal(200)
    for (let nth = 0; nth < 5; nth++) await sweep()
    await sweep()
    expect((await buy()).status).to.equal(429)
  })

  it('cannot outrun the limit with calls at the same time', async () => {
    for (let nth = 0; nth < 6; nth++) await sweep()
    const before = await runs()
    const leaving = new AbortController()
    let arrived = 0
    shop.gateway.server.on('request', ({ headers }) => (arrived += headers['payment-signature'] === undefined ? 0 : 1))
    const headers = await Promise.all(Array.from({ length: 30 }, () => sign('hang')))
    const sent = headers.map((header) => send(url, header, 2, { ...POST('hang'), signal: leaving.signal }))
    const all = Promise.all(sent.map((each) => each.catch(() => null)))
    await until(async () => (await runs()) >= before + CALLS - 6 && arrived >= 30)
    // The others wait, as calls that come later are answered.
    for (let nth = 0; nth < 20; nth++) expect((await runs()) - before).to.equal(CALLS - 6)
    leaving.abort()
    await all
    await until(() => isIdle(shop.gateway))
    expect((await runs()) - before).to.equal(CALLS - 6)
    expect((await buy()).status).to.equal(429)
  })

  describe('and that is honest', () => {
    it('is served every time on a line that breaks once a call, while the answer is made or after, if it comes back', async () => {
      const open = shop.settler.transfers.length
      for (let nth = 0; nth < 2 * CALLS; nth++) {
        const header = await sign()
        await leaveLate(header)
        expect((await send(url, header, 2, POST())).status).to.equal(200)
      }
      for (let nth = 0; nth < 2 * CALLS; nth++) {
        await leaveEarly()
        expect((await buy()).status).to.equal(200)
      }
      expect(shop.settler.transfers).to.have.length(open + 4 * CALLS)
    }).timeout(60_000)

    it('gets the answer that was made for it, however often its line breaks before it has it', async () => {
      const header = await sign()
      for (let nth = 0; nth < 2 * CALLS; nth++) await leaveLate(header)
      expect(await runs()).to.equal(1)
      expect((await send(url, header, 2, POST())).status).to.equal(200)
      await sweep()
      expect((await buy()).status, 'only the first time counted').to.equal(200)
    })

    it('gets the answers that were made for it although it has left too often since', async () => {
      const header = await sign()
      await leaveLate(header)
      for (let nth = 1; nth < CALLS; nth++) await sweep()
      expect((await buy()).status).to.equal(429)
      expect((await send(url, header, 2, POST())).status).to.equal(200)
      expect((await buy()).status, 'and having paid, it may call again').to.equal(200)
    })

    it('is served after any number of calls that failed at our end or cost nothing', async () => {
      for (let nth = 0; nth < 2 * CALLS; nth++) {
        expect((await buy('missing')).status).to.equal(404)
        expect((await buy('teapot')).status).to.equal(418)
        shop.settler.next('refuse')
        expect((await buy()).status, 'no work was done').to.equal(402)
        shop.settler.settle = failing(shop.settler.settle)
        expect((await buy()).status).to.equal(402)
      }
      for (let nth = 0; nth < 3; nth++) expect((await buy('throw')).status).to.equal(502)
      shop.settler.next('crash', 'timeout', 'lost')
      for (let nth = 0; nth < 3; nth++) expect((await buy()).status).to.equal(503)
      for (let nth = 0; nth < 2 * CALLS; nth++) expect((await buy()).status).to.equal(200)
    })

    it('buys as many answers at once as it can pay for', async () => {
      const headers = await Promise.all(Array.from({ length: 5 * CALLS }, () => sign()))
      const answers = await Promise.all(headers.map((header) => send(url, header, 2, POST())))
      expect(new Set(answers.map(({ status }) => status))).to.deep.equal(new Set([200]))
    })

    it('waits for its turn when it buys many answers at once after its line broke', async () => {
      for (let nth = 0; nth < CALLS / 2; nth++) await leaveEarly()
      const headers = await Promise.all(Array.from({ length: 3 * CALLS }, () => sign()))
      const answers = await Promise.all(headers.map((header) => send(url, header, 2, POST())))
      expect(new Set(answers.map(({ status }) => status))).to.deep.equal(new Set([200]))
    })
  })
})

describe('a wallet whose calls end unpaid on a chain', function () {
  this.timeout(60_000)

  it('loses nothing, and buys again once it has waited', async function () {
    let passedMs = 0
    const settler = async (chain: TestChain) => {
      const { network, rpcUrl } = chain
      const key = await newSettleKey(chain)
      return createChainSettler({ rpcUrl, network, key, log: createLog('silent'), confirmSeconds: 10, pollMs: 50 })
    }
    const shop = await openChainGateway(this, settler, { now: () => new Date(Date.now() + passedMs) })
    try {
      const buyer = await shop.newBuyer()
      const sign = async (fault?: string) => shop.sign('/v1/echo', buyer, POST(fault))
      for (let nth = 0; nth < CALLS; nth++) await leaveAtWork(shop, (await sign('hang')).header)
      const refused = await (await sign()).pay()
      expect(refused.status).to.equal(429)
      expect(await shop.received()).to.equal(0n)
      passedMs = Number(refused.headers.get('retry-after')) * 1000
      for (let nth = 0; nth < 3; nth++) expect((await (await sign()).pay()).status).to.equal(200)
      expect(await shop.received()).to.equal(30_000n)
    } finally {
      await shop.close()
    }
  })
})

/** A shop whose handlers count their runs. */
type Shop = Pick<ChainGateway, 'url' | 'journal'>

async function runsOf({ url }: Pick<Shop, 'url'>): Promise<number> {
  const counts = await json(await fetch(`${url}/v1/runs`))
  return Number(counts['getEcho']) + Number(counts['postEcho'])
}

/** Whether no call works on a payment. */
async function isIdle({ journal }: Pick<Shop, 'journal'>): Promise<boolean> {
  return (await journal.openPayments()).every(({ state }) => state !== 'reserved')
}

/** Sends a payment for a call that hangs, and hangs up while the handler works. */
async function leaveAtWork(shop: Shop, header: string): Promise<void> {
  const [before, leaving] = [await runsOf(shop), new AbortController()]
  const sent = send(`${shop.url}/v1/echo`, header, 2, { ...POST('hang'), signal: leaving.signal }).catch(() => null)
  await until(async () => (await runsOf(shop)) > before)
  leaving.abort()
  await sent
  await until(() => isIdle(shop))
}

/** Settles the next payment as a node or facilitator does that cannot send it. */
function failing(settle: TestGateway['settler']['settle']): TestGateway['settler']['settle'] {
  let isOver = false
  return async (payment, requirements, options) => {
    if (isOver) return settle(payment, requirements, options)
    isOver = true
    await options.record({ kind: 'chain' })
    return { state: 'refused', reason: 'unexpected_settle_error', message: 'It could not be sent.', unsent: true }
  }
}
