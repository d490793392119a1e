/** The buyer against a server that quotes, takes payments and fails as each test says. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect } from 'chai'
import * as fc from 'fast-check'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { type Buyer, type BuyerOptions, createBuyer, NotPaid, OutcomeUnknown } from '../../../gateway/client/buyer.ts'
import { NETWORKS } from '../../../gateway/config/networks.ts'

const network = NETWORKS['base-sepolia']
const account = privateKeyToAccount(generatePrivateKey())

interface PaidRequest {
  readonly url: string
  readonly body: string
  readonly nonce: string
}

describe('a buyer', () => {
  let base: string
  const paid: PaidRequest[] = []
  let price: (url: string) => bigint
  /** Answers a paid request; `nth` counts from 1. */
  let answer: (nth: number, response: ServerResponse, request: PaidRequest) => void
  /** What the service says of a payment. */
  let state: string | null
  const server = createServer((request, response) => void serve(request, response))

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { url = '', headers } = request
    let body = ''
    for await (const part of request) body += String(part)
    const payment = headers['payment-signature'] ?? headers['x-payment']
    if (url.startsWith('/v1/payments/'))
      return send(response, state ? 200 : 404, state ? { state } : { code: 'not_found' })
    if (payment === undefined) return quote(url, response)
    const { payload } = JSON.parse(Buffer.from(String(payment), 'base64').toString()) as {
      payload: { authorization: { nonce: string } }
    }
    const one = { url, body, nonce: payload.authorization.nonce }
    paid.push(one)
    answer(paid.length, response, one)
  }

  function quote(url: string, response: ServerResponse): void {
    if (url === '/free') return send(response, 200, { free: true })
    const accepted = {
      scheme: 'exact',
      network: network.caip2,
      amount: String(price(url)),
      asset: network.asset,
      payTo: `0x${'a1'.repeat(20)}`,
      maxTimeoutSeconds: 60,
      extra: network.domain,
    }
    const required = { x402Version: 2, resource: { url: base + url }, accepts: [accepted] }
    send(response, 402, {}, { 'payment-required': Buffer.from(JSON.stringify(required)).toString('base64') })
  }

  function send(response: ServerResponse, status: number, body: object, headers: Record<string, string> = {}): void {
    response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body))
  }
  const deliver = (response: ServerResponse): void => {
    const receipt = Buffer.from(JSON.stringify({ success: true, transaction: '0x1' })).toString('base64')
    send(response, 200, { sky: 'clear' }, { 'payment-response': receipt })
  }

  before(async () => {
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  })
  beforeEach(() => {
    paid.length = 0
    price = () => 5_000n
    answer = (_, response) => deliver(response)
    state = null
  })
  after(() => {
    server.closeAllConnections()
    server.close()
  })

  // At noon, so that no test but the one of days crosses midnight, when limits begin anew.
  const toNoon = Date.parse('2026-11-29T12:00:00Z') - Date.now()
  const now = (): number => Date.now() + toNoon
  const open = (options: BuyerOptions = {}): Buyer => createBuyer({ account, now, ...options })
  const nonces = (): Set<string> => new Set(paid.map(({ nonce }) => nonce))
  const failed = async (purchase: Promise<unknown>): Promise<Error> => {
    try {
      await purchase
    } catch (error) {
      return error as Error
    }
    return expect.fail('it did not fail')
  }

  it('pays what costs something, and nothing for what is free', async () => {
    const bought = await open().buy(`${base}/weather`)
    expect(await bought.response.json()).to.deep.equal({ sky: 'clear' })
    expect(bought.receipt).to.include({ success: true, transaction: '0x1' })
    expect(bought.payment).to.include({ from: account.address, amount: '5000', network: 'base-sepolia' })
    expect((await open().buy(`${base}/free`)).payment).to.equal(null)
    expect(paid).to.have.length(1)
  })

  const faults: Readonly<Record<string, (response: ServerResponse) => void>> = {
    'a lost connection': (response) => response.destroy(),
    'an answer that breaks off': (response) => {
      response.writeHead(200, { 'content-length': '100', 'content-type': 'application/json' })
      response.write('{"sky"', () => response.destroy())
    },
    'a pending settlement': (response) =>
      send(response, 503, { code: 'settlement_pending', retry: 'same_payment' }, { 'retry-after': '0' }),
    'an error that does not say what became of the payment': (response) =>
      send(response, 502, { error: 'bad gateway' }, { 'retry-after': '0' }),
    'an error of a proxy': (response) => {
      response.writeHead(504, { 'content-type': 'text/html', 'retry-after': '0' }).end('<h1>Gateway timeout</h1>')
    },
  }
  for (const [name, fault] of Object.entries(faults))
    it(`sends the same payment again after ${name}`, async () => {
      answer = (nth, response) => (nth < 3 ? fault(response) : deliver(response))
      const { response } = await open().buy(`${base}/weather`)
      expect(response.status).to.equal(200)
      expect([paid.length, nonces().size]).to.deep.equal([3, 1])
    })

  it('does not sign another payment while the outcome of the first is unknown, in this process or the next', async () => {
    answer = (_, response) => send(response, 503, { code: 'settlement_pending', retry: 'same_payment' }, { 'retry-after': '0' }) // prettier-ignore
    const buyer = open({ waitSeconds: 0.2 })
    const error = await failed(buyer.buy(`${base}/weather`))
    expect(error).to.be.instanceOf(OutcomeUnknown)
    expect(error.message).to.contain('Do not pay again')
    answer = (_, response) => deliver(response)
    const payment = JSON.parse(JSON.stringify((error as OutcomeUnknown).payment)) as OutcomeUnknown['payment']
    expect((await open().buy(`${base}/weather`, { payment })).response.status).to.equal(200)
    expect((await buyer.buy(`${base}/weather`)).response.status).to.equal(200)
    expect(nonces().size).to.equal(1)
    // It was for that request alone, and the next purchase is a new one.
    await buyer.buy(`${base}/weather`, { method: 'POST', body: '{"day":1}' })
    await buyer.buy(`${base}/weather`)
    expect(nonces().size).to.equal(3)
  })

  it('uses the payment of a call that was not charged for the next try, and counts it once', async () => {
    answer = (nth, response) =>
      nth === 1 ? send(response, 503, { code: 'data_stale', retry: 'after_delay' }) : deliver(response)
    const buyer = open({ limits: { perDay: 5_000n } })
    expect((await buyer.buy(`${base}/weather`)).response.status).to.equal(503)
    expect((await buyer.buy(`${base}/weather`)).response.status).to.equal(200)
    expect(nonces().size).to.equal(1)
    expect(await failed(buyer.buy(`${base}/other`))).to.be.instanceOf(NotPaid)
  })

  for (const code of ['payment_invalid', 'payment_required', 'settlement_failed'])
    it(`returns a refusal (${code}), and signs again only once that payment can no longer be settled`, async () => {
      let time = now()
      price = () => BigInt(5_000 + paid.length)
      const buyer = open({ limits: { perDay: 8_000n }, now: () => time })
      answer = (_, response) => send(response, 402, { code, retry: 'new_quote' })
      expect((await buyer.buy(`${base}/weather`)).response.status).to.equal(402)
      expect(paid).to.have.length(1)
      time += 61_000
      expect((await buyer.buy(`${base}/weather`)).response.status).to.equal(402)
      expect(nonces().size, 'a block may carry an earlier time').to.equal(1)
      expect(await failed(buyer.buy(`${base}/other`)), 'it still counts').to.be.instanceOf(NotPaid)
      time += 30_000
      const refused = paid[0]!.nonce
      answer = (_, response, { nonce }) =>
        nonce === refused ? send(response, 402, { code: 'payment_invalid', retry: 'new_quote' }) : deliver(response)
      expect((await buyer.buy(`${base}/weather`)).response.status).to.equal(200)
      expect(nonces().size).to.equal(2)
    })

  it('signs nothing more while nothing says that a payment was not settled, however old it is', async () => {
    let time = now()
    const buyer = open({ limits: { perDay: 8_000n }, now: () => time })
    answer = (_, response) => send(response, 402, { code: 'payment_already_used', retry: 'new_quote' })
    await buyer.buy(`${base}/weather`)
    time += 3_600_000
    expect((await buyer.buy(`${base}/weather`)).response.status).to.equal(402)
    expect(nonces().size).to.equal(1)
    expect(await failed(buyer.buy(`${base}/other`))).to.be.instanceOf(NotPaid)
    state = 'released'
    answer = (_, response) => deliver(response)
    expect((await buyer.buy(`${base}/weather`)).response.status).to.equal(200)
    expect([paid.length, nonces().size]).to.deep.equal([3, 2])
  })

  it('waits for a busy service with the same payment, and returns its answer in the end', async () => {
    answer = (nth, response) =>
      nth < 4 ? send(response, [425, 429, 408][nth - 1]!, {}, { 'retry-after': '0' }) : deliver(response)
    expect((await open().buy(`${base}/weather`)).response.status).to.equal(200)
    expect([paid.length, nonces().size]).to.deep.equal([4, 1])
    answer = (_, response) => send(response, 429, {}, { 'retry-after': '0' })
    expect((await open({ waitSeconds: 0.2 }).buy(`${base}/weather`)).response.status).to.equal(429)
  })

  it('keeps the payment of a call that is aborted', async () => {
    const ending = new AbortController()
    answer = () => ending.abort(new Error('the caller has gone'))
    const buyer = open()
    expect(await failed(buyer.buy(`${base}/weather`, { signal: ending.signal }))).to.be.instanceOf(OutcomeUnknown)
    answer = (_, response) => deliver(response)
    expect((await buyer.buy(`${base}/weather`)).response.status).to.equal(200)
    expect([paid.length, nonces().size]).to.deep.equal([2, 1])
  })

  it('buys twice if two calls of the same request are made at once, and not a third time for one of unknown outcome', async () => {
    answer = (nth, response) => (nth === 1 ? deliver(response) : send(response, 503, { code: 'settlement_pending', retry: 'same_payment' }, { 'retry-after': '0' })) // prettier-ignore
    const buyer = open({ waitSeconds: 0.2 })
    const results = await Promise.allSettled([buyer.buy(`${base}/weather`), buyer.buy(`${base}/weather`)])
    expect(results.map(({ status }) => status).sort()).to.deep.equal(['fulfilled', 'rejected'])
    answer = (_, response) => deliver(response)
    await buyer.buy(`${base}/weather`)
    expect(nonces().size).to.equal(2)
  })

  it('holds its limits whatever is bought at once, and begins anew with each day of UTC', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.integer({ min: 1, max: 50 }), { minLength: 1, maxLength: 12 }),
        fc.integer({ min: 1, max: 60 }),
        fc.integer({ min: 1, max: 150 }),
        async (prices, perCall, perDay) => {
          paid.length = 0
          price = (url) => BigInt(url.slice('/price/'.length).split('/')[0] ?? '')
          let time = Date.parse('2026-11-29T23:59:00Z')
          const limits = { perCall: BigInt(perCall), perDay: BigInt(perDay), perHostAndDay: BigInt(perDay) }
          const buyer = open({ limits, now: () => time })
          const spent = (requests: readonly PaidRequest[]): number =>
            requests.reduce((sum, { url }) => sum + Number(price(url)), 0)
          const all = () => Promise.allSettled(prices.map((each, nth) => buyer.buy(`${base}/price/${each}/${nth}`)))
          const results = await all()
          expect(spent(paid)).to.be.at.most(perDay)
          for (const { url } of paid) expect(Number(price(url))).to.be.at.most(perCall)
          // What was not bought would have exceeded a limit.
          for (const [nth, { status }] of results.entries())
            if (status === 'rejected')
              expect(prices[nth]! > perCall || spent(paid) + prices[nth]! > perDay).to.equal(true)
          const today = paid.length
          time += 61_000
          await all()
          expect(spent(paid.slice(today))).to.equal(spent(paid.slice(0, today)))
        },
      ),
      { numRuns: 25 },
    )
  })

  it('asks before a payment above a limit, and names the limit', async () => {
    const asked: string[] = []
    let isFine = false
    const buyer = open({
      limits: { perCall: 1_000n },
      approve: (requirement, exceeded) => {
        asked.push(`${requirement.amount} ${exceeded}`)
        return isFine
      },
    })
    expect((await failed(buyer.buy(`${base}/weather`))).message).to.contain('was not approved')
    isFine = true
    expect((await buyer.buy(`${base}/weather`)).response.status).to.equal(200)
    expect(asked).to.deep.equal(Array(2).fill('5000 the limit of 0.001 USDC a call'))
    expect((await failed(open({ limits: { perCall: 1_000n } }).buy(`${base}/weather`))).message).to.equal(
      'Not paid: the price of 0.005 USDC is above the limit of 0.001 USDC a call.',
    )
    expect((await failed(createBuyer().buy(`${base}/weather`))).message).to.contain('Give the buyer an account')
  })

  it('pays at most ten cents a call unless it is told otherwise, and never follows a redirect', async () => {
    price = () => 100_001n
    expect(await failed(open().buy(`${base}/weather`))).to.be.instanceOf(NotPaid)
    price = () => 100_000n
    answer = (_, response) => response.writeHead(302, { location: `${base}/elsewhere` }).end()
    expect((await open().buy(`${base}/weather`)).response.status).to.equal(302)
    expect(paid.map(({ url }) => url)).to.deep.equal(['/weather'])
  })

  it('sends a large body once the price is agreed', async () => {
    const body = 'x'.repeat(100_000)
    await open().buy(`${base}/weather`, { method: 'POST', body })
    expect(paid.map((request) => request.body.length)).to.deep.equal([100_000])
  })
})
