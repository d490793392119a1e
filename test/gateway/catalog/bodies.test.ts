import { expect } from 'chai'
import { createValidators } from '../../../gateway/catalog/operation-validators.ts'
import type { JsonSchema } from '../../../gateway/plugin/plugin.ts'
import { detailOf, operationOf, SCHEMAS, validate } from './input-validation.ts'

describe('a JSON body', () => {
  const fields = {
    route: 'POST /v1/thing',
    body: {
      type: 'object',
      required: ['bars'],
      properties: {
        bars: { type: 'array', items: { $ref: 'bars.json#/$defs/Bar' } },
        adjust: { type: 'boolean', default: true },
      },
    },
  }

  it('keeps the types that were sent', () => {
    const [item] = detailOf(fields, { body: { bars: [{ open: '5' }] } })
    expect(item).to.deep.include({ loc: ['body', 'bars', 0, 'open'], type: 'float_parsing', input: '5' })
  })

  it('gets its defaults in a copy, so that what was sent stays unchanged', () => {
    const body = { bars: [{ open: 5 }] }
    expect(validate(fields, { body }).body).to.deep.equal({ bars: [{ open: 5, unit: 'usd' }], adjust: true })
    expect(body).to.deep.equal({ bars: [{ open: 5 }] })
  })

  it('must not be missing', () => {
    expect(detailOf(fields, { body: undefined })).to.deep.equal([
      { loc: ['body'], msg: 'Is required.', type: 'missing' },
    ])
  })

  it('is refused at its first issue if it is large', () => {
    const bars = Array.from({ length: 20_000 }, () => ({ open: -1 }))
    expect(detailOf(fields, { body: { bars } })).to.have.length(1)
    expect(detailOf(fields, { body: { bars: bars.slice(0, 50) } })).to.have.length(50)
  })

  it('is quoted in errors only by its scalars, shortened to a limit', () => {
    const [whole] = detailOf(fields, { body: { bars: 'x'.repeat(9000) } })
    expect(whole?.input).to.have.length(200)
    expect(detailOf(fields, { body: { bars: { a: 1 } } })[0]).not.to.have.property('input')
  })

  it('is ignored if the operation does not describe one', () => {
    expect(validate({ route: 'POST /v1/thing' }, { body: { a: 1 } }).body).to.equal(undefined)
  })
})

describe('a form', () => {
  const fields = {
    route: 'POST /v1/thing',
    body_media: ['multipart/form-data', 'application/json'],
    body: {
      type: 'object',
      required: ['file'],
      properties: {
        file: { type: 'string', format: 'binary' },
        trials: { type: 'integer', default: 10 },
        extra: { type: 'number', default: 0 },
      },
    },
  }
  const file = { filename: 'a.csv', mediaType: 'text/csv', bytes: Buffer.from('a,b') }

  it('is coerced to the types of its schema: empty fields take the default, files stay files', () => {
    const { body } = validate(fields, { body: { file, trials: '', extra: '1.5' } })
    expect(body).to.deep.equal({ file, trials: 10, extra: 1.5 })
  })

  it('accepts text in place of a file, as JSON and MCP send it', () => {
    const { body } = validate(fields, { body: { file: 'a,b', trials: 3 } })
    expect((body as { file: { bytes: Buffer } }).file.bytes.toString()).to.equal('a,b')
  })

  it('is refused if a file is missing or is not a file', () => {
    expect(detailOf(fields, { body: {} })[0]).to.deep.include({ loc: ['body', 'file'], type: 'missing' })
    expect(detailOf(fields, { body: undefined })[0]).to.deep.include({ loc: ['body', 'file'], type: 'missing' })
    expect(detailOf(fields, { body: { file: 5 } })[0]).to.deep.include({
      loc: ['body', 'file'],
      msg: 'Must be a file, or its content as a string.',
      type: 'file_type',
    })
    expect(detailOf(fields, { body: [1] })[0]).to.deep.include({ loc: ['body'], type: 'object_type' })
  })
})

describe('an answer', () => {
  const check = (response: JsonSchema, value: unknown) =>
    createValidators(SCHEMAS)(operationOf({ response })).answer(value)
  const price = {
    type: 'object',
    required: ['at', 'price'],
    properties: { at: { type: 'string', format: 'date-time' }, price: { type: 'number' } },
  }

  it('is checked in the form in which it is sent', () => {
    expect(check(price, { at: new Date(0), price: 1 })).to.equal(null)
    expect(check(price, { at: new Date(0), price: Number.NaN })).to.equal('price: Must be a number.')
    expect(check(price, { at: new Date(0), price: undefined })).to.equal('price: Is required.')
    expect(check(price, undefined)).to.equal('the answer: Must be an object.')
  })

  it('may be JSON as bytes, or text', () => {
    expect(check(price, Buffer.from('{"at":"2026-01-01T00:00:00Z","price":1}'))).to.equal(null)
    expect(check({ type: 'string' }, Buffer.from('plain'))).to.equal(null)
  })
})
