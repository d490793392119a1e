import { expect } from 'chai'
import { ANSWERS, AT } from './fake-venues.ts'
import { failure, VENUE_NAMES, openOnlineFunding, type OnlineFunding } from './online-funding.ts'

describe('the funding rate service in online mode', () => {
  let service: OnlineFunding
  beforeEach(async () => {
    service = await openOnlineFunding()
  })
  afterEach(() => service.close())

  it('sends one to three requests per venue', async () => {
    await service.poll()
    expect(service.venues.requests.toSorted()).to.deep.equal([
      'binance GET /fapi/v1/fundingInfo',
      'binance GET /fapi/v1/premiumIndex',
      'binance GET /fapi/v1/ticker/24hr',
      'bitmex GET /api/v1/instrument/active',
      'bybit GET /v5/market/tickers?category=inverse',
      'bybit GET /v5/market/tickers?category=linear',
      'dydx GET /v4/perpetualMarkets',
      'gate GET /api/v4/futures/usdt/contracts',
      'hyperliquid POST /info',
      'kraken GET /derivatives/api/v3/instruments',
      'kraken GET /derivatives/api/v3/tickers',
      'okx GET /api/v5/market/tickers?instType=SWAP',
      'okx GET /api/v5/public/funding-rate?instId=ANY',
      'okx GET /api/v5/public/instruments?instType=SWAP',
    ])
    const answer = await service.rates()
    expect(answer).to.include({
      as_of: '2026-11-20T12:03:03Z',
      data_mode: 'online',
      count: 16,
      total: 16,
      next_cursor: null,
    })
    expect(answer.venues.map(({ status }) => status)).to.deep.equal(VENUE_NAMES.map(() => 'ok'))
    expect(answer.unavailable).to.deep.equal([])
  })

  it('serves rates per hour, eight hours and year', async () => {
    await service.poll()
    const { rates: found } = await service.rates({ symbol: 'btc', venue: 'gate' })
    expect(found).to.have.length(1)
    expect(found[0]).to.deep.include({
      rate: 0.000086,
      rate_decimal: '0.000086',
      interval_hours: 8,
      rate_1h: 0.00001075,
      rate_8h: 0.000086,
      apr: 0.09417,
      carry_bps_day: 2.58,
      next_funding: '2026-11-20T16:00:00Z',
      observed_at: '2026-11-20T12:03:03Z',
      age_seconds: 0,
    })
    expect(found[0]!.apy).to.be.closeTo((1 + 0.000086) ** 1095 - 1, 1e-12)
  })

  it('charges nothing before the first poll', async () => {
    expect(await failure(service.rates())).to.include({ code: 'product_suspended' })
  })

  it('polls only enabled venues', async () => {
    await service.restart(['binance', 'okx'])
    await service.poll()
    expect(service.venues.requests.filter((request) => /^(binance|okx)/.test(request))).to.deep.equal([])
    expect(await service.venue('okx')).to.include({ status: 'off', rates: 0 })
    expect((await service.rates()).unavailable).to.deep.equal([])
  })

  it('reads the intervals of Binance with every poll, and uses the last ones for at most ten minutes', async () => {
    await service.poll()
    const intervalRequests = () => service.venues.requests.filter((request) => request.includes('fundingInfo')).length
    service.clock += 60
    await service.poll()
    expect(intervalRequests()).to.equal(2)
    service.venues.payloads.set('binance/intervals', { code: -1003, msg: 'Too many requests' })
    const ages = [60, 400, 3700]
    const states: string[] = []
    for (const age of ages) {
      service.clock += age
      const now = (ANSWERS.binance['rates'] as { markPrice: string }[]).map((row) => ({
        ...row,
        markPrice: String(Number(row.markPrice) * (1 + age / 1e6)),
        time: service.clock * 1000,
        nextFundingTime: (Math.floor(service.clock / 28_800) + 1) * 28_800_000,
      }))
      service.venues.payloads.set('binance/rates', now)
      // Gate goes on, so that there is an answer without Binance.
      const contracts = ANSWERS.gate['contracts'] as object[]
      service.venues.payloads.set(
        'gate/contracts',
        contracts.map((row) => ({ ...row, position_size: age, quanto_multiplier: '0.0001' })),
      )
      await service.poll()
      states.push((await service.venue('binance')).status)
    }
    expect(states).to.deep.equal(['ok', 'ok', 'unavailable'])
    expect(intervalRequests()).to.equal(5)
  })

  it('drops the rates of a venue whose own clock has stood still for an hour', async () => {
    service.clock += 3601
    await service.poll()
    expect(await service.venue('binance')).to.include({ status: 'unavailable', rates: 0, age_seconds: 0 })
  })

  it('never assumes an interval of eight hours, and so skips Binance without its list of intervals', async () => {
    service.venues.payloads.set('binance/intervals', { code: -1003 })
    await service.poll()
    expect(await service.venue('binance')).to.include({ status: 'unavailable', rates: 0 })
    expect((await service.rates()).unavailable.map(({ venue: name }) => name)).to.deep.equal(['binance'])
  })

  it('leaves a Binance contract out while its next settlement contradicts its interval', async () => {
    // BTCUSDT is not in the list of adjusted intervals, so it would pay at 16:00, and it says 13:00.
    const [first, ...rest] = ANSWERS.binance['rates'] as object[]
    service.venues.payloads.set('binance/rates', [{ ...first, nextFundingTime: Date.UTC(2026, 10, 20, 13) }, ...rest])
    await service.poll()
    const { rates: found } = await service.rates({ venue: 'binance' })
    expect(found.map(({ instrument }) => instrument)).to.not.include('BTCUSDT')
    expect(await service.venue('binance')).to.include({ rates: 2, untold: 1 })
  })

  it('reads rates without the lists of volumes', async () => {
    service.venues.payloads.set('binance/volumes', { code: -1003 })
    await service.poll()
    const { rates: found } = await service.rates({ venue: 'binance', symbol: 'BTC' })
    expect(found[0]).to.include({ volume_24h_usd: null, rate_cap: 0.02, bounds_source: 'published', at_bound: false })
  })

  it('uses the last volumes for at most half an hour', async () => {
    service.venues.payloads.set('binance/volumes', [{ symbol: 'BTCUSDT', quoteVolume: '5' }])
    const volumes: unknown[] = []
    for (const seconds of [0, 1799, 301]) {
      service.clock += seconds
      await service.poll()
      volumes.push((await service.rates({ venue: 'binance', symbol: 'BTC' })).rates[0]!.volume_24h_usd)
      service.venues.payloads.set('binance/volumes', { code: -1003 })
    }
    expect(volumes).to.deep.equal([5, 5, null])
  })

  it('asks again within minutes for a list that a venue refuses with status 200', async () => {
    service.venues.payloads.set('okx/instruments', { code: '50011', msg: 'Too Many Requests', data: [] })
    const asked = () => service.venues.requests.filter((request) => request.includes('/instruments?')).length
    const counts: number[] = []
    for (const seconds of [0, 60, 300]) {
      service.clock += seconds
      await service.poll()
      counts.push(asked())
    }
    expect(counts).to.deep.equal([1, 1, 2])
  })

  it('follows a contract whose interval changes', async () => {
    await service.poll()
    const [first] = ANSWERS.gate['contracts'] as object[]
    service.venues.payloads.set('gate/contracts', [{ ...first, funding_interval: 14_400 }])
    service.clock += 60
    await service.poll()
    const { rates: after } = await service.rates({ venue: 'gate', symbol: 'BTC' })
    expect(after[0]).to.include({ interval_hours: 4, apr: 0.18834 })
    const { rates: before } = await service.rates({ venue: 'gate', symbol: 'BTC' }, AT + 59)
    expect(before[0]).to.include({ interval_hours: 8, apr: 0.09417 })
  })
})
