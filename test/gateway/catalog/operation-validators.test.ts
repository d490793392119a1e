import { expect } from 'chai'
import { SchemaError } from '../../../gateway/validation/json-schema.ts'
import { createValidators } from '../../../gateway/catalog/operation-validators.ts'
import { detailOf, operationOf, SCHEMAS, validate } from './input-validation.ts'

const QUERY = {
  query: {
    type: 'object',
    required: ['symbol'],
    properties: {
      symbol: { type: 'string', minLength: 1, maxLength: 8, pattern: '^[A-Z]+$' },
      limit: { type: 'integer', minimum: 1, maximum: 1000, default: 100 },
      share: { type: 'number' },
      full: { type: 'boolean' },
      side: { enum: ['buy', 'sell'] },
      start: { anyOf: [{ type: 'string', format: 'date-time' }, { type: 'integer' }] },
      years: { type: 'array', items: { type: 'integer' } },
      err: { type: 'string', default: '' },
    },
  },
}

describe('a query', () => {
  it('is converted from strings to the types of its schema, with defaults applied', () => {
    const query = { symbol: 'BTC', limit: '10', share: '1.5e-3', full: 'true', years: ['2024', '2025'] }
    expect(validate(QUERY, { query }).query).to.deep.equal({
      symbol: 'BTC',
      limit: 10,
      share: 0.0015,
      full: true,
      years: [2024, 2025],
      err: '',
    })
  })

  it('accepts one value in place of a list, and keeps a string if the schema allows one', () => {
    const query = { symbol: 'BTC', years: '2024', start: '2026-02-01T00:00:00Z' }
    expect(validate(QUERY, { query }).query)
      .to.include({ start: '2026-02-01T00:00:00Z' })
      .and.deep.include({ years: [2024] })
  })

  it('takes the default for an empty string', () => {
    expect(validate(QUERY, { query: { symbol: 'BTC', limit: '' } }).query).to.include({ limit: 100 })
  })

  it('is refused if it contains a null character, which a database cannot store', () => {
    const wrong = { msg: 'Must not contain a null character.', type: 'value_error' }
    expect(detailOf(QUERY, { query: { symbol: 'BTC', err: 'a\0' } })).to.deep.equal([
      { loc: ['query', 'err'], ...wrong },
    ])
    const days = { route: 'GET /v1/thing/{day}', params: { type: 'object', properties: { day: { type: 'string' } } } }
    expect(detailOf(days, { params: { day: 'a\0b' } })).to.deep.equal([{ loc: ['path', 'day'], ...wrong }])
  })

  it('does not change the object that was sent', () => {
    const query = Object.freeze({ symbol: 'BTC', limit: '10' })
    validate(QUERY, { query })
    expect(query.limit).to.equal('10')
  })

  it('is refused with the list of all issues that docs/interface.md describes', () => {
    const query = { limit: '1001', share: 'much', full: 'maybe', side: 'hold', extra: '1' }
    const detail = detailOf(QUERY, { query })
    expect(detail.map(({ loc, type }) => [loc.join('.'), type])).to.have.deep.members([
      ['query.symbol', 'missing'],
      ['query.limit', 'less_than_equal'],
      ['query.share', 'float_parsing'],
      ['query.full', 'bool_parsing'],
      ['query.side', 'enum'],
      ['query.extra', 'extra_forbidden'],
    ])
    expect(detail.find(({ type }) => type === 'less_than_equal')).to.deep.equal({
      loc: ['query', 'limit'],
      msg: 'Must be at most 1000.',
      type: 'less_than_equal',
      input: 1001,
      ctx: { le: 1000 },
    })
    expect(detail.find(({ type }) => type === 'enum')?.msg).to.equal('Must be one of buy, sell.')
    expect(detail.find(({ type }) => type === 'extra_forbidden')?.msg).to.match(
      /^Is not known here; remove it\. Known: symbol, limit/,
    )
  })

  const refused: readonly (readonly [string, unknown, string])[] = [
    ['limit', '1.5', 'int_type'],
    ['limit', 'ten', 'int_parsing'],
    ['limit', '0x10', 'int_parsing'],
    ['limit', ' 5', 'int_parsing'],
    ['limit', 'Infinity', 'int_parsing'],
    ['limit', '0', 'greater_than_equal'],
    ['limit', ['1', '2'], 'int_type'],
    ['symbol', ['BTC', 'ETH'], 'string_type'],
    ['symbol', 'TOOLONGNAME', 'string_too_long'],
    ['symbol', 'btc', 'string_pattern_mismatch'],
    ['start', 'yesterday', 'union'],
    ['__proto__', 'x', 'extra_forbidden'],
  ]
  for (const [name, value, type] of refused)
    it(`with ${name}=${JSON.stringify(value)} is refused as ${type}`, () => {
      const query = Object.fromEntries([
        ['symbol', 'BTC'],
        [name, value],
      ])
      const detail = detailOf(QUERY, { query })
      expect(detail.map((item) => [item.loc, item.type])).to.deep.equal([[['query', name], type]])
    })

  it('is refused with a hint if a field was given more than once', () => {
    expect(detailOf(QUERY, { query: { symbol: ['A', 'B'] } })[0]?.msg).to.equal('Must be a string, given once.')
    expect(detailOf(QUERY, { query: { symbol: 'A', start: ['1', '2'] } })[0]?.msg).to.equal(
      'Must be a string, or an integer, given once.',
    )
  })

  it('is refused without that hint in JSON, where a list is a list', () => {
    const body = { route: 'POST /v1/thing', body: { type: 'object', properties: { symbol: { type: 'string' } } } }
    expect(detailOf(body, { body: { symbol: ['A'] } })[0]?.msg).to.equal('Must be a string.')
    expect(detailOf(body, { body: [] })[0]?.msg).to.equal('Must be an object.')
  })

  it('is refused with a description of every allowed form if it matches none', () => {
    expect(detailOf(QUERY, { query: { symbol: 'BTC', start: 'yesterday' } })[0]?.msg).to.match(
      /a time in ISO 8601.*, or an integer\.$/,
    )
  })

  it('must be empty if the operation is priced and describes no fields', () => {
    expect(detailOf({ price: '0.01' }, { query: { a: '1' } })).to.deep.include({
      loc: ['query', 'a'],
      msg: 'Is not known here; remove it.',
      type: 'extra_forbidden',
      input: '1',
    })
  })

  it('is ignored if the operation is free and describes no fields, and so is on a page what counts visitors', () => {
    expect(validate({ price: 'free' }, { query: { a: '1', b: ['\0', 'x'] } }).query).to.deep.equal({})
    const page = {
      price: 'free',
      view: 'page',
      response: undefined,
      query: { ...QUERY.query, required: [], additionalProperties: false },
    }
    const described = { limit: 100, err: '' }
    expect(validate(page, { query: { utm_source: 'letter', fbclid: ['a', 'b'] } }).query).to.deep.equal(described)
    const hostile = Object.fromEntries([
      ['__proto__', 'x'] as const,
      ['constructor', 'y'] as const,
      ['err', 'e'] as const,
    ])
    expect(
      detailOf(page, { query: hostile }).map(({ loc }) => loc),
      'names that every object has',
    ).to.have.deep.members([
      ['query', '__proto__'],
      ['query', 'constructor'],
    ])
    expect(
      detailOf(page, { query: { limt: '5' } }).map(({ loc }) => loc),
      'a misspelt field',
    ).to.deep.equal([['query', 'limt']])
    expect(detailOf(page, { query: { limit: 'ten', utm_source: 'letter' } }).map(({ loc }) => loc)).to.deep.equal([
      ['query', 'limit'],
    ])
  })
})

describe('path parameters', () => {
  const fields = {
    route: 'GET /v1/thing/{day}',
    params: { type: 'object', required: ['day'], properties: { day: { type: 'integer', minimum: 1 } } },
  }

  it('are converted to the types of their schema', () => {
    expect(validate(fields, { params: { day: '3' } }).params).to.deep.equal({ day: 3 })
  })

  it('are reported at "path" if they are invalid', () => {
    expect(detailOf(fields, { params: { day: '0' } })[0]).to.deep.include({
      loc: ['path', 'day'],
      type: 'greater_than_equal',
    })
  })
})

describe('a body that may be a list or a form with a file', () => {
  const either = {
    route: 'POST /v1/thing',
    body_media: ['application/json', 'text/csv', 'multipart/form-data'],
    body: {
      type: ['object', 'array'],
      items: { type: 'number' },
      additionalProperties: false,
      properties: {
        file: { type: 'string', format: 'binary' },
        trials: { type: 'integer' },
        full: { type: 'boolean', default: false },
      },
    },
  }

  it('is read as a list, as JSON whose text stays text, or as a form whose text is converted', () => {
    const file = { filename: 'a', mediaType: 'text/csv', bytes: Buffer.from('a') }
    expect(validate(either, { body: [1, 2] }).body).to.deep.equal([1, 2])
    expect(validate(either, { body: { trials: 3 } }).body).to.deep.equal({ trials: 3, full: false })
    expect(detailOf(either, { body: { trials: '3' } })).to.have.length(1)
    expect(validate(either, { body: { file, trials: '3', full: 'true' } }).body).to.deep.equal({
      file,
      trials: 3,
      full: true,
    })
    expect(validate(either, { body: { file: 'a' } }).body).to.deep.include({ full: false })
    expect(detailOf(either, { body: { file, other: 1 } })).to.have.length(1)
    expect(detailOf(either, { body: ['1'] })).to.have.length(1)
  })
})

describe('input that is made to cost much', () => {
  const form = {
    route: 'POST /v1/thing',
    body_media: ['multipart/form-data', 'application/json'],
    body: {
      type: 'object',
      required: ['file'],
      additionalProperties: false,
      properties: { file: { type: 'string', format: 'binary' }, trials: { type: 'integer' } },
    },
  }
  const choices = {
    route: 'POST /v1/thing',
    body: { type: 'array', items: { anyOf: [{ type: 'string' }, { type: 'integer' }] } },
  }
  const unknown = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, at) => [`k${at}`, at]))

  it('is refused with a hundred issues at most, each with a short place', () => {
    const detail = detailOf(form, { body: { file: 'a', [`x${'y'.repeat(100_000)}`]: 1, ...unknown(3_000) } })
    expect(detail).to.have.length(100)
    expect(JSON.stringify(detail).length).to.be.lessThan(30_000)
    expect(detailOf({ query: { type: 'object' } }, { query: unknown(1_000) })).to.have.length(100)
  })

  it('is refused at the first issue if it has many parts, in a form and in a query as in JSON', () => {
    expect(detailOf(form, { body: { file: 'a', ...unknown(6_000) } })).to.have.length(1)
    expect(detailOf({ query: { type: 'object' } }, { query: unknown(6_000) })).to.have.length(1)
    expect(detailOf(choices, { body: Array.from({ length: 6_000 }, () => null) })).to.have.length(1)
  })

  it('may hold a large file, whose bytes are not parts', () => {
    const file = { filename: 'a', mediaType: 'text/csv', bytes: Buffer.alloc(100_000) }
    expect(detailOf(form, { body: { file, trials: 'x', unknown: 1 } })).to.have.length(2)
  })

  it('is refused, and does not overflow the stack, if an object has very many keys', () => {
    expect(detailOf({ ...choices, body: { type: 'array' } }, { body: unknown(150_000) })).to.have.length(1)
  })

  it('is described in one issue per choice, however many choices fail', () => {
    const detail = detailOf(choices, { body: Array.from({ length: 1_600 }, () => null) })
    expect(detail).to.have.length(100)
    expect(new Set(detail.map(({ type }) => type))).to.deep.equal(new Set(['union']))
  })
})

describe('a schema', () => {
  const wrong: readonly (readonly [string, Readonly<Record<string, unknown>>, string])[] = [
    ['a misspelt keyword', { query: { type: 'object', properties: { a: { type: 'string', maxLenght: 3 } } } }, 'query'],
    ['an unknown type', { response: { type: 'strnig' } }, 'response'],
    ['an unknown format', { response: { type: 'string', format: 'day' } }, 'response'],
    [
      'a default that is never applied',
      { route: 'POST /v1/thing', body: { anyOf: [{ properties: { a: { default: 1 } } }] } },
      'body',
    ],
  ]
  for (const [title, fields, part] of wrong)
    it(`is refused if it has ${title}`, () => {
      const compiling = () => createValidators(SCHEMAS)(operationOf(fields))
      expect(compiling).to.throw(SchemaError).with.property('part', part)
    })
})
