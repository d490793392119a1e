import { expect } from 'chai'
import { provenanceOf } from '../../../plugins/regime/provenance.ts'
import { snapshotAt } from './snapshot.ts'

const DAY = 86_400
const WEEK = 7 * DAY

describe('the provenance of a snapshot', () => {
  it('says that the model warms up until its first weekly fit, which comes 31 to 38 days after its first bar', () => {
    const start = 2900 * WEEK
    const isWarmingUp = (days: number): boolean =>
      provenanceOf({ ...snapshotAt(start + days * DAY), bars_used: days * 1440 }, []).warm_up
    expect([30, 31, 34, 35, 200].map(isWarmingUp)).to.deep.equal([true, true, true, false, false])
  })
})
