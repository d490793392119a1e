/** The rates that are worth most: a squeezed contract that pays 2% an hour, at the bounds of its venues. */
import { expect } from 'chai'
import { lotOf } from '../../../plugins/funding/contract-names.ts'
import type { VenueRate } from '../../../plugins/funding/price-agreement.ts'
import { spreadsOf } from '../../../plugins/funding/spreads.ts'
import { type KitFunding, openKitFunding } from './kit-funding.ts'

describe('extreme funding rates', () => {
  let service: KitFunding
  beforeEach(async () => {
    service = await openKitFunding()
  })
  afterEach(() => service.close())

  it('are sold, with the bounds and the interval of their venue', async () => {
    await service.run('poll')
    const { rates, quarantined } = await service.rates({ symbol: 'ALT' })
    const binance = rates.find(({ venue }) => venue === 'binance')!
    expect(binance.rate).to.be.closeTo(-0.02, 0.0006)
    expect(binance).to.include({ interval_hours: 1, rate_floor: -0.03, rate_cap: 0.03, bounds_source: 'venue' })
    expect(rates.find(({ venue }) => venue === 'bybit')!.apr).to.be.below(-150)
    expect(quarantined.filter(({ venue }) => venue !== 'binance')).to.deep.equal([])
  })

  it('say when they are at a bound, which hides what the market would pay', async () => {
    service.kit.funding.setRate('binance', 'ALT-USD', -0.03)
    await service.run('poll')
    const { rates } = await service.rates({ symbol: 'ALT', venue: 'binance' })
    expect(rates[0]).to.include({ rate: -0.03, at_bound: true })
  })

  it('are held back if they are beyond the bounds that the venue states at the same moment', async () => {
    service.kit.funding.setRate('okx', 'BTC-USD', 0.02)
    await service.run('poll')
    const { quarantined } = await service.rates({ symbol: 'BTC' })
    expect(quarantined).to.deep.include({
      venue: 'okx',
      instrument: 'BTC-USDT-SWAP',
      rate_decimal: '0.0200000000',
      reason: "2%, beyond the venue's own bounds of -0.015 and 0.015",
    })
  })

  it('are sold if they are beyond what the published rules of the venue allow at a settlement', async () => {
    service.kit.funding.setRate('hyperliquid', 'ALT-USD', -0.05)
    await service.run('poll')
    const { rates } = await service.rates({ symbol: 'ALT', venue: 'hyperliquid' })
    expect(rates[0]).to.include({ rate: -0.05, rate_floor: -0.04, bounds_source: 'published', at_bound: true })
  })

  it('are sold if they are beyond the bound that Kraken publishes for the contract', async () => {
    service.kit.funding.setRate('kraken', 'ALT-USD', -0.0055)
    await service.run('poll')
    const { rates } = await service.rates({ symbol: 'ALT', venue: 'kraken' })
    expect(rates[0]).to.include({ rate_floor: -0.005, rate_cap: 0.005, bounds_source: 'published', at_bound: true })
  })

  it('follow a contract to hourly settlements in the next poll', async () => {
    await service.run('poll')
    const annual = async (): Promise<[number, number]> => {
      const [rate] = (await service.rates({ symbol: 'BTC', venue: 'binance' })).rates
      return [rate!.interval_hours, rate!.apr / rate!.rate]
    }
    expect(await annual()).to.deep.equal([8, 1095])
    service.kit.funding.setHours('binance', 'BTC-USD', 1)
    service.kit.funding.setRate('binance', 'BTC-USD', -0.02)
    service.kit.clock.advance(60)
    await service.run('poll')
    expect(await annual()).to.deep.equal([1, 8760])
  })

  it('come with what is traded, so that a spread nobody can trade is seen', async () => {
    await service.run('poll')
    const { rates, spreads } = await service.rates({ symbol: 'ALT' })
    for (const venue of ['binance', 'bybit', 'hyperliquid', 'dydx', 'kraken', 'bitmex'])
      expect(rates.find((rate) => rate.venue === venue)!.volume_24h_usd, venue).to.be.above(0)
    const [spread] = spreads
    expect(spread).to.include({ prices_checked: true })
    const none = await service.rates({ symbol: 'ALT', min_volume_usd: 1e12 })
    expect([none.spreads, none.rates.length]).to.deep.equal([[], rates.length])
  })
})

describe('a spread between two venues', () => {
  const rate = (
    venue: VenueRate['venue'],
    price: number | null,
    value: string,
    more: Partial<VenueRate> = {},
  ): VenueRate => ({
    venue,
    shift: 0,
    instrument: 'XYZUSDT',
    symbol: 'XYZ',
    quote: 'USDT',
    settle: 'USDT',
    contract: 'linear',
    rate: value,
    intervalHours: 8,
    intervalSource: 'venue',
    kind: 'predicted',
    predictedRate: null,
    nextFunding: null,
    markPrice: price,
    indexPrice: null,
    observed: 0,
    ...more,
  })

  it('leaves out a contract on another coin of the same name', () => {
    const [spread] = spreadsOf([
      rate('binance', 1.02, '0.0001'),
      rate('bybit', 1, '0.0003'),
      rate('gate', 0.004, '-0.01'),
    ])
    expect(spread).to.include({ long_venue: 'binance', short_venue: 'bybit', prices_checked: true, venues: 2 })
    expect(spread!.price_gap_bps).to.be.closeTo(-196.08, 0.01)
    expect(spread!.price_mismatches).to.deep.equal([{ venue: 'gate', instrument: 'XYZUSDT', price: 0.004 }])
  })

  it('is not made of two prices that differ, of which nobody can tell which is right', () => {
    expect(spreadsOf([rate('binance', 1, '0.0001'), rate('gate', 2, '-0.01')])).to.deep.equal([])
  })

  it('compares the price of one coin, whatever the size of a contract is', () => {
    const [spread] = spreadsOf([
      rate('binance', 0.0105, '0.0001', { instrument: '1000PEPEUSDT' }),
      rate('hyperliquid', 0.0104, '0.0002', { instrument: 'kPEPE' }),
      rate('gate', 0.0000104, '0.0003', { instrument: 'PEPE_USDT' }),
    ])
    expect(spread).to.include({ venues: 3, prices_checked: true })
    expect(['BTCUSDT', '1MBABYDOGEUSDT', 'SHIB1000USDT', '1INCHUSDT', 'PF_XBTUSD', 'kBONK'].map(lotOf)).to.deep.equal([
      1, 1_000_000, 1000, 1, 1, 1000,
    ])
  })

  it('says that prices were not compared if a venue reports none', () => {
    const [spread] = spreadsOf([rate('binance', 1, '0.0001'), rate('okx', null, '0.0003', { volumeUsd: 5 })])
    expect(spread).to.include({ prices_checked: false, price_gap_bps: null, volume_24h_usd: null })
  })
})
