import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { expect } from 'chai'
import { parseReplayShift } from '../../../gateway/config/config.ts'
import type { Ask } from '../../../gateway/plugin/plugin.ts'
import { unusableBarsReason } from '../../../plugins/audit/index.ts'
import market from '../../../plugins/market/index.ts'
import { openPluginHost, type PluginHost } from '../plugin-host.ts'
import { auditOf, barsText, makeDays, findingsOf, tradeLine, NOW, ROUND_TRIPS, makeTrades } from './audit-fixtures.ts'

const dailyBars = makeDays(100)
const ledger = makeTrades(dailyBars)
const MINUTES = Date.UTC(2024, 2, 4) / 1000
const { settings } = JSON.parse(readFileSync(resolve(import.meta.dirname, '../../../catalog/market.json'), 'utf8')) as {
  settings: Readonly<Record<string, unknown>>
}
const statusOf = (report: Awaited<ReturnType<typeof auditOf>>, check: string) =>
  report.fills.checks.find((one) => one.check === check)

describe('an audit against the bars of the service', () => {
  const folder = mkdtempSync(join(tmpdir(), 'audit-'))
  let host: PluginHost
  const ask: Ask = async (id, ...input) => host.call(id, (input[0] as { query?: object } | undefined)?.query ?? {})

  before(async () => {
    writeFileSync(join(folder, 'daily_raw_acme_lean.csv'), barsText(dailyBars).replaceAll(/^[^,]+,/gm, ''))
    const rows = Array.from({ length: 1440 }, (_, i) => `${MINUTES + i * 60},100,${101 + (i % 2)},99,100,50`)
    writeFileSync(
      join(folder, 'bitfinex_btcusd_1m_2024.csv'),
      `timestamp,open,high,low,close,volume\n${rows.filter((_, i) => i !== 61).join('\n')}\n`,
    )
    const options = { now: () => NOW, dataMode: 'replay', replayDir: folder, replayShift: 'none' } as const
    host = await openPluginHost([{ plugin: market, settings }], options)
    await host.run('load')
  })
  after(async () => {
    await host.stop()
    rmSync(folder, { recursive: true })
  })

  it('compares fills with daily bars', async () => {
    const trip = { ...ledger[5]!, entryPrice: 250 }
    const report = await auditOf([ROUND_TRIPS, ...ledger.with(5, trip).map(tradeLine)], { ask })
    expect(findingsOf(report)).to.deep.equal(['5 outside_range entry'])
    expect(report.fills).to.include({ reference: 'market', checked: 2 * ledger.length, not_checked: 0 })
  })

  it('compares fills with minute bars, under any spelling of the symbol', async () => {
    const header = 'pair,open_date,open_rate,close_date,close_rate,amount,is_short'
    const report = await auditOf(
      [
        header,
        'BTC/USDT,2024-03-04 00:10:30+00:00,101.5,2024-03-04 00:11:30+00:00,101.5,1,False',
        'BTC/USDT,2024-03-04 01:00:30+00:00,100,2024-03-04 01:01:30+00:00,105,1,True',
        'BTC/USDT,2024-03-04 02:00:00+00:00,100,2024-03-04 03:00:00+00:00,100,60,True',
      ],
      { ask },
    )
    // Even minutes reach 101 and odd ones 102. Minute 61 had no trade, so it limits no price.
    expect(findingsOf(report)).to.deep.equal([
      '0 outside_range entry',
      '2 exceeds_volume entry',
      '2 exceeds_volume exit',
    ])
    expect(report.fills).to.include({ checked: 5, not_checked: 1 })
  })

  it('blames no fill for the difference of its venue from the median of others', async () => {
    const median: Ask = async (id, ...input) => {
      const answer = await ask(id, ...input)
      return (id === 'getBars' ? { ...(answer as object), venue: 'median' } : answer) as never
    }
    const report = await auditOf(
      [
        'pair,open_date,open_rate,close_date,close_rate,amount,is_short',
        // Forty-nine and a hundred and ninety-eight basis points above what even minutes reach.
        'BTC/USDT,2024-03-04 00:10:30+00:00,101.5,2024-03-04 00:11:30+00:00,101.5,1,False',
        'BTC/USDT,2024-03-04 00:20:30+00:00,103,2024-03-04 00:21:30+00:00,101.5,1,False',
        'BTC/USDT,2024-03-04 02:00:00+00:00,100,2024-03-04 03:00:00+00:00,100,60,True',
      ],
      { ask: median },
    )
    expect(findingsOf(report)).to.deep.equal(['1 outside_range entry'])
    for (const check of ['volume', 'tick'])
      expect(statusOf(report, check)).to.deep.include({
        status: 'not_checked',
        reasons: ['the bars of this service are the median of several venues'],
      })
    expect(statusOf(report, 'lookahead')?.status).to.equal('not_checked')
  })

  it('does not treat the end of the bars as a delisting', async () => {
    const earlyTrade = { ...ledger[0]!, entryTime: '2015-06-01' }
    const report = await auditOf([ROUND_TRIPS, ...ledger.with(0, earlyTrade).map(tradeLine)], { ask })
    expect(findingsOf(report)).to.deep.equal([])
    expect(report.fills.not_checked).to.equal(1)
    expect(statusOf(report, 'outside_range')?.status).to.equal('partly_checked')
    expect(statusOf(report, 'listing')?.reasons).to.include(
      'the bars of this service do not show when a symbol was listed',
    )
  })

  it('never uses made-up bars and says that the check was skipped', async () => {
    const wrongTrade = { ...ledger[5]!, entryPrice: 250, exitTime: '2018-02-10' }
    const unfit = 'reference bars are sample data'
    const report = await auditOf([ROUND_TRIPS, ...ledger.with(5, wrongTrade).map(tradeLine)], { ask, unfit })
    // The calendar needs no bars, so a fill on a Saturday is still reported.
    expect(findingsOf(report)).to.deep.equal(['5 closed_market exit'])
    expect(report.fills).to.include({ reference: 'none', checked: 0 })
    expect(statusOf(report, 'outside_range')).to.deep.include({ status: 'not_checked', reasons: [unfit] })
  })

  it('uses recorded bars only if their times are not shifted', () => {
    const isUsed = (options: string): boolean => {
      const replayShift = parseReplayShift(options)
      return unusableBarsReason({ dataMode: 'replay', replayDir: folder, replayShift }) === null
    }
    expect(['none', 'frozen:2024-06-01'].map(isUsed)).to.deep.equal([true, true])
    expect(['auto', 'frozen', '-3600'].map(isUsed)).to.deep.equal([false, false, false])
  })

  it('prefers uploaded bars', async () => {
    const report = await auditOf([ROUND_TRIPS, ...ledger.map(tradeLine)], {
      ask,
      bars: barsText(dailyBars),
      unfit: 'sample',
    })
    expect(report.fills).to.include({ reference: 'uploaded', not_checked: 0 })
  })

  it('reports an unknown symbol as not checked', async () => {
    const report = await auditOf([ROUND_TRIPS, 'ZZZ,long,1,2024-01-02,100,2024-01-03,101'], { ask })
    expect(statusOf(report, 'session')).to.deep.include({
      status: 'not_checked',
      reasons: ['there are no reference bars for this symbol'],
    })
  })
})

describe('uploaded bars', () => {
  const minutes = (zone: string): string =>
    [
      'time,open,high,low,close',
      ...Array.from({ length: 60 }, (_, i) => `2024-03-04 10:${String(i).padStart(2, '0')}:00${zone},100,101,99,100`),
    ].join('\n')
  const trade = (zone: string): string => `X,long,1,2024-03-04 10:05:30${zone},102,2024-03-04 10:07:00${zone},100`

  it('are found under every spelling of the symbol', async () => {
    const spellings = {
      'BTC/USDT': ['BTC/USDT:USDT', 'BINANCE:BTCUSDT', 'btc-usdt'],
      SPY: ['SPY R735QTJ8XC9X', 'ARCA:SPY', 'Equity(8554 [SPY])'],
    }
    for (const [symbol, others] of Object.entries(spellings))
      for (const other of others) {
        const ledger = makeTrades(dailyBars).map((trip) => tradeLine({ ...trip, symbol: other }))
        const { fills } = await auditOf([ROUND_TRIPS, ...ledger], { bars: barsText(dailyBars, symbol) })
        expect(fills, other).to.include({ checked: 2 * ledger.length, impossible: 0 })
      }
  })

  it('may be minute bars, and a fill belongs to the bar that contains it', async () => {
    expect(findingsOf(await auditOf([ROUND_TRIPS, trade('Z')], { bars: minutes('Z') }))).to.deep.equal([
      '0 outside_range entry',
    ])
    expect(findingsOf(await auditOf([ROUND_TRIPS, trade('')], { bars: minutes('') }))).to.deep.equal([
      '0 outside_range entry',
    ])
  })

  it('are not used for times in an unknown zone', async () => {
    const report = await auditOf([ROUND_TRIPS, trade('')], { bars: minutes('Z') })
    expect(findingsOf(report)).to.deep.equal([])
    expect(statusOf(report, 'outside_range')?.reasons[0]).to.contain(
      'only one of the ledger and the bars names a time zone',
    )
  })

  it('are joined by day for a ledger with dates only', async () => {
    const report = await auditOf([ROUND_TRIPS, 'X,long,1,2024-03-04,101,2024-03-04,98'], { bars: minutes('') })
    expect(findingsOf(report)).to.deep.equal(['0 outside_range exit'])
  })

  it('may contain splits', async () => {
    const dailyBars = makeDays(30).map((day, i) => ({ ...day, split: i === 10 ? 7 : 1 }))
    const text = ['symbol,date,open,high,low,close,volume,split_coefficient']
    for (const { day, open, high, low, close, split } of dailyBars)
      text.push(`ACME,${day},${open},${high},${low},${close},900,${split}`)
    const heldTrade = (exit: number): string =>
      `ACME,long,1,${dailyBars[8]!.day},${dailyBars[8]!.close},${dailyBars[12]!.day},${exit}`
    const raw = await auditOf([ROUND_TRIPS, heldTrade(dailyBars[8]!.close / 7)], { bars: text.join('\n') })
    expect(findingsOf(raw)).to.include('0 split_not_adjusted')
    const adjusted = await auditOf([ROUND_TRIPS, heldTrade(dailyBars[12]!.close)], { bars: text.join('\n') })
    expect(findingsOf(adjusted)).to.deep.equal([])
  })
})
