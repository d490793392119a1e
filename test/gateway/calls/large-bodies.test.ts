import { expect } from 'chai'
import { fingerprint } from '../../../gateway/calls/fingerprint.ts'
import { createLargeBodyReader } from '../../../gateway/calls/large-bodies.ts'
import { createValidators } from '../../../gateway/catalog/operation-validators.ts'
import type { BoundOperation } from '../../../gateway/products/edition.ts'
import { createWorkerPool } from '../../../gateway/workers/pool.ts'
import { InvalidInput } from '../../../gateway/errors.ts'
import { hasUnreadBody, type Input, type JsonSchema, type Operation } from '../../../gateway/plugin/plugin.ts'

const SCHEMAS = new Map<string, JsonSchema>([
  ['rows.json', { $id: 'rows.json', $defs: { Row: { type: 'array', items: { $ref: 'cells.json#/$defs/Cell' } } } }],
  ['cells.json', { $id: 'cells.json', $defs: { Cell: { type: ['number', 'string'] } } }],
])
const operation = {
  id: 'sumRows',
  plan: null,
  queue: 'paid',
  params: null,
  query: null,
  response: null,
  internal: false,
  bodyMedia: ['application/json'],
  body: {
    type: 'object',
    required: ['rows'],
    additionalProperties: false,
    properties: {
      rows: { type: 'array', items: { $ref: 'rows.json#/$defs/Row' } },
      unit: { enum: ['ounce', 'gram'], default: 'ounce' },
      scale: { type: 'object', default: {}, properties: { by: { type: 'number', default: 2 } } },
    },
  },
} as unknown as Operation

describe('a large body', () => {
  const [readers, workers] = [createWorkerPool({ threads: 1 }), createWorkerPool({ threads: 1 })]
  const validators = createValidators(SCHEMAS)(operation)
  const bound = { operation, bodyRules: validators.bodyRules } as unknown as BoundOperation
  const readLarge = createLargeBodyReader(readers)
  after(async () => {
    await readers.close()
    await workers.close()
  })

  const rows = Array.from({ length: 2_000 }, (_, at) => [at, `${at / 7}`])
  const text = JSON.stringify({ rows, scale: { by: 3 } })
  const request = { params: { day: '1' }, query: { a: ['1', '2'] } }
  const read = (body: string, isPaid = true) => {
    const bytes = Buffer.from(new SharedArrayBuffer(Buffer.byteLength(body)))
    bytes.write(body)
    return readLarge(bound, { ...request, bytes, isPaid })
  }
  const inputOf = async (body: string): Promise<Input> =>
    validators.input({ params: {}, query: {}, body: await read(body) })
  const detailOf = async (work: () => unknown): Promise<unknown> => {
    try {
      await work()
      return 'accepted'
    } catch (error) {
      return (error as InvalidInput).detail
    }
  }

  it('has the fingerprint of the same body when it is small, and none if nothing is paid', async () => {
    const raw = { ...request, body: JSON.parse(text) as unknown }
    const large = { ...request, body: await read(text) }
    expect(await fingerprint(operation, large)).to.equal(await fingerprint(operation, raw))
    expect((await read(text, false)).fingerprint).to.equal(null)
  })

  it('is refused with the same issues as a small one', async () => {
    const bodies = [
      { rows: [[1], [true]], unit: 'stone' },
      { rows: 1, more: 2 },
      [],
      { rows: Array.from({ length: 6_000 }, () => [null]) },
    ]
    for (const body of bodies) {
      const expected = await detailOf(() => validators.input({ params: {}, query: {}, body }))
      expect(expected).to.be.an('array')
      expect(await detailOf(() => inputOf(JSON.stringify(body)))).to.deep.equal(expected)
    }
    for (const broken of ['{"rows": [', '{"rows": [1e999]}', `${'['.repeat(70)}${']'.repeat(70)}`, '\xff']) {
      const detail = await detailOf(() => read(broken))
      expect(detail, broken).to.be.an('array').with.length(1)
    }
  })

  it('is parsed when a handler reads it, with the defaults of its schema', async () => {
    const expected = validators.input({ params: {}, query: {}, body: JSON.parse(text) as unknown })
    const input = await inputOf(text)
    expect(hasUnreadBody(input)).to.equal(true)
    expect({ ...input }).to.deep.equal(expected)
    expect(hasUnreadBody(input)).to.equal(false)
    expect(input.body).to.equal(input.body)
    expect(Object.keys(await inputOf(text))).to.have.members(Object.keys(expected))
    expect(structuredClone(await inputOf(text))).to.deep.equal(expected)
    expect(Object.freeze(await inputOf(text)).body).to.deep.equal(expected.body)
    const replaced = Object.assign(await inputOf(text), { body: 1 })
    expect([replaced.body, hasUnreadBody(replaced)]).to.deep.equal([1, false])
  })

  it('reaches a function of context.work as if it had been parsed, as the input or within it', async () => {
    const echo = (input: unknown): Promise<unknown> =>
      workers.work(new URL('../../fixtures/pure-functions/echo.ts', import.meta.url), input)
    const expected = validators.input({ params: {}, query: {}, body: JSON.parse(text) as unknown })
    const [whole, within] = [await inputOf(text), await inputOf(text)]
    expect(await echo(whole)).to.deep.equal(expected)
    expect(await echo({ input: within, n: 1 })).to.deep.equal({ input: expected, n: 1 })
    expect([hasUnreadBody(whole), hasUnreadBody(within)], 'nobody parsed it here').to.deep.equal([true, true])
    expect(await echo({ ...whole })).to.deep.equal(expected)
  })
})
