import { expect } from 'chai'
import fc from 'fast-check'
import { fingerprint } from '../../../gateway/calls/fingerprint.ts'
import type { Operation } from '../../../gateway/plugin/catalog.ts'

const operation = { id: 'getThing', plan: null } as Operation
const fingerprintOf = (body: unknown, query = {}, params = {}): string =>
  fingerprint(operation, { params, query, body })

describe('the fingerprint of a request', () => {
  it('does not depend on the order of fields', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue(), { maxKeys: 8 }), (body) => {
        const reversed = Object.fromEntries(Object.entries(body).reverse())
        return fingerprintOf(body) === fingerprintOf(reversed)
      }),
    )
  })

  it('differs if a field, a query parameter or a path parameter differs', () => {
    const all = [
      fingerprintOf({ a: 1 }),
      fingerprintOf({ a: 2 }),
      fingerprintOf({ b: 1 }),
      fingerprintOf(null, { a: '1' }),
      fingerprintOf(null, {}, { a: '1' }),
      fingerprintOf([['a', 1]]),
    ]
    expect(new Set(all).size).to.equal(all.length)
  })

  it('is the same for a number and its text, which forms and queries send', () => {
    expect(fingerprintOf({ limit: 5 })).to.equal(fingerprintOf({ limit: '5' }))
  })

  it('is the same for an uploaded file and its content as text', () => {
    for (const text of ['a,b\n1,2\n', 'x'.repeat(1000)]) {
      const file = { filename: 'trades.csv', mediaType: 'text/csv', bytes: Buffer.from(text) }
      expect(fingerprintOf({ file })).to.equal(fingerprintOf({ file: text }))
    }
  })

  it('ignores the input of a purchase route, which changes nothing', () => {
    const purchase = { id: 'purchasePlan', plan: {} } as Operation
    const raw = { params: {}, query: {}, body: null }
    expect(fingerprint(purchase, { ...raw, body: { plan: 'other' } })).to.equal(fingerprint(purchase, raw))
  })
})
