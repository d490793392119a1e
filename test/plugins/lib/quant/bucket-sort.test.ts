import { expect } from 'chai'
import fc from 'fast-check'
import { sortedByBuckets } from '../../../../plugins/lib/quant/bucket-sort.ts'
import { seededRandom } from '../../../../plugins/lib/quant/seeded-random.ts'

describe('the sort by buckets', () => {
  const number = fc.oneof(
    fc.double(),
    fc.double({ min: -2, max: 2, noNaN: true }),
    fc.integer({ min: -3, max: 3 }),
    fc.constantFrom(NaN, Infinity, -Infinity, 1e300, -1e300),
  )
  // Of two zeros that differ in sign either may come first.
  const plain = (values: Float64Array): number[] => Array.from(values, (value) => value + 0)

  it('gives what the platform gives, for any numbers', () => {
    fc.assert(
      fc.property(fc.array(number, { maxLength: 200 }), (numbers) => {
        const values = Float64Array.from(numbers)
        expect(plain(sortedByBuckets(values))).to.deep.equal(plain(values.slice().sort()))
        expect(values).to.deep.equal(Float64Array.from(numbers))
      }),
    )
  })

  it('gives what the platform gives if most values lie in one bucket', () => {
    const random = seededRandom(7)
    const values = Float64Array.from({ length: 5_000 }, (_, i) => (i === 99 ? 1e9 : random() + random() - random()))
    expect(sortedByBuckets(values)).to.deep.equal(values.slice().sort())
  })
})
