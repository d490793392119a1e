import { expect } from 'chai'
import type { Answer, CallRequest } from '../../gateway/calls/request-and-answer.ts'
import { NETWORKS } from '../../gateway/config/networks.ts'
import type { BoundOperation, Edition } from '../../gateway/products/edition.ts'
import { ServiceError } from '../../gateway/errors.ts'
import type { GasAccount } from '../../gateway/methods/payment-method.ts'
import { createLog } from '../../gateway/observe/log.ts'
import { createMetrics } from '../../gateway/accounting/metrics.ts'
import { ask, buy, json, payment, send } from '../support/agent.ts'
import { openGateway } from '../support/gateway.ts'

const TOKEN = 'correct-horse-battery'
const bearer = { authorization: `Bearer ${TOKEN}` }

/** Returns the value of a sample, by its full name with labels. NaN if there is none. */
function sample(text: string, name: string): number {
  const line = text.split('\n').find((candidate) => candidate.startsWith(`${name} `))
  return Number(line?.slice(name.length + 1) ?? Number.NaN)
}

describe('the metrics', () => {
  it('count offers, refusals by reason, failures without charge, deliveries, pending payments and settlement times', async () => {
    const shop = await openGateway({ OPERATOR_TOKEN: TOKEN })
    const { url, wallet } = shop
    await ask(`${url}/v1/echo/a`)
    await buy(`${url}/v1/echo/a`, wallet)
    const header = await payment(`${url}/v1/echo/b`, wallet)
    for (let times = 0; times < 3; times++) await send(`${url}/v1/echo/b`, header)
    await send(`${url}/v1/late`, header)
    await buy(`${url}/v1/echo`, wallet, 2, { method: 'POST', body: { text: 'a', fault: 'throw' } })
    shop.settler.next('timeout')
    await buy(`${url}/v1/echo/c`, wallet)

    const scrape = await ask(`${url}/metrics`, { headers: bearer })
    expect(scrape.headers.get('content-type')).to.match(/^text\/plain; version=0\.0\.4/)
    const text = await scrape.text()
    const calls = (operation: string, kind: string, reason = ''): number =>
      sample(text, `tollgate_calls_total{operation="${operation}",kind="${kind}",reason="${reason}"}`)
    expect(calls('getEcho', 'offered')).to.equal(4)
    expect(calls('getEcho', 'delivered')).to.equal(2)
    expect(calls('getEcho', 'repeated')).to.equal(2)
    expect(calls('getEcho', 'pending', 'settlement_pending')).to.equal(1)
    expect(calls('getLate', 'refused', 'payment_conflict')).to.equal(1)
    expect(calls('postEcho', 'not_charged', 'product_failed')).to.equal(1)
    expect(sample(text, 'tollgate_product_failures_total{product="echo",code="product_failed"}')).to.equal(1)
    expect(sample(text, 'tollgate_settle_seconds_count{outcome="settled"}')).to.equal(2)
    expect(sample(text, 'tollgate_settle_seconds_count{outcome="pending"}')).to.equal(1)
    expect(sample(text, 'tollgate_payments{state="submitted"}')).to.equal(1)
    expect(sample(text, 'tollgate_owed_payments')).to.equal(0)
    expect(sample(text, 'tollgate_product_up{product="echo"}')).to.equal(1)
    await shop.close()
  })

  it('are valid in the text format 0.0.4, with a bounded number of series whatever reasons a settler gives', async () => {
    const shop = await openGateway({ OPERATOR_TOKEN: TOKEN })
    await buy(`${shop.url}/v1/echo/a`, shop.wallet)
    const { gateway } = shop
    const metrics = createMetrics({ journal: gateway.journal, edition: () => gateway.current })
    const bound = gateway.current.bound.get('getEcho') as BoundOperation
    const request = { credential: { payments: ['x'], token: null } } as unknown as CallRequest
    for (let count = 0; count < 260; count++) {
      const error = new ServiceError('payment_invalid', 'No.', { reason: `invented_${count}` })
      const answer = { status: 402, headers: {}, body: Buffer.alloc(0), error } as unknown as Answer
      await metrics.watch(async () => answer)(gateway.current, bound, request)
    }
    const text = await metrics.text()
    const names = new Set<string>()
    const samples = new Set<string>()
    for (const line of text.trimEnd().split('\n').filter(Boolean)) {
      const declared = /^# (?:HELP|TYPE) ([a-z_]+) ./.exec(line)?.[1]
      if (declared !== undefined) names.add(declared)
      else {
        expect(line).to.match(
          /^[a-z_]+(\{([a-z]+="(?:[^"\\\n]|\\["\\n])*",?)+\})? (?:[-+]?[0-9.]+(?:e[-+]?[0-9]+)?|\+Inf|NaN)$/,
        )
        const sample = line.slice(0, line.lastIndexOf(' '))
        expect(samples.has(sample), sample).to.equal(false)
        samples.add(sample)
        expect(names).to.include(sample.replace(/\{.*/, '').replace(/_(?:bucket|sum|count)$/, ''))
      }
    }
    const reasons = [...samples].filter((sample) => sample.includes('kind="refused"'))
    expect(reasons.length).to.be.lessThan(210)
    expect(text).to.contain('reason="invented_0"').and.to.contain('reason="other"')
    await shop.close()
  })
})

describe('the metrics of a gateway that has trouble', () => {
  const journal = {
    counts: async () => ({ reserved: 0, answered: 0, submitted: 1, settled: 2, released: 0, owed: 0, reversed: 0 }),
    debts: async () => [],
  }
  const edition = { status: () => [{ product: 'echo', status: 'ok' }], facts: async () => ({}) } as unknown as Edition
  const account: GasAccount = {
    network: NETWORKS.base,
    address: `0x${'1a'.repeat(20)}`,
    balance: 5n,
    settlementCost: { gas: 86_000n, gasPrice: 0n, l1Fee: 0n, wei: 0n },
    spent: 0n,
    spentOnFailures: 0n,
  }

  it('can be read on a chain without fees, where any balance pays for every settlement', async () => {
    const metrics = createMetrics({ journal, edition: () => edition })
    metrics.watchGas(() => [account])
    const text = await metrics.text()
    expect(text).to.contain('tollgate_gas_settlements_left{network="base"} +Inf\n')
    expect(sample(text, 'tollgate_gas_balance_wei{network="base"}')).to.equal(5)
  })

  for (const [name, read] of [
    ['does not answer', () => new Promise<never>(() => {})],
    ['answers with an error', () => Promise.reject(new Error('PostgreSQL does not answer'))],
  ] as const)
    it(`have the alarms while the journal ${name}, and leave out what only the journal knows`, async () => {
      let isDown = false
      const metrics = createMetrics({
        journal: {
          counts: () => (isDown ? read() : journal.counts()),
          debts: () => (isDown ? read() : journal.debts()),
        },
        edition: () => edition,
      })
      metrics.alarmed({ 'journal.unwritable': true })
      expect(sample(await metrics.text(), 'tollgate_payments{state="settled"}')).to.equal(2)
      isDown = true
      const text = await metrics.text()
      expect(sample(text, 'tollgate_alarm{alarm="journal.unwritable"}')).to.equal(1)
      expect(sample(text, 'tollgate_product_up{product="echo"}')).to.equal(1)
      expect(text).not.to.match(/^tollgate_(owed_)?payments\b/m)
      isDown = false
      expect(sample(await metrics.text(), 'tollgate_owed_payments')).to.equal(0)
    })
})

describe('the log', () => {
  it('has one line per sale, with call, operation, amount, payer and transaction', async () => {
    const lines: string[] = []
    const log = createLog('info', { write: (line: string) => void lines.push(line) })
    const shop = await openGateway({}, { log })
    const header = await payment(`${shop.url}/v1/echo/a`, shop.wallet)
    const paid = await send(`${shop.url}/v1/echo/a`, header)
    await send(`${shop.url}/v1/echo/a`, header)
    await ask(`${shop.url}/v1/echo/a`)
    await shop.close()
    const sales = lines
      .map((line) => JSON.parse(line) as Record<string, unknown>)
      .filter(({ msg }) => msg === 'payment settled')
    expect(sales.map(({ time: _time, level: _level, ...sale }) => sale)).to.deep.equal([
      {
        msg: 'payment settled',
        call: paid.headers.get('x-call-id'),
        operation: 'getEcho',
        amount: '5000',
        payer: shop.wallet.address.toLowerCase(),
        network: 'eip155:84532',
        transaction: shop.settler.transfers[0]?.transaction,
      },
    ])
  })

  it('names the call and the payment, and never contains a payment header, a token or a body', async () => {
    const lines: string[] = []
    const log = createLog('trace', { write: (line: string) => void lines.push(line) })
    const shop = await openGateway({ OPERATOR_TOKEN: TOKEN }, { log })
    const { url, wallet } = shop
    const secrets = [TOKEN]
    for (const version of [1, 2] as const) {
      const header = await payment(`${url}/v1/echo/quietly?times=3`, wallet, version)
      const { payload } = JSON.parse(Buffer.from(header, 'base64').toString()) as { payload: { signature: string } }
      secrets.push(header, payload.signature)
      const paid = await send(`${url}/v1/echo/quietly?times=3`, header, version)
      expect(paid.status).to.equal(200)
      const call = paid.headers.get('x-call-id') ?? '?'
      const linesOfCall = lines
        .filter((line) => line.includes(call))
        .map((line) => JSON.parse(line) as Record<string, unknown>)
      const key = shop.settler.transfers.at(-1)?.key
      expect(linesOfCall.map((line) => line['payment']).filter(Boolean)).to.deep.equal([key])
      await send(`${url}/v1/late`, header, version)
    }
    const failing = { method: 'POST', body: { text: 'words of a buyer', fault: 'throw' } }
    secrets.push('words of a buyer')
    await buy(`${url}/v1/echo`, wallet, 2, failing)
    await send(`${url}/v1/echo/quietly`, 'not a payment at all')
    secrets.push('not a payment at all')
    const { token } = await json(await buy(`${url}/v1/passes/late/1h`, wallet, 2, { method: 'POST' }))
    await ask(`${url}/v1/late`, { headers: { 'x-service-token': String(token) } })
    await ask(`${url}/v1/late`, { headers: { 'x-service-token': 'a-token-of-nobody' } })
    secrets.push(String(token), 'a-token-of-nobody')
    await ask(`${url}/operator`, { headers: bearer })
    await fetch(`${url}/operator/login`, { method: 'POST', body: new URLSearchParams({ token: 'a-guess-of-a-token' }) })
    secrets.push('a-guess-of-a-token')
    await shop.close()

    expect(lines.length).to.be.greaterThan(15)
    for (const line of lines) expect(() => JSON.parse(line) as unknown).not.to.throw()
    const leaked = secrets.filter((secret) => lines.some((line) => line.includes(secret)))
    expect(leaked).to.deep.equal([])
  })
})
