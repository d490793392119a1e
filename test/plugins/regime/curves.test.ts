import { expect } from 'chai'
import { calibrationOf } from '../../../plugins/regime/label-grades.ts'
import { recordCharts } from '../../../plugins/regime/regime-methodology.ts'

describe('the charts of the regime record', () => {
  /** Twelve hours VOLATILE, twelve STABLE, and so on. The next hour confirms three labels of four. */
  const count = 480
  const volatile = Uint8Array.from({ length: count }, (_, i) => (Math.floor(i / 12) % 2 === 0 ? 1 : 0))
  const graded = {
    stepMinutes: 60,
    volatile,
    probability: Float64Array.from(volatile, (label) => (label === 1 ? 0.76 : 0.24)),
    boundary: new Float64Array(count).fill(1),
    forward: Float64Array.from(volatile, (label, i) => ((i % 4 === 0 ? 1 - label : label) === 1 ? 2 : 0.5)),
  }

  it('compare the stated confidence with the share of correct labels', () => {
    expect(calibrationOf(graded).map(([stated, right, share]) => [+stated.toFixed(4), right, share])).to.deep.equal([
      [0.76, 0.75, 1],
    ])
  })

  it('show recordings of most of a year, and are left out without one', () => {
    const recorded = {
      recording: 'one',
      first: '2025-01-01T00:00:00Z',
      last: '2025-12-31T00:00:00Z',
      interval_minutes: 1,
      calibration: calibrationOf(graded),
    }
    expect(recordCharts([recorded]).map(({ id }) => id)).to.deep.equal(['regime-calibration'])
    expect(recordCharts([{ ...recorded, last: '2025-03-01T00:00:00Z' }])).to.deep.equal([])
  })
})
