import { expect } from 'chai'
import fc from 'fast-check'
import { readCursor, writeCursor } from '../../../gateway/plugin/cursor.ts'
import { InvalidInput } from '../../../gateway/errors.ts'

const part = fc.oneof(fc.string(), fc.integer())
const position = fc.record({ asOf: fc.integer({ min: 0 }), key: fc.array(part, { minLength: 1, maxLength: 4 }) })
const query = fc.record({ limit: fc.integer(), sort: fc.string() })

describe('a cursor', () => {
  it('is read back with the query it was written for, whatever the order of the parameters', () => {
    fc.assert(
      fc.property(position, query, (written, { limit, sort }) => {
        const cursor = writeCursor(written, { limit, sort })
        expect(readCursor(cursor, { cursor, sort, limit })).to.deep.equal(written)
      }),
    )
  })

  it('is refused with another query', () => {
    const cursor = writeCursor({ asOf: 1, key: ['BTC'] }, { limit: 10 })
    expect(() => readCursor(cursor, { limit: 11 })).to.throw(InvalidInput)
  })

  it('is refused with a time or a key that cannot be, whoever wrote it', () => {
    const [hash] = JSON.parse(Buffer.from(writeCursor({ asOf: 1, key: ['BTC'] }, {}), 'base64url').toString()) as [
      string,
    ]
    for (const asOf of ['-1e15', '-0.5', '1e15', '1e999', 'null', '"1"']) {
      const cursor = Buffer.from(`["${hash}",${asOf},"BTC"]`).toString('base64url')
      expect(() => readCursor(cursor, {}), asOf).to.throw(InvalidInput)
    }
    for (const key of ['1e999', 'null', '"a\\u0000"', '"BTC",["x"]']) {
      const cursor = Buffer.from(`["${hash}",1,${key}]`).toString('base64url')
      expect(() => readCursor(cursor, {}), key).to.throw(InvalidInput)
    }
    // A product may read its clock to the millisecond.
    const cursor = writeCursor({ asOf: 1.5, key: ['BTC'] }, {})
    expect(readCursor(cursor, {})).to.deep.equal({ asOf: 1.5, key: ['BTC'] })
  })

  it('is refused as invalid input if it is any other text', () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        expect(() => readCursor(text, {})).to.throw(InvalidInput)
      }),
    )
  })
})
