/**
 * A sample agent economy. Every four weeks since 2026-02-01 new services appear, in the payload format of each source,
 * and go through the same parsers as online. Hosts end in .example, which nobody can own (RFC 2606).
 */
import { createHash } from 'node:crypto'
import type { Logger } from 'tollgate/plugin'
import { hashOf, pickFor } from '../lib/feeds/sample-numbers.ts'
import { healthAfter, judgeVisit, UNVISITED } from './liveness.ts'
import { idOf, type Listing, type Page } from './listing.ts'
import { readBazaar } from './sources/bazaar.ts'
import { readCard } from './sources/agent-cards.ts'
import { readRegistry } from './sources/mcp-registry.ts'
import type { DirectoryStore } from './directory-store.ts'
import type { Visit } from './visits.ts'

const START = Date.UTC(2026, 1, 1) / 1000
const STEP = 28 * 86_400
/** Services that appear in a step. */
const PER_STEP = 19
/** Seconds from the listing of a service to our visit. */
const VISITED_AFTER = [600, 1200, 1800]
/** The sources of the sample, in order of precedence. */
export const SAMPLE_SOURCES = ['cdp', 'payai', 'mcp_registry', 'agent_cards'] as const

const SUBJECTS = [
  'weather',
  'ocr',
  'translation',
  'geocoding',
  'news',
  'prices',
  'search',
  'images',
  'speech',
  'flights',
  'patents',
  'recipes',
]
const MAKERS = [
  'northwind',
  'bluefin',
  'quill',
  'tessera',
  'orchard',
  'lantern',
  'copper',
  'meridian-labs',
  'halyard',
  'fathom',
]
const USDC = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913'
/** One service in this many does not answer. */
const DEAD_ONE_IN = 7

const address = (word: string): string => `0x${createHash('sha256').update(word).digest('hex').slice(0, 40)}`

interface Service {
  readonly host: string
  readonly subject: string
  readonly amount: string
  readonly payTo: string
}

function serviceOf(step: number, n: number): Service {
  const word = `${step}/${n}`
  const subject = pickFor(SUBJECTS, word)
  return {
    host: `${subject}-${step}-${n}.${pickFor(MAKERS, `${word} maker`)}.example`,
    subject,
    amount: String(1000 * (1 + (hashOf(`${word} price`) % 50))),
    payTo: address(`${word} payee`),
  }
}

/** The pages of new listings in a step. */
function pagesOf(
  step: number,
  at: number,
): readonly (readonly [source: (typeof SAMPLE_SOURCES)[number], page: Page | null])[] {
  const services = Array.from({ length: PER_STEP }, (_, n) => serviceOf(step, n))
  const [bazaar, own, servers, [agent]] = [
    services.slice(0, 8),
    services.slice(8, 12),
    services.slice(12, 18),
    services.slice(18),
  ]
  return [
    ['cdp', readBazaar({ items: bazaar.map((service) => asV2(service, at)) }, at)],
    // Some services of the first source again, and some of its own.
    [
      'payai',
      readBazaar(
        { items: [...bazaar.slice(5).map((service) => asV2(service, at)), ...own.map((service) => asV1(service, at))] },
        at,
      ),
    ],
    ['mcp_registry', readRegistry({ servers: servers.map((service) => ({ server: asServer(service) })) }, at)],
    ['agent_cards', readCard(asCard(agent!), null)],
  ]
}

const maker = ({ host }: Service): string => host.split('.')[1]!

function asV2(service: Service, at: number) {
  const { host, subject, amount, payTo } = service
  return {
    resource: `https://${host}/v1/${subject}`,
    type: 'http',
    x402Version: 2,
    lastUpdated: new Date(at * 1000).toISOString(),
    serviceName: `${subject} by ${maker(service)}`,
    description: `Made-up service: ${subject} on request.`,
    tags: [subject],
    accepts: [{ scheme: 'exact', network: 'eip155:8453', asset: USDC, amount, payTo, maxTimeoutSeconds: 60 }],
    extensions: { bazaar: { info: { input: { type: 'http', method: 'GET' } }, schema: {} } },
    quality: { l30DaysTotalCalls: hashOf(host) % 900, l30DaysUniquePayers: hashOf(host) % 40 },
  }
}

function asV1({ host, subject, amount, payTo }: Service, at: number) {
  const description = `Made-up service: ${subject}.`
  return {
    url: `https://${host}/api/:query`,
    type: 'http',
    x402Version: 1,
    lastUpdated: at,
    accepts: [{ scheme: 'exact', network: 'base', asset: USDC, maxAmountRequired: amount, payTo, description }],
  }
}

function asServer(service: Service) {
  const { host, subject } = service
  return {
    name: `example.${maker(service)}/${host.split('.')[0]}`,
    title: `${subject} tools`,
    description: `Made-up MCP server: ${subject}.`,
    version: '1.0.0',
    remotes: [{ type: 'streamable-http', url: `https://${host}/mcp` }],
  }
}

function asCard(service: Service) {
  const { host, subject } = service
  return {
    name: `${subject} agent`,
    description: `Made-up agent: ${subject}.`,
    supportedInterfaces: [{ url: `https://${host}/a2a`, protocolBinding: 'JSONRPC', protocolVersion: '1.0' }],
    provider: { organization: maker(service) },
    skills: [{ id: subject, tags: [subject] }],
    version: '1.0.0',
  }
}

/** Adds the steps that have begun since the last run, with their visits. `now` is in epoch seconds. */
export async function addSampleListings(store: DirectoryStore, now: number, log: Logger): Promise<void> {
  const done = (await store.noted<number>('sample')) ?? -1
  const last = Math.floor((now - START - VISITED_AFTER.at(-1)!) / STEP)
  for (let step = done + 1; step <= last; step += 1) {
    const at = START + step * STEP
    const listings: Listing[] = []
    for (const [source, page] of pagesOf(step, at)) {
      if (!page) continue
      const rank = SAMPLE_SOURCES.indexOf(source) + 1
      await store.savePage({ source, rank, listings: page.listings, sweep: at, at, visitAt: null })
      await store.note(source, at, { rows: page.rows, dropped: page.dropped, error: null })
      listings.push(...page.listings.filter(({ url, isTemplate }) => url !== null && !isTemplate))
    }
    let seen = new Map(listings.map((listing) => [idOf(listing), { listing, health: UNVISITED }]))
    for (const later of VISITED_AFTER) {
      const visits = [...seen].map(([id, { listing, health }]) => {
        const visit = visitOf(listing)
        const finding = judgeVisit(visit, listing.kind)
        const isGood = finding.status === 'alive'
        return { id, listing, isGood, next: null, health: healthAfter(health, visit, finding, at + later) }
      })
      await store.visited(visits, at + later)
      seen = new Map(visits.map(({ id, ...rest }) => [id, rest]))
    }
    await store.setNote('sample', step)
  }
  if (last > done) log.info({ steps: last - done }, 'added sample listings')
}

/** The answer of a sample service to a visit. */
function visitOf({ url, prices }: Listing): Visit {
  if (hashOf(url!) % DEAD_ONE_IN === 0) return { failure: 'unreachable', reason: 'made up' }
  const [price] = prices
  if (!price) return { failure: null, status: 405, body: '', paymentRequired: null }
  const { amount_atomic: amount, pay_to: payTo, scheme, network, asset } = price
  const body = JSON.stringify({ x402Version: 2, accepts: [{ scheme, network, asset, amount, payTo }] })
  return { failure: null, status: 402, body, paymentRequired: null }
}
