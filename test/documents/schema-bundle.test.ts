import { expect } from 'chai'
import { createBundle } from '../../gateway/documents/schema-bundle.ts'
import { dollars } from '../../gateway/dollars.ts'
import type { JsonSchema } from '../../gateway/plugin/plugin.ts'

const FILES = new Map<string, JsonSchema>([
  [
    'gold.json',
    {
      $id: 'gold.json',
      $defs: {
        Bar: { properties: { of: { $ref: '#/$defs/Metal' }, at: { $ref: 'when.json' } } },
        Metal: { enum: ['gold'] },
      },
    },
  ],
  ['when.json', { $id: 'when.json', $schema: 'x', type: 'string', $defs: { Unused: {} } }],
  ['tree.json', { $defs: { Node: { properties: { next: { $ref: '#/$defs/Node' } } } } }],
])

describe('a bundle of schemas', () => {
  it('rewrites references across files and includes only the schemas that are referenced', () => {
    const bundle = createBundle(FILES, '#/s/')
    expect(bundle.add({ $ref: 'gold.json#/$defs/Bar' }, 'getBar')).to.deep.equal({ $ref: '#/s/gold.Bar' })
    expect(bundle.schemas).to.deep.equal({
      'gold.Bar': { properties: { of: { $ref: '#/s/gold.Metal' }, at: { $ref: '#/s/when' } } },
      'gold.Metal': { enum: ['gold'] },
      when: { type: 'string' },
    })
  })

  it('handles a schema that contains itself', () => {
    const bundle = createBundle(FILES, '#/s/')
    bundle.add({ items: { $ref: 'tree.json#/$defs/Node' } }, 'getTree')
    expect(bundle.schemas).to.deep.equal({ 'tree.Node': { properties: { next: { $ref: '#/s/tree.Node' } } } })
  })

  it('names the definitions of an inline schema after its operation', () => {
    const bundle = createBundle(FILES, '#/s/')
    const inline = { $ref: '#/$defs/Part', $defs: { Part: { type: 'object' } } }
    expect(bundle.add(inline, 'getPart')).to.deep.equal({ $ref: '#/s/getPart.Part' })
    expect(bundle.schemas).to.deep.equal({ 'getPart.Part': { type: 'object' } })
  })

  it('does not change data that looks like a reference', () => {
    const bundle = createBundle(FILES, '#/s/')
    const schema = { const: { $ref: 'gold.json' }, default: { $id: 'kept' } }
    expect(bundle.add(schema, 'getData')).to.deep.equal(schema)
  })

  it('follows a pointer below a definition', () => {
    const bundle = createBundle(FILES, '#/s/')
    const below = { $ref: 'gold.json#/$defs/Bar/properties/of' }
    expect(bundle.add(below, 'getOf')).to.deep.equal({ $ref: '#/s/gold.Bar/properties/of' })
  })

  it('lists the properties of a referenced schema and of its allOf parts', () => {
    const bundle = createBundle(
      new Map<string, JsonSchema>([
        ...FILES,
        [
          'all.json',
          { allOf: [{ $ref: 'gold.json#/$defs/Bar' }], required: ['n'], properties: { n: { type: 'integer' } } },
        ],
      ]),
      '#/s/',
    )
    const found = bundle.properties({ $ref: 'all.json' }, 'getAll')
    expect(found.map(({ name, required }) => [name, required])).to.deep.equal([
      ['of', false],
      ['at', false],
      ['n', true],
    ])
  })

  it('reports a reference to a schema that does not exist', () => {
    const bundle = createBundle(FILES, '#/s/')
    expect(() => bundle.add({ $ref: 'lead.json' }, 'getLead')).to.throw(
      'getLead references the schema lead.json, which does not exist.',
    )
    expect(() => bundle.add({ $ref: 'gold.json#/$defs/Coin' }, 'getCoin')).to.throw('gold.json#/$defs/Coin')
  })
})

describe('a price in dollars', () => {
  it('has two decimals, or more if needed', () => {
    const written = [5000n, 20_000n, 100_000n, 1_000_000n, 750_000_000n, 1n, 1_234_560n].map(dollars)
    expect(written).to.deep.equal(['0.005', '0.02', '0.10', '1.00', '750.00', '0.000001', '1.23456'])
  })
})
