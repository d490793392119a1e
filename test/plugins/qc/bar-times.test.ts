import { expect } from 'chai'
import { createZone, UTC } from '../../../plugins/lib/time/time-zones.ts'
import { formatBarTime, parseBarTime } from '../../../plugins/qc/bar-times.ts'

const newYork = createZone('America/New_York')!

describe('the timestamps of bars', () => {
  it('are epoch numbers of any unit, epoch numbers as text, or ISO 8601', () => {
    const same = [
      1_719_840_600,
      1_719_840_600_000,
      1_719_840_600_000_000,
      1_719_840_600_000_000_000,
      '1719840600',
      '2024-07-01T13:30:00Z',
      '2024-07-01T13:30Z',
    ]
    const text = ['1719840600000000000', '2024-07-01 09:30:00-04:00', '2024-07-01T09:30:00.000-0400']
    const spelled = ['2024/07/01 13:30', '20240701 13:30', '2024-07-01 13:30:00 UTC']
    for (const value of [...same, ...text, ...spelled])
      expect(parseBarTime(value), String(value)).to.equal(1_719_840_600)
  })

  it('are read in the given time zone if they have no offset, on both sides of a change of clocks', () => {
    expect(parseBarTime('2024-07-01 09:30', newYork)).to.equal(Date.UTC(2024, 6, 1, 13, 30) / 1000)
    expect(parseBarTime('2024-03-08 09:30', newYork)).to.equal(Date.UTC(2024, 2, 8, 14, 30) / 1000)
    expect(parseBarTime('2024-03-11 09:30', newYork)).to.equal(Date.UTC(2024, 2, 11, 13, 30) / 1000)
    expect(parseBarTime('2024-07-01 09:30', UTC)).to.equal(Date.UTC(2024, 6, 1, 9, 30) / 1000)
  })

  it('are midnight UTC for a date alone, whatever the time zone', () => {
    expect(parseBarTime('2002-04-02', newYork)).to.equal(Date.UTC(2002, 3, 2) / 1000)
  })

  it('are null for values that are not times', () => {
    const invalid = [
      '2024-02-30',
      '2024-13-01',
      '2024-01-01T25:00',
      'noon',
      '',
      '01/02/2024',
      null,
      true,
      1e20,
      '2024-07/01',
      NaN,
      Infinity,
    ]
    for (const value of invalid) expect(parseBarTime(value), String(value)).to.equal(null)
  })

  it('are written in UTC, with milliseconds only if there are any', () => {
    expect(formatBarTime(1_719_840_600)).to.equal('2024-07-01T13:30:00Z')
    expect(formatBarTime(0.5)).to.equal('1970-01-01T00:00:00.500Z')
  })
})

describe('time zones', () => {
  it('know summer and winter', () => {
    expect(newYork(Date.UTC(2024, 6, 1) / 1000)).to.equal(-14_400)
    expect(newYork(Date.UTC(2024, 0, 1) / 1000)).to.equal(-18_000)
    expect(createZone('Asia/Kolkata')!(0)).to.equal(19_800)
  })

  it('change the offset at the hour and not at midnight', () => {
    expect(newYork(Date.UTC(2024, 2, 10, 6, 59) / 1000)).to.equal(-18_000)
    expect(newYork(Date.UTC(2024, 2, 10, 7) / 1000)).to.equal(-14_400)
  })

  it('are null for an unknown name', () => {
    expect(createZone('Mars/Olympus')).to.equal(null)
  })
})
