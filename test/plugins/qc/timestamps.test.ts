import { expect } from 'chai'
import { seededRandom } from '../../../plugins/lib/quant/seeded-random.ts'
import checkBarQuality from '../../../plugins/qc/bar-quality.ts'
import { START, randomWalk, weekdays, type WalkBar } from './random-walk.ts'

const MINUTE = 60
const DAY = 86_400

function codes(bars: readonly WalkBar[], more: object = {}): [string, number][] {
  return checkBarQuality({ bars, ...more })
    .findings.filter(({ family }) => family === 'timestamp' || family === 'session')
    .map(({ code, index }) => [code, index])
}

/** One-minute bars from 9:30 to 16:00 in New York on the given days, or to 13:00 if `early`. */
function newYorkDays(days: readonly string[], offsetHours: number, early: readonly string[] = []): number[] {
  return days.flatMap((day) => {
    const open = Date.parse(`${day}T00:00:00Z`) / 1000 + (9.5 - offsetHours) * 3600
    return Array.from({ length: early.includes(day) ? 210 : 390 }, (_, i) => open + i * MINUTE)
  })
}

describe('the check of the order of rows', () => {
  const bars = randomWalk({ count: 300 })

  it('reports only the second of two swapped rows', () => {
    const swapped = bars.with(100, bars[101]!).with(101, bars[100]!)
    expect(codes(swapped)).to.deep.equal([['out_of_order_timestamp', 101]])
  })

  it('distinguishes a repeated time from a repeated row', () => {
    const changed = { ...bars[100]!, c: bars[100]!.c * 1.00001, h: bars[100]!.h * 1.0001 }
    const report = checkBarQuality({ bars: bars.toSpliced(101, 0, { ...bars[100]! }).toSpliced(201, 0, changed) })
    const found = report.findings.filter(({ family }) => family === 'timestamp')
    expect(found.map(({ index }) => index)).to.deep.equal([101, 201])
    expect(found[0]?.explanation).to.include('the same values')
  })

  it('gives a single info if rows run from newest to oldest', () => {
    const wicked = bars.with(200, { ...bars[200]!, h: bars[200]!.h * 1.03 })
    const report = checkBarQuality({ bars: wicked.toReversed() })
    expect(report.findings.map(({ code, index, severity }) => [code, index, severity])).to.deep.equal([
      ['out_of_order_timestamp', 0, 'info'],
      ['bad_print_high', 99, 'error'],
    ])
    const swapped = wicked.toReversed().with(100, wicked[198]!).with(101, wicked[199]!)
    expect(codes(swapped)).to.deep.equal([
      ['out_of_order_timestamp', 0],
      ['out_of_order_timestamp', 100],
    ])
  })

  it('does not affect the other checks', () => {
    const spiked = bars.with(150, { ...bars[150]!, h: bars[150]!.h * 1.03 })
    expect(checkBarQuality({ bars: spiked.toReversed() }).by_code['bad_print_high']).to.equal(1)
  })
})

describe('the check of the grid of timestamps', () => {
  it('reports a row that is off the grid, with its expected time', () => {
    const bars = randomWalk({ count: 300 })
    const report = checkBarQuality({ bars: bars.with(100, { ...bars[100]!, t: bars[100]!.t + 35 }) })
    expect(report.findings).to.have.length(1)
    expect(report.findings[0]).to.include({ code: 'off_grid_timestamp', index: 100, score: 25 })
  })

  it('accepts hourly bars that begin at the half hour and daily bars across a change of clocks', () => {
    const days = weekdays('2024-03-04', 60).map((day) => day + (day < Date.UTC(2024, 2, 10) / 1000 ? 5 : 4) * 3600)
    expect(codes(randomWalk({ count: 60, times: days }))).to.deep.equal([])
    const hours = weekdays('2024-04-01', 20).flatMap((day) =>
      [13.5, 14.5, 15.5, 16.5, 17.5, 18.5, 19.5].map((hour) => day + hour * 3600),
    )
    expect(codes(randomWalk({ count: hours.length, times: hours }))).to.deep.equal([])
  })
})

describe('bars without a common step', () => {
  it('are not checked for grid and gaps, and the report says so', () => {
    const random = seededRandom(7)
    let time = START
    const times = Array.from({ length: 500 }, () => (time += 20 + Math.floor(400 * random())))
    const report = checkBarQuality({ bars: randomWalk({ count: 500, times }) })
    expect(report.findings).to.deep.equal([])
    expect(report.not_checked).to.have.all.keys('off_grid_timestamp', 'gap')
    expect(report.coverage).to.include({ expected_bars: 500, missing: 0 })
    expect(checkBarQuality({ bars: randomWalk({ count: 500, times }), interval: '1m' }).not_checked).to.deep.equal({})
  })
})

describe('gaps', () => {
  it('are counted in missing bars in a 24x7 market', () => {
    const bars = randomWalk({ count: 3000 }).toSpliced(1000, 7)
    const { findings, coverage } = checkBarQuality({ bars, session: '24x7' })
    expect(findings).to.have.length(1)
    expect(findings[0]).to.include({ code: 'gap', index: 1000, score: 7 })
    expect(coverage).to.deep.equal({ expected_bars: 3000, missing: 7, longest_gap_seconds: 480 })
  })

  it('do not include nights, weekends, holidays and early closes in New York', () => {
    const days = ['2024-11-25', '2024-11-26', '2024-11-27', '2024-11-29', '2024-12-02', '2024-12-03']
    const times = newYorkDays(days, -5, ['2024-11-29'])
    const bars = randomWalk({ count: times.length, times })
    expect(checkBarQuality({ bars }).session).to.equal('us_equity')
    expect(codes(bars)).to.deep.equal([])
    expect(codes(bars.toSpliced(500, 4))).to.deep.equal([['gap', 500]])
  })

  it('include the missing end of a session and a missing day', () => {
    const days = ['2024-07-08', '2024-07-09', '2024-07-10', '2024-07-11', '2024-07-12', '2024-07-15', '2024-07-16']
    const times = newYorkDays(days, -4)
    const bars = randomWalk({ count: times.length, times })
    const tail = checkBarQuality({ bars: bars.toSpliced(390 * 2 - 30, 30) })
    expect(tail.coverage.missing).to.equal(30)
    expect(tail.findings.map(({ code }) => code)).to.deep.equal(['gap'])
    expect(checkBarQuality({ bars: bars.toSpliced(390 * 2, 390) }).coverage.missing).to.be.within(389, 391)
  })

  it('do not include weekends of a currency whose hours change with daylight saving', () => {
    const times: number[] = []
    const start = Date.UTC(2024, 1, 4, 22) / 1000
    for (let week = 0; week < 10; week += 1) {
      const summer = week > 4 ? 3600 : 0
      for (let hour = 0; hour < 119; hour += 1) times.push(start + week * 7 * DAY + hour * 3600 - summer)
    }
    const bars = randomWalk({ count: times.length, times, volatility: 0.002 })
    expect(checkBarQuality({ bars }).session).to.equal('weekdays')
    expect(codes(bars)).to.deep.equal([])
    expect(codes(bars.toSpliced(250, 5))).to.deep.equal([['gap', 250]])
  })

  it('do not include the weekends of a short file, or a daily pause across a change of clocks', () => {
    const clock = (time: number): { weekday: number; hour: number } => {
      const local = time - (time < Date.UTC(2024, 2, 10, 7) / 1000 ? 5 : 4) * 3600
      return { weekday: (Math.floor(local / DAY) + 4) % 7, hour: Math.floor((local % DAY) / 3600) }
    }
    const isOpen = (time: number, pause: boolean): boolean => {
      const { weekday, hour } = clock(time)
      if (weekday === 6 || (weekday === 5 && hour >= 17) || (weekday === 0 && hour < 17)) return false
      return !(pause && hour === 17)
    }
    const start = Date.UTC(2024, 1, 26) / 1000
    const minutes = (days: number, from = start): number[] =>
      Array.from({ length: days * 1440 }, (_, i) => from + i * MINUTE)
    for (const times of [
      minutes(8).filter((time) => isOpen(time, false)),
      minutes(14, start + 7 * DAY).filter((time) => isOpen(time, false)),
      minutes(21).filter((time) => isOpen(time, true)),
    ])
      expect(codes(randomWalk({ count: times.length, times }))).to.deep.equal([])
  })

  it('are trading days of the NYSE without a bar, for daily bars', () => {
    const open = weekdays('2001-07-02', 90).filter((day) => !isClosedDay(day))
    const bars = randomWalk({ count: open.length, times: open, volatility: 0.01 })
    expect(codes(bars)).to.deep.equal([])
    expect(codes(bars.toSpliced(20, 1))).to.deep.equal([['gap', 20]])
  })

  it('are reported in a thin market only if they are longer than chance', () => {
    const bars = randomWalk({ count: 4000 }).filter((_, i) => i % 17 !== 5 && (i < 2000 || i >= 2009))
    const { findings, coverage } = checkBarQuality({ bars })
    expect(findings.filter(({ code }) => code === 'gap').map(({ score }) => score)).to.deep.equal([9])
    expect(coverage.missing).to.be.above(230)
  })

  it('are judged by how thin the market was at the time', () => {
    const random = seededRandom(5)
    const isNight = (i: number): boolean => i % 1440 < 480
    const hasBar = (i: number): boolean => (isNight(i) ? random() < 0.6 : i < 2500 || i >= 2504)
    const bars = randomWalk({ count: 4320 }).filter((_, i) => hasBar(i))
    const found = checkBarQuality({ bars }).findings.filter(({ code }) => code === 'gap')
    expect(found.map(({ score, timestamp }) => [score, timestamp])).to.deep.equal([[4, '2024-01-04T17:44:00Z']])
  })
})

/** Independence Day, Labor Day and the days after the attack on New York in 2001. */
function isClosedDay(day: number): boolean {
  const name = new Date(day * 1000).toISOString().slice(0, 10)
  return ['2001-07-04', '2001-09-03', '2001-09-11', '2001-09-12', '2001-09-13', '2001-09-14'].includes(name)
}

describe('sessions', () => {
  it('have no bars on holidays and weekends of the NYSE', () => {
    const times = weekdays('2024-06-03', 60)
      .concat(Date.UTC(2024, 7, 31) / 1000)
      .sort((a, b) => a - b)
    const bars = randomWalk({ count: times.length, times, volatility: 0.01 })
    const closed = codes(bars, { session: 'us_equity' }).filter(([code]) => code === 'closed_session_bar')
    const days = closed.map(([, index]) => new Date(times[index]! * 1000).toISOString().slice(0, 10))
    expect(days).to.deep.equal(['2024-06-19', '2024-07-04', '2024-08-31'])
  })

  it('start at the same hour, and a run of days that start an hour late is one finding', () => {
    const days = ['2024-07-08', '2024-07-09', '2024-07-10', '2024-07-11', '2024-07-12', '2024-07-15', '2024-07-16']
    const times = days.flatMap((day, i) => newYorkDays([day], i === 3 || i === 4 ? -5 : -4))
    const found = checkBarQuality({ bars: randomWalk({ count: times.length, times }), session: 'us_equity' }).findings
    const shifts = found.filter(({ code }) => code === 'clock_shift')
    expect(shifts.map(({ index, score }) => ({ index, score }))).to.deep.equal([{ index: 3 * 390, score: 2 }])
  })

  it('are still those of New York if a single bar is on a weekend, which is reported', () => {
    const times = newYorkDays(['2024-06-05', '2024-06-06', '2024-06-07', '2024-06-10', '2024-06-11'], -4)
    const stray = Date.UTC(2024, 5, 8, 15) / 1000
    const bars = randomWalk({ count: times.length + 1, times: [...times, stray].sort((a, b) => a - b) })
    expect(checkBarQuality({ bars }).session).to.equal('us_equity')
    expect(codes(bars).filter(([code]) => code === 'closed_session_bar')).to.deep.equal([
      ['closed_session_bar', 3 * 390],
    ])
  })

  it('are not 24x7 if the only bars on weekends are on Sunday evening', () => {
    const start = Date.UTC(2022, 0, 3) / 1000
    const times = Array.from({ length: 400 }, (_, i) => start + i * DAY)
    const hasBar = (time: number): boolean => new Date(time * 1000).getUTCDay() !== 6
    const sessionOf = (barTimes: number[]) =>
      checkBarQuality({ bars: randomWalk({ count: barTimes.length, times: barTimes, volatility: 0.01 }) })
    expect(sessionOf(times)).to.include({ session: '24x7' })
    const report = sessionOf(times.filter(hasBar))
    expect(report).to.include({ session: 'weekdays' })
    expect(report.coverage.missing).to.equal(0)
  })

  it('are those that the request states, although the bars look like those of New York', () => {
    const times = newYorkDays(['2024-03-04', '2024-03-05', '2024-03-06', '2024-03-07', '2024-03-08'], -5)
    const bars = randomWalk({ count: times.length, times })
    expect(checkBarQuality({ bars }).session).to.equal('us_equity')
    const daily = randomWalk({ count: 60, times: weekdays('2024-03-04', 60), volatility: 0.01 })
    for (const sent of [bars, daily])
      for (const session of ['weekdays', 'us_equity', '24x7'])
        expect(checkBarQuality({ bars: sent, session }).session).to.equal(session)
  })

  it('are 24x7 for bars on weekends, or for a few days with bars around the clock', () => {
    expect(checkBarQuality({ bars: randomWalk({ count: 400, interval: 3600 }) }).session).to.equal('24x7')
    expect(checkBarQuality({ bars: randomWalk({ count: 2 * 1440 }) }).session).to.equal('24x7')
    expect(START % DAY).to.equal(0)
  })
})
