/** Prices of venues that do not agree, and figures that stand still, with the scripted venues. */
import { expect } from 'chai'
import { agreeOnPrices, type VenueRate } from '../../../plugins/funding/price-agreement.ts'
import { type KitFunding, openKitFunding } from './kit-funding.ts'

describe('the prices of funding rates', () => {
  const rate = (venue: VenueRate['venue'], symbol: string, price: number | null): VenueRate => ({
    venue,
    shift: 0,
    instrument: `${symbol}USDT`,
    symbol,
    quote: 'USDT',
    settle: 'USDT',
    contract: 'linear',
    rate: '0.0001',
    intervalHours: 8,
    intervalSource: 'venue',
    kind: 'predicted',
    predictedRate: null,
    nextFunding: null,
    markPrice: price,
    indexPrice: null,
    observed: 0,
  })
  const of = (symbol: string, ...prices: readonly (number | null)[]): VenueRate[] =>
    prices.map((price, at) => rate((['binance', 'bybit', 'okx', 'gate'] as const)[at]!, symbol, price))
  const checks = (rates: readonly VenueRate[]): string[] => {
    const agreed = agreeOnPrices(rates)
    return agreed.rates.map((one) => `${one.venue} ${agreed.checkOf(one)}`)
  }

  it('say whether they agree with the median, unless there is nothing to compare', () => {
    expect(checks(of('XYZ', 100, 101, 106))).to.deep.equal(['binance agrees', 'bybit agrees', 'okx agrees'])
    expect(checks(of('XYZ', 100, 101, 112))).to.deep.equal(['binance agrees', 'bybit agrees', 'okx differs'])
    expect(checks(of('XYZ', 100, null))).to.deep.equal(['binance unchecked', 'bybit unchecked'])
  })

  it('leave out a contract on another coin of the same name, and name the reason', () => {
    const { rates, others } = agreeOnPrices(of('XYZ', 1.02, 1, 0.004))
    expect(rates.map(({ venue }) => venue)).to.deep.equal(['binance', 'bybit'])
    expect(others).to.deep.equal([
      {
        venue: 'okx',
        instrument: 'XYZUSDT',
        rate: '0.0001',
        reason: 'its price of 0.004 is not that of XYZ, which is 1 at the median of 3 venues',
      },
    ])
  })

  it('leave out neither of two that differ, of which nobody can tell which is right', () => {
    expect(checks(of('XYZ', 1, 2))).to.deep.equal(['binance differs', 'bybit differs'])
  })

  it('leave out a venue whose prices are wrong as a whole, and keep one whose single coin is squeezed', () => {
    const coins = ['A', 'B', 'C', 'D', 'E']
    const squeezed = coins.flatMap((name) => of(name, 100, 100.1, 99.9, name === 'A' ? 115 : 100))
    expect(agreeOnPrices(squeezed).rates).to.have.length(20)
    const lying = agreeOnPrices(coins.flatMap((name) => of(name, 100, 100.1, 99.9, 105)))
    expect([...lying.wrong]).to.deep.equal([['gate', 'its prices are 4.95% above those of the other venues']])
    expect(lying.rates).to.have.length(15)
  })

  it('of a venue that is wrong make it unavailable, and it is back with its prices', async () => {
    const service = await openKitFunding()
    try {
      const stop = service.kit.faults.start('price_factor', { venue: 'bybit', factor: 0.95 })
      await service.run('poll')
      const { rates, unavailable } = await service.rates()
      expect(rates.map(({ venue }) => venue)).to.not.include('bybit')
      expect(new Set(rates.map(({ price_check: check }) => check))).to.deep.equal(new Set(['agrees']))
      expect(unavailable.map(({ venue }) => venue)).to.deep.equal(['bybit'])
      expect(unavailable[0]!.reason).to.match(/^its prices are [45][.\d]*% below those of the other venues$/)
      stop()
      service.kit.clock.advance(60)
      await service.run('poll')
      expect((await service.rates()).unavailable).to.deep.equal([])
    } finally {
      await service.close()
    }
  })
})

describe('funding rates that stand still', () => {
  let service: KitFunding
  beforeEach(async () => {
    service = await openKitFunding()
  })
  afterEach(() => service.close())

  const pollFor = async (minutes: number): Promise<void> => {
    for (let i = 0; i < minutes; i += 1) {
      service.kit.clock.advance(60)
      await service.run('poll')
    }
  }
  const state = async (name: string) => (await service.rates()).venues.find(({ venue }) => venue === name)!

  // Binance states the time of its rates; Bybit that of its answer, and Gate none.
  for (const [name, host] of [
    ['binance', 'binance-futures'],
    ['bybit', 'bybit'],
    ['gate', 'gate'],
  ] as const)
    it(`at ${name} make the venue degraded after five minutes, and are left out after an hour`, async () => {
      await service.run('poll')
      const stop = service.kit.faults.start('frozen', { venue: host })
      await pollFor(4)
      expect(await state(name)).to.include({ status: 'ok', error: null })
      await pollFor(4)
      const degraded = await state(name)
      expect(degraded.status).to.equal('degraded')
      expect(degraded.error).to.match(/^its newest rates are \d+ seconds old$/)
      expect(await state('okx')).to.include({ status: 'ok' })
      const { rates } = await service.rates({ venue: name })
      for (const rate of rates) expect(rate.age_seconds).to.be.within(360, 540)
      service.kit.clock.advance(3600)
      await service.run('poll')
      expect(await state(name)).to.include({ status: 'unavailable', rates: 0 })
      stop()
      await pollFor(1)
      expect(await state(name)).to.include({ status: 'ok' })
    })

  it('everywhere are not fresh, so that the operation is not sold', async () => {
    await service.run('poll')
    expect((await service.freshness()).sources).to.equal(8)
    const began = service.kit.clock.now()
    service.kit.faults.start('frozen')
    await pollFor(16)
    const { newest, sources, coverage } = await service.freshness()
    expect([sources, coverage]).to.deep.equal([0, 0])
    expect(newest!.getTime()).to.be.within(began - 60_000, began + 120_000)
  })
})
