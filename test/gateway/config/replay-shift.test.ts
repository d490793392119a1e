import { expect } from 'chai'
import { createClock } from '../../../gateway/clock.ts'
import { parseReplayShift } from '../../../gateway/config/config.ts'

describe('REPLAY_SHIFT', () => {
  it('says how recorded times are moved and where the clock of the data stops', () => {
    const parsed = (setting: string) => {
      const { seconds, frozenAt } = parseReplayShift(setting)
      return [seconds, frozenAt]
    }
    expect(parsed('auto')).to.deep.equal([null, null])
    expect(parsed('none')).to.deep.equal([0, null])
    expect(parsed('frozen')).to.deep.equal([null, 'start'])
    expect(parsed('frozen:2025-01-01T00:00:00Z')).to.deep.equal([0, new Date('2025-01-01T00:00:00Z')])
    expect(parsed('-3600')).to.deep.equal([-3600, null])
  })

  it('is refused if it has no such form or its time is not valid', () => {
    expect(() => parseReplayShift('later')).to.throw(RangeError, 'later is not auto, none, frozen or a number')
    expect(() => parseReplayShift('frozen:soon')).to.throw(RangeError, 'soon is not an ISO 8601 time')
  })
})

describe('the two clocks', () => {
  it('show wall time for payments, and for data unless a replay freezes it', () => {
    let now = new Date('2026-06-01T12:00:00Z')
    const wall = () => now
    const start = now
    const running = createClock(null, wall)
    const frozen = createClock('start', wall)
    const fixed = createClock(new Date('2025-01-01T00:00:00Z'), wall)
    now = new Date('2026-06-02T12:00:00Z')
    expect([running.wall(), running.data()]).to.deep.equal([now, now])
    expect([frozen.wall(), frozen.data()]).to.deep.equal([now, start])
    expect([fixed.wall(), fixed.data()]).to.deep.equal([now, new Date('2025-01-01T00:00:00Z')])
  })
})
