import { expect } from 'chai'
import type { VenueName } from '../../../plugins/funding/funding-rate.ts'
import { ANSWERS, AT } from './answers.ts'
import { failure, NAMES, openScene, type Scene } from './scene.ts'

describe('the funding rate service, when venues fail or time passes,', () => {
  let scene: Scene
  beforeEach(async () => {
    scene = await openScene()
  })
  afterEach(() => scene.close())

  it('keeps the rates of a failing venue for an hour, then drops them and lists the venue with its age', async () => {
    await scene.poll()
    scene.venues.faults.set('gate', { status: 503 })
    scene.clock += 1800
    await scene.poll()
    expect(await scene.venue('gate')).to.deep.include({
      status: 'degraded',
      rates: 2,
      age_seconds: 1800,
      error: '/api/v4/futures/usdt/contracts answered 503',
    })
    scene.clock += 1801
    await scene.poll()
    const { unavailable, rates: left } = await scene.rates()
    expect(left.map(({ venue: name }) => name)).to.not.include('gate')
    expect(unavailable.filter(({ venue: name }) => name === 'gate')).to.deep.equal([
      { venue: 'gate', reason: '/api/v4/futures/usdt/contracts answered 503', age_seconds: 3601 },
    ])
  })

  it('keeps the rates of other venues when some answer nonsense', async () => {
    const texts = ['<html>maintenance</html>', '', '{"cut":', '[]'.repeat(3)]
    for (const [i, text] of texts.entries()) {
      scene.clock += 100
      scene.venues.faults.set(NAMES[i]!, { status: 200, text })
    }
    await scene.poll()
    expect((await scene.rates()).venues.map(({ status }) => status)).to.deep.equal(
      NAMES.map((_, i) => (i < texts.length ? 'unavailable' : 'ok')),
    )
  })

  it('waits as long as Retry-After says, and an hour after a refusal', async () => {
    scene.venues.faults.set('okx', { status: 429, headers: { 'retry-after': '120' } })
    scene.venues.faults.set('binance', { status: 451 })
    await scene.poll()
    const asked = (name: VenueName) => scene.venues.requests.filter((request) => request.startsWith(name)).length
    const [okx, binance] = [asked('okx'), asked('binance')]
    scene.clock += 119
    await scene.poll()
    expect([asked('okx'), asked('binance')]).to.deep.equal([okx, binance])
    scene.clock += 1
    await scene.poll()
    expect([asked('okx'), asked('binance')]).to.deep.equal([okx + 1, binance])
    scene.clock += 3480
    await scene.poll()
    expect(asked('binance')).to.be.above(binance)
  })

  it('does not follow redirects', async () => {
    scene.venues.faults.set('dydx', {
      status: 302,
      headers: { location: `${scene.venues.urlOf('gate')}/api/v4/futures/usdt/contracts` },
    })
    await scene.poll()
    expect(await scene.venue('dydx')).to.include({ status: 'unavailable', error: '/v4/perpetualMarkets answered 302' })
  })

  it('lists implausible rates and uses them nowhere', async () => {
    const [first, second] = ANSWERS.gate['contracts'] as object[]
    scene.venues.payloads.set('gate/contracts', [{ ...first, funding_rate: '0.9' }, second])
    await scene.poll()
    const { rates: found, quarantined, spreads } = await scene.rates({ symbol: 'BTC' })
    expect(found.map(({ venue: name }) => name)).to.not.include('gate')
    expect(spreads.flatMap((spread) => [spread.long_venue, spread.short_venue])).to.not.include('gate')
    expect(quarantined).to.deep.equal([
      { venue: 'gate', instrument: 'BTC_USDT', rate_decimal: '0.9', reason: '90.0% in eight hours' },
    ])
  })

  it('gives the same answer for an earlier time, whatever came later', async () => {
    await scene.poll()
    scene.clock += 30
    const before = await scene.rates()
    scene.venues.payloads.set('hyperliquid/contexts', [{ universe: [] }, []])
    scene.venues.faults.set('kraken', { status: 500 })
    scene.clock += 30
    await scene.poll()
    expect(await scene.rates({}, AT + 30)).to.deep.equal(before)
    expect((await scene.rates()).total).to.equal(before.total - 2)
  })

  it('deletes rates after the configured hours, except the last ones', async () => {
    for (let i = 0; i < 9; i += 1) {
      await scene.poll()
      scene.clock += 3600
    }
    const kept = (await scene.db('funding_polls').where({ venue: 'gate' }).orderBy('known_at')) as {
      known_at: number
    }[]
    expect(kept.map(({ known_at }) => (known_at - AT) / 3600)).to.deep.equal([2, 3, 4, 5, 6, 7, 8])
    expect(await failure(scene.rates({}, AT))).to.include({ code: 'product_suspended' })
  })

  it('keeps rates over a restart', async () => {
    await scene.poll()
    const before = await scene.rates()
    await scene.restart()
    expect(await scene.rates()).to.deep.equal(before)
  })
})
