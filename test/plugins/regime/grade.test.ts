import { expect } from 'chai'
import { gradeLabels } from '../../../plugins/regime/label-grades.ts'

describe('the grades of the labels', () => {
  // Steps of half an hour, so an hour has two.
  const graded = {
    stepMinutes: 30,
    volatile: [0, 0, 1, 1, 1, 0],
    probability: [0.1, 0.3, 0.7, 0.9, 0.7, 0.3],
    boundary: [1, 1, 1, 1, 1, 1],
    forward: [0.5, 2, 4, 2, NaN, NaN],
  }

  it('equal the definitions computed by hand', () => {
    const found = gradeLabels(graded)
    expect(found.snapshots).to.equal(6)
    expect(found.share_volatile).to.equal(0.5)
    expect(found.flips_per_day).to.equal(2 / (6 / 48))
    expect(found.forward_vol_ratio).to.equal(3 / 1.25)
    // Each label and the one two steps later: 0→1, 0→1, 1→1, 1→0.
    expect(found.persistence_1h).to.equal(1 / 4)
    expect(found.volatile_persistence_1h).to.equal(1 / 2)
    expect(found.accuracy).to.equal(3 / 4)
    expect(found.brier).to.be.closeTo((0.1 ** 2 + 0.7 ** 2 + 0.3 ** 2 + 0.1 ** 2) / 4, 1e-12)
  })

  it('have a calibration error of 0 when labels are right as often as stated', () => {
    const n = 1000
    const volatile = new Uint8Array(n).fill(1)
    const forward = Float64Array.from({ length: n }, (_, i) => (i % 4 === 0 ? 0 : 2))
    const boundary = new Float64Array(n).fill(1)
    const honest = gradeLabels({
      stepMinutes: 1,
      volatile,
      forward,
      boundary,
      probability: new Float64Array(n).fill(0.75),
    })
    const boastful = gradeLabels({
      stepMinutes: 1,
      volatile,
      forward,
      boundary,
      probability: new Float64Array(n).fill(0.95),
    })
    expect(honest.ece).to.be.closeTo(0, 1e-12)
    expect(boastful.ece).to.be.closeTo(0.2, 1e-12)
  })

  it('have no figure when nothing was volatile', () => {
    const calm = gradeLabels({ ...graded, volatile: [0, 0, 0, 0, 0, 0] })
    expect(calm.forward_vol_ratio).to.be.NaN
    expect(calm.volatile_persistence_1h).to.be.NaN
  })
})
