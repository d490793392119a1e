import { expect } from 'chai'
import type { InputOf } from 'tollgate/plugin'
import { openTestProduct, TestClock, type TestProduct } from 'tollgate/testing'
import funding from '../../../plugins/funding/index.ts'
import type { FundingRates } from '../../../schemas/types.d.ts'

const NOON = '2026-11-20T12:00:20Z'
const DAY = 86_400

type Query = InputOf<'getPerpFundingRates'>['query']

describe('a query of funding rates', () => {
  let product: TestProduct<'funding'>
  const rates = (query: Query = {}): Promise<FundingRates> =>
    product.call('getPerpFundingRates', { query: { sort: 'symbol', ...query } })
  const failure = (call: Promise<unknown>): Promise<Error> =>
    call.then(
      () => expect.fail('answered'),
      (error: Error) => error,
    )

  beforeEach(async () => {
    product = await openTestProduct(funding, { clock: new TestClock(NOON) })
  })
  afterEach(() => product.close())

  it('finds symbols and venues, several at once, in any spelling', async () => {
    const found = await rates({ symbol: 'xbt, eth', venue: 'Gate,okx' })
    expect(found.rates.map(({ symbol, venue }) => `${symbol} ${venue}`)).to.deep.equal([
      'BTC gate',
      'BTC okx',
      'ETH gate',
      'ETH okx',
    ])
    const contracts = await rates({ symbol: 'BTC/USDT:USDT, ETHUSDT.P', venue: 'gate,okx' })
    expect(contracts.rates).to.deep.equal(found.rates)
  })

  it('is refused for an unknown venue, and the error names the known ones', async () => {
    const error = await failure(rates({ venue: 'gate,ftx' }))
    expect(error).to.include({ code: 'validation_failed' })
    expect(error.message).to.match(/query\.venue.*binance, bybit/)
  })

  it('leaves out small rates of either sign', async () => {
    const all = (await rates({ limit: 1000 })).rates
    const large = (await rates({ limit: 1000, min_abs_apr: 0.15 })).rates
    expect(large).to.deep.equal(all.filter(({ apr }) => Math.abs(apr) >= 0.15))
    expect(large.length).to.be.within(1, all.length - 1)
  })

  it('sorts by annual rate both ways', async () => {
    const ascending = (await rates({ sort: 'apr', limit: 1000 })).rates.map(({ apr }) => apr)
    expect(ascending).to.deep.equal(ascending.toSorted((a, b) => a - b))
    const descending = (await rates({ sort: '-apr', limit: 1000 })).rates.map(({ apr }) => apr)
    expect(descending).to.deep.equal(ascending.toReversed())
  })

  for (const sort of ['apr', '-apr', 'symbol'] as const)
    it(`returns the same rates in pages of 7 as in one page, while rates change, sorted by ${sort}`, async () => {
      const whole = await rates({ sort, limit: 1000 })
      const found: unknown[] = []
      let cursor: string | null = null
      do {
        const page: FundingRates = await rates({ sort, limit: 7, ...(cursor ? { cursor } : {}) })
        expect(page).to.include({ as_of: whole.as_of, total: whole.total })
        found.push(...page.rates)
        cursor = page.next_cursor
        product.clock.advance({ seconds: 61 })
      } while (cursor)
      expect(found).to.deep.equal(whole.rates)
    })

  it('is refused if its cursor is broken, forged or from another query', async () => {
    const { next_cursor } = await rates({ limit: 5 })
    const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url')
    const forged = encode(['x', 1, 2])
    const [hash] = JSON.parse(Buffer.from(next_cursor!, 'base64url').toString()) as [string]
    for (const query of [
      { limit: 5, sort: 'apr', cursor: next_cursor! },
      { limit: 5, symbol: 'BTC', cursor: next_cursor! },
      { limit: 5, cursor: 'no' },
      { limit: 5, cursor: forged },
      { limit: 5, cursor: encode([hash, -1e15, 'BTC', 'gate', 'BTC_USDT']) },
    ] as const)
      expect(await failure(rates(query))).to.include({ code: 'validation_failed' })
  })

  it('names for each symbol the venues with the largest difference of rates', async () => {
    const { spreads } = await rates({ limit: 1000 })
    const all = (await rates({ limit: 1000 })).rates
    expect(spreads).to.have.length(18)
    for (const spread of spreads) {
      const aprs = all.filter(({ symbol }) => symbol === spread.symbol).map(({ apr }) => apr)
      expect(spread.long_apr).to.equal(Math.min(...aprs))
      expect(spread.short_apr).to.equal(Math.max(...aprs))
      expect(spread.spread_apr).to.be.closeTo(spread.short_apr - spread.long_apr, 1e-11)
      expect(spread.spread_8h).to.be.closeTo(spread.spread_apr / 1095, 1e-11)
    }
    const widths = spreads.map(({ spread_apr }) => spread_apr)
    expect(widths).to.deep.equal(widths.toSorted((a, b) => b - a))
  })

  it('compares all venues even when the query asks for one', async () => {
    const { spreads } = await rates({ venue: 'gate' })
    for (const { long_venue, short_venue } of spreads) expect([long_venue, short_venue]).to.include('gate')
  })
})

describe('the funding sample', () => {
  const noon = Date.parse(NOON)
  const opened: TestProduct<'funding'>[] = []
  afterEach(async () => {
    for (const one of opened.splice(0)) await one.close()
  })
  const open = async (): Promise<TestProduct<'funding'>> => {
    const product = await openTestProduct(funding, { clock: new TestClock(NOON) })
    opened.push(product)
    return product
  }
  const ask = (product: TestProduct<'funding'>, asOf = noon): Promise<FundingRates> =>
    product.call('getPerpFundingRates', { query: { sort: 'symbol', limit: 1000 }, asOf: new Date(asOf) })

  it('is marked as sample data and is the same at every start', async () => {
    const [one, other] = [await open(), await open()]
    const [first, second] = [await ask(one), await ask(other)]
    expect(first.data_mode).to.equal('sample')
    expect(second).to.deep.equal(first)
    expect(await ask(one, noon - 1000 * DAY)).to.deep.equal(await ask(other, noon - 1000 * DAY))
  })

  it('stays within what venues charge, changes with time, and shows nothing newer than asOf', async () => {
    const product = await open()
    const seen = new Set<number>()
    for (let day = 0; day < 40; day += 1) {
      const moment = noon - 1000 * day * DAY - day * 7_777
      const { rates } = await ask(product, moment)
      for (const rate of rates) {
        expect(Math.abs(rate.rate_8h)).to.be.below(0.003)
        expect(Date.parse(rate.observed_at)).to.be.at.most(moment)
        expect(Date.parse(rate.next_funding!)).to.be.above(moment)
      }
      seen.add(rates[0]!.rate)
    }
    expect(seen.size).to.equal(40)
  })
})
