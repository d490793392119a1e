import { expect } from 'chai'
import { createRepeatSchedule } from '../../../../../gateway/methods/exact-evm/facilitator/repeat-schedule.ts'

describe('the schedule of repeated requests to facilitators', () => {
  /** Times in seconds at which a payment is due that is looked at every second, from 0 to its end. */
  function dueTimes(expiresAt: number, isAskedFirst: boolean): readonly number[] {
    let second = 0
    const schedule = createRepeatSchedule(() => second * 1000)
    if (isAskedFirst) schedule.asked('a', BigInt(expiresAt))
    const due: number[] = []
    for (; second < expiresAt + 100; second++) if (schedule.take('a', BigInt(expiresAt)) !== null) due.push(second)
    return due
  }

  it('doubles the time between two requests up to a minute, and ends when the payment expires', () => {
    expect(dueTimes(300, true)).to.deep.equal([2, 6, 14, 30, 62, 122, 182, 242])
  })

  it('lets a payment of another process be asked for at once', () => {
    expect(dueTimes(20, false)).to.deep.equal([0, 2, 6, 14])
  })

  it('tells how often a payment was asked for, and forgets it', () => {
    let now = 0
    const schedule = createRepeatSchedule(() => now)
    schedule.asked('a', 100n)
    now = 10_000
    expect(schedule.take('a', 100n)).to.equal(1)
    schedule.forget('a')
    expect(schedule.take('a', 100n)).to.equal(0)
  })
})
