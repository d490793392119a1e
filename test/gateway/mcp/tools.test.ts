import { Ajv2020 } from 'ajv/dist/2020.js'
import { expect } from 'chai'
import type { Product } from '../../../gateway/plugin/catalog.ts'
import type { JsonSchema } from '../../../gateway/plugin/plugin.ts'
import { createTools, type Tool } from '../../../gateway/mcp/tools.ts'
import { RECIPIENT, editionOf, PRICED, route, type Route } from '../../http/transport-gateway.ts'

const SCHEMAS = new Map<string, JsonSchema>([
  [
    'common.json',
    {
      $defs: {
        Side: { type: 'string', enum: ['buy', 'sell'] },
        Ticket: {
          type: 'object',
          properties: { side: { $ref: '#/$defs/Side' }, notional_usd: { type: 'number' } },
          required: ['side'],
        },
      },
    },
  ],
])

function toolOf(served: Route): Tool {
  const tools = createTools(editionOf([served], SCHEMAS).catalog, RECIPIENT)
  return tools.get(served.operation.tool as string) as Tool
}

const HISTORY = route('getHistory', 'GET /v1/history/{venue}', {
  ...PRICED,
  tool: 'get_history',
  summary: 'Past snapshots: one a minute.',
  description: 'Newest first.',
  params: { type: 'object', properties: { venue: { type: 'string' } }, required: ['venue'] },
  query: { type: 'object', properties: { limit: { type: 'integer', default: 10 }, tag: { type: 'array' } } },
})
const TICKET = route('estimate', 'POST /v1/estimate', {
  ...PRICED,
  tool: 'estimate',
  query: { type: 'object', properties: { detail: { type: 'boolean' } } },
  body: { $ref: 'common.json#/$defs/Ticket' },
})

const item = (loc: (string | number)[]) => ({ loc, msg: 'm', type: 't' })

describe('a tool', () => {
  it('flattens path, query and body into one object without references', () => {
    const { inputSchema } = toolOf(TICKET).definition
    expect(inputSchema).to.deep.include({ type: 'object', required: ['side'], additionalProperties: false })
    expect(inputSchema.properties).to.have.all.keys('detail', 'side', 'notional_usd', 'payment_signature')
    expect(inputSchema.properties?.['side']).to.deep.equal({ type: 'string', enum: ['buy', 'sell'] })
    expect(toolOf(HISTORY).definition.inputSchema.required).to.deep.equal(['venue'])
  })

  it('states its price in the description and in _meta, and what it does in annotations', () => {
    const { definition } = toolOf(HISTORY)
    expect(definition.description).to.match(
      /^Past snapshots: one a minute\.\n\nNewest first\.\n\nCosts \$0\.005 USDC on base-sepolia via x402/,
    )
    expect(definition._meta?.['x402/price']).to.deep.equal({
      free: false,
      amount: '5000',
      price_usd: '0.005',
      currency: 'USDC',
      network: 'base-sepolia',
      caip2: 'eip155:84532',
    })
    expect(definition.annotations).to.include({ title: 'Get history', readOnlyHint: true, destructiveHint: false })
    expect(toolOf(TICKET).definition.annotations).to.include({ readOnlyHint: false, idempotentHint: false })
    const { operation } = TICKET
    expect(toolOf({ ...TICKET, operation: { ...operation, readOnly: true } }).definition.annotations).to.include({
      readOnlyHint: true,
      idempotentHint: true,
    })
  })

  it('has the schema of its answer or a refusal, without words, if it answers with an object', () => {
    const response = {
      type: 'object',
      properties: { n: { type: 'integer', description: 'A count.' } },
      required: ['n'],
    }
    const served = route('count', 'GET /v1/count', { tool: 'count', response })
    const { outputSchema } = toolOf(served).definition
    const valid = (value: unknown): boolean => new Ajv2020().validate(outputSchema ?? false, value)
    expect([{ n: 1 }, { code: 'c', message: 'm', retry: 'no' }].every(valid)).to.equal(true)
    expect([{ n: 'one' }, { code: 'c' }, 1].some(valid)).to.equal(false)
    expect(JSON.stringify(outputSchema)).to.not.contain('A count.')
    expect(toolOf(HISTORY).definition).to.not.have.property('outputSchema')
    // Nobody checks what an upstream answers, and a client throws away what does not fit.
    const { catalog } = editionOf([served], SCHEMAS)
    const upstream = { url: 'http://127.0.0.1:9', headers: {}, timeoutSeconds: 1, maxBytes: 1, stream: false }
    const products = [{ id: served.operation.product, upstream } as Product]
    const passedOn = createTools({ ...catalog, products }, RECIPIENT).get('count')
    expect(passedOn?.definition).to.not.have.property('outputSchema')
  })

  it('has no payment argument if it is free', () => {
    const { definition } = toolOf(route('getSample', 'GET /v1/sample', { tool: 'get_sample' }))
    expect(definition.inputSchema.properties).to.deep.equal({})
    expect(definition.description).to.match(/Free\.$/)
    expect(definition._meta?.['x402/price']).to.include({ free: true, amount: '0' })
  })

  it('splits arguments into text for path and query and an unchanged body', () => {
    const history = toolOf(HISTORY)
    const input = history.split({ venue: 'a/b', limit: 5, tag: ['x', 1], payment_signature: 'p' })
    expect(input).to.deep.equal({ params: { venue: 'a/b' }, query: { limit: '5', tag: ['x', '1'] }, body: undefined })
    expect(history.targetOf(input)).to.deep.equal({ path: '/v1/history/a%2Fb', search: '?limit=5&tag=x&tag=1' })
    const ticket = toolOf(TICKET).split({ detail: true, side: 'buy', notional_usd: 5 })
    expect(ticket).to.deep.equal({ params: {}, query: { detail: 'true' }, body: { side: 'buy', notional_usd: 5 } })
  })

  it('passes undeclared arguments to the validator and omits null ones', () => {
    expect(toolOf(HISTORY).split({ colour: 'red', limit: null }).query).to.deep.equal({ colour: 'red' })
    expect(toolOf(TICKET).split({ colour: 'red' }).body).to.deep.equal({ colour: 'red' })
    const hostile = toolOf(TICKET).split(JSON.parse('{"__proto__": {"side": "buy"}}') as Record<string, unknown>)
    expect(Object.keys(hostile.body as object)).to.deep.equal(['__proto__'])
    expect((hostile.body as { side?: string }).side).to.equal(undefined)
  })

  it('keeps a parameter in braces if its argument is missing', () => {
    const history = toolOf(HISTORY)
    expect(history.targetOf(history.split({})).path).to.equal('/v1/history/{venue}')
  })

  it('has an address for every argument, half a character included', () => {
    const history = toolOf(HISTORY)
    expect(history.targetOf(history.split({ venue: 'a\uD800' })).path).to.equal('/v1/history/a%EF%BF%BD')
  })

  it('accepts a file as text', () => {
    const file = { type: 'string', format: 'binary', description: 'The ledger.' }
    const upload = toolOf(
      route('upload', 'POST /v1/upload', {
        tool: 'upload',
        body: { type: 'object', properties: { file }, required: ['file'] },
      }),
    )
    expect(upload.definition.inputSchema.properties?.['file']).to.deep.equal({
      type: 'string',
      description: 'The ledger. The content of the file as text.',
    })
    expect(upload.split({ file: 'a,b' }).body).to.deep.equal({ file: 'a,b' })
  })

  it('names the invalid argument of an issue', () => {
    const bars = toolOf(route('check', 'POST /v1/bars', { tool: 'check', body: { type: 'array' } }))
    expect(bars.locate(item(['body', 3, 'open'])).loc).to.deep.equal(['arguments', 'body', 3, 'open'])
    expect(toolOf(TICKET).locate(item(['body', 'side'])).loc).to.deep.equal(['arguments', 'side'])
    expect(toolOf(HISTORY).locate(item(['path', 'venue'])).loc).to.deep.equal(['arguments', 'venue'])
    expect(toolOf(HISTORY).locate(item(['header', 'x'])).loc).to.deep.equal(['header', 'x'])
  })

  it('does not exist for internal operations', () => {
    const hidden = route('getBars', 'GET /bars', { tool: 'get_bars', internal: true })
    expect(createTools(editionOf([hidden]).catalog, RECIPIENT).size).to.equal(0)
  })
})
