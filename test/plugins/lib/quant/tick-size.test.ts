import { expect } from 'chai'
import { isMultiple } from '../../../../plugins/lib/quant/tick-size.ts'

describe('multiples of a tick size', () => {
  it('tolerate the rounding errors of floating-point numbers', () => {
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

  it('do not include prices smaller than the step, except 0', () => {
    expect(isMultiple(1e-9, 0.01)).to.equal(false)
    expect(isMultiple(0, 0.01)).to.equal(true)
  })

  it('do not include prices with more steps than floating-point numbers can distinguish', () => {
    expect(isMultiple(1e9 + 0.3, 1e-8)).to.equal(false)
  })
})
