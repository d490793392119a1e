import { expect } from 'chai'
import type { Trip } from './ledger-layouts.ts'
import { averagingDown } from './simulated-ledgers.ts'
import {
  auditOf,
  barsText,
  cents,
  type Day,
  makeDays,
  tradeLine,
  ROUND_TRIPS,
  makeTrades,
  seededUniform,
} from './audit-fixtures.ts'

const dailyBars = makeDays(400)
const honestTrades = makeTrades(dailyBars)
const barOf = (day: string): Day => dailyBars.find((one) => one.day === day)!
const codes = async (ledger: readonly Trip[]): Promise<string[]> =>
  (await auditOf([ROUND_TRIPS, ...ledger.map(tradeLine)], { bars: barsText(dailyBars) })).fills.flags.map(
    ({ code }) => code,
  )
const priceWithin = ({ low, high }: Day, fraction: number): number => cents(low + (high - low) * fraction)

describe('the flags of an audit', () => {
  it('are not raised for fills at random prices', async () => {
    expect(await codes(honestTrades)).to.deep.equal([])
  })

  it('are raised for buys at the bottom of their bars', async () => {
    const random = seededUniform(5)
    const lookaheadTrades = honestTrades.map((trip) => ({
      ...trip,
      sign: 1 as const,
      entryPrice: priceWithin(barOf(trip.entryTime), 0.03 + 0.1 * random()),
      exitPrice: priceWithin(barOf(trip.exitTime), 0.3 + 0.4 * random()),
    }))
    expect(await codes(lookaheadTrades)).to.deep.equal(['lookahead_extremes'])
    expect(await codes(lookaheadTrades.slice(0, 29)), 'too few to say').to.deep.equal([])
    const bothEnds = lookaheadTrades.map((trip) => ({ ...trip, exitPrice: priceWithin(barOf(trip.exitTime), 0.95) }))
    expect(await codes(bothEnds)).to.deep.equal(['lookahead_extremes', 'lookahead_extremes'])
  })

  it('are raised for entries at the open that match the direction of the bar', async () => {
    const lookaheadTrades = honestTrades.map((trip) => {
      const { open, close } = barOf(trip.entryTime)
      return { ...trip, entryPrice: open, sign: close > open ? (1 as const) : (-1 as const) }
    })
    expect(await codes(lookaheadTrades)).to.deep.equal(['lookahead_same_bar'])
    const alternatingTrades = lookaheadTrades.map((trip, i) => ({
      ...trip,
      sign: i % 2 === 0 ? (1 as const) : (-1 as const),
    }))
    expect(await codes(alternatingTrades)).to.deep.equal([])
  })

  it('are not raised for entries at the open that match as often as the bars of their symbol rise', async () => {
    const rising = dailyBars.filter(({ open, close }) => close > open)
    const trades = rising.slice(0, 100).map(({ day, open }, i): Trip => ({
      ...honestTrades[0]!,
      sign: 1,
      entryTime: day,
      entryPrice: open,
      exitTime: rising[i + 1]!.day,
      exitPrice: priceWithin(rising[i + 1]!, 0.5),
    }))
    const flagsWith = async (bars: readonly Day[]): Promise<string[]> => {
      const report = await auditOf([ROUND_TRIPS, ...trades.map(tradeLine)], { bars: barsText(bars) })
      return report.fills.flags.map(({ code }) => code)
    }
    expect(await flagsWith(rising)).to.deep.equal([])
    expect(await flagsWith(dailyBars)).to.deep.equal(['lookahead_same_bar'])
  })

  it('are not raised for orders at the close, however near to the low it is', async () => {
    for (let seed = 1; seed <= 20; seed += 1) {
      const { file, bars } = averagingDown(seed)
      const report = await auditOf(file, { bars, preset: 'zero', trials: 1 })
      expect(
        report.fills.flags.map(({ code }) => code),
        `seed ${seed}`,
      ).to.deep.equal([])
    }
  })

  it('are raised for fills exactly on highs and lows', async () => {
    const extremeTrades = honestTrades.map((trip, i) => {
      const { high, low } = barOf(trip.entryTime)
      return { ...trip, entryPrice: i % 2 === 0 ? high : low }
    })
    expect(await codes(extremeTrades)).to.include('touch_fill')
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
    const oneYear = lines.map((text) => text.replaceAll(/20\d\d/g, '2019'))
    expect((await auditOf([ROUND_TRIPS, ...oneYear])).fills.flags).to.deep.equal([])
  })
})
