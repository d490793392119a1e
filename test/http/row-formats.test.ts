/** The rows of an answer in the format that a caller asks for, free, bought and by token. */
import { createHash } from 'node:crypto'
import { expect } from 'chai'
import { decodeJwt } from 'jose'
import { parquetReadObjects } from 'hyparquet'
import { type LiveGateway, openLiveGateway } from '../dynamic/live-gateway.ts'
import { ask, buy, json, payment, receipt, send } from '../support/agent.ts'

const PAGE = {
  type: 'object',
  properties: { start: { type: 'integer', default: 0 }, cursor: { type: 'string' } },
}
const LIST = {
  type: 'array',
  items: {
    type: 'object',
    properties: { at: { type: 'string', format: 'date-time' }, price: { type: 'number' }, note: { type: 'string' } },
  },
}
const TIDES = { type: 'object', required: ['tides'], properties: { tides: LIST } }

const catalog = {
  'tides.json': {
    product: 'tides',
    title: 'Tides',
    summary: 'Tides.',
    plugin: 'tides',
    operations: {
      getTides: { route: 'GET /v1/tides', summary: 'T.', price: '0.01', query: PAGE, rows: 'tides', response: TIDES },
      getToday: { route: 'GET /v1/tides/today', summary: 'T.', price: 'free', rows: '$', response: LIST },
      getAsText: {
        route: 'GET /v1/tides/text',
        summary: 'T.',
        price: 'free',
        query: { type: 'object', properties: { format: { enum: ['short', 'csv'] } } },
        rows: 'tides',
        response: TIDES,
      },
      getNone: { route: 'GET /v1/tides/none', summary: 'T.', price: '0.01', response: { type: 'object' } },
    },
  },
  'plans.json': {
    path: '/v1/passes',
    plans: [
      {
        plan: 'tides-1h',
        label: 'Tides',
        tier: 'live',
        max_freshness_seconds: 0,
        duration_seconds: 3600,
        route: 'POST /v1/passes/tides/1h',
        price: '1.50',
        authorizes: ['getTides'],
      },
    ],
  },
}

const PLUGIN = `import { definePlugin, Reply } from 'tollgate/plugin'
const rows = (start) => [0, 1].map((nth) => ({ at: new Date((start + nth) * 3_600_000).toISOString(), price: 1.5 + nth, note: nth ? 'high, "wild"' : 'low' }))
let runs = 0
export default definePlugin({
  name: 'tides',
  setup: () => ({
    handlers: {
      getTides: ({ input }) =>
        new Reply({ run: (runs += 1), data_mode: 'sample', tides: rows(input.query.start), next_cursor: 'c+' + input.query.start }, { headers: { etag: '"x"' } }),
      getToday: () => Reply.constant(rows(0)),
      getAsText: ({ input }) => ({ tides: [{ note: input.query.format ?? 'none' }] }),
      getNone: () => ({}),
    },
  }),
})
`

const CSV = 'at,price,note\r\n1970-01-01T00:00:00.000Z,1.5,low\r\n1970-01-01T01:00:00.000Z,2.5,"high, ""wild"""\r\n'
const CSV_TYPE = 'text/csv; charset=utf-8; header=present'

describe('the rows of an answer', () => {
  let shop: LiveGateway
  const at = (path: string): string => shop.url + path
  const charged = (): number => shop.settler.transfers.length

  before(async () => {
    shop = await openLiveGateway({ catalog, sources: { 'tides/index.ts': PLUGIN } })
  })
  after(() => shop.close())

  it('are bought as CSV, with the rest of the answer and the next page in headers, and a receipt of these bytes', async () => {
    const bought = await buy(at('/v1/tides?start=0&format=csv'), shop.wallet)
    const body = Buffer.from(await bought.arrayBuffer())
    expect([bought.status, body.toString()]).to.deep.equal([200, CSV])
    const named = ['content-type', 'content-disposition', 'link', 'etag'].map((name) => bought.headers.get(name))
    const next = `<${at('/v1/tides?start=0&format=csv&cursor=c%2B0')}>; rel="next"`
    expect(named).to.deep.equal([CSV_TYPE, 'attachment; filename="getTides.csv"', next, null])
    const fields = JSON.parse(Buffer.from(bought.headers.get('x-answer-fields') ?? '', 'base64').toString()) as object
    expect(fields).to.include({ data_mode: 'sample', next_cursor: 'c+0' }).and.not.to.have.property('tides')
    const { receipt: signed } = (
      receipt(bought) as { extensions: Record<string, { info: { receipt: { signature: string } } }> }
    ).extensions['offer-receipt']!.info
    expect(decodeJwt(signed.signature)['responseDigest']).to.equal(
      `sha256:${createHash('sha256').update(body).digest('hex')}`,
    )
  })

  it('are bound to their format: a payment buys one, whichever way it is asked for, and sends the same again', async () => {
    const before = charged()
    const header = await payment(at('/v1/tides?start=5'), shop.wallet)
    const accept = { headers: { accept: 'application/x-ndjson' } }
    const first = await send(at('/v1/tides?start=5'), header, 2, accept)
    const text = await first.text()
    expect(text.split('\n')).to.have.length(3)
    const again = await send(at('/v1/tides?start=5&format=ndjson'), header)
    expect([again.headers.get('idempotent-replay'), await again.text()]).to.deep.equal(['true', text])
    expect(again.headers.get('x-answer-fields')).to.equal(first.headers.get('x-answer-fields'))
    for (const [path, options] of [
      ['/v1/tides?start=5', {}],
      ['/v1/tides?start=5&format=json', {}],
      ['/v1/tides?start=5&format=csv', accept],
    ] as const) {
      const refused = await send(at(path), header, 2, options)
      expect([path, refused.status]).to.deep.equal([path, 409])
    }
    expect(charged() - before).to.equal(1)
  })

  it('are JSON for whoever accepts anything, and format=json is the same purchase', async () => {
    for (const accept of ['*/*', 'text/html,*/*;q=0.8', 'application/json, text/csv;q=0.5']) {
      const header = await payment(at('/v1/tides?start=7'), shop.wallet)
      const answer = await send(at('/v1/tides?start=7'), header, 2, { headers: { accept } })
      expect(answer.headers.get('content-type'), accept).to.equal('application/json; charset=utf-8')
      expect(answer.headers.get('vary'), accept).to.equal('Accept')
      const again = await send(at('/v1/tides?start=7&format=json'), header)
      expect(await again.text()).to.equal(await answer.text())
    }
  })

  it('are Parquet with types', async () => {
    const bought = await buy(at('/v1/tides?format=parquet'), shop.wallet)
    expect(bought.headers.get('content-type')).to.equal('application/vnd.apache.parquet')
    expect((await parquetReadObjects({ file: await bought.arrayBuffer() }))[1]).to.deep.equal({
      at: new Date(3_600_000),
      price: 2.5,
      note: 'high, "wild"',
    })
  })

  it('are refused in another format with a list of those there are, and nothing is charged', async () => {
    const before = charged()
    const header = await payment(at('/v1/tides'), shop.wallet)
    for (const [path, field] of [
      ['/v1/tides?format=xml', 'format'],
      ['/v1/tides?format=csv&format=csv', 'format'],
      ['/v1/tides?:format=csv', ':format'],
      ['/v1/tides/none?format=csv', 'format'],
      ['/v1/tides/none?:format=csv', ':format'],
    ] as const) {
      const refused = await send(at(path), header)
      const { detail } = (await json(refused)) as unknown as { detail: { loc: string[]; msg: string }[] }
      expect([path, refused.status, detail[0]?.loc]).to.deep.equal([path, 422, ['query', field]])
      if (path.endsWith('xml')) expect(detail[0]?.msg).to.equal('Write json, csv, ndjson or parquet.')
    }
    expect(charged()).to.equal(before)
    expect((await send(at('/v1/tides'), header)).status).to.equal(200)
  })

  it('of a constant answer that is a list itself are free in every format', async () => {
    const asked = (accept: string) => ask(at('/v1/tides/today'), { headers: { accept } })
    for (let time = 0; time < 2; time += 1) {
      const plain = await asked('*/*')
      expect([plain.headers.get('vary'), await json(plain)]).to.deep.equal([
        'Accept',
        [
          { at: '1970-01-01T00:00:00.000Z', price: 1.5, note: 'low' },
          { at: '1970-01-01T01:00:00.000Z', price: 2.5, note: 'high, "wild"' },
        ],
      ])
      const csv = await asked('text/csv')
      expect([csv.headers.get('content-type'), await csv.text()]).to.deep.equal([CSV_TYPE, CSV])
    }
  })

  it('leave a field `format` of the product alone, and follow Accept there', async () => {
    const product = await json(await ask(at('/v1/tides/text?format=csv')))
    expect(product).to.deep.equal({ tides: [{ note: 'csv' }] })
    const csv = await ask(at('/v1/tides/text?format=short'), { headers: { accept: 'text/csv' } })
    expect(await csv.text()).to.equal('at,price,note\r\n,,short\r\n')
  })

  it('are opened by the token of a plan', async () => {
    const { token } = await json(await buy(at('/v1/passes/tides/1h'), shop.wallet, 2, { method: 'POST' }))
    const headers = { 'x-service-token': token as string, accept: 'text/csv' }
    expect(await (await ask(at('/v1/tides?start=0'), { headers })).text()).to.equal(CSV)
  })

  it('are described in the documents', async () => {
    const { paths } = (await json(await ask(at('/openapi.json')))) as unknown as {
      paths: Record<string, { get: { parameters: { name: string }[]; responses: { '200': { content: object } } } }>
    }
    const of = (path: string) => paths[path]!.get
    expect(Object.keys(of('/v1/tides').responses['200'].content)).to.deep.equal([
      'application/json',
      'text/csv',
      'application/x-ndjson',
      'application/vnd.apache.parquet',
    ])
    expect(of('/v1/tides').parameters.map(({ name }) => name)).to.deep.equal(['start', 'cursor', 'format'])
    expect(of('/v1/tides/text').parameters).to.have.length(1)
    expect(Object.keys(of('/v1/tides/none').responses['200'].content)).to.deep.equal(['application/json'])
  })
})
