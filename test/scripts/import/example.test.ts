import { Ajv2020 } from 'ajv/dist/2020.js'
import formats from 'ajv-formats'
import { expect } from 'chai'
import fc from 'fast-check'
import type { JsonSchema } from '../../../gateway/plugin/catalog.ts'
import { exampleOf } from '../../../scripts/import/example.ts'

const ajv = new Ajv2020({ strict: false })
formats.default(ajv)

const isExample = (schema: JsonSchema): boolean => ajv.validate(schema, exampleOf(schema))

const bounds = (least: string, most: string) =>
  fc.tuple(fc.nat(20), fc.nat(20)).map(([low, more]) => ({ [least]: low, [most]: low + more }))
const scalar: fc.Arbitrary<JsonSchema> = fc.oneof(
  bounds('minLength', 'maxLength').map((sizes) => ({ type: 'string', ...sizes, maxLength: sizes['maxLength'] || 1 })),
  bounds('minimum', 'maximum').map((sizes) => ({ type: 'integer', ...sizes })),
  fc.constantFrom('date', 'date-time', 'uuid', 'email', 'uri', 'ipv4').map((format) => ({ type: 'string', format })),
  fc.constantFrom(
    { type: 'boolean' },
    { type: 'null' },
    { type: ['string', 'null'] },
    { enum: ['b', 'a'] },
    { const: 3 },
  ),
)
const { schema: schemas } = fc.letrec<{ schema: JsonSchema }>((tie) => ({
  schema: fc.oneof(
    { maxDepth: 3 },
    scalar,
    fc.record({ type: fc.constant('array'), items: tie('schema'), minItems: fc.nat(3) }),
    fc
      .dictionary(fc.string({ minLength: 1, maxLength: 5 }), tie('schema'), { maxKeys: 4 })
      .map((properties) => ({ type: 'object', properties, required: Object.keys(properties) })),
    fc.array(tie('schema'), { minLength: 1, maxLength: 3 }).map((anyOf) => ({ anyOf })),
  ),
}))

describe('an example', () => {
  it('fits the schema that it is made of', () => {
    fc.assert(fc.property(schemas, (schema) => isExample(schema)))
  })

  for (const pattern of [
    '^AC[0-9a-fA-F]{32}$',
    '^[A-Z]{3}$',
    '^\\d+x\\d+$',
    '^(SM|MM)[0-9a-f]{32}$',
    '^sha256:[a-f0-9]{64}$',
    '^\\w+/v\\d\\.\\d$',
  ])
    it(`fits the pattern ${pattern}`, () => {
      const made = exampleOf({ type: 'string', pattern })
      expect(made).to.match(new RegExp(pattern, 'u'))
    })

  it('ends where a schema contains itself', () => {
    const node = {
      type: 'object',
      required: ['name'],
      properties: { name: { type: 'string' }, next: { $ref: '#/$defs/Node' } },
    }
    expect(exampleOf({ $ref: '#/$defs/Node', $defs: { Node: node } })).to.deep.equal({ name: 'text' })
    const endless = { ...node, required: ['name', 'next'] }
    expect(exampleOf({ $ref: '#/$defs/Node', $defs: { Node: endless } })).to.equal(undefined)
  })
})
