import { expect } from 'chai'
import type { InputOf, OutputOf } from 'tollgate/plugin'
import { openTestProduct, TestClock, type TestProduct } from 'tollgate/testing'
import { existsSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { readHistory, settledAt } from '../../../plugins/funding/recorded-settlements.ts'
import { quarantine } from '../../../plugins/funding/funding-rate.ts'
import funding from '../../../plugins/funding/index.ts'
import { readFundingRecordings } from '../../../plugins/funding/recorded-payloads.ts'
import type { FundingRateItem, FundingRates, FundingSettlement } from '../../../schemas/types.d.ts'

const folder = resolve(import.meta.dirname, '../../../../shared/data')
const seconds = (text: string): number => Date.parse(text) / 1000

describe('recorded funding rates', () => {
  before(function () {
    if (!existsSync(join(folder, 'funding'))) this.skip()
  })

  const opened: TestProduct<'funding'>[] = []
  afterEach(async () => {
    for (const one of opened.splice(0)) await one.close()
  })
  const open = async (shift: string, now: string): Promise<TestProduct<'funding'>> => {
    const product = await openTestProduct(funding, {
      clock: new TestClock(now),
      environment: { DATA_MODE: 'replay', REPLAY_DIR: folder, REPLAY_SHIFT: shift },
    })
    opened.push(product)
    return product
  }
  const ask = async (
    shift: string,
    now: string,
    query: InputOf<'getPerpFundingRates'>['query'] = {},
  ): Promise<FundingRates> => {
    const product = await open(shift, now)
    return product.call('getPerpFundingRates', { query: { sort: 'symbol', limit: 1000, ...query } })
  }
  /** The one rate of a venue and symbol at the moment it was recorded. */
  const recorded = async (venue: string, symbol: string, moment: string): Promise<FundingRateItem> => {
    const { rates } = await ask(`frozen:${moment}`, moment, { venue, symbol })
    expect(rates).to.have.length(1)
    return rates[0]!
  }

  const TABLE = [
    ['gate', 'BTC', '2023-05-24T12:09:35Z', '0.000086', 8, 0.09417],
    ['hyperliquid', 'BTC', '2026-02-04T21:20:00Z', '0.0000125', 1, 0.1095],
    ['dydx', 'ETH', '2025-12-08T16:12:10Z', '0.00000125', 1, 0.01095],
    ['bybit', 'BTC', '2023-01-09T14:02:00Z', '-0.000212', 8, -0.23214],
    ['okx', 'BTC', '2025-04-14T00:25:50Z', '0.0001', 8, 0.1095],
    ['bitmex', 'BTC', '2024-11-24T23:33:30Z', '0.00011', 8, 0.12045],
  ] as const
  for (const [venue, symbol, moment, rate, hours, apr] of TABLE)
    it(`of ${venue} include ${rate} per ${hours} h for ${symbol}, which is ${(apr * 100).toFixed(3)}% a year`, async () => {
      const item = await recorded(venue, symbol, moment)
      expect(item.rate_decimal).to.equal(rate)
      expect(item.interval_hours).to.equal(hours)
      expect(item.apr).to.be.closeTo(apr, 1e-9)
    })

  it('of Gate include all 302 contracts, which next pay at 16:00', async () => {
    const { venues, rates } = await ask('frozen:2023-05-24T12:09:35Z', '2023-05-24T12:09:35Z', { venue: 'gate' })
    expect(venues.find(({ venue }) => venue === 'gate')).to.deep.include({
      status: 'ok',
      rates: 302,
      quarantined: 0,
      age_seconds: 12,
    })
    expect(new Set(rates.map(({ next_funding }) => next_funding))).to.deep.equal(new Set(['2023-05-24T16:00:00Z']))
    expect(rates.find(({ symbol }) => symbol === 'BTC')).to.include({ mark_price: 26704.26, index_price: 26703.16 })
  })

  it('of Hyperliquid next pay at the full hour after the recording, whatever the time is now', async () => {
    const item = await recorded('hyperliquid', 'ETH', '2026-02-04T21:20:00Z')
    expect(item).to.include({ observed_at: '2026-02-04T21:19:43Z', next_funding: '2026-02-04T22:00:00Z' })
  })

  it('of Kraken use the relative rate of the exchange for inverse contracts, not the amount divided by the price', async () => {
    const item = await recorded('kraken', 'BTC', '2023-02-14T16:47:20Z')
    expect(item).to.include({ instrument: 'PI_XBTUSD', contract: 'inverse', next_funding: '2023-02-14T17:00:00Z' })
    expect(item.rate).to.be.closeTo(-1.380384722222e-6, 1e-18)
    const wrong = -6.2604214e-11 / 21979.68641534714
    expect(Math.abs(item.rate / wrong)).to.be.above(4e8)
  })

  it('of Kraken omit an inverse contract without a relative rate', async () => {
    const moment = '2025-11-17T00:34:40Z'
    const { rates, venues } = await ask(`frozen:${moment}`, moment, { venue: 'kraken' })
    expect(rates.map(({ instrument }) => instrument)).to.deep.equal(['PF_ETHUSD'])
    expect(rates[0]!.rate).to.be.closeTo(1.5e-5 / 3205.25, 1e-20)
    expect(venues.find(({ venue }) => venue === 'kraken')).to.include({ untold: 1 })
  })

  it('of Binance get their interval from the gaps between settlements, which one symbol in eight has at four hours', async () => {
    const { settled } = await readFundingRecordings(folder)
    const { rates, untold } = settledAt(settled!, seconds('2026-03-20T00:00:10Z'))
    expect(untold).to.deep.equal([])
    expect(Object.fromEntries(rates.map(({ instrument, intervalHours }) => [instrument, intervalHours]))).to.deep.equal(
      {
        BTCUSDT: 8,
        ETHUSDT: 8,
        SOLUSDT: 8,
        XRPUSDT: 8,
        NEIROUSDT: 4,
        DOGEUSDT: 8,
        '1000PEPEUSDT': 8,
        AVAXUSDT: 8,
      },
    )
  })

  it('of Binance are the last settlement before any moment, and APR is rate × 8760 / interval', async () => {
    const bytes = readFileSync(join(folder, 'funding/binance_usdm_funding_2026Q1_dev.csv.gz'))
    const history = readHistory(gunzipSync(bytes).toString())
    const moment = '2026-02-10T03:14:15Z'
    const { rates } = await ask(`frozen:${moment}`, moment, { venue: 'binance' })
    expect(rates).to.have.length(7)
    for (const { instrument, rate, rate_decimal, interval_hours, apr, kind, interval_source } of rates) {
      const last = history.get(instrument)!.findLast(({ time }) => time <= seconds(moment))!
      expect(rate_decimal).to.equal(last.rate)
      expect([kind, interval_source]).to.deep.equal(['settled', 'inferred'])
      expect(apr).to.be.closeTo((rate * 8760) / interval_hours, Math.abs(rate) * 1e-9)
    }
  })

  it('of a whole quarter are all kept, and served as they were settled', async () => {
    const { settled } = await readFundingRecordings(folder)
    const all = [...settled!].flatMap(([instrument, list]) => list.map((one) => ({ instrument, ...one })))
    for (const time of new Set(all.map((one) => one.time))) {
      const { rates } = settledAt(settled!, time)
      expect(quarantine(rates).quarantined).to.deep.equal([])
    }
    const end = '2026-04-02T00:00:00Z'
    const product = await open('none', end)
    const found: FundingSettlement[] = []
    for (let cursor: string | null | undefined; cursor !== null;) {
      const query = { symbol: 'BTC,ETH,PEPE', start: '2026-01-01', limit: 1000, ...(cursor ? { cursor } : {}) }
      const page: OutputOf<'getPerpFundingHistory'> = await product.call('getPerpFundingHistory', { query })
      found.push(...page.settlements)
      cursor = page.next_cursor
    }
    const wanted = all.filter((one) => ['BTCUSDT', 'ETHUSDT', '1000PEPEUSDT'].includes(one.instrument))
    expect(found).to.have.length(wanted.filter(({ time }) => time <= seconds(end)).length)
    expect(found.map((one) => one.rate_decimal).toSorted()).to.deep.equal(wanted.map((one) => one.rate).toSorted())
    expect(new Set(found.slice(10).map((one) => one.interval_hours))).to.deep.equal(new Set([8]))
  })

  it('are compared only if they were recorded at the same time', async () => {
    const together = await ask('none', '2026-02-04T21:20:00Z')
    expect(together.spreads.map(({ symbol }) => symbol)).to.include.members(['BTC', 'ETH', 'SOL'])
    const btc = together.spreads.find(({ symbol }) => symbol === 'BTC')!
    expect([btc.long_venue, btc.short_venue].toSorted()).to.deep.equal(['binance', 'hyperliquid'])
    expect(btc.spread_apr).to.be.closeTo(btc.short_apr - btc.long_apr, 1e-12)
    const apart = await ask('auto', '2026-11-20T13:00:30Z')
    expect(apart.total).to.be.above(500)
    expect(apart.spreads).to.deep.equal([])
  })

  it('are repeated in a loop, never older than an hour and never newer than the requested time', async () => {
    const product = await open('auto', '2026-11-20T13:00:30Z')
    for (let step = 0; step < 60; step += 1) {
      const asOf = new Date(Date.UTC(2026, 10, 20) + step * 1_999_000)
      const answer: FundingRates = await product.call('getPerpFundingRates', { query: { limit: 1000 }, asOf })
      expect(answer.unavailable).to.deep.equal([])
      for (const rate of answer.rates) {
        expect(Date.parse(rate.observed_at)).to.be.at.most(asOf.getTime())
        if (rate.kind === 'predicted') expect(rate.age_seconds).to.be.at.most(3600)
        if (rate.next_funding) expect(Date.parse(rate.next_funding)).to.be.above(asOf.getTime())
      }
    }
  })

  it('are unavailable, with their age, long after they were recorded', async () => {
    const product = await open('none', '2027-01-01T00:00:00Z')
    const error = await product.call('getPerpFundingRates', { query: { limit: 1 } }).then(
      () => expect.fail('answered'),
      (found: Error) => found,
    )
    expect(error).to.include({ code: 'product_suspended' })
    const { unavailable } = await ask('frozen:2026-02-04T21:20:00Z', '2026-02-04T21:20:00Z')
    expect(unavailable.find(({ venue }) => venue === 'gate')).to.include({
      age_seconds: seconds('2026-02-04T21:20:00Z') - seconds('2023-05-24T12:09:23Z'),
    })
  })
})
