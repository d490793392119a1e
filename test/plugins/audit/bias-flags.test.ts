import { expect } from 'chai'
import { studentTail } from '../../../plugins/audit/checks/bias-flags.ts'
import type { Trip } from '../../../scripts/bench/products/ledger-layouts.ts'
import { auditOf, barsText, cents, type Day, days, line, ROUND_TRIPS, trips, uniform } from './place.ts'

const list = days(400)
const honest = trips(list)
const barOf = (day: string): Day => list.find((one) => one.day === day)!
const codes = async (ledger: readonly Trip[]): Promise<string[]> =>
  (await auditOf([ROUND_TRIPS, ...ledger.map(line)], { bars: barsText(list) })).fills.flags.map(({ code }) => code)
const within = ({ low, high }: Day, place: number): number => cents(low + (high - low) * place)

describe('the flags of an audit', () => {
  it('are not raised for fills at random prices', async () => {
    expect(await codes(honest)).to.deep.equal([])
  })

  it('are raised for buys at the bottom of their bars', async () => {
    const next = uniform(5)
    const knowing = honest.map((trip) => ({
      ...trip,
      sign: 1 as const,
      entryPrice: within(barOf(trip.entryTime), 0.03 + 0.1 * next()),
      exitPrice: within(barOf(trip.exitTime), 0.3 + 0.4 * next()),
    }))
    expect(await codes(knowing)).to.deep.equal(['lookahead_extremes'])
    expect(await codes(knowing.slice(0, 29)), 'too few to say').to.deep.equal([])
    const both = knowing.map((trip) => ({ ...trip, exitPrice: within(barOf(trip.exitTime), 0.95) }))
    expect(await codes(both)).to.deep.equal(['lookahead_extremes', 'lookahead_extremes'])
  })

  it('are raised for entries at the open that match the direction of the bar', async () => {
    const knowing = honest.map((trip) => {
      const { open, close } = barOf(trip.entryTime)
      return { ...trip, entryPrice: open, sign: close > open ? (1 as const) : (-1 as const) }
    })
    expect(await codes(knowing)).to.deep.equal(['lookahead_same_bar'])
    const guessing = knowing.map((trip, i) => ({ ...trip, sign: i % 2 === 0 ? (1 as const) : (-1 as const) }))
    expect(await codes(guessing)).to.deep.equal([])
  })

  it('are raised for fills exactly on highs and lows', async () => {
    const touching = honest.map((trip, i) => {
      const { high, low } = barOf(trip.entryTime)
      return { ...trip, entryPrice: i % 2 === 0 ? high : low }
    })
    expect(await codes(touching)).to.include('touch_fill')
  })

  it('warn of survivorship for many symbols over many years, without a rejection', async () => {
    const lines = Array.from({ length: 60 }, (_, i) => {
      const year = 2014 + (i % 6)
      return `S${i},long,1,${year}-03-03,100,${year}-03-07,${101 + (i % 3)}`
    })
    const report = await auditOf([ROUND_TRIPS, ...lines])
    expect(report.fills.flags).to.have.length(1)
    expect(report.fills.flags[0]).to.include({ code: 'survivorship', severity: 'info' })
    expect(report.reasons).not.to.include('survivorship')
    const brief = lines.map((text) => text.replaceAll(/20\d\d/g, '2019'))
    expect((await auditOf([ROUND_TRIPS, ...brief])).fills.flags).to.deep.equal([])
  })

  it('use a t test that matches published tables', () => {
    expect(studentTail(2.0423, 30)).to.be.closeTo(0.025, 1e-4)
    expect(studentTail(3.646, 30)).to.be.closeTo(0.0005, 1e-5)
    expect(studentTail(1.6449, 1e6)).to.be.closeTo(0.05, 1e-4)
  })
})
