import { expect } from 'chai'
import * as fc from 'fast-check'
import { InvalidInput } from '../../../gateway/errors.ts'
import { MAX_BARS, readBars } from '../../../plugins/qc/bar-input.ts'
import checkBarQuality from '../../../plugins/qc/bar-quality.ts'
import { UTC } from '../../../plugins/lib/time/time-zones.ts'
import { randomWalk } from './random-walk.ts'

const rows = [
  ['2024-07-01', 10, 12, 9, 11, 100],
  ['2024-07-02', 11, 13, 10, 12, 110],
  ['2024-07-03', 12, 14, 11, 13, 120],
]
const short = rows.map(([t, o, h, l, c, v]) => ({ t, o, h, l, c, v }))
const long = rows.map(([timestamp, open, high, low, close, volume]) => ({ timestamp, open, high, low, close, volume }))

function refusal(body: unknown): { loc: readonly (string | number)[]; type: string } {
  try {
    checkBarQuality(body)
  } catch (error) {
    if (!(error instanceof InvalidInput)) throw error
    return error.detail[0]!
  }
  throw new Error('was accepted')
}

describe('the bars of a request', () => {
  it('give the same report in every form', () => {
    const columns = ['Date', 'Open', 'High', 'Low', 'Close', 'Volume']
    const forms = [
      { bars: short },
      { bars: long },
      { bars: rows },
      short,
      rows,
      { columns, rows },
      { bars: { columns, rows } },
    ]
    const [first, ...others] = forms.map((form) => readBars(form, UTC))
    for (const other of others) expect(other).to.deep.equal(first)
    expect([...first!.close]).to.deep.equal([11, 12, 13])
  })

  it('may have columns in any order, and unknown columns are ignored', () => {
    const table = {
      columns: ['close', 'symbol', 'low', 'high', 'open', 't'],
      rows: rows.map(([t, o, h, l, c]) => [c, 'X', l, h, o, t]),
    }
    const bars = readBars(table, UTC)
    expect([...bars.open]).to.deep.equal([10, 11, 12])
    expect(bars.volume).to.equal(null)
  })

  it('may have the field names of exchanges, and the time of the open is used', () => {
    const [o, h, l, c, v] = ['10', '12', '9', '11', '5']
    const exchanges: ((t: number) => object)[] = [
      (t) => ({ t: String(t * 1000), T: String(t * 1000 + 59_999), s: 'BTC', i: '1m', o, c, h, l, v, n: 67 }),
      (t) => ({ startedAt: new Date(t * 1000).toISOString(), low: l, high: h, open: o, close: c, baseTokenVolume: v }),
      (t) => ({ start: String(t), low: l, high: h, open: o, close: c, volume: v }),
    ]
    for (const bar of exchanges) {
      const bars = readBars([1_710_552_360, 1_710_552_420, 1_710_552_480].map(bar), UTC)
      expect([...bars.time]).to.deep.equal([1_710_552_360, 1_710_552_420, 1_710_552_480])
      expect([bars.open[0], bars.high[0], bars.low[0], bars.close[0], bars.volume?.[0]]).to.deep.equal([
        10, 12, 9, 11, 5,
      ])
    }
  })

  it('may have prices as text and further values after the sixth', () => {
    const kline = (t: number): unknown[] => [
      t,
      '0.00002853',
      '0.00002854',
      '0.00002851',
      '0.00002854',
      '36304.2',
      t + 59_999,
      '1.03',
      79,
    ]
    const bars = readBars([kline(1_637_971_200_000), kline(1_637_971_260_000), kline(1_637_971_320_000)], UTC)
    expect(bars.high[0]).to.equal(0.00002854)
    expect(bars.time[1]).to.equal(1_637_971_260)
  })

  it('have NaN for prices that are null, absent, empty or not a number', () => {
    const [first, second, third] = short
    const bars = readBars(
      [
        { ...first, h: null },
        { ...second, h: 'n/a' },
        { ...third, h: '' },
      ],
      UTC,
    )
    expect([...bars.high].every(Number.isNaN)).to.equal(true)
    const { l: _, ...withoutLow } = second!
    expect(readBars([first, withoutLow, third], UTC).low[1]).to.be.NaN
  })

  it('are refused if they are malformed, and the error says where', () => {
    const [first, second, third] = short
    expect(refusal({ bars: [first, { ...second, t: 'soon' }, third] })).to.deep.include({
      loc: ['body', 'bars', 1, 't'],
      type: 'time',
    })
    expect(refusal([first, second, { ...third, c: Infinity }])).to.deep.include({
      loc: ['body', 2, 'c'],
      type: 'finite_number',
    })
    expect(refusal([first, { ...second, c: '1e400' }, third])).to.deep.include({ loc: ['body', 1, 'c'] })
    for (const price of [1e101, -1e101, 1e-101, '5e-324'])
      expect(refusal([first, { ...second, c: price }, third])).to.deep.include({
        loc: ['body', 1, 'c'],
        type: 'number_range',
      })
    expect(refusal({ bars: [first, 7, third] })).to.deep.include({ loc: ['body', 'bars', 1], type: 'row_type' })
    expect(refusal({ bars: [first, [1, 2], third] })).to.deep.include({ loc: ['body', 'bars', 1], type: 'row_length' })
    expect(refusal({ bars: [{ a: 1 }, second, third] })).to.deep.include({
      loc: ['body', 'bars', 0],
      type: 'columns_missing',
    })
    expect(refusal({ bars: short.slice(1) })).to.deep.include({ loc: ['body', 'bars'], type: 'bar_count' })
    expect(refusal({ columns: ['t', 'o', 'h', 'l', 'c', 'Open'], rows })).to.deep.include({
      loc: ['body', 'columns'],
      type: 'columns_twice',
    })
    expect(refusal({ columns: ['t', 'o', 'h', 'l', 'c'], rows: [rows[0], rows[1], [1]] })).to.deep.include({
      loc: ['body', 'rows', 2],
    })
    expect(refusal({})).to.deep.include({ loc: ['body', 'bars'], type: 'missing' })
    expect(refusal({ bars: short, timezone: 'Mars/Olympus' })).to.deep.include({ loc: ['body', 'timezone'] })
    expect(refusal({ bars: short, interval: 'often' })).to.deep.include({ loc: ['body', 'interval'] })
  })

  it('are refused if there are more than 50,000', () => {
    expect(refusal(Array.from({ length: MAX_BARS + 1 }, () => rows[0]))).to.include({ type: 'bar_count' })
  })

  it('never crash the report, whatever they contain', () => {
    const cell = fc.oneof(fc.double(), fc.constantFrom(null, '', 'x', '1', true, -1, 0, 1e300, 1e-300), fc.integer())
    const time = fc.oneof(
      fc.integer({ min: 0, max: 4e9 }),
      fc.constantFrom('2024-02-30', '2024-01-01', '2024-01-01T00:00:00+14:00', 1e12),
    )
    const row = fc.oneof(
      fc.tuple(time, cell, cell, cell, cell, cell),
      fc.record({ t: time, o: cell, h: cell, l: cell, c: cell }),
    )
    fc.assert(
      fc.property(
        fc.array(fc.oneof({ weight: 20, arbitrary: row }, fc.jsonValue() as never), { minLength: 3, maxLength: 12 }),
        (body) => {
          try {
            const report = checkBarQuality(body)
            expect(report.bars).to.equal(body.length)
            expect(JSON.stringify(report)).not.to.include('NaN')
          } catch (error) {
            expect(error).to.be.instanceOf(InvalidInput)
          }
        },
      ),
      { numRuns: 300 },
    )
  })

  it('may have prices of any size and sign if negatives are allowed', () => {
    const spreadPrices = randomWalk({ count: 300 }).map((bar) => ({
      t: bar.t,
      o: bar.o - 100,
      h: bar.h - 100,
      l: bar.l - 100,
      c: bar.c - 100,
      v: bar.v,
    }))
    const report = checkBarQuality({ bars: spreadPrices, allow_negative: true })
    expect(report.by_code['nonpositive_price']).to.equal(undefined)
    expect(report.not_checked).to.have.keys('bad_print', 'split')
    expect(checkBarQuality({ bars: spreadPrices }).by_code['nonpositive_price']).to.be.above(0)
  })
})
