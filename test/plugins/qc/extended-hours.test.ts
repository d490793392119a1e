import { expect } from 'chai'
import checkBarQuality from '../../../plugins/qc/bar-quality.ts'
import { createZone } from '../../../plugins/lib/time/time-zones.ts'
import { seededRandom } from '../../../plugins/lib/quant/seeded-random.ts'
import { randomWalk, weekdays, type WalkBar } from './random-walk.ts'

const newYork = createZone('America/New_York')!
/** Minutes of the day in New York: extended hours from 4:00 to 20:00. */
const MINUTES = Array.from({ length: 960 }, (_, i) => 240 + i)
const isRegular = (minute: number): boolean => minute >= 570 && minute < 960

const days = weekdays('2024-04-01', 8)
const times = days.flatMap((day) => MINUTES.map((minute) => day + minute * 60 - newYork(day + 43_200)))
const minuteOf = (time: number): number => ((time + newYork(time)) % 86_400) / 60

/** A stock whose trades in extended hours are often far from the others, as reports of trades that came late are. */
function stock(chance: number, seed = 1): WalkBar[] {
  const random = seededRandom(seed + 100)
  return randomWalk({ count: times.length, times, seed }).map((bar) => {
    const { t, h, l } = bar
    if (isRegular(minuteOf(t)) || random() > chance) return bar
    const far = 0.003 * (1 + -Math.log(1 - random()))
    return random() < 0.5 ? { ...bar, h: h * (1 + far) } : { ...bar, l: l * (1 - far) }
  })
}

describe('bars of a stock with extended hours', () => {
  it('are judged and graded by part of the day', () => {
    const report = checkBarQuality({ bars: stock(0.08) })
    const [regular, extended] = report.sessions!
    expect(regular).to.include({ session: 'regular', bars: 390 * 8, grade: 'A' })
    expect(extended).to.include({ session: 'extended', bars: 570 * 8 })
    expect(extended!.thresholds.wick).to.be.above(regular!.thresholds.wick!)
    expect(report.thresholds.wick).to.equal(regular!.thresholds.wick)
    for (const severity of ['error', 'warning', 'info'] as const)
      expect(regular!.counts[severity] + extended!.counts[severity]).to.equal(report.counts[severity])
  })

  it('show bad prints of regular hours that the thresholds of a whole day would miss', () => {
    const bars = stock(0.08)
    const at = bars.findIndex(({ t }) => minuteOf(t) === 700)
    const { o, c } = bars[at]!
    bars[at] = { ...bars[at]!, h: Math.max(o, c) * 1.005 }
    const found = (session: string) =>
      checkBarQuality({ bars, session }).findings.filter(({ index, family }) => index === at && family === 'bad_print')
    expect(found('auto').map(({ code }) => code)).to.deep.equal(['bad_print_high'])
    expect(found('24x7')).to.deep.equal([])
  })

  it('keep the grade of regular hours if bad prints come after the close, and lose it if they do not', () => {
    const gradesOf = (isBad: (minute: number) => boolean) => {
      const bars = stock(0).map((bar, i) =>
        i % 40 === 7 && isBad(minuteOf(bar.t)) ? { ...bar, h: bar.h * 1.05 } : bar,
      )
      return checkBarQuality({ bars }).sessions!.map(({ grade }) => grade)
    }
    expect(gradesOf((minute) => minute >= 960)).to.deep.equal(['A', 'F'])
    expect(gradesOf(isRegular)).to.deep.equal(['F', 'A'])
  })

  it('have no parts if they trade only in regular hours, or around the clock', () => {
    const regular = stock(0).filter(({ t }) => isRegular(minuteOf(t)))
    expect(checkBarQuality({ bars: regular })).not.to.have.property('sessions')
    expect(checkBarQuality({ bars: randomWalk({ count: 3000 }) })).not.to.have.property('sessions')
  })
})
