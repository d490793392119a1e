/** The venues of `npm run lab -- symbols`, in a process of their own, so that their work is not counted. Arguments: the time at which they start, and their limits. */
import type { VenueName } from '../../../plugins/market/venues/bar-venues.ts'
import { openVenueKit, SPOT_VENUES } from '../../venues/venue-kit.ts'

export interface Served {
  readonly urls: Readonly<Record<VenueName, string>>
  readonly asked: Readonly<Record<VenueName, number>>
  readonly limited: number
}

const [start, limits] = process.argv.slice(2).map(Number) as [number, number]
const kit = await openVenueKit({ start, limits })
process.on('message', ({ clock }: { clock?: number }) => {
  if (clock !== undefined) kit.clock.advance((clock - kit.clock.now()) / 1000)
  const requests = kit.requests()
  const asked = SPOT_VENUES.map((name) => [name, requests.filter(({ venue }) => venue === name).length])
  process.send?.({
    urls: kit.spotUrls,
    asked: Object.fromEntries(asked) as Served['asked'],
    limited: requests.filter(({ status }) => status === 429).length,
  } satisfies Served)
})
