/** Settled rates of symbols that the settings do not name: those whose rates are, or were, worth most. */
import { expect } from 'chai'
import { PERPETUAL_VENUES } from '../../venues/funding/funding-market.ts'
import { type KitFunding, openKitFunding } from './kit-funding.ts'
import { failure } from './online-funding.ts'

const DAY = 86_400

describe('settled funding rates of symbols with extreme rates', function () {
  this.timeout(60_000)
  let service: KitFunding
  const open = async (settings: object = {}): Promise<void> => {
    service = await openKitFunding({ history_symbols: ['BTC'], keep_settled_days: 200, ...settings })
  }
  afterEach(() => service.close())

  const seconds = (): number => Math.floor(service.kit.clock.now() / 1000)
  const load = async (runs = 6): Promise<void> => {
    await service.run('poll')
    for (let n = 0; n < runs; n += 1) await service.run('settlements')
  }
  /** The newest settlement of a symbol that is held, epoch seconds; null if none is. */
  const newest = async (symbol: string): Promise<number | null> => {
    const answer = await service.history({ symbol, start: seconds() - DAY, limit: 1000 }).catch(() => null)
    return answer && Date.parse(answer.settlements.at(-1)!.settled_at) / 1000
  }
  /** Ends the squeeze of ALT. */
  const calm = (): void => {
    for (const venue of ['binance', 'bybit'] as const) service.kit.funding.setRate(venue, 'ALT-USD', 0.0001)
  }

  it('are read at every venue once a current rate is extreme', async () => {
    await open()
    await load()
    const { settlements, contracts } = await service.history({ symbol: 'ALT', start: seconds() - 3 * DAY, limit: 1000 })
    expect(new Set(contracts.map(({ venue }) => venue))).to.deep.equal(new Set(PERPETUAL_VENUES))
    expect(contracts.every(({ complete }) => complete)).to.equal(true)
    expect(Math.min(...settlements.map(({ rate }) => rate))).to.be.below(-0.0195)
    expect(await failure(service.history({ symbol: 'ETH' }))).to.include({ status: 404 })
  })

  it('are read of a contract at the bound of its venue, however small that is', async () => {
    await open()
    service.kit.funding.setRate('okx', 'ETH-USD', 0.015)
    service.kit.funding.setHours('okx', 'ETH-USD', 24)
    await load()
    expect(await newest('ETH')).to.be.above(seconds() - DAY)
  })

  it('go on for 90 days after the last extreme rate, whatever restarts', async () => {
    await open()
    await load()
    calm()
    await service.restart()
    service.kit.clock.advance(89 * DAY)
    await load(12)
    expect(await newest('ALT')).to.be.above(seconds() - 3600)
    service.kit.clock.advance(2 * DAY)
    await load(12)
    expect(await newest('ALT')).to.equal(null)
    expect(await newest('BTC')).to.be.above(seconds() - 3600)
  })

  it('are those of so many symbols as the settings allow, of the most extreme rates', async () => {
    await open({ extreme_symbols: 1 })
    // 3% in eight hours; ALT pays 16%.
    service.kit.funding.setRate('gate', 'ETH-USD', 0.03)
    await load()
    expect([await newest('ETH'), await newest('ALT')].map((time) => time !== null)).to.deep.equal([false, true])
    calm()
    service.kit.clock.advance(3600)
    await load()
    expect(await newest('ETH'), 'of the rate that is extreme now').to.be.above(seconds() - 3600)
  })

  it('are none if the settings say so', async () => {
    await open({ extreme_symbols: 0 })
    await load()
    expect(await newest('ALT')).to.equal(null)
  })

  it('do not wait for a contract whose history cannot be read', async () => {
    await open()
    service.kit.faults.start('server_error', { venue: 'gate', route: 'settled', symbol: 'BTC-USD' })
    for (let n = 0; n < 4; n += 1) {
      await load(1)
      service.kit.clock.advance(60)
    }
    const { contracts } = await service.history({ symbol: 'ALT,BTC', venue: 'gate', start: seconds() - 3 * DAY })
    expect(contracts.map(({ symbol, complete, error }) => [symbol, complete, error === null])).to.deep.equal([
      ['ALT', true, true],
      ['BTC', false, false],
    ])
  })

  it('leave the polls of a venue alone that refuses one contract', async () => {
    await open()
    service.kit.faults.start('delisted', { venue: 'gate', route: 'settled', symbol: 'BTC-USD' })
    await load(1)
    const { contracts } = await service.history({ symbol: 'ALT,BTC', venue: 'gate', start: seconds() - 3 * DAY })
    expect(contracts.map(({ symbol, error }) => [symbol, error !== null])).to.deep.equal([
      ['ALT', false],
      ['BTC', true],
    ])
    service.kit.clock.advance(20)
    const polls = () =>
      service.kit.requests().filter(({ venue, route }) => venue === 'gate' && route === 'rates').length
    const before = polls()
    await service.run('poll')
    expect(polls()).to.equal(before + 1)
  })
})
