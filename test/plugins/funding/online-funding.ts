/** Funding rates in online mode on a database of their own, with local venues and a clock that tests set. */
import { openDatabase, type OpenDatabase } from '../../../gateway/stores/database.ts'
import funding from '../../../plugins/funding/index.ts'
import type { VenueName } from '../../../plugins/funding/funding-rate.ts'
import { VENUES } from '../../../plugins/funding/venues/funding-venues.ts'
import type { FundingRates, FundingVenue } from '../../../schemas/types.d.ts'
import { openPluginHost, type PluginHost } from '../plugin-host.ts'
import { AT, type FakeVenues, openVenues } from './fake-venues.ts'

export const VENUE_NAMES = Object.keys(VENUES) as VenueName[]

export interface OnlineFunding {
  readonly venues: FakeVenues
  readonly db: OpenDatabase
  /** Epoch seconds. */
  clock: number
  poll(): Promise<void>
  rates(query?: object, asOf?: number): Promise<FundingRates>
  venue(name: VenueName): Promise<FundingVenue>
  /** Sets the plugin up again, without some venues. */
  restart(off?: readonly VenueName[]): Promise<void>
  close(): Promise<void>
}

export async function openOnlineFunding(): Promise<OnlineFunding> {
  const venues = await openVenues()
  const db = openDatabase({ file: ':memory:' })
  const openHost = (off: readonly VenueName[] = []): Promise<PluginHost> => {
    const switches = VENUE_NAMES.map((name) => [name, { url: venues.urlOf(name), enabled: !off.includes(name) }])
    const settings = { keep_hours: 6, venues: Object.fromEntries(switches) as object }
    return openPluginHost([{ plugin: funding, settings }], {
      dataMode: 'online',
      now: () => new Date(service.clock * 1000),
      db,
    })
  }
  const service: OnlineFunding = {
    venues,
    db,
    clock: AT,
    poll: () => host.run('poll'),
    rates: (query = {}, asOf = service.clock) =>
      host.call('getPerpFundingRates', { sort: 'symbol', limit: 100, ...query }, { asOf: new Date(asOf * 1000) }),
    venue: async (name) => (await service.rates()).venues.find((one) => one.venue === name)!,
    async restart(off) {
      await host.stop()
      host = await openHost(off)
    },
    async close() {
      await host.stop()
      await db.destroy()
      await venues.close()
    },
  }
  let host = await openHost()
  return service
}

/** The error of a call that must fail. */
export function failure(call: Promise<unknown>): Promise<Error> {
  return call.then(
    () => {
      throw new Error('it was answered')
    },
    (error: Error) => error,
  )
}
