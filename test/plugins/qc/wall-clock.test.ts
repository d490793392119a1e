import { expect } from 'chai'
import * as fc from 'fast-check'
import checkBarQuality from '../../../plugins/qc/bar-quality.ts'
import { createZone } from '../../../plugins/lib/time/time-zones.ts'
import { randomWalk } from './random-walk.ts'

const HOUR = 3600

/** The wall clock of a place as text, without its offset. */
function wall(zone: (utc: number) => number, utc: number): string {
  return new Date((utc + zone(utc)) * 1000).toISOString().slice(0, 19).replace('T', ' ')
}

const PLACES = ['Europe/Berlin', 'America/New_York', 'Europe/London', 'Australia/Sydney', 'America/Santiago']

describe('bars on a wall clock', () => {
  it('have no finding where the clock shows an hour twice', () => {
    // Row 14 of the ledgers that people have: 2024-10-27 02:00 twice in Europe/Berlin.
    const zone = createZone('Europe/Berlin')!
    const bars = randomWalk({ count: 300, interval: HOUR }).map((bar, i) => ({
      ...bar,
      t: wall(zone, Date.UTC(2024, 9, 20) / 1000 + i * HOUR),
    }))
    expect(bars.filter(({ t }) => t === '2024-10-27 02:00:00')).to.have.length(2)
    const report = checkBarQuality({ bars, timezone: 'Europe/Berlin' })
    expect(report.findings).to.deep.equal([])
    expect(report).to.include({ grade: 'A', usable: true })
    expect(report.coverage).to.include({ missing: 0 })
  })

  it('are as good as the same bars in UTC, over any change of clocks, in any order and of any length', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...PLACES),
        fc.constantFrom(300, 900, 1800, HOUR, 2 * HOUR, 4 * HOUR),
        fc.integer({ min: 2012, max: 2025 }),
        fc.constantFrom(2, 3, 8, 9, 10),
        fc.boolean(),
        fc.integer({ min: 0, max: 95 }),
        fc.integer({ min: 24, max: 40 }),
        (timezone, interval, year, month, isBackwards, skipped, days) => {
          const zone = createZone(timezone)!
          const start = Date.UTC(year, month, 1) / 1000 + skipped * interval
          const count = Math.min(2000, Math.floor((days * 24 * HOUR) / interval))
          // Long bars begin at hours of the wall clock, as in any chart; at the change, where the clock skips that hour.
          const onWall = (time: number): number => {
            const shifted = time - (zone(time) - zone(start))
            return zone(shifted) === zone(time) ? shifted : time
          }
          const times = Array.from({ length: count }, (_, i) => start + i * interval)
            .map((time) => (interval > HOUR ? onWall(time) : time))
            .filter((time, i, all) => i === 0 || time > all[i - 1]!)
          const bars = randomWalk({ count: times.length, times, interval })
          const written = bars.map((bar) => ({ ...bar, t: wall(zone, bar.t) }))
          const report = checkBarQuality({ bars: isBackwards ? written.toReversed() : written, timezone })
          const found = report.findings.filter(({ family }) => family === 'timestamp' || family === 'session')
          expect(found.filter(({ severity }) => severity !== 'info')).to.deep.equal([])
          expect(report.coverage.missing).to.equal(0)
          expect([report.first, report.last].map((time) => Date.parse(time) / 1000)).to.deep.equal([
            times[0],
            times.at(-1),
          ])
        },
      ),
      {
        numRuns: 150,
        examples: [
          ['Australia/Sydney', 4 * HOUR, 2019, 9, false, 22, 24],
          ['Australia/Sydney', 4 * HOUR, 2023, 8, false, 11, 28],
        ],
      },
    )
  })

  it('still have a gap where an hour is missing, and a duplicate where a bar is twice', () => {
    const zone = createZone('Europe/Berlin')!
    const bars = randomWalk({ count: 300, interval: HOUR }).map((bar, i) => ({
      ...bar,
      t: wall(zone, Date.UTC(2024, 9, 20) / 1000 + i * HOUR),
    }))
    const at = bars.findIndex(({ t }) => t === '2024-10-27 12:00:00')
    const { by_code: missing } = checkBarQuality({ bars: bars.toSpliced(at, 1), timezone: 'Europe/Berlin' })
    expect(missing).to.deep.equal({ gap: 1 })
    const twice = checkBarQuality({ bars: bars.toSpliced(at, 0, bars[at]!), timezone: 'Europe/Berlin' })
    expect(twice.by_code).to.deep.equal({ duplicate_timestamp: 1 })
  })
})
