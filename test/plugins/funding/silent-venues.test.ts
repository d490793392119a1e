/** Polls of venues that take a request and never answer it. */
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'chai'
import { type KitFunding, openKitFunding } from './kit-funding.ts'

describe('the poll of funding rates, while a venue is silent,', function () {
  this.timeout(60_000)
  let service: KitFunding
  beforeEach(async () => {
    // Longer than an answer takes on a busy machine: all venues would count as silent.
    service = await openKitFunding({ poll_request_seconds: 5 })
  })
  afterEach(() => service.close())

  const stateOf = async (name: string) => (await service.rates()).venues.find(({ venue }) => venue === name)!
  const areOthersNew = async (): Promise<boolean> =>
    (await service.rates()).venues.every(
      ({ venue, age_seconds: age, error }) => venue === 'okx' || (age === 0 && error === null),
    )

  it('stores what the others answer at once, and ends in time for the next minute', async () => {
    await service.run('poll')
    service.kit.faults.start('silent', { venue: 'okx' })
    for (let minute = 0; minute < 3; minute += 1) {
      service.kit.clock.advance(60)
      let isOver = false
      const began = performance.now()
      const run = service.run('poll').then(() => (isOver = true))
      while (!isOver && !(await areOthersNew())) await sleep(20)
      expect(isOver, 'nothing waited for the silent venue').to.equal(false)
      await run
      expect(performance.now() - began).to.be.below(10_000)
    }
    const okx = await stateOf('okx')
    expect(okx).to.include({ status: 'degraded', age_seconds: 180 })
    expect(okx.error).to.match(/funding-rate\?instId=ANY did not answer within 5 seconds$/)
  })

  it('keeps the rates of a venue that is silent about a list they can be read without', async () => {
    service.kit.faults.start('silent', { venue: 'kraken-futures', route: 'instruments' })
    await service.run('poll')
    expect(await stateOf('kraken')).to.include({ status: 'ok', error: null })
  })

  it('gives up an answer that drips', async () => {
    service.kit.faults.start('slow_drip', { venue: 'gate' })
    await service.run('poll')
    expect(await stateOf('gate')).to.include({ status: 'unavailable' })
    expect(await stateOf('bybit')).to.include({ status: 'ok' })
  })
})
