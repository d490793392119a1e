/** Heavy free work beside paid work: large uploads at once. */
import { availableParallelism } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'chai'
import { ask, payment, send } from '../support/agent.ts'
import { newWallet, until } from '../support/gateway.ts'
import { type LiveGateway, openLiveGateway } from './live-gateway.ts'

/** The most that an upload may have. */
const MAX_ROWS = 200_000
/** Enough to fill the queue, and few enough that each is done in its time on a machine that is busy otherwise. */
const ROWS = 60_000

/** Round trips of one symbol. */
function ledgerOf(rows: number): string {
  const start = Date.UTC(2021, 0, 4)
  const price = (at: number): string => (100 + 10 * Math.sin(at / 1000) + Math.cos(at * 7)).toFixed(2)
  const lines = Array.from({ length: rows }, (_, at) => {
    const time = (minutes: number): string => new Date(start + (at * 10 + minutes) * 60_000).toISOString()
    return `XYZ,${at % 3 === 0 ? 'short' : 'long'},10,${time(0)},${price(at)},${time(9)},${price(at + 1)}`
  })
  return ['symbol,side,qty,entry_time,entry_price,exit_time,exit_price', ...lines, ''].join('\n')
}

describe('heavy work', function () {
  this.timeout(300_000)
  let live: LiveGateway
  const large = Buffer.from(ledgerOf(ROWS))
  const small = Buffer.from(ledgerOf(200))

  before(async () => {
    live = await openLiveGateway({ own: true })
    // The history of the sample is classified after the first start.
    await until(async () => (await live.get('/v1/regime/sample')).status === 200)
  })
  after(() => live.close())

  interface Outcome {
    readonly status: number
    /** When its answer was complete, as performance.now() tells it. */
    readonly at: number
    readonly headers: Headers
    readonly body: Record<string, unknown>
  }

  async function post(
    path: string,
    body: string | Buffer | FormData,
    headers: Record<string, string> = {},
  ): Promise<Outcome> {
    const response = await fetch(live.url + path, { method: 'POST', body, headers })
    const answer = (await response.json()) as Record<string, unknown>
    return {
      status: response.status,
      at: performance.now(),
      headers: response.headers,
      body: answer,
    }
  }

  /** Whether the queue had no room for the call. */
  const isShed = ({ status, body }: Outcome): boolean =>
    status === 503 && String(body['message']).startsWith('Too much free work is waiting')

  /**
   * Sends a call again that was not done in time, as its answer says: a machine that is busy otherwise may need longer for
   * the calls before it, or for itself. A call that was shed stays so.
   */
  async function inTime(call: () => Promise<Outcome>, tries = 8): Promise<Outcome> {
    const outcome = await call()
    if (![503, 504].includes(outcome.status) || isShed(outcome) || tries === 0) return outcome
    expect(outcome.body).to.include({ retry: 'after_delay' })
    await sleep(Number(outcome.headers.get('retry-after') ?? 1) * 1000)
    return inTime(call, tries - 1)
  }

  /** Free forms at once. Every other one is JSON, which is parsed in a thread before it is audited. */
  function freeForms(csv: Buffer, count: number): Promise<Outcome>[] {
    const accept = 'application/json'
    const json = JSON.stringify({ file: csv.toString() })
    return Array.from({ length: count }, (_, nth) =>
      inTime(() => {
        if (nth % 2 === 1) return post('/audit', json, { accept, 'content-type': 'application/json' })
        const form = new FormData()
        form.set('file', new Blob([csv]), 'ledger.csv')
        return post('/audit', form, { accept })
      }),
    )
  }

  const paymentOf = () => payment(`${live.url}/v1/audit`, newWallet(), 2, { method: 'POST' })
  const paidAudit = (header: string, csv: Buffer): Promise<Outcome> =>
    post('/v1/audit', csv, { 'content-type': 'text/csv', 'payment-signature': header })

  /** Free calls are answered, or refused in a way that tells the caller when to come back. */
  function expectServedOrShed(outcomes: readonly Outcome[]): void {
    const shed = outcomes.filter(({ status }) => status !== 200)
    for (const outcome of shed) {
      expect(isShed(outcome), JSON.stringify(outcome.body)).to.equal(true)
      expect(Number(outcome.headers.get('retry-after'))).to.be.within(1, 60)
      expect(outcome.body).to.include({ code: 'product_suspended', retry: 'after_delay' })
    }
    expect(shed.length).to.be.within(1, outcomes.length - 1)
  }

  async function expectNoPause(): Promise<void> {
    const { products } = (await live.json('/health')) as { products: { product: string; status: string }[] }
    expect(products.filter(({ status }) => status !== 'ok')).to.deep.equal([])
  }

  it('that is free is shed beyond its capacity, and does not delay a small paid call', async () => {
    const header = await paymentOf()
    const [paid, ...free] = await Promise.all([paidAudit(header, small), ...freeForms(large, 14)])
    expect(paid.status, JSON.stringify(paid.body)).to.equal(200)
    const later = free.filter(({ status, at }) => status === 200 && at > paid.at)
    expect(later, 'free audits that were answered after the paid one').to.not.be.empty
    expectServedOrShed(free)
    await expectNoPause()
  })

  it('that is paid is delivered beside as much that is free', async () => {
    const headers = await Promise.all(Array.from({ length: 6 }, paymentOf))
    const [paid, free] = await Promise.all([
      Promise.all(headers.map((header) => inTime(() => paidAudit(header, large)))),
      Promise.all(freeForms(large, 14)),
    ])
    expect(paid.map(({ status, body }) => (status === 200 ? 200 : body))).to.deep.equal(paid.map(() => 200))
    expectServedOrShed(free)
    await expectNoPause()
  })

  it('that is paid is delivered at the largest size that anybody may send', async () => {
    const header = await paymentOf()
    const paid = await inTime(() => paidAudit(header, Buffer.from(ledgerOf(MAX_ROWS))))
    expect(paid.status, JSON.stringify(paid.body).slice(0, 500)).to.equal(200)
  })
})

/** Two operations that occupy a worker thread for as many milliseconds as the body says. */
const BUSY = `import { definePlugin } from 'tollgate/plugin'
export default definePlugin({
  name: 'busy',
  setup: ({ work }) => {
    const compute = async (call) => ({ ended: await work(new URL('./compute.ts', import.meta.url), call.input.body.ms, { call }) })
    return { handlers: { computeFree: compute, computePaid: compute } }
  },
})
`
/** Occupies its thread without a core, which another process may need. No two results are alike. */
const COMPUTE = `export default function compute(ms) {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
  return performance.timeOrigin + performance.now()
}
`

function busyProduct(fields: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const body = { type: 'object', required: ['ms'], properties: { ms: { type: 'integer' } } }
  const shared = { summary: 'Computes.', body, response: { type: 'object' }, timeout_seconds: 3, ...fields }
  return {
    product: 'busy',
    title: 'Busy',
    summary: 'Computes.',
    plugin: 'busy',
    operations: {
      computeFree: { route: 'POST /v1/busy/free', price: 'free', ...shared },
      computePaid: { route: 'POST /v1/busy/paid', price: '0.01', ...shared },
    },
  }
}

describe('a computation', function () {
  this.timeout(60_000)
  /** As many as the gateway has. */
  const threads = Math.max(2, availableParallelism() - 1)
  let live: LiveGateway
  afterEach(() => live.close())

  async function open(fields: Readonly<Record<string, unknown>> = {}): Promise<void> {
    live = await openLiveGateway()
    live.writePlugin('busy/compute.ts', COMPUTE)
    live.writePlugin('busy/index.ts', BUSY)
    live.writeCatalog('busy.json', busyProduct(fields))
    expect(await live.gateway.reload()).to.deep.equal([])
    // The first call starts a thread.
    await until(async () => (await free(1)).status === 200)
  }

  const free = (ms: number) => ask(`${live.url}/v1/busy/free`, { method: 'POST', body: { ms } })
  const paymentOf = () => payment(`${live.url}/v1/busy/paid`, newWallet(), 2, { method: 'POST' })
  const paid = (header: string, ms: number) =>
    send(`${live.url}/v1/busy/paid`, header, 2, { method: 'POST', body: { ms } })

  function expectNoPause(): void {
    const busy = live.gateway.current.status().filter(({ product }) => product === 'busy')
    expect(busy).to.deep.equal([{ product: 'busy', status: 'ok' }])
  }

  it('that waits for a thread longer than it may run is answered, and counts as no failure of the product', async () => {
    await open()
    const answers = await Promise.all(Array.from({ length: 6 * (threads - 1) }, () => free(800)))
    expect(answers.map(({ status }) => status)).to.deep.equal(answers.map(() => 200))
    expectNoPause()
  })

  it('that runs longer than it may still pauses its product', async () => {
    await open({ timeout_seconds: 1 })
    // As many at once as may run, because each takes its whole time.
    const failures = Array.from({ length: 5 }, () => free(60_000))
    for (const failure of failures) expect((await failure).status).to.equal(504)
    const paused = await free(1)
    expect(paused.status).to.equal(503)
    expect(await paused.text()).to.contain('failed 5 times in a row')
  })

  it('that is paid for is not charged if its queue is full, and the same payment buys it later', async () => {
    // A call costs 30 seconds of a thread, so the queue is full when half of the threads have one.
    await open({ cost_per_megabyte: 600 })
    const headers = await Promise.all(Array.from({ length: threads + 1 }, paymentOf))
    const answers = await Promise.all(headers.map((header) => paid(header, 800)))
    const shed = headers.filter((_, at) => answers[at]?.status !== 200)
    expect(shed.length).to.be.within(1, threads)
    for (const answer of answers.filter(({ status }) => status !== 200)) {
      expect([answer.status, Number(answer.headers.get('retry-after')) > 0]).to.deep.equal([503, true])
      expect(await answer.text()).to.contain('nothing was charged')
    }
    expect(live.settler.transfers).to.have.length(headers.length - shed.length)
    for (const header of shed) expect((await paid(header, 1)).status).to.equal(200)
    expectNoPause()
  })

  it('that is asked for in chunks takes as much of its queue as has arrived, whether it is free or paid for', async () => {
    // 2.5 seconds of a thread for a small body, and more than there are for the largest.
    await open({ cost_per_megabyte: 50, max_bytes: 10_000_000 })
    const [first, second] = [await paymentOf(), await paymentOf()]
    const chunked = async (path: string, headers: Record<string, string>): Promise<number> => {
      const body = new Blob([JSON.stringify({ ms: 1 })]).stream()
      const type = { 'content-type': 'application/json' }
      const sent = { method: 'POST', headers: { ...type, ...headers }, body, duplex: 'half' } as RequestInit
      const answer = await fetch(live.url + path, sent)
      await answer.arrayBuffer()
      return answer.status
    }
    const running = [free(1500), paid(first, 1500)]
    expect(await chunked('/v1/busy/free', {})).to.equal(200)
    expect(await chunked('/v1/busy/paid', { 'payment-signature': second })).to.equal(200)
    expect((await Promise.all(running)).map(({ status }) => status)).to.deep.equal([200, 200])
  })

  it('that was bought is returned again while its queue is full', async () => {
    await open({ cost_per_megabyte: 600 })
    const header = await paymentOf()
    const bought = await (await paid(header, 1)).text()
    const others = await Promise.all(Array.from({ length: threads }, paymentOf))
    const running = others.map((other) => paid(other, 900))
    await until(async () => (await paid(await paymentOf(), 1)).status === 503)
    const again = await paid(header, 1)
    expect([again.status, await again.text()]).to.deep.equal([200, bought])
    expect((await Promise.all(running)).map(({ status }) => status)).to.include(200)
  })
})
