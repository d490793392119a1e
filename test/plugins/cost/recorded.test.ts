import { expect } from 'chai'
import { measureCost, measureSchedules } from './order-cost.ts'
import { measureRecordedRanges, measureSimulatedRanges } from './range-coverage.ts'
import { isRecorded } from '../../support/recorded-data.ts'

describe('the cost of orders on recorded books', () => {
  it('is the exact cost of filling them, and the stated ranges contain it in books that were left out', function () {
    if (!isRecorded) this.skip()
    const missed = [...measureCost(), ...measureSchedules(), ...measureRecordedRanges()].filter(
      ({ pass }) => pass === false,
    )
    expect(missed).to.deep.equal([])
  })
})

describe('the ranges of orders in made-up books', () => {
  it('contain four in five of the costs half a minute later, at every size, also while the depth drifts', function () {
    this.timeout(60_000)
    expect(measureSimulatedRanges().filter(({ pass }) => pass === false)).to.deep.equal([])
  })
})
