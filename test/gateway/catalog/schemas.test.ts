import { expect } from 'chai'
import { dereference, fieldsOf, readSchemas, references } from '../../../gateway/catalog/schemas.ts'
import { parsePrice, parseRoute, toolName } from '../../../gateway/catalog/product-drafts.ts'
import type { JsonSchema } from '../../../gateway/plugin/plugin.ts'
import { openCatalog } from '../../support/catalog.ts'

const SCHEMAS = new Map<string, JsonSchema>([
  [
    'gold.json',
    {
      $id: 'gold.json',
      $defs: {
        Price: { type: 'number', description: 'Dollars.' },
        Day: { type: 'object', properties: { price: { $ref: '#/$defs/Price' }, of: { $ref: 'tin.json' } } },
        Tree: { type: 'object', properties: { left: { $ref: '#/$defs/Tree' } } },
        Lost: { $ref: 'zinc.json' },
      },
    },
  ],
  ['tin.json', { $id: 'tin.json', const: { $ref: 'a word' } }],
])

describe('references between schemas', () => {
  it('are followed across files, each relative to the file that contains it', () => {
    const { broken, files } = references({ items: { $ref: 'gold.json#/$defs/Day' } }, SCHEMAS)
    expect(broken).to.deep.equal([])
    expect(files).to.deep.equal(new Set(['gold.json', 'tin.json']))
  })

  it('are reported with the file that contains them if they lead nowhere', () => {
    const schema = { properties: { a: { $ref: 'gold.json#/$defs/Lost' }, b: { $ref: '#/$defs/None' } } }
    expect(references(schema, SCHEMAS).broken).to.deep.equal(['zinc.json in gold.json', '#/$defs/None'])
    expect(references({ $ref: '#/%' }, SCHEMAS).broken).to.deep.equal(['#/%'])
  })

  it('are replaced by their target, and keywords beside a reference take precedence', () => {
    const schema = {
      $defs: { Own: { type: 'null' } },
      items: { $ref: 'gold.json#/$defs/Day' },
      not: { $ref: '#/$defs/Own' },
    }
    expect(dereference(schema, SCHEMAS)).to.deep.equal({
      items: {
        type: 'object',
        properties: { price: { type: 'number', description: 'Dollars.' }, of: { const: { $ref: 'a word' } } },
      },
      not: { type: 'null' },
    })
    const named = { $ref: 'gold.json#/$defs/Price', description: 'Euros.' }
    expect(dereference(named, SCHEMAS)).to.deep.equal({ type: 'number', description: 'Euros.' })
  })

  it('are cut at the second level if a schema contains itself', () => {
    expect(dereference({ $ref: 'gold.json#/$defs/Tree' }, SCHEMAS)).to.deep.equal({
      type: 'object',
      properties: { left: {} },
    })
  })

  it('are followed to collect the fields of an object and of its allOf', () => {
    const schema = { allOf: [{ $ref: 'gold.json#/$defs/Day' }], properties: { note: { type: 'string' } } }
    expect(Object.keys(fieldsOf(schema, SCHEMAS))).to.deep.equal(['price', 'of', 'note'])
  })
})

describe('the schema folder', () => {
  it('names a schema by its file, and refuses an $id that differs', async () => {
    const catalog = openCatalog()
    catalog.writeSchema('gold.json', { $id: 'gold.json' })
    catalog.writeSchema('tin.json', { $id: 'zinc.json' })
    catalog.writeSchema('lead.json', '{')
    const { schemas, issues } = await readSchemas(catalog.schemaDir)
    catalog.close()
    expect([...schemas.keys()]).to.deep.equal(['gold.json', 'plans.json'])
    expect(issues.map(({ file, pointer, rule }) => [file, pointer, rule])).to.deep.equal([
      ['schemas/lead.json', '', 'syntax'],
      ['schemas/tin.json', '/$id', 'schema-id'],
    ])
  })
})

describe('a price', () => {
  it('is converted to atomic units with six decimals', () => {
    expect(parsePrice('0.005')).to.equal(5000n)
    expect(parsePrice('50.00')).to.equal(50_000_000n)
    expect(parsePrice('0.000001')).to.equal(1n)
  })

  it('is refused with a seventh decimal, a sign, an exponent or a leading zero, and if it is zero', () => {
    for (const text of ['0.0000001', '-1', '+1', '1e3', '01', '.5', '1.', '1,5', '', '0', '0.00', 'free', ' 1'])
      expect(parsePrice(text), text).to.equal(null)
  })
})

describe('a route', () => {
  it('is parsed into its parameters, a display form, and a shape without parameter names', () => {
    expect(parseRoute('GET /v1/x/gold/{day}')).to.deep.equal({
      method: 'GET',
      path: '/v1/x/gold/{day}',
      params: ['day'],
      shape: 'GET /v1/x/gold/{}',
      display: 'GET /v1/x/gold/*',
    })
    expect(parseRoute('GET /')?.path).to.equal('/')
    expect(parseRoute('GET /.well-known/x402')?.path).to.equal('/.well-known/x402')
  })

  it('is refused with another method, a query, an unclosed parameter or a step to the parent path', () => {
    for (const text of [
      'HEAD /',
      'get /',
      'GET',
      'GET v1',
      'GET /a/',
      'GET //a',
      'GET /a?b',
      'GET /{a',
      'GET /a{b}',
      'GET /a/..',
    ])
      expect(parseRoute(text), text).to.equal(null)
  })

  it('gives its tool the id of the operation in snake_case', () => {
    const ids = ['getPricing', 'checkBarQuality', 'getX402', 'getURLList', 'audit']
    expect(ids.map(toolName)).to.deep.equal(['get_pricing', 'check_bar_quality', 'get_x402', 'get_url_list', 'audit'])
  })
})
