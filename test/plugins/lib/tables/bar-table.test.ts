import { expect } from 'chai'
import * as fc from 'fast-check'
import { InvalidInput } from '../../../../gateway/errors.ts'
import { BAR_NAMES, PRICE_FIELDS } from '../../../../plugins/lib/tables/bar-columns.ts'
import { type BarRow, readBarTable } from '../../../../plugins/lib/tables/bar-table.ts'
import { type Bar, fileOf, series, VENDORS } from './vendor-bars.ts'

async function read(file: Buffer) {
  const rows: BarRow[] = []
  const table = await readBarTable(file, { file: 'bars', maxRows: 10_000 }, (bar) => rows.push(bar))
  return { rows, table }
}

const shape = ({ time, open, high, low, close, volume }: Bar | BarRow) => ({ time, open, high, low, close, volume })

async function refusal(file: string): Promise<{ readonly type: string; readonly msg: string }> {
  try {
    await read(Buffer.from(file))
  } catch (error) {
    if (error instanceof InvalidInput) return error.detail[0]!
    throw error
  }
  return expect.fail('was read')
}

describe('bars in a file', () => {
  for (const [name, vendor] of Object.entries(VENDORS))
    it(`of ${name} come back as they were`, () =>
      fc.assert(
        fc.asyncProperty(series, async (bars) => {
          const { rows, table } = await read(fileOf(vendor, bars))
          const expected = vendor.volume === null ? bars.map((bar) => ({ ...bar, volume: Number.NaN })) : bars
          expect((vendor.isNewestFirst ? rows.toReversed() : rows).map(shape)).to.deep.equal(expected.map(shape))
          expect(table.zoned).to.equal(vendor.isZoned ?? false)
          expect(table.columns.every(({ used_as, why }) => used_as !== null || why !== null)).to.equal(true)
        }),
        { numRuns: 30 },
      ))

  it('come back whatever their names, order of columns, delimiter, digits and forms of time', () => {
    const pick = (field: keyof typeof BAR_NAMES) => fc.constantFrom(...BAR_NAMES[field])
    const cased = fc.constantFrom(
      (name: string) => name,
      (name: string) => name.toUpperCase(),
      (name: string) => `<${name.toUpperCase()}>`,
      (name: string) => ` ${name} `,
    )
    const names = fc.record({ open: pick('open'), high: pick('high'), low: pick('low'), volume: pick('volume') })
    const close = fc.constantFrom(...BAR_NAMES.close.filter((name) => name !== 'price'))
    const time = fc.constantFrom('date', 'Timestamp', 'DateTime', 't', 'open_time', 'Fecha')
    const forms = fc.constantFrom(
      (at: number) => new Date(at).toISOString(),
      (at: number) => new Date(at).toISOString().slice(0, 19).replace('T', ' '),
      (at: number) => String(at),
      (at: number) => String(at / 1000),
      (at: number) => `${at}000000`,
    )
    const numbers = fc.constantFrom(
      { delimiter: ',', write: (value: number) => String(value) },
      { delimiter: ',', write: (value: number) => `"${value.toLocaleString('en-US', { minimumFractionDigits: 2 })}"` },
      { delimiter: ';', write: (value: number) => value.toFixed(2).replace('.', ',') },
      { delimiter: ';', write: (value: number) => value.toLocaleString('de-DE', { minimumFractionDigits: 2 }) },
      { delimiter: '\t', write: (value: number) => `$${value.toFixed(2)}` },
    )
    const places = fc.shuffledSubarray([0, 1, 2, 3, 4, 5, 6], { minLength: 7, maxLength: 7 })
    return fc.assert(
      fc.asyncProperty(
        series,
        names,
        close,
        time,
        cased,
        forms,
        numbers,
        places,
        async (bars, named, last, when, spell, form, number, order) => {
          const header = [when, named.open, named.high, named.low, last, named.volume, 'Spread']
          const lines = bars.map((bar) => [
            form(bar.time),
            ...[bar.open, bar.high, bar.low, bar.close, bar.volume].map(number.write),
            '3',
          ])
          const write = (cells: readonly string[]): string => order.map((place) => cells[place]).join(number.delimiter)
          const { rows, table } = await read(Buffer.from([header.map(spell), ...lines].map(write).join('\n')))
          expect(rows.map(shape)).to.deep.equal(bars.map(shape))
          expect(table.columns.find(({ name }) => /spread/i.test(name))).to.include({ used_as: null })
          expect(table.columns.filter(({ used_as }) => used_as !== null)).to.have.length(6)
        },
      ),
      { numRuns: 200 },
    )
  })

  it('without a header come back in any order of the prices', () =>
    fc.assert(
      fc.asyncProperty(series, fc.shuffledSubarray([...PRICE_FIELDS], { minLength: 4 }), async (bars, order) => {
        const lines = bars.map((bar) => [bar.time / 1000, ...order.map((field) => bar[field]), bar.volume].join(','))
        const { rows, table } = await read(Buffer.from(lines.join('\n')))
        expect(rows.map(shape)).to.deep.equal(bars.map(shape))
        expect(table.columns[1]).to.include({ used_as: order[0], why: 'by its values' })
      }),
      { numRuns: 100 },
    ))

  it('under names that nobody knows come back by their values', () =>
    fc.assert(
      fc.asyncProperty(series, async (bars) => {
        const lines = bars.map(({ time, open, high, low, close, volume }) =>
          [time, open, high, low, close, volume].join(','),
        )
        const { rows } = await read(Buffer.from(['aika,avaus,ylin,alin,päätös,vaihto', ...lines].join('\n')))
        expect(rows.map(shape)).to.deep.equal(bars.map(shape))
      }),
      { numRuns: 30 },
    ))

  it('are refused if their names and values disagree, with what was seen', async () => {
    const rows = Array.from({ length: 40 }, (_, i) => `2024-01-01 00:${10 + i},100,101,103,99`)
    const { type, msg } = await refusal(['time,open,high,low,close', ...rows].join('\n'))
    expect(type).to.equal('column_order')
    expect(msg).to.contain('in only 0 of 40 rows').and.to.contain('"low" is the largest in 40')
    const unordered = Array.from({ length: 40 }, (_, i) => `2024-01-01 00:${10 + i},${i % 2 ? '1,2,3,4' : '4,3,2,1'},9`)
    expect(await refusal(unordered.join('\n'))).to.include({ type: 'column_order' })
    expect((await refusal('time,open,high,low\n2024-01-01,1,2,1')).msg).to.contain('missing: close')
  })
})
