import { expect } from 'chai'
import * as fc from 'fast-check'
import type { BarQualityReport } from '../../../schemas/types.d.ts'
import { InvalidInput, ServiceError } from '../../../gateway/errors.ts'
import { PRICE_FIELDS } from '../../../plugins/lib/tables/bar-columns.ts'
import checkBarQuality, { checkBarFile } from '../../../plugins/qc/bar-quality.ts'
import { fileOf, VENDORS } from '../lib/tables/vendor-bars.ts'
import { randomWalk } from './random-walk.ts'

const walk = randomWalk({ count: 500 }).map((bar, i) => (i === 200 ? { ...bar, h: bar.h * 1.05 } : bar))
const bars = walk.map(({ t, o, h, l, c, v }) => {
  const cents = [o, h, l, c, v].map((value) => Number(value.toFixed(4))) as [number, number, number, number, number]
  const [open, high, low, close, volume] = cents
  return { time: t * 1000, open, high, low, close, volume }
})
const rows = bars.map(({ time, open, high, low, close, volume }) => [time, open, high, low, close, volume])
const usual = checkBarQuality(rows)

const withoutReading = ({ reading: _, ...report }: BarQualityReport) => report

function refusal(body: unknown) {
  try {
    checkBarQuality(body)
  } catch (error) {
    if (error instanceof InvalidInput) return error.detail[0]!
    throw error
  }
  return expect.fail('was accepted')
}

describe('arrays of bars', () => {
  it('give the same report in any order of the prices, which the report names', () => {
    fc.assert(
      fc.property(fc.shuffledSubarray([...PRICE_FIELDS], { minLength: 4 }), fc.boolean(), (order, isText) => {
        const write = (value: number): number | string => (isText ? String(value) : value)
        const body = bars.map((bar) => [bar.time, ...order.map((field) => write(bar[field])), write(bar.volume)])
        const report = checkBarQuality(body)
        // Whether the first or the last of the usual order is the open cannot be told from bars in the usual order.
        if (order[1] === 'high' && order[2] === 'low') return
        expect(withoutReading(report)).to.deep.equal(withoutReading(usual))
        expect(report.reading?.columns.slice(1, 5).map(({ used_as }) => used_as)).to.deep.equal(order)
        expect(report.reading?.notes[0]).to.contain(`The arrays were read as time, ${order.join(', ')}, volume`)
      }),
      { numRuns: 60 },
    )
  })

  it('of Gate and Kraken have their prices and volume at their places', () => {
    const gate = bars.map(({ time, open, high, low, close, volume }) =>
      [time / 1000, volume * close, close, high, low, open, volume, true].map(String),
    )
    const kraken = bars.map(({ time, open, high, low, close, volume }) => [
      time / 1000,
      open,
      high,
      low,
      close,
      (high + low + close) / 3,
      volume,
      12,
    ])
    expect(withoutReading(checkBarQuality(gate))).to.deep.equal(withoutReading(usual))
    expect(withoutReading(checkBarQuality(kraken))).to.deep.equal(withoutReading(usual))
    expect(checkBarQuality(kraken).reading?.columns[6]).to.include({ used_as: 'volume', why: 'by its values' })
  })

  it('in no order of prices are refused with what was seen, and so are misnamed columns', () => {
    const shuffled = bars.map(({ time, open, high, low, close }, i) =>
      i % 2 ? [time, high, low, open, close] : [time, low, high, close, open],
    )
    expect(refusal(shuffled)).to.include({ type: 'column_order' })
    const misnamed = bars.map(({ time: t, open: o, high: c, low: h, close: l }) => ({ t, o, h, l, c }))
    const { type, msg } = refusal({ bars: misnamed })
    expect(type).to.equal('column_order')
    expect(msg).to.match(/in only \d+ of 500 rows\. "c" is the largest in \d+ and "h" the smallest/)
  })

  it('with some bad rows stay as they are', () => {
    const bad = rows.map((row, i) => (i % 5 === 0 ? [row[0], row[1], row[3], row[2], row[4], row[5]] : row))
    expect(checkBarQuality(bad).by_code).to.include({ high_lt_low: 100 })
  })
})

describe('objects of bars', () => {
  it('may have the day and the hour apart, and the names of Alpha Vantage', () => {
    const apart = bars.map(({ time, open, high, low, close, volume }) => {
      const [date = '', clock = ''] = new Date(time).toISOString().slice(0, 19).split('T')
      return {
        date,
        time: clock,
        '1. open': open,
        '2. high': high,
        '3. low': low,
        '4. close': close,
        '5. volume': volume,
      }
    })
    const report = checkBarQuality({ bars: apart })
    expect(withoutReading(report)).to.deep.equal(withoutReading(usual))
    expect(report.reading?.columns.map(({ used_as }) => used_as)).to.deep.equal([
      'time',
      'clock',
      'open',
      'high',
      'low',
      'close',
      'volume',
    ])
    const table = { columns: Object.keys(apart[0]!), rows: apart.map((bar) => Object.values(bar)) }
    expect(checkBarQuality(table)).to.deep.equal(report)
  })
})

describe('tables of bars', () => {
  it('may have columns of similar names, of which the best one is used', () => {
    const columns = ['t', 'open', 'high', 'low', 'close', 'volume', 'last', 'max', 'Adj Close', 'time_close', 'price']
    const wide = rows.map((row) => [...row, 1, 2, 3, 'x', 4])
    expect(withoutReading(checkBarQuality({ columns, rows: wide }))).to.deep.equal(withoutReading(usual))
  })
})

describe('times without a zone', () => {
  it('are named as an assumption, unless the request states a zone or they are dates', () => {
    const notes = (write: (time: number) => string, more: object = {}) =>
      checkBarQuality({ bars: rows.slice(0, 50).map(([t, ...rest]) => [write(t!), ...rest]), ...more }).reading?.notes
    const text = (time: number): string => new Date(time).toISOString().slice(0, 19)
    expect(notes(text)).to.deep.equal([
      'Times name no zone and were read in UTC. Send timezone if they are in another one.',
    ])
    expect(notes(text, { timezone: 'Europe/Berlin' })).to.deep.equal([
      'Times name no zone and were read in Europe/Berlin.',
    ])
    expect(notes((time) => `${text(time)}Z`)).to.deep.equal([])
  })
})

describe('prices as text', () => {
  const locales = fc.constantFrom('en-US', 'en-IN', 'de-DE', 'de-CH', 'fr-FR')
  it('are read with any separators, and the report says so', () => {
    fc.assert(
      fc.property(locales, fc.integer({ min: 1, max: 900 }), (locale, factor) => {
        const text = (value: number) =>
          (value * factor).toLocaleString(locale, { minimumFractionDigits: 2, maximumFractionDigits: 4 })
        const scaled = bars.map(({ time: t, open, high, low, close }) => {
          const [o, h, l, c] = [open, high, low, close].map((value) => Number((value * factor).toFixed(4)))
          return { t, o, h, l, c }
        })
        const texts = bars.map(({ time: t, open, high, low, close }) => {
          return { t, o: text(open), h: text(high), l: text(low), c: text(close) }
        })
        const report = checkBarQuality({ bars: texts })
        expect(withoutReading(report)).to.deep.equal(withoutReading(checkBarQuality({ bars: scaled })))
      }),
      { numRuns: 40 },
    )
    const report = checkBarQuality({ bars: rows.map(([t, ...values]) => [t, ...values.map((value) => `$${value}`)]) })
    expect(report.reading?.notes[0]).to.match(/^500 values of open are texts and were read as numbers: "\$\d/)
  })

  it('of volumes have their thousands separated by commas', () => {
    const texts = rows.map(([t, o, h, l, c], i) => ({ t, o, h, l, c, v: `${812 + (i % 7)},000` }))
    const plain = rows.map(([t, o, h, l, c], i) => ({ t, o, h, l, c, v: (812 + (i % 7)) * 1000 }))
    expect(withoutReading(checkBarQuality({ bars: texts }))).to.deep.equal(
      withoutReading(checkBarQuality({ bars: plain })),
    )
  })

  it('are refused if they cannot be read safely, and the error names the column', () => {
    const thousands = bars.map(({ time: t }, i) => ({ t, o: 67, h: `67,${100 + i}`, l: 66, c: 67 }))
    expect(refusal({ bars: thousands })).to.deep.include({ loc: ['body', 'bars', 0, 'h'], type: 'ambiguous_number' })
    const words = bars.map(({ time: t, open: o, high: h, low: l }) => ({ t, o, h, l, c: 'high' }))
    expect(refusal({ bars: words })).to.deep.include({ loc: ['body', 'bars', 0, 'c'], type: 'number_parsing' })
  })
})

describe('a file of bars', () => {
  for (const [name, vendor] of Object.entries(VENDORS))
    it(`of ${name} gives the same report as the bars`, async () => {
      const report = await checkBarFile({ file: { bytes: fileOf(vendor, bars) }, symbol: 'WALK', interval: '60' })
      const sent = vendor.volume === null ? rows.map((row) => row.slice(0, 5)) : rows
      const expected = checkBarQuality({
        bars: vendor.isNewestFirst ? sent.toReversed() : sent,
        symbol: 'WALK',
        interval: 60,
      })
      expect(withoutReading(report)).to.deep.equal(withoutReading(expected))
      expect(report.reading?.columns.filter(({ used_as }) => used_as === 'close')).to.have.length(1)
    })

  it('of several instruments, with bars beside it, or with two bars, is refused', async () => {
    const refused = async (file: string, more: object = {}) => {
      const error = await checkBarFile({ file: { bytes: Buffer.from(file) }, ...more }).then(
        () => expect.fail('was accepted'),
        (thrown: unknown) => thrown as InvalidInput,
      )
      return error.detail[0]?.type
    }
    const line = (symbol: string, day: number) => `2024-01-0${day},${symbol},1,2,1,2`
    const header = 'date,ticker,open,high,low,close'
    expect(
      await refused([header, ...[1, 2, 3].flatMap((day) => [line('A', day), line('B', day)])].join('\n')),
    ).to.equal('several_instruments')
    expect(await refused([header, line('A', 1), line('A', 2)].join('\n'))).to.equal('bar_count')
    expect(await refused([header, line('A', 1)].join('\n'), { bars: [] })).to.equal('file_and_bars')
  })

  it('never crashes the report, whatever it contains', () => {
    const cell = fc.oneof(
      fc.constantFrom(
        '',
        'NaN',
        '2024-01-01',
        '09:30',
        '1704067200',
        '1,5',
        '"1,234"',
        '=1+1',
        '0',
        '-1',
        '1e400',
        'x',
      ),
      fc.double().map(String),
      fc.string({ maxLength: 4 }),
    )
    const name = fc.constantFrom('date', 'time', 'open', 'high', 'low', 'close', 'volume', 'symbol', 'x', '')
    const table = fc.tuple(
      fc.option(fc.array(name, { minLength: 1, maxLength: 8 })),
      fc.array(fc.array(cell, { minLength: 1, maxLength: 8 }), { maxLength: 8 }),
      fc.constantFrom(',', ';', '\t'),
    )
    return fc.assert(
      fc.asyncProperty(table, async ([header, lines, delimiter]) => {
        const text = [...(header ? [header] : []), ...lines].map((cells) => cells.join(delimiter)).join('\n')
        try {
          const report = await checkBarFile({ file: { bytes: Buffer.from(text) }, repair: true })
          expect(JSON.stringify(report)).not.to.include('NaN')
        } catch (error) {
          expect(error).to.be.instanceOf(ServiceError)
        }
      }),
      { numRuns: 500 },
    )
  })

  it('whose prices are words is refused, and the error names the column', async () => {
    const lines = bars.slice(0, 30).map(({ time, open, high, low }) => [time, open, high, low, 'n.q.'].join(','))
    const file = { bytes: Buffer.from(['t,o,h,l,Last', ...lines].join('\n')) }
    const error = await checkBarFile({ file }).then(
      () => expect.fail('was accepted'),
      (thrown: unknown) => thrown as InvalidInput,
    )
    expect(error.detail[0]).to.include({ type: 'number_parsing' })
    expect(error.detail[0]?.msg).to.match(/^"n\.q\." of the column "Last" is no number/)
  })

  it('is read on the wall clock of a zone', async () => {
    const file = fileOf(VENDORS['date and time']!, bars)
    const report = await checkBarFile({ file: { bytes: file }, timezone: 'America/New_York' })
    expect(report.first).to.equal('2024-01-03T05:00:00Z')
    expect(report.reading?.notes).to.deep.equal(['Times name no zone and were read in America/New_York.'])
  })
})
