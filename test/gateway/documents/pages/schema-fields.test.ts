import { expect } from 'chai'
import { fieldOf, fieldsOf } from '../../../../gateway/documents/pages/schema-fields.ts'

const SCHEMAS = {
  'gold.Metal': { enum: ['gold', 'silver'], description: 'Which one.' },
  'gold.Tree': { type: 'object', properties: { inner: { $ref: '#/components/schemas/gold.Tree' } } },
}

describe('the fields of a schema', () => {
  it('have a type, limits, a default and a description', () => {
    const schema = {
      type: 'object',
      required: ['limit'],
      properties: {
        limit: { type: 'integer', minimum: 1, maximum: 100, default: 10, description: 'How many.' },
        day: { type: 'string', format: 'date', maxLength: 10 },
        size: { type: ['number', 'null'], exclusiveMinimum: 0 },
      },
    }
    expect(fieldsOf(schema, {})).to.deep.equal([
      { name: 'limit', required: true, type: 'integer', limits: '1 to 100', description: 'How many.', default: '10' },
      {
        name: 'day',
        required: false,
        type: 'string, date',
        limits: 'at most 10 characters',
        description: '',
        default: '',
      },
      { name: 'size', required: false, type: 'number | null', limits: 'above 0', description: '', default: '' },
    ])
  })

  it('have limits with thousands separators and all their decimals', () => {
    const limits = (schema: object): string => fieldOf('size', { type: 'number', ...schema }, true, {}).limits
    expect(limits({ minimum: 0.0000001, maximum: 10_000_000_000 })).to.equal('0.0000001 to 10,000,000,000')
    expect(limits({ exclusiveMinimum: -10_000, maxLength: 4096 })).to.equal('above -10,000, at most 4,096 characters')
  })

  it('follow references and keep the keywords next to them', () => {
    const metal = { $ref: '#/components/schemas/gold.Metal' }
    expect(fieldOf('metal', metal, true, SCHEMAS)).to.include({ type: 'gold | silver', description: 'Which one.' })
    expect(fieldOf('metal', { ...metal, description: 'Ours.' }, true, SCHEMAS)).to.include({ description: 'Ours.' })
  })

  it('include nested fields by path, and the fields of list items', () => {
    const bar = { type: 'object', properties: { t: { type: 'integer' } } }
    const schema = { type: 'object', properties: { bars: { type: 'array', items: bar }, last: bar } }
    expect(fieldsOf(schema, {}).map(({ name, type }) => `${name} ${type}`)).to.deep.equal([
      'bars array of object',
      'bars[].t integer',
      'last object',
      'last.t integer',
    ])
    expect(fieldsOf({ type: 'array', items: bar }, {}).map(({ name }) => name)).to.deep.equal(['[].t'])
  })

  it('stop at a limited depth if a schema contains itself', () => {
    expect(fieldsOf({ $ref: '#/components/schemas/gold.Tree' }, SCHEMAS).map(({ name }) => name)).to.deep.equal([
      'inner',
      'inner.inner',
      'inner.inner.inner',
      'inner.inner.inner.inner',
    ])
  })

  it('list the choices of a field', () => {
    const schema = { anyOf: [{ type: 'string' }, { type: 'integer' }, { const: 'all' }] }
    expect(fieldOf('of', schema, false, {}).type).to.equal('string | integer | "all"')
  })
})
