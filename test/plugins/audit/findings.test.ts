import { existsSync, readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { expect } from 'chai'
import type { Trip } from './ledger-layouts.ts'
import {
  auditOf,
  barsText,
  cents,
  type Day,
  makeDays,
  findingsOf,
  tradeLine,
  ROUND_TRIPS,
  makeTrades,
} from './audit-fixtures.ts'

const dailyBars = makeDays(400)
const cleanTrades = makeTrades(dailyBars)
const bars = barsText(dailyBars)
const barOf = (day: string): Day => dailyBars.find((offTick) => offTick.day === day)!
const ledgerWith = (changes: Readonly<Record<number, Partial<Trip>>>): string[] => [
  ROUND_TRIPS,
  ...cleanTrades.map((trip, row) => tradeLine({ ...trip, ...changes[row] })),
]

describe('the findings of an audit', () => {
  const shared = resolve(import.meta.dirname, '../../../../shared/data')

  it('match the known defects of a recorded ledger row by row', async function () {
    if (!existsSync(shared)) this.skip()
    const read = (name: string): Buffer => readFileSync(resolve(shared, name))
    const truth = JSON.parse(read('ledgers/dev_defects_truth.json').toString()) as {
      reference_bars: string
      row_findings: { row: number; type: string; leg?: string }[]
    }
    const reference = gunzipSync(read(truth.reference_bars))
    const expected = truth.row_findings.map(({ row, type, leg }) => [row, type, ...(leg ? [leg] : [])].join(' '))
    expect(findingsOf(await auditOf(read('ledgers/dev_defects.csv'), { bars: reference }))).to.deep.equal(expected)
    const untouched = await auditOf(read('ledgers/dev_clean.csv'), { bars: reference })
    expect([...findingsOf(untouched), ...untouched.fills.flags]).to.deep.equal([])
    const freqtrade = await auditOf(read('ledgers/freqtrade_backtest_trades.csv'))
    expect(freqtrade.ledger).to.include({ layout: 'freqtrade', trades: 179, symbols: 10, zoned: true })
  })

  it('are empty for a clean ledger', async () => {
    const report = await auditOf(ledgerWith({}), { bars })
    expect(findingsOf(report)).to.deep.equal([])
    expect(report.fills).to.include({ checked: 2 * cleanTrades.length, impossible: 0, share: 0 })
    expect(report.fills.flags).to.deep.equal([])
  })

  it('report structural defects and exclude their rows from the statistics', async () => {
    const broken = ledgerWith({
      3: { entryPrice: Number.NaN },
      5: { exitTime: 'yesterday' },
      7: { exitPrice: 0 },
      9: { qty: -5 },
      11: { exitTime: '2018-01-01' },
      13: { exitTime: '2033-01-03' },
    }).map((text) => text.replace('NaN', ''))
    const report = await auditOf([...broken, broken[2]!], { bars })
    expect(findingsOf(report)).to.deep.equal([
      '3 missing_value',
      '5 unparseable_time',
      '7 nonpositive_price',
      '9 nonpositive_qty',
      '11 exit_before_entry',
      '13 future_time',
      `${cleanTrades.length} duplicate_trade`,
    ])
    expect(report.ledger).to.include({ rows: cleanTrades.length + 1, trades: cleanTrades.length - 6, excluded: 7 })
    expect(report.fills.findings.map(({ field }) => field)).to.include.members(['entry_price', 'exit_time', 'qty'])
    expect(report.verdict).to.equal('reject')
    expect(report.reasons[0]).to.equal('structural_share_above_0.005')
  })

  it('report fills more than half a basis point outside their bar', async () => {
    const { high } = barOf(cleanTrades[4]!.entryTime)
    const { low } = barOf(cleanTrades[8]!.exitTime)
    const tolerated = { 4: { entryPrice: high * (1 + 0.4e-4) }, 8: { exitPrice: low * (1 - 0.4e-4) } }
    expect(
      findingsOf(await auditOf(ledgerWith(tolerated), { bars })).filter((offTick) => offTick.includes('outside')),
    ).to.deep.equal([])
    const outside = { 4: { entryPrice: cents(high * 1.01) }, 8: { exitPrice: cents(low * 0.98) } }
    const report = await auditOf(ledgerWith(outside), { bars })
    expect(findingsOf(report)).to.deep.equal(['4 outside_range entry', '8 outside_range exit'])
    const [first] = report.fills.findings
    expect(first).to.include({ high, price: cents(high * 1.01), symbol: 'ACME' })
    expect(first?.['excess_bps']).to.be.closeTo((cents(high * 1.01) / high - 1) * 1e4, 1e-9)
    expect(report.fills).to.include({ impossible: 2 })
    expect(report.verdict).to.equal('reject')
  })

  it('report fills on closed days, before listing and after delisting', async () => {
    const report = await auditOf(
      ledgerWith({ 2: { exitTime: '2018-02-10' }, 0: { entryTime: '2018-01-05' }, 99: { exitTime: '2019-12-02' } }),
      { bars },
    )
    expect(findingsOf(report)).to.deep.equal([
      '0 before_listing entry',
      '2 closed_market exit',
      '99 after_delisting exit',
    ])
  })

  it('do not call days closed because the reference bars are of weeks or months', async () => {
    const weekOf = ({ day }: Day): number => Math.floor((Date.parse(day) / 86_400_000 + 3) / 7)
    const monthOf = ({ day }: Day): number => Number(day.replace(/-/g, '').slice(0, 6))
    for (const spanOf of [weekOf, monthOf]) {
      const spans = [...new Set(dailyBars.map(spanOf))]
      const long = spans.map((span): Day => {
        const days = dailyBars.filter((bar) => spanOf(bar) === span)
        return {
          ...days[0]!,
          high: Math.max(...days.map(({ high }) => high)),
          low: Math.min(...days.map(({ low }) => low)),
          close: days.at(-1)!.close,
          volume: days.reduce((sum, { volume }) => sum + volume, 0),
        }
      })
      const { verdict, fills } = await auditOf(ledgerWith({}), { bars: barsText(long) })
      expect(fills.by_code).to.deep.equal({})
      expect(fills.impossible).to.equal(0)
      expect(fills.not_checked).to.be.above(fills.fills / 2)
      expect(verdict).not.to.equal('reject')
      const [bad] = (await auditOf(ledgerWith({ 0: { entryPrice: 1 } }), { bars: barsText(long) })).fills.findings
      expect(bad).to.include({ row: 0, code: 'outside_range' })
    }
  })

  it('do not accuse fills on days whose reference bar is empty or impossible', async () => {
    const entered = new Set(cleanTrades.slice(0, 4).map(({ entryTime }) => entryTime))
    const cut = barsText(dailyBars).split('\n')
    const broken = cut.map((line) => {
      const [symbol, day, open, high, low, close, volume] = line.split(',')
      if (!entered.has(day ?? '')) return line
      return day === cleanTrades[0]!.entryTime
        ? [symbol, day, open, low, high, close, volume].join()
        : [symbol, day, 'null', 'null', 'null', 'null', 'null'].join()
    })
    const { fills } = await auditOf(ledgerWith({}), { bars: broken.join('\n') })
    expect(fills.by_code).to.deep.equal({})
    expect(fills.not_checked).to.equal(4)
    const noBar = cut.filter((line) => !entered.has(line.split(',')[1] ?? ''))
    const missing = await auditOf(ledgerWith({}), { bars: noBar.join('\n') })
    expect(missing.fills.by_code).to.deep.equal({ before_listing: 1, closed_market: 3 })
  })

  it('report quantities above the volume and warn above a tenth of it', async () => {
    const report = await auditOf(ledgerWith({ 6: { qty: 1_000_001 }, 10: { qty: 100_001 }, 12: { qty: 100_000 } }), {
      bars,
    })
    expect(findingsOf(report)).to.deep.equal([
      '6 exceeds_volume entry',
      '6 exceeds_volume exit',
      '10 exceeds_volume entry',
      '10 exceeds_volume exit',
    ])
    expect(report.fills.findings.map(({ severity }) => severity)).to.deep.equal([
      'error',
      'error',
      'warning',
      'warning',
    ])
    expect(report.fills.impossible).to.equal(2)
  })

  it('warn of prices off the tick size, unless all prices are', async () => {
    const offTick = cleanTrades[20]!.entryPrice + 0.003
    expect(findingsOf(await auditOf(ledgerWith({ 20: { entryPrice: offTick } }), { bars }))).to.deep.equal([
      '20 off_tick entry',
    ])
    const all = Object.fromEntries(cleanTrades.map(({ entryPrice }, row) => [row, { entryPrice: entryPrice + 0.003 }]))
    expect(findingsOf(await auditOf(ledgerWith(all), { bars }))).to.deep.equal([])
  })

  it('report trades held across a split at unadjusted prices', async () => {
    // A 4:1 split before the open of day 202, during the trade of days 200 to 203.
    const raw = dailyBars.map((day, i) => {
      const cut = i < 202 ? 1 : 4
      const [open, high, low, close] = [day.open, day.high, day.low, day.close].map((price) => cents(price / cut))
      return {
        ...day,
        open: open!,
        high: high!,
        low: low!,
        close: close!,
        volume: day.volume * cut * (0.9 + (0.2 * ((i * 7) % 10)) / 10),
      }
    })
    const report = await auditOf([ROUND_TRIPS, ...makeTrades(raw).map(tradeLine)], { bars: barsText(raw) })
    expect(findingsOf(report)).to.deep.equal(['50 split_not_adjusted'])
    expect(report.fills.findings[0]).to.include({ factor: 4, day: dailyBars[202]!.day })
  })

  it('report stated profits that contradict prices and quantities', async () => {
    const header = `${ROUND_TRIPS},fees,pnl`
    const profit = ({ sign, qty, entryPrice, exitPrice }: Trip): number => sign * qty * (exitPrice - entryPrice)
    const rows = cleanTrades.map((trip, row) => {
      const statedProfit = row === 30 ? 1.05 * profit(trip) + 5 : row % 2 === 0 ? profit(trip) : profit(trip) - 2
      return `${tradeLine(trip)},2,${statedProfit.toFixed(2)}`
    })
    const report = await auditOf([header, ...rows], { bars })
    expect(findingsOf(report)).to.deep.equal(['30 pnl_mismatch'])
  })

  it('infer a contract multiplier and an unreported commission', async () => {
    const profit = ({ sign, qty, entryPrice, exitPrice }: Trip): number => sign * qty * (exitPrice - entryPrice)
    const futures = cleanTrades.map((trip) => `${tradeLine(trip)},${(50 * profit(trip)).toFixed(4)}`)
    const commission = cleanTrades.map(
      (trip) => `${tradeLine(trip)},${(profit(trip) - 0.1 * trip.entryPrice - 0.1 * trip.exitPrice).toFixed(4)}`,
    )
    const header = `${ROUND_TRIPS},pnl`
    expect((await auditOf([header, ...futures])).warnings).to.deep.equal(['contract_multiplier_50_inferred_for_ACME'])
    const costly = await auditOf([header, ...commission])
    expect(costly.warnings).to.deep.equal(['unreported_commission_10_bps_a_side_inferred'])
    expect(findingsOf(costly)).to.deep.equal([])
  })
})
