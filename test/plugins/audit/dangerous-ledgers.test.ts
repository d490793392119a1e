/** Ledgers that look good and are not: each was plausible before. */
import { expect } from 'chai'
import { auditOf, barsText, makeDays, ROUND_TRIPS } from './audit-fixtures.ts'

const bars = makeDays(420)
const FREE = { preset: 'zero', trials: 1 } as const

describe('a dangerous ledger', () => {
  it('that wins 399 small trades and loses everything in a large one is not profitable', async () => {
    const lines = bars.slice(0, 399).map(({ day, low, high }, i) => {
      const price = low + 0.3 * (high - low)
      const gain = i % 3 === 0 ? -0.001 : 0.002
      return `ACME,long,${1000 / price},${day},${price},${day},${price * (1 + gain)}`
    })
    const { day, high } = bars[400]!
    const last = `ACME,long,${1e7 / high},${day},${high},${bars[401]!.day},${high * 0.9}`
    const { verdict, reasons, grounds, performance, days, money } = await auditOf([ROUND_TRIPS, ...lines, last], {
      ...FREE,
      bars: barsText(bars),
    })
    expect(performance.net_expectancy_bps).to.be.above(0)
    expect(money.net).to.be.below(-990_000)
    expect(days.money_t_stat).to.be.below(0)
    expect(verdict).to.equal('not_profitable')
    expect(reasons).to.include.members(['money_not_positive', 'trade_and_money_signs_differ'])
    expect(grounds.find(({ code }) => code === 'money_not_positive')?.value).to.equal(money.net)
  })

  it('without a loser is unproven, whatever else it shows', async () => {
    const lines = bars.slice(0, 300).map(({ day, low, high }, i) => {
      const price = low + 0.2 * (high - low)
      return `ACME,long,10,${day},${price},${day},${price * (1 + 0.0005 + (i % 5) * 0.0004)}`
    })
    const { verdict, reasons, days } = await auditOf([ROUND_TRIPS, ...lines], { ...FREE, bars: barsText(bars) })
    expect(verdict).to.equal('unproven')
    expect(reasons).to.include.members(['no_losing_trade', 'sharpe_above_10'])
    expect(days.sharpe).to.be.above(10)
  })

  it('that leaves its losers open is unproven: they are held to the last known price', async () => {
    const inside = (index: number, place: number): number => {
      const { low, high } = bars[index]!
      return low + place * (high - low)
    }
    const closed = Array.from({ length: 340 }, (_, i) => {
      const entry = inside(i, 0.4)
      return `ACME,long,10,${bars[i]!.day},${entry},${bars[i]!.day},${entry * (i % 40 === 0 ? 0.999 : 1.002)}`
    })
    const cheapest = bars.slice(0, 300).reduce((least, { low }, i) => (low < bars[least]!.low ? i : least), 0)
    // Sold short where the price is lowest: far under water at the end.
    const open = Array.from(
      { length: 20 },
      (_, i) => `ACME,short,30,${bars[cheapest]!.day},${inside(cheapest, 0.2 + i / 100)},,`,
    )
    const report = await auditOf([ROUND_TRIPS, ...closed, ...open], { ...FREE, bars: barsText(bars) })
    expect(report.ledger.open).to.equal(20)
    expect(report.reasons).to.include('open_positions_could_turn_it')
    expect(report.verdict).to.equal('unproven')
    const ground = report.grounds.find(({ code }) => code === 'open_positions_could_turn_it')
    expect(ground?.value).to.be.below(-report.money.net!)
    expect(report.days.mean_bps).to.be.below(0)
  })

  it('of two to ten trades is unproven, with exact probabilities', async () => {
    const { verdict, reasons, performance, overfitting } = await auditOf(
      [ROUND_TRIPS, 'X,long,1,2024-01-02,100,2024-01-03,101', 'X,long,1,2024-01-04,100,2024-01-05,101.1'],
      FREE,
    )
    expect(performance.net_expectancy_bps).to.be.closeTo(105, 1e-9)
    expect(verdict).to.equal('unproven')
    expect(reasons).to.include('too_few_effective_bets')
    // Student's t with one degree of freedom at 21 is 1.5 %, not 1e-98.
    expect(overfitting.psr).to.be.closeTo(1 - 0.015146, 1e-5)
    expect(overfitting.p_value).to.be.closeTo(2 * 0.015146, 1e-5)
  })

  it('that holds an index in pieces is unproven: the benchmark explains it', async () => {
    const rising = bars.map((bar, i) => {
      const growth = 1.002 ** i
      const { day, volume } = bar
      return {
        day,
        volume,
        open: bar.open * growth,
        high: bar.high * growth,
        low: bar.low * growth,
        close: bar.close * growth,
      }
    })
    const lines = Array.from({ length: 80 }, (_, i) => {
      const [entry, exit] = [rising[5 * i]!, rising[5 * i + 5]!]
      return `ACME,long,10,${entry.day},${entry.close},${exit.day},${exit.close}`
    })
    const { reasons, days, verdict } = await auditOf([ROUND_TRIPS, ...lines], { ...FREE, bars: barsText(rising) })
    expect(days.t_stat).to.be.above(1.96)
    expect(days.beta).to.be.closeTo(1, 0.02)
    expect(reasons).to.deep.equal(['benchmark_explains_it'])
    expect(verdict).to.equal('unproven')
  })
})
