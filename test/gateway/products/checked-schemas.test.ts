import { expect } from 'chai'
import { JsonFiles } from '../../../gateway/catalog/documents.ts'
import { documentKeyOf } from '../../../gateway/catalog/validate.ts'
import { readCheckedSchemas } from '../../../gateway/products/checked-schemas.ts'
import type { Edition } from '../../../gateway/products/edition.ts'
import { ServiceError } from '../../../gateway/errors.ts'
import { callOperation } from '../../../gateway/testing/testing.ts'
import goldPlugin from '../../fixtures/plugins/gold/index.ts'
import { gold, thing } from '../../support/catalog.ts'
import { useEditions } from './edition-fixture.ts'

const asOf = new Date(0)
const PRICES = {
  $id: 'prices.json',
  $defs: { bar: { type: 'object', required: ['close'], properties: { close: { type: 'number', minimum: 0 } } } },
}
/** A product with a query, a body that refers to a schema file, and an example. */
const GOLD = gold({
  route: 'POST /v1/gold/{city}',
  params: { type: 'object', properties: { city: { type: 'string', minLength: 3 } } },
  body: {
    type: 'object',
    additionalProperties: false,
    required: ['bars'],
    properties: { bars: { type: 'array', items: { $ref: 'prices.json#/$defs/bar' } } },
  },
  example: { request: { params: { city: 'zurich' }, query: { days: 3 }, body: { bars: [{ close: 1 }] } } },
})
const WRONG = thing('wrong-answer')
const DOCUMENTS = { 'gold.json': GOLD, 'wrong.json': WRONG }

describe('schemas that are listed as checked', () => {
  const { open, build, write, writeSchema } = useEditions()
  const openListed = async (): Promise<{ unlisted: Edition; listed: Edition; checkedSchemas: ReadonlySet<string> }> => {
    const { edition: unlisted, issues } = await open(DOCUMENTS, {}, { 'prices.json': PRICES })
    expect(issues).to.deep.equal([])
    const checkedSchemas = new Set(unlisted.schemaKeys)
    expect(checkedSchemas.size).to.equal(2)
    const { edition: listed } = await build(undefined, { checkedSchemas })
    return { unlisted, listed, checkedSchemas }
  }
  const callOf = (edition: Edition, id: string, request: object): Promise<unknown> =>
    callOperation(edition, id, { asOf, ...request }).catch((error: unknown) => {
      expect(error).to.be.instanceOf(ServiceError)
      const { code, status, message, detail } = error as ServiceError & { readonly detail?: unknown }
      return { code, status, message, detail }
    })

  it('give the same answers and errors as others', async () => {
    const { unlisted, listed } = await openListed()
    const [params, body] = [{ city: 'zurich' }, { bars: [{ close: 1 }] }]
    const requests: readonly (readonly [string, object])[] = [
      ['getGold', { params, body }],
      ['getGold', { params, body, query: { days: '12' } }],
      ['getGold', { params, body, query: { days: 99 } }],
      ['getGold', { params, body, query: { days: 'x', day: 1 } }],
      ['getGold', { params: { city: 'zu' }, query: { days: 0 }, body: { bars: [{ close: -1 }, {}], more: 1 } }],
      ['getGold', { params, body: { bars: 1 } }],
      ['getGold', {}],
      ['getThing', {}],
      ['getThing', { query: { days: 1 } }],
    ]
    const outcomes = await Promise.all(requests.map(([id, request]) => callOf(unlisted, id, request)))
    for (const [at, [id, request]] of requests.entries())
      expect(await callOf(listed, id, request), JSON.stringify(request)).to.deep.equal(outcomes[at])
    expect(outcomes[1]).to.include({ price: 1900, days: 12 })
    expect(outcomes.map((outcome) => (outcome as { status?: number }).status)).to.deep.equal([
      undefined,
      undefined,
      ...Array.from({ length: 5 }, () => 422),
      502,
      422,
    ])
  })

  it('are compiled again after a change, which is refused with its place', async () => {
    const { checkedSchemas } = await openListed()
    const issuesAfter = async (document: unknown): Promise<string[]> => {
      write('gold.json', document)
      const { issues } = await build(undefined, { checkedSchemas })
      return issues.map(({ file, pointer, rule }) => `${file}${pointer} ${rule}`)
    }
    expect(await issuesAfter(GOLD)).to.deep.equal([])
    const changed = (changes: object): unknown => ({
      ...GOLD,
      operations: { ...GOLD.operations, getGold: { ...GOLD.operations.getGold, ...changes } },
    })
    expect(
      await issuesAfter(changed({ query: { type: 'object', properties: { days: { tpye: 'integer' } } } })),
    ).to.include('gold.json/operations/getGold/query schema')
    expect(
      await issuesAfter(changed({ example: { request: { params: { city: 'zu' }, body: { bars: [] } } } })),
    ).to.include('gold.json/operations/getGold/example/request/params/city example')
    writeSchema('prices.json', { ...PRICES, $defs: { bar: { ...PRICES.$defs.bar, required: ['open', 'close'] } } })
    expect(await issuesAfter(GOLD)).to.deep.equal([
      'gold.json/operations/getGold/example/request/body/bars/0/open example',
    ])
  })

  it('stay those of a product whose price or text changes', async () => {
    const { unlisted, checkedSchemas } = await openListed()
    write('gold.json', {
      ...GOLD,
      title: 'Oro',
      operations: { ...GOLD.operations, getGold: { ...GOLD.operations.getGold, price: '0.009' } },
    })
    const { edition } = await build(undefined, { checkedSchemas })
    expect(edition.schemaKeys).to.deep.equal(unlisted.schemaKeys)
  })

  it('include that of the settings of a plugin', async () => {
    const { checkedSchemas } = await openListed()
    const document = { ...GOLD, settings: { unit: 'gram' } }
    write('gold.json', document)
    const { edition, issues } = await build(undefined, { checkedSchemas })
    expect(issues.map(({ file, pointer, rule }) => `${file}${pointer} ${rule}`)).to.deep.equal([])
    expect(await callOf(edition, 'getGold', { params: { city: 'zurich' }, body: { bars: [] } })).to.include({
      unit: 'gram',
    })
    write('gold.json', { ...document, settings: { unit: 'gram', units: 1 } })
    const { issues: found } = await build(undefined, { checkedSchemas })
    expect(found.map(({ file, pointer, rule }) => `${file}${pointer} ${rule}`)).to.deep.equal([
      'gold.json/settings/units additionalProperties',
    ])
  })

  it('do not include that of settings which an edit of the plugin has broken', async () => {
    const { listed, checkedSchemas } = await openListed()
    const broken = { ...goldPlugin, settings: { type: 'object', propertys: {} } }
    const { issues } = await build(listed, { checkedSchemas, ahead: new Map([['gold', Promise.resolve(broken)]]) })
    expect(issues.map(({ file, pointer, rule }) => `${file}${pointer} ${rule}`)).to.deep.equal([
      'gold.json/plugin settings',
    ])
  })

  it('do not exist in a gateway that runs from its sources', () => {
    expect(readCheckedSchemas().size).to.equal(0)
  })
})

describe('documents that are listed as checked', () => {
  const { open, build, write } = useEditions()

  it('are not checked again, and others are', async () => {
    const { edition } = await open({ 'gold.json': gold() })
    expect(edition.documentKeys).to.have.length(2)
    const faulty = { ...gold(), colour: 'yellow' }
    const issuesOf = async (checkedSchemas: ReadonlySet<string>): Promise<string[]> => {
      // Another value of the same text, because what is known of a value is not asked for again.
      write('gold.json', { ...faulty })
      const { issues } = await build(undefined, { checkedSchemas, files: new JsonFiles() })
      return issues.map(({ file, pointer }) => file + pointer)
    }
    expect(await issuesOf(new Set(edition.documentKeys))).to.deep.equal(['gold.json/colour'])
    const listed = documentKeyOf({ file: 'other.json', kind: 'product', content: faulty })
    expect(await issuesOf(new Set([listed]))).to.deep.equal([])
  })

  it('do not include those with an issue', async () => {
    const { edition } = await open({ 'gold.json': gold(), 'tin.json': { product: 'tin' } })
    expect(edition.documentKeys).to.have.length(2)
  })
})
