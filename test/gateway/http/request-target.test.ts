import { expect } from 'chai'
import * as fc from 'fast-check'
import { InvalidInput } from '../../../gateway/errors.ts'
import { parsePairs, parseTarget, publicUrl } from '../../../gateway/http/request-target.ts'

describe('the parser of request targets', () => {
  it('parses origin form and absolute form the same way', () => {
    expect(parseTarget('/v1/x?a=1?b')).to.deep.equal({ path: '/v1/x', search: '?a=1?b' })
    expect(parseTarget('http://other:1/v1/x')).to.deep.equal({ path: '/v1/x', search: '' })
    expect(parseTarget('https://other?a')).to.deep.equal({ path: '/', search: '?a' })
    expect(parseTarget('/a%20b;c=d,e')).to.deep.equal({ path: '/a%20b;c=d,e', search: '' })
  })

  it('returns only paths that decode, have no empty or dot segment, and stay below the base URL', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: fc.constantFrom(...Array.from('/.\\%2eEfF5cC0ab;#?@: ')), maxLength: 14 }),
        (text) => {
          const target = parseTarget(`/${text}`)
          if (target === null) return
          const decoded = decodeURIComponent(target.path)
          expect(
            decoded
              .split('/')
              .slice(1, -1)
              .every((segment) => !['', '.', '..'].includes(segment)),
          ).to.equal(true)
          expect(new URL(publicUrl('http://base.example', target)).pathname).to.equal(target.path)
          expect(decoded.split('/').length).to.equal(target.path.split('/').length)
        },
      ),
      { numRuns: 3000 },
    )
  })

  it('rejects targets that are not a path', () => {
    for (const text of [
      '*',
      'v1/x',
      'ftp://host/v1',
      '//host/v1',
      '/a//b',
      '/a/./b',
      '/%',
      '/a\\b',
      '/a\u0000',
      '/a#b',
    ])
      expect(parseTarget(text), text).to.equal(null)
  })
})

describe('the parser of query strings', () => {
  it('agrees with URLSearchParams for every name', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.string(), fc.string())), (pairs) => {
        const sent = new URLSearchParams(pairs)
        const found = parsePairs(sent.toString())
        for (const name of new Set(sent.keys())) {
          expect(Object.hasOwn(found, name)).to.equal(true)
          expect([found[name]].flat()).to.deep.equal(sent.getAll(name))
        }
      }),
    )
  })

  it('refuses more than 1,000 pairs, in a query and in a form', () => {
    expect(Object.keys(parsePairs(Array.from({ length: 1_000 }, (_, at) => `k${at}`).join('&')))).to.have.length(1_000)
    for (const section of ['query', 'body'] as const)
      expect(() => parsePairs('a&'.repeat(1_000), section))
        .to.throw(InvalidInput)
        .with.nested.property('detail[0]')
        .that.deep.include({ loc: [section], type: 'too_long' })
  })
})
