/** What a buyer buys while sources fail, and how each answer is compared with the truth. */
import type { PluginHost } from '../plugins/plugin-host.ts'
import type { RequestOptions } from '../support/agent.ts'
import { PERPETUAL_VENUES, type PerpetualVenue } from './funding/funding-market.ts'
import type { Desk, NewsItem } from './feeds/scripted-news.ts'
import { LISTINGS, servicesOf } from './listings/service-listings.ts'
import type { VenueKit } from './venue-kit.ts'

/** The sources that a product rests on. */
export type SourceGroup = 'spot' | 'perpetual' | 'feeds' | 'listings'

export interface TruthParts {
  readonly kit: VenueKit
  readonly twin: Pick<PluginHost, 'call'>
  /** News of the test that were published so long ago that a working feed has them. */
  readonly probes: readonly NewsItem[]
  /** What the live feed lacked when it was bought in the same round. */
  readonly live: readonly string[]
}

/** A place that only the probes name. */
export const PROBE_PLACE = { id: 'place:BT', name: 'Bhutan' }

export interface BoughtProduct {
  readonly name: string
  readonly group: SourceGroup
  /** The path and query, which may depend on the clock of the data (epoch milliseconds). */
  readonly path: string | ((now: number) => string)
  readonly request?: RequestOptions
  /** Returns what is wrong with an answer; an empty list if it is fresh and right. */
  faultsOf(body: Record<string, unknown>, parts: TruthParts): readonly string[] | Promise<readonly string[]>
}

type Row = Readonly<Record<string, unknown>>
const rowsOf = (value: unknown): readonly Row[] => (Array.isArray(value) ? (value as Row[]) : [])
const rowOf = (value: unknown): Row => (typeof value === 'object' && value !== null ? (value as Row) : {})
const secondsSince = (kit: VenueKit, time: unknown): number => (kit.clock.now() - Date.parse(String(time))) / 1000

/** The regime may be this old when it is sold, in seconds. */
const OLDEST_SNAPSHOT = 300
/** Venues differ a little, so the median of others moves a volatility by at most this share, and the scalar by this much. */
const NEAR_SHARE = 0.06
const NEAR_SCALAR = 0.06

function isNear(ours: unknown, theirs: unknown, share: number): boolean {
  if (ours === null || theirs === null) return ours === theirs
  return Math.abs(Number(ours) - Number(theirs)) <= share * Math.abs(Number(theirs)) + 1e-9
}

/** Differences of a snapshot from the undisturbed one. */
function snapshotFaults(ours: Row, theirs: Row): string[] {
  const faults: string[] = []
  for (const name of ['forecast_vol', 'realized_vol_1h'])
    if (name in ours && !isNear(ours[name], theirs[name], NEAR_SHARE))
      faults.push(`${name} ${String(ours[name])}, undisturbed ${String(theirs[name])}`)
  if (Math.abs(Number(ours['position_scalar']) - Number(theirs['position_scalar'])) > NEAR_SCALAR)
    faults.push(`position_scalar ${String(ours['position_scalar'])}, undisturbed ${String(theirs['position_scalar'])}`)
  return faults
}

/** The undisturbed snapshot of a minute. */
async function twinSnapshot(twin: TruthParts['twin'], at: string, symbol: string): Promise<Row | null> {
  const start = new Date(Date.parse(at)).toISOString()
  const end = new Date(Date.parse(at) + 1000).toISOString()
  // Read by the current answer as of that minute, which has every field.
  const answer = await twin
    .call('getRegimeCurrent', { symbol }, { asOf: new Date(Date.parse(start) + 20_000) })
    .catch(() => null)
  return answer && answer.as_of < end ? { ...answer } : null
}

async function regimeFaults(body: Row, { kit, twin }: TruthParts, symbol = 'BTC-USD'): Promise<string[]> {
  const age = secondsSince(kit, body['as_of'])
  if (!(age <= OLDEST_SNAPSHOT)) return [`the snapshot is ${age} seconds old`]
  const theirs = await twinSnapshot(twin, String(body['as_of']), symbol)
  return theirs ? snapshotFaults(body, theirs) : []
}

async function historyFaults(body: Row, { kit, twin }: TruthParts): Promise<string[]> {
  const snapshots = rowsOf(body['snapshots'])
  if (snapshots.length === 0) return ['no snapshot']
  const newest = secondsSince(kit, snapshots.at(-1)!['as_of'])
  const faults = newest <= OLDEST_SNAPSHOT ? [] : [`the newest snapshot is ${newest} seconds old`]
  const asOf = new Date(kit.clock.now())
  const query = { start: body['start'], end: body['end'], limit: 1000 }
  const answer = (await twin.call('getRegimeHistory', query, { asOf }).catch(() => null)) as Row | null
  const theirs = new Map(rowsOf(answer?.['snapshots']).map((row) => [String(row['as_of']), row]))
  for (const row of snapshots) {
    const other = theirs.get(String(row['as_of']))
    if (other) faults.push(...snapshotFaults(row, other).map((fault) => `${String(row['as_of'])}: ${fault}`))
  }
  return faults
}

async function costFaults(body: Row, { kit, twin }: TruthParts, request: RequestOptions): Promise<string[]> {
  const inputs = rowOf(body['inputs'])
  const price = kit.market.price('BTC-USD', kit.clock.now())
  const faults: string[] = []
  if (!isNear(inputs['price'], price, 0.006)) faults.push(`price ${String(inputs['price'])}, truly ${price}`)
  const age = Number(body['data_age_seconds'])
  if (!(age <= OLDEST_SNAPSHOT)) faults.push(`data of ${age} seconds ago`)
  const book = rowOf(inputs['book'])
  if ('as_of' in book && !(secondsSince(kit, book['as_of']) <= 120)) faults.push(`a book of ${String(book['as_of'])}`)
  const theirs = (await twin
    .call('estimateExecutionCost', {}, { asOf: new Date(kit.clock.now()), body: request.body })
    .catch(() => null)) as Row | null
  if (theirs) {
    const other = rowOf(theirs['inputs'])
    if (!isNear(inputs['sigma_daily'], other['sigma_daily'], 0.1))
      faults.push(`sigma_daily ${String(inputs['sigma_daily'])}, undisturbed ${String(other['sigma_daily'])}`)
  }
  return faults
}

function fundingFaults(body: Row, { kit }: TruthParts): string[] {
  const rates = rowsOf(body['rates'])
  if (rates.length === 0) return ['no rates']
  const unavailable = new Set(rowsOf(body['unavailable']).map(({ venue }) => String(venue)))
  const faults: string[] = []
  for (const venue of PERPETUAL_VENUES) {
    const own = rates.filter((rate) => rate['venue'] === venue)
    if (own.length === 0 && !unavailable.has(venue)) faults.push(`nothing of ${venue}, and it is not unavailable`)
    for (const rate of own) faults.push(...rateFaults(kit, venue, rate))
  }
  return faults
}

function rateFaults(kit: VenueKit, venue: PerpetualVenue, rate: Row): string[] {
  const symbol = `${String(rate['symbol'])}-USD`
  const name = `${venue} ${symbol}`
  const observed = Date.parse(String(rate['observed_at']))
  const faults: string[] = []
  const age = secondsSince(kit, rate['observed_at'])
  if (!(age <= 300)) faults.push(`${name}: ${age} seconds old`)
  const truth = kit.funding.rate(venue, symbol, kit.funding.next(venue, symbol, observed))
  if (Math.abs(Number(rate['rate']) - truth) > 2e-6)
    faults.push(`${name}: rate ${String(rate['rate'])}, truly ${truth}`)
  if (rate['interval_hours'] !== kit.funding.hours(venue, symbol))
    faults.push(`${name}: ${String(rate['interval_hours'])} hours`)
  const mark = rate['mark_price']
  const price = kit.funding.spot(kit.market.price, symbol, kit.clock.now())
  if (mark !== null && mark !== undefined && !isNear(mark, price, 0.02))
    faults.push(`${name}: mark ${JSON.stringify(mark)}`)
  return faults
}

/** Settlements are read some time after they were made: a venue may list one late. */
const SETTLED_WITHIN = 5 * 3600

function settledFaults(body: Row, { kit }: TruthParts): string[] {
  const settlements = rowsOf(body['settlements'])
  if (settlements.length === 0) return ['no rates']
  return PERPETUAL_VENUES.flatMap((venue) => {
    const contract = rowsOf(body['contracts']).find((row) => row['venue'] === venue)
    if (!contract) return [`no contract of ${venue}`]
    const late = secondsSince(kit, contract['held_to'])
    const until = Math.min(Date.parse(String(contract['held_to'])), Date.parse(String(body['end'])) - 1000) / 1000
    const truth = kit.funding.settled(venue, 'BTC-USD', Date.parse(String(body['start'])) / 1000 - 1, until)
    const ours = new Map(
      settlements
        .filter((row) => row['venue'] === venue)
        .map((row) => [Date.parse(String(row['settled_at'])) / 1000, Number(row['rate'])]),
    )
    return [
      ...(late <= SETTLED_WITHIN ? [] : [`${venue} is held to ${String(contract['held_to'])}`]),
      ...truth
        .filter(({ time, rate }) => !(Math.abs((ours.get(time) ?? NaN) - rate) <= 2e-6))
        .map(({ time, rate }) => `${venue} settled ${rate} at ${time}, here ${String(ours.get(time))}`),
    ]
  })
}

/** A listing is read every six minutes, and half an hour after it could not be read. */
const OLDEST_LISTING = 2400

function directoryFaults(body: Row): string[] {
  const records = rowsOf(body['records'])
  if (records.length === 0) return ['no record']
  const amounts = new Map(records.map((row) => [row['url'], rowsOf(row['prices'])[0]?.['amount_atomic']]))
  const late = rowsOf(body['sources']).filter(
    (source) => LISTINGS.some((name) => name === source['id']) && !(Number(source['age_seconds']) <= OLDEST_LISTING),
  )
  return [
    ...LISTINGS.flatMap(servicesOf)
      .filter(({ url, amount }) => amounts.get(url) !== amount)
      .map(({ url, amount }) => `${url} costs ${amount}, here ${String(amounts.get(url))}`),
    ...late.map(({ id, age_seconds: age }) => `${String(id)} was read ${String(age)} seconds ago`),
  ]
}

/** Which source of plugins/potus a desk publishes in. */
const SOURCES: Readonly<Partial<Record<Desk, readonly string[]>>> = {
  white_house: ['wh.news'],
  posts: ['truth.mirror', 'truth.archive'],
}

/** Probes that the events lack, or have with another text. A compact event has no text. */
function missingProbes(events: readonly Row[], { probes }: TruthParts): string[] {
  return probes.flatMap((probe) => {
    const found = events.find((event) => {
      const isFromDesk = (SOURCES[probe.desk] ?? []).includes(String(event['source']))
      const words = JSON.stringify(event)
      return isFromDesk && (words.includes(probe.key) || words.includes(probe.title))
    })
    if (!found) return [`no ${probe.desk} of ${new Date(probe.at).toISOString()}`]
    const text = found['text']
    return typeof text !== 'string' || text.includes(probe.text.slice(0, 40))
      ? []
      : [`another text of ${probe.desk} ${probe.key}`]
  })
}

/** Probes that no window of a quarter of an hour counts. */
function uncountedProbes(windows: readonly Row[], { probes, kit }: TruthParts): string[] {
  return probes.flatMap(({ at, desk }) => {
    const quarter = Math.floor(at / 900_000) * 900_000
    // A window is answered once it has closed. An item may be seen up to an hour later, when its source is back.
    if (kit.clock.now() < quarter + 1_800_000) return []
    const counted = windows.filter(({ window }) => {
      const start = Date.parse(String(rowOf(window)['start']))
      return start >= quarter && start <= quarter + 3_600_000
    })
    return counted.some(({ count }) => Number(count) > 0)
      ? []
      : [`no count of ${desk} at ${new Date(at).toISOString()}`]
  })
}

const ESTIMATE: RequestOptions = {
  method: 'POST',
  body: { symbol: 'BTC-USD', side: 'buy', notional_usd: 250_000, order_type: 'market' },
}
const POST: RequestOptions = { method: 'POST' }

/** Every product that rests on a source. */
export const PRODUCTS: readonly BoughtProduct[] = [
  {
    name: 'regime',
    group: 'spot',
    path: '/v1/regime/current',
    faultsOf: (body, parts) => regimeFaults(body, parts),
  },
  {
    name: 'ETH',
    group: 'spot',
    path: '/v1/regime/current?symbol=ETH-USD',
    faultsOf: (body, parts) => regimeFaults(body, parts, 'ETH-USD'),
  },
  { name: 'history', group: 'spot', path: '/v1/regime/history?limit=30', faultsOf: historyFaults },
  {
    name: 'cost',
    group: 'spot',
    path: '/v1/cost/estimate',
    request: ESTIMATE,
    faultsOf: (body, parts) => costFaults(body, parts, ESTIMATE),
  },
  {
    name: 'preflight',
    group: 'spot',
    path: '/v1/trade/preflight',
    request: ESTIMATE,
    async faultsOf(body, parts) {
      return [
        ...(await regimeFaults(rowOf(body['regime']), parts)),
        ...(await costFaults(rowOf(body['cost']), parts, ESTIMATE)),
      ]
    },
  },
  { name: 'funding', group: 'perpetual', path: '/v1/x/perp-funding-rates?limit=500', faultsOf: fundingFaults },
  {
    name: 'settled',
    group: 'perpetual',
    path: (now) =>
      `/v1/x/perp-funding-rates/history?symbol=BTC&limit=500&start=${new Date(now - 12 * 3_600_000).toISOString()}`,
    faultsOf: settledFaults,
  },
  {
    name: 'directory',
    group: 'listings',
    path: '/v1/x/agent-economy-directory?limit=200',
    faultsOf: directoryFaults,
  },
  {
    name: 'live',
    group: 'feeds',
    path: '/v1/potus/live?limit=100',
    faultsOf: (body, parts) => missingProbes(rowsOf(body['items']), parts),
  },
  {
    name: '1m',
    group: 'feeds',
    path: (now) => `/v1/potus/events/1m?from=${new Date(now - 7_200_000).toISOString()}`,
    faultsOf: (body, parts) =>
      missingProbes(
        rowsOf(body['windows']).flatMap(({ events }) => rowsOf(events)),
        parts,
      ),
  },
  {
    name: '15m',
    group: 'feeds',
    path: (now) => `/v1/potus/events/15m?from=${new Date(now - 7_200_000).toISOString()}`,
    faultsOf: (body, parts) =>
      rowsOf(body['windows']).length === 0 ? ['no window'] : uncountedProbes(rowsOf(body['windows']), parts),
  },
  {
    name: 'archive',
    group: 'feeds',
    path: '/v1/potus/archive',
    faultsOf: (body) => (rowsOf(body['items']).length === 0 ? ['no event'] : []),
  },
  {
    name: 'event',
    group: 'feeds',
    path: '/v1/potus/event/latest',
    faultsOf: (body, parts) => {
      const newest = parts.probes.toSorted((a, b) => b.at - a.at)[0]
      const event = rowOf(body['event'])
      // One that became known after the probe is newer, though it may have been published before: sources differ in delay.
      return newest && Date.parse(String(event['available_at'])) < Math.floor(newest.at / 1000) * 1000
        ? [`the latest event became known at ${String(event['available_at'])}`]
        : []
    },
  },
  {
    name: 'entities',
    group: 'feeds',
    path: '/v1/potus/entities?limit=200',
    faultsOf(body, { probes }) {
      const items = rowsOf(body['items'])
      if (items.length === 0) return ['no entity']
      const newest = Math.max(0, ...probes.map(({ at }) => at))
      const place = items.find(({ id }) => id === PROBE_PLACE.id)
      const seen = place === undefined ? 0 : Date.parse(String(place['last_seen']))
      return seen >= Math.floor(newest / 1000) * 1000
        ? []
        : [`${PROBE_PLACE.id} was last seen ${String(place?.['last_seen'])}`]
    },
  },
  {
    name: 'feeds',
    group: 'feeds',
    path: '/v1/potus/feeds',
    faultsOf(body, { kit }) {
      const feeds = rowsOf(body['feeds'])
      if (feeds.length === 0) return ['no feed']
      return feeds
        .filter(({ enabled, status, last_success: last, poll_seconds: every }) => {
          return enabled === true && status === 'ok' && Number(every) <= 300 && !(secondsSince(kit, last) < 1200)
        })
        .map(({ id, last_success: last }) => `${String(id)} is ok though last read ${String(last)}`)
    },
  },
  {
    name: 'plan live',
    group: 'feeds',
    path: '/v1/potus/subscribe/live/24h',
    request: POST,
    faultsOf: (body, { probes, live }) =>
      typeof body['token'] === 'string' && !(probes.length > 0 && live.length >= probes.length) ? [] : ['no feed'],
  },
  {
    name: 'plan archive',
    group: 'feeds',
    path: '/v1/potus/subscribe/archive/30d',
    request: POST,
    faultsOf: (body) => (typeof body['token'] === 'string' ? [] : ['no token']),
  },
]

/** What an answer says about itself: that it is not whole, not live, or rests on fewer sources. */
export function marksOf(body: unknown, path = ''): string[] {
  if (Array.isArray(body)) return body.flatMap((entry, i) => marksOf(entry, `${path}[${i}]`))
  if (typeof body !== 'object' || body === null) return []
  const { check, status: verdict } = body as { check?: unknown; status?: unknown }
  if (check === 'data_freshness' && verdict === 'fail') return [`${path} failed`]
  return Object.entries(body).flatMap(([name, value]) => {
    const at = path === '' ? name : `${path}.${name}`
    if (name === 'coverage' && typeof value === 'number' && value < 0.9995) return [`${at} ${value}`]
    if (name === 'complete' && value === false) return [`${at} false`]
    if (name === 'dropped' && Object.keys(Object(value)).length > 0) return [`${at} ${JSON.stringify(value)}`]
    if (name === 'sources_late' && Number(value) > 0) return [`${at} ${String(value)}`]
    if (name === 'unavailable' && Array.isArray(value) && value.length > 0) return [`${at} ${value.length}`]
    if (name === 'origin' && value === 'held') return [`${at} ${String(value)}`]
    if (name === 'status' && ['late', 'failing', 'degraded', 'stale', 'down'].includes(String(value)))
      return [`${at} ${String(value)}`]
    if (name === 'warnings' && Array.isArray(value) && value.length > 0) return [`${at} ${value.length}`]
    return marksOf(value, at)
  })
}
