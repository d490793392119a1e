/** Funding rates in online mode with the scripted venues, on a database of its own. */
import { openDatabase, type OpenDatabase } from '../../../gateway/stores/database.ts'
import funding from '../../../plugins/funding/index.ts'
import type { Freshness, FreshnessTools, OperationId } from 'tollgate/plugin'
import type { FundingHistory, FundingRates } from '../../../schemas/types.d.ts'
import { openVenueKit, type VenueKit } from '../../venues/venue-kit.ts'
import { openPluginHost, type PluginHost } from '../plugin-host.ts'

export interface KitFunding {
  readonly kit: VenueKit
  readonly db: OpenDatabase
  run(job: 'poll' | 'settlements' | 'books'): Promise<void>
  rates(query?: object): Promise<FundingRates>
  history(query: object): Promise<FundingHistory>
  /** What the product reports to the gateway about its current rates. */
  freshness(): Promise<Freshness>
  /** What it reports about its settled rates. */
  historyFreshness(query: object): Promise<Freshness | null>
  /** Sets the plugin up again on the same database. */
  restart(): Promise<void>
  close(): Promise<void>
}

export async function openKitFunding(settings: object = {}): Promise<KitFunding> {
  const kit = await openVenueKit()
  const db = openDatabase({ file: ':memory:' })
  const open = (): Promise<PluginHost> => {
    const venues = Object.fromEntries(Object.entries(kit.perpetualUrls).map(([name, url]) => [name, { url }]))
    const limits = { keep_hours: 6, history_days: 10, keep_settled_days: 30, history_pause_ms: 0, extreme_symbols: 50 }
    const all = { history_symbols: ['BTC', 'ALT'], ...limits, venues, ...settings }
    return openPluginHost([{ plugin: funding, settings: all }], {
      dataMode: 'online',
      now: () => new Date(kit.clock.now()),
      db,
    })
  }
  let host = await open()
  const report = async (operation: OperationId, query: object): Promise<Freshness | null> => {
    const input = { operation, params: {}, query: { ...query }, body: undefined }
    return host.registrations[0]!.freshness!(input, new Date(kit.clock.now()), {} as FreshnessTools)
  }
  return {
    kit,
    db,
    run: (job) => host.run(job),
    rates: (query = {}) => host.call('getPerpFundingRates', { sort: 'symbol', limit: 1000, ...query }),
    history: (query) => host.call('getPerpFundingHistory', { limit: 500, ...query }),
    freshness: async () => (await report('getPerpFundingRates', {}))!,
    historyFreshness: (query) => report('getPerpFundingHistory', { limit: 500, ...query }),
    async restart() {
      await host.stop()
      host = await open()
    },
    async close() {
      await host.stop()
      await db.destroy()
      await kit.close()
    },
  }
}
