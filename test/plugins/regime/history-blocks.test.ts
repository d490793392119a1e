import { expect } from 'chai'
import fc from 'fast-check'
import { historyItem, type SoldSnapshot, writeRows } from '../../../plugins/regime/history-blocks.ts'

const snapshot: fc.Arbitrary<SoldSnapshot> = fc.record({
  as_of: fc.integer({ min: 0, max: 4e9 }),
  volatile: fc.constantFrom(0, 1),
  confidence: fc.oneof(
    fc.integer({ min: 0, max: 10_000 }).map((n) => n / 10_000),
    fc.double({ min: 0, max: 1, noNaN: true }),
  ),
  position_scalar: fc.double({ min: 0.25, max: 1.5, noNaN: true }),
  forecast_vol: fc.double({ min: 0, max: 9, noNaN: true }),
  forecast_vol_mean: fc.option(fc.double({ min: 0, max: 9, noNaN: true })),
  boundary_vol: fc.double({ min: 0, max: 9, noNaN: true }),
  realized_vol_1h: fc.option(fc.double({ min: 0, max: 9, noNaN: true })),
  model: fc.constantFrom(null, 1),
  known_at: fc.integer({ min: 0, max: 4e9 }),
  origin: fc.constantFrom(null, 0, 1, 2, 3),
})

describe('rows of the history', () => {
  it('are written as JSON.stringify writes their items', () => {
    fc.assert(
      fc.property(fc.array(snapshot), fc.string(), fc.boolean(), (rows, symbol, hasOrigin) => {
        const label = { symbol, hasOrigin }
        expect(writeRows(rows, label)).to.deep.equal(rows.map((row) => JSON.stringify(historyItem(row, label))))
      }),
    )
  })
})
