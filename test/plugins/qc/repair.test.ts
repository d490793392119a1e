import { expect } from 'chai'
import * as fc from 'fast-check'
import type { RepairedBars } from '../../../schemas/types.d.ts'
import checkBarQuality from '../../../plugins/qc/bar-quality.ts'
import { FAMILIES } from '../../../plugins/qc/finding-codes.ts'
import { formatBarTime } from '../../../plugins/qc/bar-times.ts'
import { randomWalk, weekdays } from './random-walk.ts'

const FIELDS = ['open', 'high', 'low', 'close', 'volume'] as const
type Row = [t: number, o: number | null, h: number | null, l: number | null, c: number | null, v: number | null]

const rounded = (count: number, seed: number): Row[] =>
  randomWalk({ count, seed }).map(({ t, o, h, l, c, v }) => {
    const [open, high, low, close] = [o, h, l, c].map((price) => Number(price.toFixed(3))) as [
      number,
      number,
      number,
      number,
    ]
    return [t, open, high, low, close, Math.round(v)]
  })

function repair(bars: readonly Row[], more: object = {}): RepairedBars {
  const { repaired } = checkBarQuality({ bars, repair: true, ...more })
  return repaired!
}

/** A row with a defect. */
const DEFECTS: Readonly<Record<string, (row: Row) => Row>> = {
  'a missing close': ([t, o, h, l, , v]) => [t, o, h, l, null, v],
  'a high without its digit': ([t, o, , l, c, v]) => [t, o, 0, l, c, v],
  'high and low exchanged': ([t, o, h, l, c, v]) => [t, o, l, h, c, v],
  'a negative volume': ([t, o, h, l, c, v]) => [t, o, h, l, c, -v!],
  'a lone wick': ([t, o, h, l, c, v]) => [t, o, Number((h! * 1.05).toFixed(3)), l, c, v],
  'a misplaced decimal point': ([t, o, h, l, c, v]) => [t, o! / 10, h! / 10, l! / 10, c! / 10, v],
  'an open outside its range': ([t, , h, l, c, v]) => [t, Number((h! * 1.02).toFixed(3)), h, l, c, v],
  'no prices': ([t, , , , , v]) => [t, null, null, null, null, v],
}

describe('repaired bars', () => {
  it('are the bars themselves if nothing is wrong, and only sent if asked for', () => {
    const bars = rounded(300, 2)
    const { columns, rows, ...rest } = repair(bars)
    expect(columns).to.deep.equal(['timestamp', ...FIELDS, 'index'])
    expect(rows).to.deep.equal(bars.map(([t, ...values], index) => [formatBarTime(t), ...values, index]))
    expect(rest).to.deep.equal({ changes: [], dropped: [], splits: [], turned_around: false, remaining: {} })
    expect(checkBarQuality({ bars })).not.to.have.property('repaired')
  })

  it('differ from the bars only where a change, a drop or a split says so, and have no errors left', () => {
    const defect = fc.record({ at: fc.integer({ min: 5, max: 290 }), name: fc.constantFrom(...Object.keys(DEFECTS)) })
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 50 }),
        fc.uniqueArray(defect, { maxLength: 6, selector: ({ at }) => Math.floor(at / 12) }),
        fc.option(fc.integer({ min: 5, max: 290 })),
        fc.boolean(),
        (seed, defects, twice, isBackwards) => {
          const bars = rounded(300, seed)
          for (const { at, name } of defects) bars[at] = DEFECTS[name]!(bars[at]!)
          if (twice !== null) bars.splice(twice, 0, [...bars[twice]!])
          if (isBackwards) bars.reverse()
          const { rows, changes, dropped, splits, turned_around, remaining } = repair(bars)
          expect(turned_around).to.equal(isBackwards)
          expect(splits).to.deep.equal([])
          const kept = rows.map((row) => row[6] as number)
          expect([...kept, ...dropped.map(({ index }) => index)].toSorted((a, b) => a - b)).to.deep.equal([
            ...bars.keys(),
          ])
          const times = rows.map(([time]) => Date.parse(time as string))
          expect(times.every((time, i) => i === 0 || time > times[i - 1]!)).to.equal(true)
          for (const row of rows) {
            const index = row[6] as number
            for (const [place, field] of FIELDS.entries()) {
              const own = changes.filter((change) => change.index === index && change.field === field)
              expect(row[place + 1]).to.equal(own.length > 0 ? own.at(-1)!.to : bars[index]![place + 1])
              if (own.length > 0) expect(own[0]!.from).to.equal(bars[index]![place + 1])
            }
          }
          const errors = Object.keys(remaining).filter((code) =>
            ['impossible', 'bad_print'].includes(FAMILIES[code as keyof typeof FAMILIES]),
          )
          expect(errors).to.deep.equal([])
          expect(dropped.length).to.be.at.most(defects.length + 1)
        },
      ),
      { numRuns: 150 },
    )
  })

  it('are adjusted for splits, and have none when they are sent again', () => {
    const daily = randomWalk({ count: 400, times: weekdays('2022-01-03', 400), volatility: 0.012 })
    const bars = daily.map(({ t, o, h, l, c, v }, i): Row => {
      const factor = i < 200 ? 4 : 1
      return [t, o * factor, h * factor, l * factor, c * factor, v / factor]
    })
    const { columns, rows, splits, changes } = repair(bars)
    expect(changes).to.deep.equal([])
    expect(splits).to.deep.equal([
      { index: 200, timestamp: formatBarTime(daily[200]!.t), ratio: '4:1', factor: 4, bars: 200 },
    ])
    for (const [i, row] of rows.entries()) {
      expect(row[4]).to.be.closeTo(daily[i]!.c, 1e-9)
      expect(row[5]).to.be.closeTo(daily[i]!.v, 1e-6)
    }
    expect(checkBarQuality({ columns, rows }).splits).to.deep.equal([])
  })

  it('name rows that were out of order, and drop what repeats', () => {
    const bars = rounded(100, 3)
    const [moved] = bars.splice(40, 1)
    bars.splice(60, 0, moved!)
    const { rows, changes } = repair(bars)
    expect(rows[40]![6]).to.equal(60)
    expect(changes).to.deep.equal([
      {
        index: 60,
        code: 'out_of_order_timestamp',
        field: 'timestamp',
        from: formatBarTime(moved![0]),
        to: formatBarTime(moved![0]),
      },
    ])
    const { dropped } = repair([...rounded(100, 3), rounded(100, 3)[99]!])
    expect(dropped).to.deep.equal([{ index: 100, code: 'duplicate_timestamp' }])
  })
})
