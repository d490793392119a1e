import { expect } from 'chai'
import * as fc from 'fast-check'
import { InvalidInput } from '../../../gateway/errors.ts'
import { readUploadedBars } from '../../../plugins/audit/reference/uploaded-bars.ts'
import { createZone } from '../../../plugins/lib/time/time-zones.ts'
import { type Bar, fileOf, series, type Vendor, VENDORS } from '../lib/tables/vendor-bars.ts'
import { auditOf } from './audit-fixtures.ts'

const HOUR = 3_600_000
const START = Date.UTC(2024, 2, 4)

/** Hourly bars of a market that never closes. */
const hourly: readonly Bar[] = Array.from({ length: 400 }, (_, i) => {
  const open = 100 + Math.round(1000 * Math.sin(i / 9)) / 100
  const close = 100 + Math.round(1000 * Math.sin((i + 1) / 9)) / 100
  const [high, low] = [Math.max(open, close) + 0.05, Math.min(open, close) - 0.05]
  return {
    time: START + i * HOUR,
    open,
    high: Number(high.toFixed(2)),
    low: Number(low.toFixed(2)),
    close,
    volume: 900,
  }
})

const at = (time: number): string => new Date(time).toISOString().slice(0, 16).replace('T', ' ')

/** Trades that enter at the open of a bar and leave at its close, seven bars later. */
const ledger = [
  'side,qty,entry_time,entry_price,exit_time,exit_price',
  ...Array.from({ length: 15 }, (_, i) => {
    const [entry, exit] = [hourly[13 + 20 * i]!, hourly[20 + 20 * i]!]
    return `long,1,${at(entry.time)},${entry.open},${at(exit.time)},${exit.close}`
  }),
]

describe('uploaded bars', () => {
  for (const name of ['MetaTrader 5', 'date and time', 'a clock of an unknown name', 'Stooq', 'TradeStation'])
    it(`with day and hour in two columns, as of ${name}, do not all fall on midnight`, async () => {
      const { fills } = await auditOf(ledger, { bars: fileOf(VENDORS[name]!, hourly).toString() })
      expect(fills).to.deep.include({ fills: 30, checked: 30, impossible: 0 })
    })

  it('are listed with what each column is used as, or why it is not', async () => {
    const [header, ...rows] = fileOf(VENDORS['date and time']!, hourly).toString().trim().split('\n')
    const noted = [`${header},note`, ...rows.map((row) => `${row},fine`)].join('\n')
    const { reading } = await auditOf(ledger, { bars: noted })
    expect(reading.bars?.map(({ name }) => name)).to.deep.equal(`${header},note`.split(','))
    expect(reading.bars?.at(-1)).to.include({ used_as: null }).and.have.property('why').that.is.a('string')
    expect(reading.bars?.map(({ used_as: use }) => use)).to.include.members(['open', 'high', 'low', 'close', 'clock'])
    expect((await auditOf(ledger)).reading).not.to.have.property('bars')
  })

  it('are the same series whoever wrote them', () =>
    fc.assert(
      fc.asyncProperty(series, async (bars) => {
        const read = async (vendor: Vendor) => [...(await readUploadedBars(fileOf(vendor, bars))).series.values()][0]!
        const first = await read(VENDORS['date and time']!)
        for (const vendor of Object.values(VENDORS).filter(({ volume }) => volume !== null))
          expect(await read(vendor)).to.deep.equal(first)
      }),
      { numRuns: 5 },
    ))

  it('without a zone are read in the one that is stated, over both changes of clocks', async () => {
    const zone = createZone('Europe/Berlin')!
    for (const month of [2, 9]) {
      const from = Date.UTC(2024, month, 24) / 1000
      const bars = hourly.slice(0, 24 * 9).map((bar, i) => ({ ...bar, time: from * 1000 + i * HOUR }))
      const walls = bars.map((bar) => ({ ...bar, time: bar.time + 1000 * zone(bar.time / 1000) }))
      const { series: read, zoned } = await readUploadedBars(fileOf(VENDORS['date and time']!, walls), zone)
      expect([...read.values()][0]!.time).to.deep.equal(Float64Array.from(bars, ({ time }) => time))
      expect(zoned).to.equal(true)
    }
  })

  it('that name a zone in words are read in it, and refused if they name two', async () => {
    const zone = createZone('US/Eastern')!
    const bars = hourly.slice(0, 200)
    const line = ({ time, open, high, low, close }: Bar, name = 'US/Eastern'): string => {
      const wall = new Date(time + 1000 * zone(time / 1000)).toISOString()
      return `${wall.slice(0, 10).replaceAll('-', '')} ${wall.slice(11, 19)} ${name},${open},${high},${low},${close}`
    }
    const header = 'date,open,high,low,close'
    const file = [header, ...bars.map((bar) => line(bar))].join('\n')
    const { series: read, zoned } = await readUploadedBars(Buffer.from(file))
    expect([...read.values()][0]!.time).to.deep.equal(Float64Array.from(bars, ({ time }) => time))
    expect(zoned).to.equal(true)
    const half = [header, ...bars.map((bar, i) => (i < 50 ? line(bar).replace(' US/Eastern', '') : line(bar)))].join(
      '\n',
    )
    const mixed = [header, ...bars.map((bar, i) => line(bar, i === 50 ? 'Europe/Rome' : 'US/Eastern'))].join('\n')
    for (const wrong of [half, mixed]) {
      const error = await readUploadedBars(Buffer.from(wrong)).then(
        () => expect.fail('was read'),
        (thrown: unknown) => thrown as InvalidInput,
      )
      expect(error.detail[0]).to.include({ type: 'mixed_time_zones' })
    }
  })

  it('of several instruments are told apart by a column of any name', async () => {
    const file = [
      'date,what,open,high,low,close',
      ...hourly.flatMap(({ time, ...bar }) => [
        `${at(time)},AAA,${bar.open},${bar.high},${bar.low},${bar.close}`,
        `${at(time)},BBB,${bar.open * 9},${bar.high * 9},${bar.low * 9},${bar.close * 9}`,
      ]),
    ]
    const { series: read, table } = await readUploadedBars(Buffer.from(file.join('\n')))
    expect([...read.keys()]).to.deep.equal(['AAA', 'BBB'])
    expect(table.columns[1]).to.deep.equal({ name: 'what', used_as: 'symbol', why: 'by its values' })
  })

  it('are refused if most of their times repeat, with the columns that were not used', async () => {
    const file = [
      'date,open,high,low,close,id',
      ...['11', '12'].flatMap((id) =>
        hourly.map(({ time, open, high, low, close }) => `${at(time)},${open},${high},${low},${close},${id}`),
      ),
    ]
    const error = await readUploadedBars(Buffer.from(file.join('\n'))).then(
      () => expect.fail('was read'),
      (thrown: unknown) => thrown as InvalidInput,
    )
    expect(error.detail[0]).to.include({ type: 'repeated_times' })
    expect(error.detail[0]?.msg).to.contain('"symbol"').and.to.contain('Not used: "id"')
  })
})
