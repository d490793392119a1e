import { expect } from 'chai'
import { gradeLabels } from '../../../plugins/regime/label-grades.ts'
import { seededRandom } from '../../../plugins/lib/quant/seeded-random.ts'
import { figuresOfSums, resample, sumsByDay } from './resampled-figures.ts'

describe('resampled figures', () => {
  const random = seededRandom(7)
  const count = 40 * 96
  const draw = (of: () => number): Float64Array => Float64Array.from({ length: count }, of)
  const forecasts = {
    minute: Float64Array.from({ length: count }, (_, i) => 1_000_000 + 15 * i),
    stepMinutes: 15,
    volatile: Uint8Array.from({ length: count }, () => (random() < 0.3 ? 1 : 0)),
    probability: draw(random),
    boundary: draw(() => 0.1 * random()),
    mean: draw(() => random() - 0.5),
    forward: draw(() => (random() < 0.05 ? NaN : random() - 0.5)),
  }

  it('are of all days what the grades of the labels are', () => {
    const { boundary, forward } = forecasts
    const grades = gradeLabels({ ...forecasts, boundary: boundary.map(Math.exp), forward: forward.map(Math.exp) })
    const { found, intervals } = resample(sumsByDay(forecasts), figuresOfSums)
    for (const name of ['forward_vol_ratio', 'persistence_1h', 'brier', 'ece'] as const)
      expect(found[name], name).to.be.closeTo(grades[name], 1e-12)
    for (const name of ['forward_vol_ratio', 'persistence_1h', 'brier'] as const)
      expect(found[name], name).to.be.within(...intervals[name])
  })

  it('vary as the mean of independent days does', () => {
    const days = Float64Array.from({ length: 400 }, () => random())
    const { intervals } = resample([days], ([sum]) => ({ mean: sum! / 400 }))
    const [low, high] = intervals.mean
    // Uniform numbers: 1.96 / √(12 · 400) on either side.
    expect((high - low) / 2).to.be.within(0.02, 0.037)
  })
})
