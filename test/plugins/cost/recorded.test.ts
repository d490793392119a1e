import { expect } from 'chai'
import { measureCost } from '../../../scripts/bench/products/order-cost.ts'
import { isRecorded } from '../../../scripts/bench/products/recorded-data.ts'

describe('cost on recorded books (../shared/data beside the checkout)', () => {
  it('walks them exactly, and its ranges hold', function () {
    if (!isRecorded) this.skip()
    const missed = measureCost().filter(({ pass }) => pass === false)
    expect(missed).to.deep.equal([])
  })
})
