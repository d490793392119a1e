import { expect } from 'chai'
import {
  createPrintFilter,
  filterPrint,
  type FilteredBar,
  type PrintFilter,
} from '../../../../plugins/lib/quant/bad-prints.ts'

/** Two hours of quiet closes around 100 that move by about two basis points. */
const QUIET = Array.from({ length: 120 }, (_, i) => 100 + 0.02 * Math.sin(i * 2.4))

function pass(closes: readonly number[], filter: PrintFilter = createPrintFilter()): FilteredBar[] {
  return closes.map((close, i) => {
    const open = closes[i - 1] ?? close
    const out: FilteredBar = { open: 0, high: 0, low: 0, close: 0, verdict: 'good' }
    filterPrint(filter, out, open, Math.max(open, close), Math.min(open, close), close)
    return { ...out }
  })
}
const tail = (closes: readonly number[]): FilteredBar[] => pass([...QUIET, ...closes]).slice(QUIET.length)

describe('the bad-print filter', () => {
  it('passes ordinary bars unchanged', () => {
    const out = pass(QUIET)
    expect(out.map(({ close }) => close)).to.deep.equal(QUIET)
    expect(new Set(out.map(({ verdict }) => verdict))).to.deep.equal(new Set(['good']))
  })

  it('holds back a spike and drops it when the price returns', () => {
    const [spike, returned] = tail([105, 100])
    expect(spike).to.deep.include({ close: QUIET.at(-1), high: QUIET.at(-1), verdict: 'held' })
    expect(returned).to.deep.include({ close: 100, verdict: 'reverted' })
    expect(returned!.high).to.be.below(100.3)
  })

  it('accepts a move one bar late, after the next bar confirms it', () => {
    const [held, confirmed] = tail([103, 103.1])
    expect(held!.verdict).to.equal('held')
    expect(confirmed).to.deep.include({ close: 103.1, verdict: 'confirmed' })
  })

  it('accepts a move that mostly remains and drops one that mostly reverted', () => {
    expect(tail([103, 102])[1]!.verdict).to.equal('confirmed')
    expect(tail([103, 100.05])[1]!.verdict).to.equal('reverted')
  })

  it('holds back at most three bars in a row', () => {
    const closes = tail([105, 95, 105, 95, 105, 95])
    expect(closes.map(({ verdict }) => verdict).slice(0, 4)).to.deep.equal(['held', 'held', 'held', 'confirmed'])
  })

  it('cuts a wick beyond eight scales and does not change the close', () => {
    const filter = createPrintFilter()
    pass(QUIET, filter)
    const out: FilteredBar = { open: 0, high: 0, low: 0, close: 0, verdict: 'good' }
    const before = filter.close
    filterPrint(filter, out, before, 140, before, before)
    expect(out.close).to.equal(before)
    expect(Math.log(out.high / before)).to.be.closeTo(8 * filter.scale, 0.2 * filter.scale)
  })

  it('adapts to a market that becomes more volatile', () => {
    const volatile = Array.from({ length: 200 }, (_, i) => 100 + (i % 2 === 0 ? 1 : -1))
    const late = tail(volatile).slice(100)
    expect(late.filter(({ verdict }) => verdict === 'held')).to.have.length(0)
  })
})
