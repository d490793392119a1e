import { expect } from 'chai'
import fc from 'fast-check'
import { type Execution, type PositionHistory, positionHistory } from '../../../plugins/audit/read/positions.ts'

const HOUR = 3_600_000

/** A fill at an hour of its own, in one of two symbols. */
const fill = fc.record({
  symbol: fc.constantFrom(0, 1),
  sign: fc.constantFrom<1 | -1>(1, -1),
  price: fc.integer({ min: 5000, max: 20_000 }).map((price) => price / 100),
  qty: fc.oneof(fc.integer({ min: 1, max: 10 }), fc.integer({ min: 1, max: 2000 })),
  fee: fc.oneof(
    fc.constant(0),
    fc.integer({ min: -10, max: 200 }).map((fee) => fee / 100),
  ),
  kind: fc.oneof(fc.constant(0), fc.constant(1e-3)),
})
const fills = fc.array(fill, { minLength: 1, maxLength: 30 }).map((list) =>
  list.map((one, row): Execution => {
    const isKind = one.kind > 0
    return {
      ...one,
      row,
      trial: 0,
      time: row * HOUR,
      pnl: Number.NaN,
      book: 0,
      kind: one.kind * one.qty,
      fee: isKind ? Number.NaN : one.fee,
    }
  }),
)

const cashOf = (executions: readonly Execution[]): number =>
  executions.reduce((sum, { sign, qty, price, fee }) => sum - sign * qty * price - (fee || 0), 0)
const profitOf = ({ trades }: Pick<PositionHistory, 'trades'>): number =>
  trades.reduce(
    (sum, { sign, qty, entryPrice, exitPrice, fees }) => sum + sign * qty * (exitPrice - entryPrice) - (fees || 0),
    0,
  )
/** What the history still holds: open positions at their cost, remainders at the price of the last exit. */
const heldOf = ({ open, remainders }: PositionHistory): number =>
  open.reduce((sum, { sign, qty, entryPrice, fees }) => sum + sign * qty * entryPrice + (fees || 0), 0) +
  remainders.reduce((sum, { sign, qty, price }) => sum + sign * qty * price, 0)

/** The figures of a history, without the rows. */
function figuresOf({ trades, open, remainders }: PositionHistory): number[] {
  return [
    ...trades.flatMap(({ symbol, sign, qty, entryPrice, exitPrice, entryTime, exitTime, fees }) => [
      symbol,
      sign,
      qty,
      entryPrice,
      exitPrice,
      Math.floor(entryTime / HOUR),
      Math.floor(exitTime / HOUR),
      fees || 0,
    ]),
    ...open.flatMap(({ symbol, sign, qty, entryPrice, fees }) => [symbol, sign, qty, entryPrice, fees || 0]),
    ...remainders.flatMap(({ symbol, sign, qty, price }) => [symbol, sign, qty, price]),
  ]
}

function expectNear(actual: readonly number[], expected: readonly number[]): void {
  expect(actual).to.have.length(expected.length)
  for (const [index, value] of actual.entries())
    expect(value).to.be.closeTo(expected[index]!, 1e-6 * Math.max(1, Math.abs(expected[index]!)))
}

describe('trips of positions', () => {
  it('make the cash of the fills, with what is still held at its cost', () => {
    fc.assert(
      fc.property(fills, (executions) => {
        const history = positionHistory(executions)
        expect(profitOf(history) - heldOf(history)).to.be.closeTo(cashOf(executions), 1e-4)
      }),
      { numRuns: 600 },
    )
  })

  it('make the cash of any fills that end flat', () => {
    fc.assert(
      fc.property(fills, (executions) => {
        const closing = [0, 1].flatMap((symbol): Execution[] => {
          const own = executions.filter((one) => one.symbol === symbol)
          const held = own.reduce((sum, { sign, qty, kind }) => sum + sign * qty - kind, 0)
          if (Math.abs(held) < 1e-9) return []
          const sign = held > 0 ? -1 : 1
          const row = executions.length
          return [{ ...executions[0]!, row, symbol, sign, qty: Math.abs(held), time: row * HOUR, fee: 0, kind: 0 }]
        })
        const all = [...executions, ...closing]
        const history = positionHistory(all)
        const units = [...history.open, ...history.remainders].reduce((sum, { sign, qty }) => sum + sign * qty, 0)
        expect(units).to.be.closeTo(0, 1e-6)
        if (history.open.length + history.remainders.length === 0)
          expect(profitOf(history)).to.be.closeTo(cashOf(all), 1e-4)
      }),
      { numRuns: 1000 },
    )
  })

  it('do not change if a fill is split into parts', () => {
    fc.assert(
      fc.property(fills, fc.infiniteStream(fc.double({ min: 0.01, max: 0.99, noNaN: true })), (executions, shares) => {
        const split = executions.flatMap((execution): Execution[] => {
          const share = shares.next().value as number
          return [share, 1 - share].map((part) => ({
            ...execution,
            qty: execution.qty * part,
            fee: execution.fee * part,
            kind: execution.kind * part,
          }))
        })
        expectNear(figuresOf(positionHistory(split)), figuresOf(positionHistory(executions)))
      }),
      { numRuns: 600 },
    )
  })

  it('are the same for two instruments together and apart', () => {
    fc.assert(
      fc.property(fills, (executions) => {
        const together = positionHistory(executions)
        const apart = [0, 1].map((symbol) => positionHistory(executions.filter((one) => one.symbol === symbol)))
        for (const symbol of [0, 1])
          expect(together.trades.filter((one) => one.symbol === symbol)).to.deep.equal(apart[symbol]!.trades)
        expect(together.open).to.have.length(apart[0]!.open.length + apart[1]!.open.length)
      }),
      { numRuns: 500 },
    )
  })
})
