/** Funding rates in online mode on a database of their own, with local venues and a clock that tests set. */
import { openDatabase, type OpenDatabase } from '../../../gateway/stores/database.ts'
import funding from '../../../plugins/funding/index.ts'
import type { VenueName } from '../../../plugins/funding/funding-rate.ts'
import { VENUES } from '../../../plugins/funding/venues/funding-venues.ts'
import type { FundingRates, FundingVenue } from '../../../schemas/types.d.ts'
import { stand, type Stand } from '../stand.ts'
import { AT, type FakeVenues, openVenues } from './answers.ts'

export const NAMES = Object.keys(VENUES) as VenueName[]

export interface Scene {
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

export async function openScene(): Promise<Scene> {
  const venues = await openVenues()
  const db = openDatabase({ file: ':memory:' })
  const place = (off: readonly VenueName[] = []): Promise<Stand> => {
    const switches = NAMES.map((name) => [name, { url: venues.urlOf(name), enabled: !off.includes(name) }])
    const settings = { keep_hours: 6, venues: Object.fromEntries(switches) as object }
    return stand([{ plugin: funding, settings }], { dataMode: 'online', now: () => new Date(scene.clock * 1000), db })
  }
  const scene: Scene = {
    venues,
    db,
    clock: AT,
    poll: () => placed.run('poll'),
    rates: (query = {}, asOf = scene.clock) =>
      placed.call('getPerpFundingRates', { sort: 'symbol', limit: 100, ...query }, { asOf: new Date(asOf * 1000) }),
    venue: async (name) => (await scene.rates()).venues.find((one) => one.venue === name)!,
    async restart(off) {
      await placed.stop()
      placed = await place(off)
    },
    async close() {
      await placed.stop()
      await db.destroy()
      await venues.close()
    },
  }
  let placed = await place()
  return scene
}

/** The error of a call that must fail. */
export function failure(asking: Promise<unknown>): Promise<Error> {
  return asking.then(
    () => {
      throw new Error('it was answered')
    },
    (error: Error) => error,
  )
}
