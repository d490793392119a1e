import { expect } from 'chai'
import { payment, send } from '../support/agent.ts'
import { type LiveGateway, openLiveGateway } from '../dynamic/live-gateway.ts'
import { newWallet } from '../support/gateway.ts'
import { JSON_LIMITS } from '../../gateway/validation/json-meter.ts'

const ROWS = Array.from({ length: 30_000 }, (_, at) => at)
const sumPlugin = `import { definePlugin } from 'tollgate/plugin'
let runs = 0
export default definePlugin({
  name: 'sums',
  setup: () => ({
    handlers: {
      addUp: ({ input }) => ({ sum: input.body.rows.reduce((one, other) => one + other, 0), unit: input.body.unit, run: ++runs }),
      getUnit: ({ input }) => ({ unit: input.query.unit ?? 'ounce' }),
    },
  }),
})
`
const sums = {
  product: 'sums',
  title: 'Sums',
  summary: 'Adds up.',
  plugin: 'sums',
  operations: {
    addUp: {
      route: 'POST /v1/sums/{day}',
      summary: 'Adds up rows.',
      price: '0.01',
      tool: true,
      max_bytes: 5_000_000,
      params: { type: 'object', required: ['day'], properties: { day: { type: 'string' } } },
      query: { type: 'object', properties: { note: { type: 'string' } } },
      body: {
        type: 'object',
        required: ['rows'],
        additionalProperties: false,
        properties: {
          rows: { type: 'array', items: { type: 'integer' } },
          unit: { type: 'string', maxLength: 400_000, default: 'ounce' },
        },
      },
      response: { type: 'object' },
    },
    getUnit: {
      route: 'GET /v1/unit',
      summary: 'Returns the unit.',
      price: 'free',
      tool: true,
      query: { type: 'object', properties: { unit: { type: 'string' } } },
      response: { type: 'object' },
    },
  },
}

interface Result {
  readonly isError?: boolean
  readonly structuredContent?: Record<string, unknown> & { detail?: { loc: unknown; type: string }[] }
}

describe('a large message over MCP', () => {
  let shop: LiveGateway
  before(async () => {
    shop = await openLiveGateway({ catalog: { 'sums.json': sums } })
    shop.writePlugin('sums/index.ts', sumPlugin)
    await shop.gateway.reload()
    expect(shop.gateway.issues).to.deep.equal([])
  })
  after(() => shop.close())

  async function post(
    text: string,
  ): Promise<{ status: number; body: { result?: Result; error?: { code: number; message: string } } }> {
    const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
    const response = await fetch(`${shop.url}/mcp`, { method: 'POST', headers, body: text })
    return { status: response.status, body: (await response.json()) as never }
  }
  async function call(name: string, args: object): Promise<Result> {
    const params = { name, arguments: args }
    const { body } = await post(JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params }))
    expect(body.error).to.equal(undefined)
    return body.result as Result
  }

  it('is the same call as over HTTP, so that a payment has one answer on both', async () => {
    const url = `${shop.url}/v1/sums/monday?note=a`
    const account = newWallet()
    const header = await payment(url, account, 2, { method: 'POST' })
    const args = { rows: ROWS, day: 'monday', note: 'a', unit: 'x'.repeat(300_000) }
    const bought = await call('add_up', { ...args, payment_signature: header })
    expect(bought.isError).to.equal(undefined)
    expect(bought.structuredContent).to.deep.include({ sum: (30_000 * 29_999) / 2, unit: args.unit, run: 1 })
    const again = await send(url, header, 2, { method: 'POST', body: { unit: args.unit, rows: ROWS } })
    expect([again.status, again.headers.get('idempotent-replay')]).to.deep.equal([200, 'true'])
    expect(await again.json()).to.deep.equal(bought.structuredContent)
    const other = await call('add_up', { ...args, rows: [...ROWS, 1], payment_signature: header })
    expect(other.structuredContent).to.include({ code: 'payment_conflict' })
  })

  it('gets the requirements without a payment, whatever its arguments are', async () => {
    const { isError, structuredContent } = await call('add_up', { rows: ROWS.map(String), unknown: ROWS })
    expect(isError).to.equal(true)
    expect(structuredContent).to.include({ code: 'payment_required' })
    const junk = await call('add_up', { rows: ROWS.map(String), payment_signature: 'e30=' })
    expect(junk.structuredContent).to.include({ code: 'payment_invalid', error: 'invalid_x402_version' })
  })

  it('is refused with the issues of its arguments, and nothing is charged', async () => {
    const transfers = shop.settler.transfers.length
    const pay = async () => ({
      payment_signature: await payment(`${shop.url}/v1/sums/x`, newWallet(), 2, { method: 'POST' }),
    })
    const wrong = await call('add_up', { day: 'x', rows: [...ROWS, 'y'], ...(await pay()) })
    expect(wrong.structuredContent?.detail?.[0]).to.deep.include({ loc: ['arguments', 'rows', 30_000] })
    const extra = await call('add_up', { day: 'x', rows: [1], extra: ROWS, ...(await pay()) })
    expect(extra.structuredContent?.detail?.[0]).to.deep.include({
      loc: ['arguments', 'extra'],
      type: 'extra_forbidden',
    })
    const long = await call('add_up', { day: 'x'.repeat(300_000), rows: [1], ...(await pay()) })
    expect(long.structuredContent?.detail?.map(({ loc, type }) => [loc, type])).to.deep.equal([
      [['arguments', 'day'], 'missing'],
      [['arguments', 'day'], 'too_long'],
    ])
    expect(shop.settler.transfers.length).to.equal(transfers)
  })

  it('is refused if the tool takes little, before its arguments are looked at', async () => {
    for (const args of [{ unit: 'x'.repeat(300_000) }, { other: ROWS }]) {
      const { isError, structuredContent } = await call('get_unit', args)
      expect(isError).to.equal(true)
      expect(structuredContent?.detail?.[0]).to.deep.include({ loc: ['arguments'], type: 'too_long' })
    }
  })

  it('is refused if it is anything but one call of a tool', async () => {
    const filler = 'x'.repeat(300_000)
    const ping = { jsonrpc: '2.0', id: 1, method: 'ping', params: { filler } }
    const withMeta = { ...ping, method: 'tools/call', params: { name: 'get_unit', arguments: {}, _meta: { filler } } }
    for (const message of [
      ping,
      withMeta,
      [ping],
      { filler },
      { ...ping, method: 'tools/call', params: [filler] },
      filler,
    ]) {
      const { status, body } = await post(JSON.stringify(message))
      expect([status, body.error?.code]).to.deep.equal([400, -32_600])
    }
    expect((await post(`{"filler":"${filler}"`)).body.error?.code).to.equal(-32_700)
  })

  it('is refused as soon as it holds more than any message may', async () => {
    const batch = await post(`[${'[],'.repeat(1_000_000)}[]]`)
    expect(batch.body.error?.message).to.equal('Invalid Request: Batch must not exceed 100 messages')
    const keys = Array.from({ length: JSON_LIMITS.keys + 1 }, (_, at) => `"k${at}":1`).join(',')
    const many = await post(
      `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"get_unit","arguments":{${keys}}}}`,
    )
    expect([many.status, many.body.error?.code]).to.deep.equal([400, -32_700])
    expect(many.body.error?.message).to.include(`${JSON_LIMITS.keys} keys`)
  })
})
