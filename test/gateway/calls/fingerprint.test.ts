import { createHash } from 'node:crypto'
import { expect } from 'chai'
import fc from 'fast-check'
import { fingerprint } from '../../../gateway/calls/fingerprint.ts'
import type { Operation } from '../../../gateway/plugin/catalog.ts'

const operation = { id: 'getThing', plan: null } as Operation
const fingerprintOf = (body: unknown, query = {}, params = {}): Promise<string> =>
  fingerprint(operation, { params, query, body })

describe('the fingerprint of a request', () => {
  it('does not depend on the order of fields', () =>
    fc.assert(
      fc.asyncProperty(fc.dictionary(fc.string(), fc.jsonValue(), { maxKeys: 8 }), async (body) => {
        const reversed = Object.fromEntries(Object.entries(body).reverse())
        return (await fingerprintOf(body)) === (await fingerprintOf(reversed))
      }),
    ))

  it('differs if a field, a query parameter or a path parameter differs', async () => {
    const all = await Promise.all([
      fingerprintOf({ a: 1 }),
      fingerprintOf({ a: 2 }),
      fingerprintOf({ b: 1 }),
      fingerprintOf(null, { a: '1' }),
      fingerprintOf(null, {}, { a: '1' }),
      fingerprintOf([['a', 1]]),
    ])
    expect(new Set(all).size).to.equal(all.length)
  })

  it('is the same for a number and its text, which forms and queries send', async () => {
    expect(await fingerprintOf({ limit: 5 })).to.equal(await fingerprintOf({ limit: '5' }))
  })

  it('is the same for an uploaded file and its content as text', async () => {
    for (const text of ['a,b\n1,2\n', 'x'.repeat(1000)]) {
      const file = { filename: 'trades.csv', mediaType: 'text/csv', bytes: Buffer.from(text) }
      expect(await fingerprintOf({ file })).to.equal(await fingerprintOf({ file: text }))
    }
  })

  it('differs for files that differ in bytes that are no text', async () => {
    const files = [[0x80], [0x81], [0xef, 0xbf, 0xbd], [0xff, 0xfe]].map((bytes) => ({
      file: { filename: 'a.bin', mediaType: 'application/octet-stream', bytes: Buffer.from(bytes) },
    }))
    const all = await Promise.all(files.map((body) => fingerprintOf(body)))
    expect(new Set(all).size).to.equal(files.length)
  })

  it('ignores the input of a purchase route, which changes nothing', async () => {
    const purchase = { id: 'purchasePlan', plan: {} } as Operation
    const raw = { params: {}, query: {}, body: null }
    const other = { ...raw, body: { plan: 'other' } }
    expect(await fingerprint(purchase, other)).to.equal(await fingerprint(purchase, raw))
  })

  it('is the digest of the canonical form, also of a body that is digested in slices', () => {
    const item = fc.oneof(fc.string(), fc.integer(), fc.constant(null), fc.record({ b: fc.nat(), a: fc.string() }))
    const list = fc.array(item, { maxLength: 60 }).map((items) => Array.from({ length: 25 }, () => items).flat())
    const fields = fc.dictionary(fc.oneof(fc.string(), fc.constantFrom('7', '10', '__proto__')), list, { maxKeys: 4 })
    return fc.assert(
      fc.asyncProperty(fc.oneof(list, fields, fc.record({ columns: fields, list })), async (body) => {
        const text = JSON.stringify(['getThing', [{}, {}, textsOf(body)]])
        return (await fingerprintOf(body)) === createHash('sha256').update(text).digest('hex')
      }),
    )
  })

  it('lets other work go on while a large body is digested', async () => {
    const bars = Array.from({ length: 100_000 }, (_, at) => ({ open: at, close: at + 1, time: `${at}` }))
    let turns = 0
    const timer = setInterval(() => (turns += 1), 0)
    await fingerprintOf({ bars })
    clearInterval(timer)
    expect(turns).to.be.greaterThan(3)
  })
})

/** The canonical form of values without files and long texts: sorted names, and scalars as text. */
function textsOf(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(textsOf)
  if (typeof value !== 'object' || value === null) return value === null ? null : `${value as string | number}`
  const sorted = Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1))
  return Object.fromEntries(sorted.map(([name, each]) => [name, textsOf(each)]))
}
