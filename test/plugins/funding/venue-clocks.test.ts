/** Polls of venues whose clocks are behind ours. */
import { expect } from 'chai'
import { type KitFunding, openKitFunding } from './kit-funding.ts'

describe('the rates of a venue whose clock is behind', () => {
  let service: KitFunding
  beforeEach(async () => {
    service = await openKitFunding()
  })
  afterEach(() => service.close())

  it('are dated by its clock, so that they belong to the interval that it still counts', async () => {
    const { kit } = service
    kit.faults.start('clock_behind', { venue: 'hyperliquid', seconds: 30 })
    // From 12:00:30 to 13:00:10.
    kit.clock.advance(3580)
    await service.run('poll')
    const { rates } = await service.rates({ symbol: 'BTC' })
    const row = rates.find(({ venue }) => venue === 'hyperliquid')!
    const hour = Date.UTC(2026, 2, 2, 13) / 1000
    expect(row.observed_at).to.equal('2026-03-02T12:59:40Z')
    expect(row.rate).to.equal(kit.funding.rate('hyperliquid', 'BTC-USD', hour))
    expect(kit.funding.rate('hyperliquid', 'BTC-USD', hour + 3600)).not.to.equal(row.rate)
  })

  it('count by our clock if it is far off', async () => {
    const { kit } = service
    kit.faults.start('clock_behind', { venue: 'hyperliquid', seconds: 7200 })
    await service.run('poll')
    const { rates } = await service.rates({ symbol: 'BTC' })
    expect(rates.find(({ venue }) => venue === 'hyperliquid')).to.include({ observed_at: '2026-03-02T12:00:30Z' })
  })
})
