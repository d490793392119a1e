import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { expect } from 'chai'
import market from '../../../plugins/market/index.ts'
import type { CoveredSymbol } from '../../../plugins/market/symbols.ts'
import { openVenueKit, SPOT_VENUES, type VenueKit } from '../../venues/venue-kit.ts'
import { openPluginHost, type PluginHost } from '../plugin-host.ts'

const catalog = JSON.parse(readFileSync(resolve(import.meta.dirname, '../../../catalog/market.json'), 'utf8')) as {
  settings: Record<string, unknown> & { symbols: CoveredSymbol[] }
}

describe('the order books of venues that misbehave', () => {
  let kit: VenueKit
  let host: PluginHost
  const openHost = (db?: PluginHost['db']): Promise<PluginHost> => {
    const venues = Object.fromEntries(SPOT_VENUES.map((name) => [name, { url: kit.spotUrls[name], per_second: 1000 }]))
    const symbols = catalog.settings.symbols.filter(({ symbol }) => ['BTC-USD', 'ETH-USD'].includes(symbol))
    const settings = {
      ...catalog.settings,
      symbols,
      venues,
      request_seconds: 1,
      history_start: new Date(kit.clock.now() - 3_600_000).toISOString(),
    }
    return openPluginHost([{ plugin: market, settings }], {
      dataMode: 'online',
      now: () => new Date(kit.clock.now()),
      ...(db ? { db } : {}),
    })
  }
  beforeEach(async () => {
    kit = await openVenueKit()
    host = await openHost()
    await host.run('poll')
    await host.run('backfill')
    await poll()
  })
  afterEach(async () => {
    await host.stop()
    await kit.close()
  })

  const poll = async (seconds = 60): Promise<void> => {
    kit.clock.advance(seconds)
    await host.run('poll')
    await host.run('depth')
  }
  const book = async (symbol = 'BTC-USD') => (await host.call('getBook', { symbol })).book
  const middle = async (symbol?: string): Promise<number> => {
    const { bids, asks } = (await book(symbol))!
    return (bids[0]![0] + asks[0]![0]) / 2
  }
  const age = async (symbol?: string): Promise<number> => kit.clock.now() / 1000 - (await book(symbol))!.time

  for (const name of [
    'reset',
    'maintenance',
    'empty',
    'null_rows',
    'truncated_json',
    'forbidden',
    'restricted',
    'silent',
  ] as const)
    it(`come from the next venue while the first one fails by ${name}, and from the first one again after it`, async () => {
      expect((await book())?.venue).to.equal('coinbase')
      const stop = kit.faults.start(name, { venue: 'coinbase' })
      await poll()
      expect((await book())?.venue).to.not.equal('coinbase')
      expect(await age()).to.equal(0)
      stop()
      kit.clock.advance(3600)
      await poll()
      expect((await book())?.venue).to.equal('coinbase')
    })

  it('are not asked of a venue that has refused before a restart', async () => {
    const stop = kit.faults.start('restricted', { venue: 'coinbase', route: 'book' })
    await poll()
    stop()
    const restarted = await openHost(host.db)
    const asked = () => kit.requests().filter(({ venue, route }) => venue === 'coinbase' && route === 'book').length
    const before = asked()
    kit.clock.advance(60)
    await restarted.run('depth')
    expect(asked()).to.equal(before)
    kit.clock.advance(600)
    await restarted.run('depth')
    expect(asked()).to.be.above(before)
    await restarted.stop()
  })

  it('of other symbols stay where they are when one is delisted', async () => {
    kit.faults.start('delisted', { venue: 'coinbase', symbol: 'BTC-USD' })
    await poll()
    expect((await book())?.venue).to.not.equal('coinbase')
    expect((await book('ETH-USD'))?.venue).to.equal('coinbase')
  })

  it('are not believed at a price that no minute and no other venue confirms', async () => {
    kit.faults.start('price_factor', { venue: 'coinbase' })
    await poll()
    expect((await book())?.venue).to.not.equal('coinbase')
    const truth = kit.market.price('BTC-USD', kit.clock.now())
    expect(Math.abs((await middle()) / truth - 1)).to.be.below(0.003)
  })

  it('are believed at a new price once two venues have it', async () => {
    for (const venue of SPOT_VENUES) kit.faults.start('price_factor', { venue, route: 'book' })
    await poll()
    const truth = kit.market.price('BTC-USD', kit.clock.now())
    expect((await middle()) / truth).to.be.within(1.045, 1.055)
  })

  it('are left out when a venue repeats one book', async () => {
    kit.faults.start('frozen', { venue: 'coinbase', route: 'book' })
    for (let minute = 0; minute < 3; minute += 1) await poll()
    expect((await book())?.venue).to.not.equal('coinbase')
    expect(await age()).to.equal(0)
  })

  it('do not come while every venue fails, so the last one grows old', async () => {
    for (const venue of SPOT_VENUES) kit.faults.start('server_error', { venue })
    await poll()
    expect(await age()).to.equal(60)
  })
})
