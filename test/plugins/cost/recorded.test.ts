import { expect } from 'chai'
import { measureCost } from '../../../scripts/bench/products/order-cost.ts'
import { isRecorded } from '../../../scripts/bench/products/recorded-data.ts'

describe('the cost of orders on recorded books', () => {
  it('is the exact cost of filling them, and the stated ranges contain the true cost', function () {
    if (!isRecorded) this.skip()
    const missed = measureCost().filter(({ pass }) => pass === false)
    expect(missed).to.deep.equal([])
  })
})
