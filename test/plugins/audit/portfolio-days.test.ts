import { expect } from 'chai'
import fc from 'fast-check'
import { auditOf, barsText, type Day, makeDays, ROUND_TRIPS } from './audit-fixtures.ts'

const at = (day: number): string => new Date(Date.UTC(2024, 0, 1 + day)).toISOString().slice(0, 10)
/** Bars on consecutive days from Monday, 1 January 2024 on, wide enough for any fill. */
const closes = (...prices: readonly number[]): Day[] =>
  prices.map((close, day) => ({ day: at(day), open: close, high: 400, low: 1, close, volume: 1e6 }))
const FREE = { preset: 'zero', trials: 1 } as const

describe('the days of an audit', () => {
  it('are marked at the closes of bars, in units of the entry price', async () => {
    // Long from 100: closes at 102, 101, 104, out at 103. Short from 50 at the second day, out at 49 on the third.
    const { days } = await auditOf(
      [ROUND_TRIPS, `X,long,2,${at(0)},100,${at(3)},103`, `Y,short,3,${at(1)},50,${at(2)},49`],
      {
        ...FREE,
        bars: [
          barsText(closes(102, 101, 104, 105), 'X'),
          barsText(closes(49, 51, 52, 53), 'Y').replace(/^.*\n/, ''),
        ].join(''),
      },
    )
    const [one, two, three, four] = [0.02, -0.01 - 0.02, 0.03 + 0.04, -0.01]
    const mean = (one + two + three + four) / 4
    const deviation = Math.sqrt([one, two, three, four].reduce((sum, value) => sum + (value - mean) ** 2, 0) / 3)
    expect(days).to.include({ method: 'marked', days: 4, marked_share: 1, why: null })
    expect(days.mean_bps).to.be.closeTo(mean * 1e4, 1e-9)
    expect(days.t_stat).to.be.closeTo((mean / deviation) * 2, 1e-9)
    // In money: 2 · (2, -1, 3, -1) and 3 · (-1, 2) on the second and third day.
    const money = [4, -2 - 3, 6 + 6, -2]
    const profit = money.reduce((sum, value) => sum + value, 0) / 4
    const spread = Math.sqrt(money.reduce((sum, value) => sum + (value - profit) ** 2, 0) / 3)
    expect(days.money_t_stat).to.be.closeTo((profit / spread) * 2, 1e-9)
  })

  it('are marked at fills of the symbol where there are no bars', async () => {
    const { days } = await auditOf(
      [
        ROUND_TRIPS,
        `X,long,1,${at(0)},100,${at(2)},103`,
        `X,long,1,${at(1)},110,${at(2)},103`,
        `X,long,1,${at(2)},103,${at(3)},99`,
      ],
      FREE,
    )
    const series = [0, 0.1, -0.07 - 7 / 110, -4 / 103]
    expect(days).to.include({ method: 'marked', days: 4, marked_share: 1 })
    expect(days.mean_bps).to.be.closeTo((series.reduce((sum, one) => sum + one, 0) / 4) * 1e4, 1e-9)
    expect(days.benchmark).to.equal(null)
  })

  it('count idle days between trades as 0, and none before or after', async () => {
    const { days } = await auditOf(
      [ROUND_TRIPS, `X,long,1,${at(1)},100,${at(1)},101`, `X,long,1,${at(9)},100,${at(9)},102`],
      {
        ...FREE,
        bars: barsText(closes(...Array.from({ length: 20 }, () => 100)), 'X'),
      },
    )
    expect(days.days).to.equal(9)
    expect(days.mean_bps).to.be.closeTo(300 / 9, 1e-9)
  })

  it('become blocks of at least twice the longest trade where no price is known between', async () => {
    const lines = Array.from({ length: 60 }, (_, i) => `X,long,1,${at(7 * i)},100,${at(7 * i + 5)},${100 + (i % 3)}`)
    const { days, reasons } = await auditOf([ROUND_TRIPS, ...lines], FREE)
    expect(days.method).to.equal('blocks')
    expect(days.block_days).to.be.within(10, 11)
    expect(days.why).to.include('no price')
    expect(reasons).to.include('no_daily_marks')
    const sparse = await auditOf(
      [ROUND_TRIPS, `X,long,1,${at(0)},100,${at(300)},120`, `X,long,1,${at(301)},100,${at(320)},99`],
      FREE,
    )
    expect(sparse.days).to.include({ method: 'none', t_stat: null })
  })

  it('name the share of days on which every position has a price', async () => {
    const { days } = await auditOf(
      [ROUND_TRIPS, `X,long,1,${at(0)},100,${at(39)},120`, `Y,long,1,${at(0)},100,${at(3)},99`],
      {
        ...FREE,
        bars: barsText(closes(...Array.from({ length: 60 }, (_, i) => 100 + (i % 7))), 'X'),
      },
    )
    // Y has no price on the second and third of forty days.
    expect(days.marked_share).to.be.closeTo(38 / 40, 1e-12)
    expect(days.method).to.equal('marked')
    expect(days.why).to.be.a('string')
  })

  it('add up to the net returns of the trades, whatever the bars are', async () => {
    const bars = makeDays(120)
    const place = fc.integer({ min: 0, max: 119 })
    await fc.assert(
      fc.asyncProperty(
        fc.array(
          fc.record({ from: place, to: place, isLong: fc.boolean(), up: fc.double({ min: 0, max: 1, noNaN: true }) }),
          {
            minLength: 2,
            maxLength: 30,
          },
        ),
        fc.integer({ min: 0, max: 60 }),
        async (trades, known) => {
          const lines = trades.map(({ from, to, isLong, up }) => {
            const [entry, exit] = [bars[Math.min(from, to)]!, bars[Math.max(from, to)]!]
            const price = ({ low, high }: Day): string => (low + up * (high - low)).toFixed(4)
            return `ACME,${isLong ? 'long' : 'short'},1,${entry.day},${price(entry)},${exit.day},${price(exit)}`
          })
          const report = await auditOf([ROUND_TRIPS, ...lines], { bars: barsText(bars.slice(known, known + 60)) })
          const { days, performance } = report
          if (days.mean_bps === null || days.method !== 'marked') return
          const sum = performance.net_expectancy_bps * performance.trades
          expect(days.mean_bps * days.days).to.be.closeTo(sum, 1e-6 * Math.max(1, Math.abs(sum)))
        },
      ),
      { numRuns: 60 },
    )
  })

  it('are compared with holding the traded symbols, and with the benchmark of the request', async () => {
    const bars = makeDays(300)
    const other = makeDays(300, 9)
    // Long from each close to the next one: nothing but holding, in pieces.
    const lines = bars
      .slice(0, -1)
      .map(({ day, close }, i) => `ACME,long,1,${day},${close},${bars[i + 1]!.day},${bars[i + 1]!.close}`)
    const both = barsText(bars) + barsText(other, 'INDEX').replace(/^.*\n/, '')
    const stated = { ...(await import('../../../plugins/audit/reading-options.ts')).NOTHING_STATED, benchmark: 'Index' }
    const { days, reasons, warnings } = await auditOf([ROUND_TRIPS, ...lines], { ...FREE, bars: both, stated })
    const [holding, index] = days.comparisons!
    expect(holding).to.include({ benchmark: 'traded_symbols', days: 300 })
    expect(holding!.beta).to.be.closeTo(1, 0.01)
    expect(Math.abs(holding!.alpha_t_stat)).to.be.below(1.3)
    expect(index!.benchmark).to.equal('Index')
    expect(Math.abs(index!.beta)).to.be.below(0.3)
    expect(reasons).to.include('benchmark_explains_it')
    expect(warnings).not.to.include('no_bars_for_the_benchmark')
    const unknown = await auditOf([ROUND_TRIPS, ...lines], { ...FREE, bars: barsText(bars), stated })
    expect(unknown.warnings).to.include('no_bars_for_the_benchmark')
    expect(unknown.days.comparisons).to.have.length(1)
  })

  it('count trades that overlap once', async () => {
    const bars = makeDays(300)
    const line = (copy: number): string[] =>
      Array.from({ length: 70 }, (_, i) => {
        const [entry, exit] = [bars[4 * i]!, bars[4 * i + 3]!]
        return `ACME,${i % 2 === 0 ? 'long' : 'short'},${copy + 1},${entry.day},${entry.close},${exit.day},${exit.close}`
      })
    const once = (await auditOf([ROUND_TRIPS, ...line(0)], { ...FREE, bars: barsText(bars) })).days
    const sixfold = (
      await auditOf([ROUND_TRIPS, ...[0, 1, 2, 3, 4, 5].flatMap(line)], { ...FREE, bars: barsText(bars) })
    ).days
    expect(sixfold.t_stat).to.be.closeTo(once.t_stat!, 1e-9)
    expect(sixfold.effective_bets).to.be.closeTo(once.effective_bets!, 15)
    expect(once.effective_bets).to.be.within(40, 70)
  })

  it('follow a position that is built and closed in steps, of which the unit is what was held', async () => {
    const { days, performance } = await auditOf(
      [
        'symbol,side,qty,time,price',
        `X,buy,1,${at(0)},100`,
        `X,buy,1,${at(2)},80`,
        `X,sell,1.5,${at(3)},96`,
        `X,sell,0.5,${at(4)},108`,
        `X,sell,1,${at(5)},50`,
        `X,buy,1,${at(6)},51`,
      ],
      { ...FREE, bars: barsText(closes(98, 90, 82, 97, 105, 50, 51), 'X') },
    )
    expect(performance.trades).to.equal(2)
    // One unit is what was held at most until then: 1 of 100, from the second purchase on 2 of 180, and 1 of 50.
    const units = [-0.02, -0.08, -0.1 + 4 / 180, 28 / 180 + 0.5 / 180, 5.5 / 180, 0, -1 / 50]
    const money = [-2, -8, -8 + 2, 2 * 15 - 1.5, 5.5, 0, -1]
    const [unit, cash] = [units, money].map((series) => {
      const mean = series.reduce((sum, one) => sum + one, 0) / 7
      const deviation = Math.sqrt(series.reduce((sum, one) => sum + (one - mean) ** 2, 0) / 6)
      return { mean, t: (mean / deviation) * Math.sqrt(7) }
    })
    expect(days.days).to.equal(7)
    expect(days.mean_bps).to.be.closeTo(unit!.mean * 1e4, 1e-9)
    expect(days.t_stat).to.be.closeTo(unit!.t, 1e-9)
    expect(days.money_t_stat).to.be.closeTo(cash!.t, 1e-9)
  })

  it('gain or lose as the money does, for fills of any kind', async () => {
    const bars = makeDays(60)
    const fill = fc.record({
      on: fc.integer({ min: 0, max: 59 }),
      isBuy: fc.boolean(),
      qty: fc.integer({ min: 1, max: 5 }),
    })
    await fc.assert(
      fc.asyncProperty(fc.array(fill, { minLength: 4, maxLength: 40 }), async (fills) => {
        const held = fills.reduce((sum, { isBuy, qty }) => sum + (isBuy ? qty : -qty), 0)
        const last = { on: 59, isBuy: held < 0, qty: Math.abs(held) }
        const rows = [...fills.toSorted((one, other) => one.on - other.on), ...(held === 0 ? [] : [last])].map(
          ({ on, isBuy, qty }) => `ACME,${isBuy ? 'buy' : 'sell'},${qty},${bars[on]!.day},${bars[on]!.open}`,
        )
        const options = { ...FREE, bars: barsText(bars) }
        const report = await auditOf(['symbol,side,qty,time,price', ...rows], options).catch(() => null)
        fc.pre(report !== null && report.days.money_t_stat !== null && report.money.open_positions.length === 0)
        if (Math.abs(report.money.net!) > 0.01)
          expect(Math.sign(report.days.money_t_stat)).to.equal(Math.sign(report.money.net!))
      }),
      { numRuns: 100 },
    )
  })
})
