import { expect } from 'chai'
import fc from 'fast-check'
import type { UpstreamParameter } from '../../../gateway/plugin/catalog.ts'
import { placeFields } from '../../../gateway/products/upstream-parameters.ts'
import { InvalidInput } from '../../../gateway/errors.ts'

const parameter = (given: Partial<UpstreamParameter>): UpstreamParameter => ({
  field: 'color',
  name: 'color',
  in: 'query',
  style: 'form',
  explode: false,
  ...given,
})

const call = (url: string, ...parameters: readonly UpstreamParameter[]) => ({ url, headers: {}, query: {}, parameters })

/** The values of the examples of OpenAPI (Parameter Object, Style Examples). */
const COLORS = ['blue', 'black', 'brown']

describe('the fields of a call to an upstream', () => {
  const queries: readonly (readonly [Partial<UpstreamParameter>, string])[] = [
    [{ style: 'form', explode: true }, '?color=blue&color=black&color=brown'],
    [{ style: 'form' }, '?color=blue,black,brown'],
    [{ style: 'spaceDelimited' }, '?color=blue%20black%20brown'],
    [{ style: 'pipeDelimited' }, '?color=blue%7Cblack%7Cbrown'],
    [{ style: 'deepObject' }, '?color%5B0%5D=blue&color%5B1%5D=black&color%5B2%5D=brown'],
    [{ name: 'colour', explode: true }, '?colour=blue&colour=black&colour=brown'],
  ]
  for (const [given, search] of queries)
    it(`are written into the query as ${JSON.stringify(given)}`, () => {
      const { url } = placeFields(call('http://up/x', parameter(given)), { params: {}, query: { color: COLORS } })
      expect(url.href).to.equal(`http://up/x${search}`)
    })

  const paths: readonly (readonly [Partial<UpstreamParameter>, string])[] = [
    [{ style: 'simple' }, '/blue,black,brown'],
    [{ style: 'label' }, '/.blue,black,brown'],
    [{ style: 'label', explode: true }, '/.blue.black.brown'],
    [{ style: 'matrix' }, '/;color=blue,black,brown'],
    [{ style: 'matrix', explode: true }, '/;color=blue;color=black;color=brown'],
  ]
  for (const [given, path] of paths)
    it(`are written into the path as ${JSON.stringify(given)}`, () => {
      const placed = call('http://up/{color}', parameter({ in: 'path', ...given }))
      expect(placeFields(placed, { params: { color: COLORS.join() }, query: {} }).url.pathname).to.equal(path)
    })

  it('are written into headers and cookies, and then not into the query', () => {
    const placed = {
      ...call(
        'http://up/x?fixed=1',
        parameter({ field: 'trace', name: 'X-Trace', in: 'header', style: 'simple' }),
        parameter({ field: 'session', name: 'sid', in: 'cookie' }),
      ),
      headers: { cookie: 'key=secret' },
    }
    const { url, headers } = placeFields(placed, { params: {}, query: { trace: ['a', 'b'], session: 'x y', limit: 2 } })
    expect(url.search).to.equal('?fixed=1&limit=2')
    expect(headers).to.deep.equal({ 'x-trace': 'a,b', cookie: 'key=secret; sid=x%20y' })
  })

  it('never replace what the catalog sends', () => {
    const placed = {
      url: 'http://up/x',
      headers: { authorization: 'secret' },
      query: { key: 'secret' },
      parameters: [
        parameter({ field: 'as', name: 'Authorization', in: 'header' }),
        parameter({ field: 'other', name: 'key' }),
      ],
    }
    const { url, headers } = placeFields(placed, { params: {}, query: { as: 'me', other: 'mine', key: 'mine' } })
    expect(url.search).to.equal('?key=secret')
    expect(headers).to.deep.equal({ authorization: 'secret' })
  })

  it('stay below the address of the catalog, and in the header and the query that it names, whatever a caller sends', () => {
    const styles = fc.constantFrom('simple', 'label', 'matrix' as const)
    const text = fc.oneof(
      fc.string(),
      fc.string({ unit: 'binary' }),
      fc.constantFrom('..', ',', '.,.', '../x', '%2e%2e'),
    )
    fc.assert(
      fc.property(text, text, text, styles, fc.boolean(), (inPath, inHeader, inQuery, style, explode) => {
        const placed = call(
          'http://up/base/{color}/end',
          parameter({ in: 'path', style, explode }),
          parameter({ field: 'header', name: 'X-Header', in: 'header', style: 'simple' }),
          parameter({ field: 'list', name: 'list[]' }),
        )
        try {
          const input = {
            params: { color: inPath },
            query: { header: inHeader, list: [inQuery, inQuery], plain: inQuery },
          }
          const { url, headers } = placeFields(placed, input)
          expect(url.host).to.equal('up')
          expect(url.pathname).to.match(/^\/base\/[^/]+\/end$/)
          expect(url.hash).to.equal('')
          expect([...url.searchParams.keys()]).to.deep.equal(['plain', 'list[]'])
          expect(() => new Headers(headers)).not.to.throw()
          expect(Object.keys(headers)).to.deep.equal(['x-header'])
        } catch (error) {
          expect(error).to.be.instanceOf(InvalidInput)
        }
      }),
    )
  })
})
