import { expect } from 'chai'
import { json, payment, send } from '../support/agent.ts'
import { type LiveGateway, openLiveGateway } from './live-gateway.ts'

const body = {
  type: 'object',
  required: ['rows'],
  additionalProperties: false,
  properties: { rows: { type: 'array', items: { type: 'integer' } }, unit: { enum: ['g', 'oz'], default: 'oz' } },
}
const operation = (route: string) => ({
  route,
  summary: 'Adds numbers.',
  price: '0.01',
  body,
  max_bytes: 2_000_000,
  response: { type: 'object', required: ['sum', 'unit'] },
})
const CATALOG = {
  'adder.json': {
    product: 'adder',
    title: 'Adder',
    summary: 'Adds.',
    plugin: 'adder',
    operations: { addHere: operation('POST /v1/add/here'), addInThread: operation('POST /v1/add/in-thread') },
  },
}
const WORK = `
export default ({ body: { rows, unit } }) => ({ sum: rows.reduce((sum, row) => sum + row, 0), unit })
`
const PLUGIN = `
import { definePlugin, hasUnreadBody } from 'tollgate/plugin'
import add from './add.mjs'
export default definePlugin({
  name: 'adder',
  setup: ({ work }) => ({
    handlers: {
      addHere: ({ input }) => ({ ...add(input), was_unread: hasUnreadBody(input) }),
      addInThread: async (call) => {
        const was_unread = hasUnreadBody(call.input)
        const sum = await work(new URL('./add.mjs', import.meta.url), call.input, { call })
        return { ...sum, was_unread, is_unread: hasUnreadBody(call.input) }
      },
    },
  }),
})
`

describe('a product that is sent a large body', () => {
  let live: LiveGateway
  before(async () => {
    live = await openLiveGateway()
    live.writePlugin('adder/index.ts', PLUGIN)
    live.writePlugin('adder/add.mjs', WORK)
    live.writeCatalog('adder.json', CATALOG['adder.json'])
    expect(await live.gateway.reload()).to.deep.equal([])
  })
  after(() => live.close())

  const large = { rows: Array.from({ length: 100_000 }, (_, at) => at) }
  const sum = 4_999_950_000
  const buyAt = async (path: string, sent: object): Promise<Response> => {
    const options = { method: 'POST', body: sent }
    return send(live.url + path, await payment(live.url + path, live.wallet, 2, options), 2, options)
  }

  it('gets it like a small one, whether it reads the body or passes the input to a thread', async () => {
    expect(await json(await buyAt('/v1/add/here', { rows: [1, 2] }))).to.deep.equal({
      sum: 3,
      unit: 'oz',
      was_unread: false,
    })
    expect(await json(await buyAt('/v1/add/here', large))).to.include({ sum, unit: 'oz' })
    const inThread = await json(await buyAt('/v1/add/in-thread', { ...large, unit: 'g' }))
    expect(inThread).to.deep.equal({ sum, unit: 'g', was_unread: true, is_unread: true })
  })

  it('sells the same request once, and refuses the payment for another one', async () => {
    const url = `${live.url}/v1/add/in-thread`
    const options = { method: 'POST', body: large }
    const header = await payment(url, live.wallet, 2, options)
    const [first, again] = [await send(url, header, 2, options), await send(url, header, 2, options)]
    expect([first.status, again.status, again.headers.get('idempotent-replay')]).to.deep.equal([200, 200, 'true'])
    expect(await again.text()).to.equal(await first.text())
    const other = await send(url, header, 2, { method: 'POST', body: { rows: [...large.rows, 1] } })
    expect(other.status).to.equal(409)
  })

  it('is not called, and nothing is charged, if the body does not fit its schema', async () => {
    const before = live.settler.transfers.length
    const answer = await buyAt('/v1/add/in-thread', { rows: [...large.rows, 'x'] })
    expect(answer.status).to.equal(422)
    expect(JSON.stringify(await json(answer))).to.include('"rows",100000')
    expect(live.settler.transfers.length).to.equal(before)
  })
})
