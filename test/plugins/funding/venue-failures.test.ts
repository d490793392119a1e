import { expect } from 'chai'
import type { VenueName } from '../../../plugins/funding/funding-rate.ts'
import { ANSWERS, AT } from './fake-venues.ts'
import { failure, VENUE_NAMES, openOnlineFunding, type OnlineFunding } from './online-funding.ts'

describe('the funding rate service, when venues fail or time passes,', () => {
  let service: OnlineFunding
  beforeEach(async () => {
    service = await openOnlineFunding()
  })
  afterEach(() => service.close())

  it('keeps the rates of a failing venue for an hour, then drops them and lists the venue with its age', async () => {
    await service.poll()
    service.venues.faults.set('gate', { status: 503 })
    service.clock += 1800
    await service.poll()
    expect(await service.venue('gate')).to.deep.include({
      status: 'degraded',
      rates: 2,
      age_seconds: 1800,
      error: '/api/v4/futures/usdt/contracts answered 503',
    })
    service.clock += 1801
    // The other venues repeat what they said an hour ago, except one.
    const [meta, [first, ...rest]] = ANSWERS.hyperliquid['contexts'] as [object, object[]]
    service.venues.payloads.set('hyperliquid/contexts', [meta, [{ ...first, funding: '0.0000126' }, ...rest]])
    await service.poll()
    const { unavailable, rates: left } = await service.rates()
    expect(left.map(({ venue: name }) => name)).to.not.include('gate')
    expect(unavailable.filter(({ venue: name }) => name === 'gate')).to.deep.equal([
      { venue: 'gate', reason: '/api/v4/futures/usdt/contracts answered 503', age_seconds: 3601 },
    ])
  })

  it('keeps the rates of other venues when some answer nonsense', async () => {
    const texts = ['<html>maintenance</html>', '', '{"cut":', '[]'.repeat(3)]
    for (const [i, text] of texts.entries()) {
      service.clock += 50
      service.venues.faults.set(VENUE_NAMES[i]!, { status: 200, text })
    }
    await service.poll()
    expect((await service.rates()).venues.map(({ status }) => status)).to.deep.equal(
      VENUE_NAMES.map((_, i) => (i < texts.length ? 'unavailable' : 'ok')),
    )
  })

  it('waits as long as Retry-After says, and an hour after a refusal', async () => {
    service.venues.faults.set('okx', { status: 429, headers: { 'retry-after': '120' } })
    service.venues.faults.set('binance', { status: 451 })
    await service.poll()
    const requestsTo = (name: VenueName) => service.venues.requests.filter((request) => request.startsWith(name)).length
    const [okx, binance] = [requestsTo('okx'), requestsTo('binance')]
    service.clock += 119
    await service.poll()
    expect([requestsTo('okx'), requestsTo('binance')]).to.deep.equal([okx, binance])
    service.clock += 1
    await service.poll()
    expect([requestsTo('okx'), requestsTo('binance')]).to.deep.equal([okx + 2, binance])
    service.clock += 3480
    await service.poll()
    expect(requestsTo('binance')).to.be.above(binance)
  })

  it('asks no venue during its pause because it was restarted', async () => {
    service.venues.faults.set('binance', { status: 451 })
    service.venues.faults.set('okx', { status: 429, headers: { 'retry-after': '120' } })
    await service.poll()
    service.venues.faults.clear()
    const asked: string[][] = []
    for (const seconds of [60, 60, 3480]) {
      const before = service.venues.requests.length
      await service.restart()
      service.clock += seconds
      await service.poll()
      const names = service.venues.requests.slice(before).map((request) => request.split(' ')[0]!)
      asked.push(['gate', 'okx', 'binance'].filter((name) => names.includes(name)))
    }
    expect(asked).to.deep.equal([['gate'], ['gate', 'okx'], ['gate', 'okx', 'binance']])
  })

  it('does not follow redirects', async () => {
    service.venues.faults.set('dydx', {
      status: 302,
      headers: { location: `${service.venues.urlOf('gate')}/api/v4/futures/usdt/contracts` },
    })
    await service.poll()
    expect(await service.venue('dydx')).to.include({
      status: 'unavailable',
      error: '/v4/perpetualMarkets answered 302',
    })
  })

  it('lists implausible rates and uses them nowhere', async () => {
    const [first, second] = ANSWERS.gate['contracts'] as object[]
    service.venues.payloads.set('gate/contracts', [{ ...first, funding_rate: '0.9' }, second])
    await service.poll()
    const { rates: found, quarantined, spreads } = await service.rates({ symbol: 'BTC' })
    expect(found.map(({ venue: name }) => name)).to.not.include('gate')
    expect(spreads.flatMap((spread) => [spread.long_venue, spread.short_venue])).to.not.include('gate')
    expect(quarantined).to.deep.equal([
      { venue: 'gate', instrument: 'BTC_USDT', rate_decimal: '0.9', reason: '90% at one settlement' },
    ])
  })

  it('gives the same answer for an earlier time, whatever came later', async () => {
    await service.poll()
    service.clock += 30
    const before = await service.rates()
    service.venues.payloads.set('hyperliquid/contexts', [{ universe: [] }, []])
    service.venues.faults.set('kraken', { status: 500 })
    service.clock += 30
    await service.poll()
    expect(await service.rates({}, AT + 30)).to.deep.equal(before)
    expect((await service.rates()).total).to.equal(before.total - 2)
  })

  it('deletes rates after the configured hours, except the last ones', async () => {
    for (let i = 0; i < 9; i += 1) {
      await service.poll()
      service.clock += 3600
    }
    const polls = (await service.db('funding_polls').where({ venue: 'gate' }).orderBy('known_at')) as {
      known_at: number
    }[]
    expect(polls.map(({ known_at }) => (known_at - AT) / 3600)).to.deep.equal([2, 3, 4, 5, 6, 7, 8])
    expect(await failure(service.rates({}, AT))).to.include({ code: 'product_suspended' })
  })

  it('keeps rates over a restart', async () => {
    await service.poll()
    const before = await service.rates()
    await service.restart()
    expect(await service.rates()).to.deep.equal(before)
  })
})
