import { expect } from 'chai'
import { isMultiple } from '../../../../plugins/lib/quant/tick-size.ts'

describe('multiples of a step', () => {
  it('forgive what doubles lose', () => {
    for (const [price, step] of [
      [0.3, 0.1],
      [96_692.65, 0.01],
      [1.07083, 1e-5],
      [0.00002853, 1e-8],
      [-0.3, 0.1],
    ] as const)
      expect(isMultiple(price, step), `${price} of ${step}`).to.equal(true)
    expect(isMultiple(100.005, 0.01)).to.equal(false)
  })

  it('are no prices smaller than the step, but zero', () => {
    expect(isMultiple(1e-9, 0.01)).to.equal(false)
    expect(isMultiple(0, 0.01)).to.equal(true)
  })

  it('are not told of steps that doubles cannot tell apart', () => {
    expect(isMultiple(1e9 + 0.3, 1e-8)).to.equal(false)
  })
})
