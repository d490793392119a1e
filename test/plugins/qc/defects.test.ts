import { expect } from 'chai'
import checkBarQuality from '../../../plugins/qc/bar-quality.ts'
import { corrupt } from './planted-defects.ts'
import { type Tally, tally, measureQuality } from './bar-quality.ts'
import { measureDaily } from './daily-bars.ts'
import { isRecorded } from '../../support/recorded-data.ts'
import { randomWalk } from './random-walk.ts'

describe('the bar-quality report on planted defects', () => {
  const tallies: Tally = new Map()
  before(() => {
    for (const [seed, interval] of [60, 900, 3600].entries()) {
      const bars = randomWalk({ count: 5500, interval, seed: seed + 1, volatility: 0.001 * Math.sqrt(interval / 60) })
      const { bars: corrupted, truth } = corrupt(bars, 4, seed + 1, interval)
      const { findings, splits } = checkBarQuality({ bars: corrupted })
      tally(truth, findings, splits, tallies)
    }
  })

  for (const [family, defects] of Object.entries({
    impossible: 'impossible rows',
    timestamp: 'wrong timestamps',
    stale: 'stale runs',
    split: 'unadjusted splits',
    'bad_print easy': 'obvious bad prints',
    'bad_print decimal': 'bars with a shifted decimal point',
  }))
    it(`finds all ${defects}`, () => {
      const { hits, wanted } = tallies.get(family)!
      expect(hits).to.equal(wanted)
    })

  it('finds nearly all bad prints that are harder to see', () => {
    const medium = tallies.get('bad_print medium')!
    const hard = tallies.get('bad_print hard')!
    expect(medium.hits / medium.wanted).to.be.at.least(0.95)
    expect(hard.hits / hard.wanted).to.be.at.least(0.8)
  })

  it('reports hardly anything but the planted defects', () => {
    for (const family of ['impossible', 'timestamp', 'stale', 'split', 'volume'])
      expect(tallies.get(family)!.false, family).to.equal(0)
    const { alarms, false: wrong } = tallies.get('bad_print')!
    expect(1 - wrong / alarms).to.be.at.least(0.97)
  })
})

describe('the bar-quality report on recorded bars', () => {
  before(function () {
    if (!isRecorded) this.skip()
  })

  it('reaches the required precision and recall', () => {
    expect(measureQuality().filter(({ pass }) => pass === false)).to.deep.equal([])
  })

  it('finds the real splits and misprints', () => {
    expect(measureDaily().filter(({ pass }) => pass === false)).to.deep.equal([])
  })
})
