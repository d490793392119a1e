import { InvalidInput } from 'tollgate/plugin'
import { expect } from 'chai'
import fc from 'fast-check'
import {
  epochMilliseconds,
  epochSeconds,
  FILE_RULES,
  formatMilliseconds,
  formatSeconds,
  readTimestamp,
  requireEpochMilliseconds,
  requireEpochSeconds,
} from '../../../../plugins/lib/time/timestamps.ts'

const FEBRUARY = Date.UTC(2026, 1, 1) / 1000
/** Whole epoch seconds whose milliseconds, microseconds and nanoseconds are told apart by size: 1973 to 2200. */
const instants = fc.integer({ min: 1e8, max: 7e9 })

describe('the parser of timestamps', () => {
  it('reads one instant in every accepted notation', () => {
    for (const value of [
      '2026-02-01',
      '2026-2-1',
      '2026/02/01',
      '2026.02.01',
      '20260201',
      '2026-02-01T00:00',
      '2026-02-01 0:00',
      '2026-02-01T00:00:00Z',
      '2026-02-01t00:00:00z',
      '2026-02-01T00:00:00.000000000000Z',
      '2026-02-01T00:00:00,000Z',
      '2026-02-01 00:00:00 UTC',
      '2026-02-01, 00:00:00 GMT',
      '2026-02-01T01:00:00+01:00',
      '2026-02-01T01:00:00+0100',
      '2026-02-01T01:00:00+01',
      '2026-02-01T01:00:00 01:00',
      '2026-01-31T19:00:00-05:00',
      '2026-01-31T19:00:00 EST',
      '2026-01-31T24:00:00Z',
      '20260201;000000',
      '20260201 00:00',
      '20260201000000',
      '20260201T000000Z',
      'Sun, 01 Feb 2026 00:00:00 GMT',
      '1 February 2026 00:00',
      ' 1769904000 ',
      '1769904000.0',
      '1769904000000',
      '1769904000000000',
      '1769904000000000000',
      1769904000,
      1769904000000,
      1769904000000000,
      1769904000000000000,
    ])
      expect(epochSeconds(value), String(value)).to.equal(FEBRUARY)
  })

  it('refuses dates that do not exist and all other text', () => {
    for (const value of [
      '',
      'now',
      'yesterday',
      '2026-02-30',
      '2026-13-01',
      '2026-00-01',
      '2026-02-01T25:00:00Z',
      '2026-02-01T24:00:01Z',
      '2026-02-01T00:60:00Z',
      '2026-02-01T00:00:00+24:00',
      '2026-02/01',
      '01/02/2026',
      '1e3',
      '1e3x',
      'NaN',
      '-5',
      '99999999999999999999',
      NaN,
      Infinity,
      -1,
      null,
      undefined,
      true,
      {},
    ])
      expect(epochSeconds(value), JSON.stringify(value)).to.equal(null)
  })

  it('determines the unit of an epoch number by its size, for numbers and text alike', () => {
    for (const [value, seconds] of [
      [99_999_999_999, 99_999_999_999],
      [100_000_000_000, 100_000_000],
      [99_999_999_999_999, 99_999_999_999.999],
      [100_000_000_000_000, 100_000_000],
      [100_000_000_000_000_000, 100_000_000],
    ] as const) {
      expect(epochSeconds(value), String(value)).to.equal(seconds)
      expect(epochSeconds(String(value)), `"${value}"`).to.equal(seconds)
    }
  })

  it('keeps any number of fractional digits up to nanoseconds', () => {
    expect(readTimestamp('2026-02-01T00:00:00.1234567890Z')).to.deep.equal({
      seconds: FEBRUARY,
      nanoseconds: 123_456_789,
      offsetSeconds: 0,
      hasTime: true,
    })
    expect(readTimestamp('1769904000123456789')?.nanoseconds).to.equal(123_456_789)
    expect(epochMilliseconds('2026-02-01T00:00:00.1239Z')).to.equal(FEBRUARY * 1000 + 123)
    expect(epochMilliseconds(1_769_904_000_123)).to.equal(1_769_904_000_123)
    expect(epochSeconds(1_769_904_000.25)).to.equal(1_769_904_000.25)
  })

  it('reports whether the text has a zone and a time of day', () => {
    expect(readTimestamp('2026-02-01')).to.include({ offsetSeconds: null, hasTime: false })
    expect(readTimestamp('2026-02-01 09:30')).to.include({ offsetSeconds: null, hasTime: true })
    expect(readTimestamp('2026-02-01 09:30 -05:30')).to.include({ offsetSeconds: -19_800, hasTime: true })
    expect(readTimestamp(FEBRUARY)).to.include({ offsetSeconds: 0, hasTime: true })
  })

  it('does not take prices and quantities in uploaded files for times', () => {
    for (const text of ['100', '101.25', '12345678']) expect(readTimestamp(text, FILE_RULES), text).to.equal(null)
    expect(epochSeconds('1960-01-04', FILE_RULES)).to.equal(Date.UTC(1960, 0, 4) / 1000)
    expect(epochSeconds('-315360000', FILE_RULES)).to.equal(-315_360_000)
    expect(epochSeconds('2200-01-02', FILE_RULES)).to.equal(null)
  })

  it('does not move a year of the first century into the twentieth', () => {
    for (const text of ['0001-01-01', '0001-01-01T00:00:00Z', '01 Jan 0099 00:00:00 GMT', '0000-02-29'])
      expect(readTimestamp(text, FILE_RULES), text).to.equal(null)
    expect(epochSeconds('0099-12-31', { ...FILE_RULES, earliest: -Infinity })).to.equal(
      Date.parse('0099-12-31T00:00:00Z') / 1000,
    )
  })

  it('reads the same instant from seconds, milliseconds, microseconds, nanoseconds and RFC 3339', () => {
    fc.assert(
      fc.property(instants, fc.integer({ min: 0, max: 999_999_999 }), (seconds, nanoseconds) => {
        const digits = `${seconds}${String(nanoseconds).padStart(9, '0')}`
        const iso = formatSeconds(seconds).replace('Z', `.${String(nanoseconds).padStart(9, '0')}Z`)
        const expected = { seconds, nanoseconds, offsetSeconds: 0, hasTime: true }
        for (const text of [digits, iso, `${seconds}.${digits.slice(-9)}`])
          expect(readTimestamp(text), text).to.deep.equal(expected)
        expect(epochMilliseconds(digits.slice(0, -6))).to.equal(seconds * 1000 + Math.floor(nanoseconds / 1e6))
      }),
    )
  })

  it('reads back what the products write, to the second and to the millisecond', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 4e12 }), (milliseconds) => {
        expect(epochMilliseconds(formatMilliseconds(milliseconds))).to.equal(milliseconds)
        const seconds = Math.floor(milliseconds / 1000)
        expect(requireEpochSeconds(formatSeconds(milliseconds / 1000), 'start')).to.equal(seconds)
        expect(requireEpochSeconds(seconds, 'start')).to.equal(seconds)
      }),
    )
    expect(formatSeconds(FEBRUARY + 0.9)).to.equal('2026-02-01T00:00:00Z')
    expect(formatMilliseconds(FEBRUARY * 1000 + 120)).to.equal('2026-02-01T00:00:00.120Z')
  })

  it('writes a time as Date does, whatever was written before', () => {
    fc.assert(
      fc.property(
        fc.array(
          fc.oneof(
            fc.integer({ min: -5_000, max: 5_000 }),
            fc.date({ noInvalidDate: true }).map(Number),
            fc.double({ min: -1e6, max: 1e6, noNaN: true }),
          ),
        ),
        (times) => {
          for (const time of times)
            expect(formatMilliseconds(time)).to.equal(new Date(time).toISOString().replace('.000Z', 'Z'))
        },
      ),
    )
    expect(() => formatMilliseconds(NaN)).to.throw(RangeError)
  })

  it('names the query field of a refused value', () => {
    for (const read of [requireEpochSeconds, requireEpochMilliseconds])
      expect(() => read('yesterday', 'end'))
        .to.throw(InvalidInput)
        .with.nested.property('detail[0].loc')
        .that.deep.equals(['query', 'end'])
  })
})
