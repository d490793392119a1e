import { expect } from 'chai'
import { formOf } from '../../../../gateway/documents/pages/operation-form.ts'
import type { OpenApiOperation, Schema } from '../../../../gateway/documents/pages/openapi-types.ts'

const operation = (changes: Partial<OpenApiOperation>): OpenApiOperation => ({
  operationId: 'getBar',
  summary: 'A bar.',
  description: '',
  tags: [],
  responses: {},
  ...changes,
})

const json = (schema: Schema, example?: unknown): Partial<OpenApiOperation> => ({
  requestBody: {
    required: true,
    content: { 'application/json': { schema, ...(example === undefined ? {} : { example }) } },
  },
})

describe('the form of an operation', () => {
  it('has a control for each parameter, but not for one that is being replaced', () => {
    const { controls, more } = formOf(
      operation({
        parameters: [
          { name: 'day', in: 'path', required: true, schema: { type: 'string' }, example: '2026-03-01' },
          {
            name: 'limit',
            in: 'query',
            required: false,
            schema: { type: 'integer', minimum: 1, maximum: 9, default: 5 },
          },
          { name: 'from', in: 'query', required: false, schema: { type: 'string' }, deprecated: true },
        ],
      }),
      {},
    )
    expect(controls).to.have.length(1)
    expect(controls[0]).to.include({ id: 'getBar-path-day', part: 'path', filled: '2026-03-01', required: true })
    expect(more).to.have.length(1)
    expect(more[0]).to.include({
      part: 'query',
      value: 'number',
      min: 1,
      max: 9,
      step: '1',
      filled: '',
      placeholder: '5',
    })
  })

  const kinds: readonly (readonly [string, Schema, object])[] = [
    ['text', { type: 'string', maxLength: 8 }, { value: 'text', options: null, maxLength: 8 }],
    ['text or a number', { type: ['string', 'number'], minimum: 1 }, { value: 'text', min: null }],
    ['a number above a limit', { type: 'number', exclusiveMinimum: 0 }, { value: 'number', min: 0, step: 'any' }],
    ['a number or nothing', { type: ['number', 'null'] }, { value: 'number' }],
    ['yes or no', { type: 'boolean' }, { value: 'boolean' }],
    ['a list', { type: 'array', items: { type: 'number' } }, { value: 'json', options: null }],
    ['an object', { type: 'object' }, { value: 'json' }],
    ['anything', {}, { value: 'json' }],
    ['text among choices', { anyOf: [{ type: 'object' }, { type: 'string' }] }, { value: 'text' }],
  ]
  for (const [what, schema, expected] of kinds)
    it(`takes ${what}`, () => {
      const { more } = formOf(operation(json({ type: 'object', properties: { it: schema } })), {})
      expect(more[0]).to.include({ part: 'body', ...expected })
    })

  it('offers the choices of an enum, also behind allOf and a reference', () => {
    const schema: Schema = { type: 'object', properties: { size: { allOf: [{ $ref: '#/components/schemas/Size' }] } } }
    const { controls } = formOf(operation(json(schema, { size: 'l' })), { Size: { enum: ['s', 'l'] } })
    expect(controls[0]?.options).to.deep.equal(['s', 'l'])
    expect(controls[0]).to.include({ filled: 'l', value: 'text' })
  })

  it('writes the rows of the example one in a line', () => {
    const schema: Schema = { type: 'object', properties: { bars: { type: 'array' } } }
    const { controls } = formOf(
      operation(
        json(schema, {
          bars: [
            [1, 2],
            [3, 4],
          ],
        }),
      ),
      {},
    )
    expect(controls[0]?.filled).to.equal('[\n  [1,2],\n  [3,4]\n]')
  })

  it('takes a file where a form of the operation takes one, and the same as text', () => {
    const fields = (file: Schema): Schema => ({ type: 'object', properties: { file, note: { type: 'string' } } })
    const { controls, more, media } = formOf(
      operation({
        requestBody: {
          required: true,
          content: {
            'application/json': { schema: fields({ type: 'string' }) },
            'text/csv': { schema: { type: 'string' } },
            'multipart/form-data': { schema: fields({ type: 'string', format: 'binary' }) },
          },
        },
      }),
      {},
    )
    expect(media).to.deep.equal(['application/json', 'text/csv', 'multipart/form-data'])
    expect(controls.map(({ name, isFile, value }) => ({ name, isFile, value }))).to.deep.equal([
      { name: 'file', isFile: true, value: 'text' },
    ])
    expect(more.map(({ name }) => name)).to.deep.equal(['note'])
  })

  it('has no control for a body that may be left out', () => {
    const schema = { type: 'object', maxProperties: 0 }
    const requestBody = { required: false, content: { 'application/json': { schema, example: {} } } }
    expect(formOf(operation({ requestBody }), {}).controls).to.deep.equal([])
  })

  it('is one control for a body without fields: JSON, or text', () => {
    const [list] = formOf(operation(json({ type: 'array', items: { type: 'number' } }, [1, 2])), {}).controls
    expect(list).to.include({ name: 'body', isWhole: true, isFile: false, value: 'json', filled: '[\n  1,\n  2\n]' })
    const raw = operation({
      requestBody: { required: true, content: { 'text/csv': { schema: { type: 'string' }, example: 'a,b' } } },
    })
    expect(formOf(raw, {}).controls[0]).to.include({ isWhole: true, isFile: true, value: 'text', filled: 'a,b' })
  })
})
