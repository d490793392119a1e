/**
 * The shipped catalog in DATA_MODE=online, with every source scripted, on a local chain: what a buyer of the real service
 * would get while the sources fail.
 */
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import type { Context } from 'mocha'
import type { LocalAccount } from 'viem'
import potus from '../../plugins/potus/index.ts'
import { createLog } from '../../gateway/observe/log.ts'
import { createChainSettler } from '../../gateway/methods/exact-evm/chain/chain-settler.ts'
import { ask, payment, send, type RequestOptions } from '../support/agent.ts'
import { startChain, type TestChain } from '../support/chain.ts'
import { openGateway, PAY_TO, type TestGateway } from '../support/gateway.ts'
import { newBuyer, newSettleKey } from '../support/payments.ts'
import { createSteppedJobs, type SteppedJobs } from './stepped-jobs.ts'
import type { VenueKit } from './venue-kit.ts'

const root = resolve(import.meta.dirname, '../..')
/** What needs no source that is scripted here, or would ask a real one. */
const LEFT_OUT = ['site.json', 'founding.json', 'calculator.json', 'audit-pages.json']

export interface Bought {
  readonly status: number
  /** The error code; `ok` for a 200. */
  readonly code: string
  readonly body: Record<string, unknown>
  /** What left the buyer's wallet, in atomic units. */
  readonly charged: bigint
  /** What the 402 asked for, in atomic units. */
  readonly price: bigint
}

export interface VenueGateway {
  readonly url: string
  readonly jobs: SteppedJobs
  readonly gateway: TestGateway['gateway']
  /** The copy of the shipped catalog that it serves. */
  readonly catalogDir: string
  /** Buys an answer with a payment on the chain. */
  buy(path: string, request?: RequestOptions): Promise<Bought>
  /** A free answer as JSON. */
  get(path: string): Promise<Record<string, unknown>>
  close(): Promise<void>
}

export interface VenueGatewayOptions {
  readonly kit: VenueKit
  /** Days of bars before the start; the model of the regime begins with initial coefficients. */
  readonly historyDays?: number
  /** Symbols of plugins/market to cover. */
  readonly symbols?: readonly string[]
  /** Sources of plugins/potus to switch on; those that the catalog has on if absent. */
  readonly sources?: readonly string[]
  /** How long a venue of bars may take, real time. The default is short, because a silent venue takes all of it. */
  readonly requestSeconds?: number
  /** A folder that a later gateway continues in; in memory if absent. */
  readonly dataDir?: string
}

/** Starts a chain. A suite shares one between its gateways. */
export const startVenueChain = (context: Context): Promise<TestChain> => startChain(context)

/** Opens the gateway, and runs its jobs until the history of bars is there. */
export async function openVenueGateway(chain: TestChain, options: VenueGatewayOptions): Promise<VenueGateway> {
  const { kit } = options
  const catalogDir = copyCatalog(options)
  const jobs = createSteppedJobs(kit.clock)
  const { rpcUrl, network } = chain
  const key = await newSettleKey(chain)
  const settler = await createChainSettler({
    rpcUrl,
    key,
    network,
    log: createLog('silent'),
    confirmSeconds: 10,
    pollMs: 20,
  })
  const settlement = { network, payTo: PAY_TO, settler, sandbox: null, close: () => settler.close() }
  const opened = await openGateway(
    {
      DATA_MODE: 'online',
      CATALOG_DIR: catalogDir,
      PLUGIN_DIRS: join(root, 'plugins'),
      CONFIRM_BLOCKS: '1',
      ALLOW_SHALLOW_PLANS: 'true',
      ...(process.env['VENUES_LOG'] ? { LOG_LEVEL: process.env['VENUES_LOG'] } : {}),
    },
    {
      settlement,
      dataNow: () => new Date(kit.clock.now()),
      jobTimers: jobs,
      ...(process.env['VENUES_LOG'] ? { log: createLog(process.env['VENUES_LOG']) } : {}),
    },
  )
  const { url, gateway } = opened
  if (gateway.issues.length > 0) throw new Error(`the catalog has issues: ${JSON.stringify(gateway.issues)}`)
  await jobs.settle()
  const buyer: LocalAccount = await newBuyer(chain, 1_000_000_000_000n)
  return {
    url,
    jobs,
    gateway,
    catalogDir,
    async buy(path, request = {}) {
      const address = `${url}${path}`
      const quote = await ask(address, request)
      const { accepts = [] } = (await quote.json()) as { accepts?: { maxAmountRequired?: string }[] }
      const price = BigInt(accepts[0]?.maxAmountRequired ?? 0)
      if (quote.status !== 402) return { status: quote.status, code: 'not_quoted', body: {}, charged: 0n, price }
      const before = await chain.balanceOf(buyer.address)
      const response = await send(address, await payment(address, buyer, 2, request), 2, request)
      const body = (await response.json()) as Record<string, unknown>
      const charged = before - (await chain.balanceOf(buyer.address))
      const code = response.status === 200 ? 'ok' : String(body['code'])
      return { status: response.status, code, body, charged, price }
    },
    get: async (path) => (await (await ask(`${url}${path}`)).json()) as Record<string, unknown>,
    async close() {
      await opened.close()
      await settler.close()
      rmSync(catalogDir, { recursive: true, force: true })
    },
  }
}

type Json = Record<string, unknown>

/** What the settings of plugins/potus say of a source. */
const SOURCE_SETTINGS = (
  potus.settings as unknown as { properties: { sources: { additionalProperties: { properties: Json } } } }
).properties.sources.additionalProperties.properties

/** Copies the shipped catalog with the addresses of the scripted sources, and fewer symbols and days. */
function copyCatalog({
  kit,
  historyDays = 2,
  symbols = ['BTC-USD', 'ETH-USD'],
  sources,
  requestSeconds = 4,
}: VenueGatewayOptions): string {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-venues-'))
  cpSync(join(root, 'catalog'), folder, { recursive: true })
  for (const file of LEFT_OUT) rmSync(join(folder, file), { force: true })
  const start = new Date(Math.floor(kit.clock.now() / 86_400_000 - historyDays) * 86_400_000).toISOString()
  const edit = (file: string, change: (settings: Json) => Json): void => {
    const path = join(folder, file)
    const document = JSON.parse(readFileSync(path, 'utf8')) as { settings: Json }
    writeFileSync(
      path,
      JSON.stringify({ ...document, settings: { ...document.settings, ...change(document.settings) } }),
    )
  }
  edit('market.json', (settings) => ({
    history_start: start,
    request_seconds: requestSeconds,
    symbols: (settings['symbols'] as { symbol: string }[]).filter(({ symbol }) => symbols.includes(symbol)),
    venues: Object.fromEntries(
      Object.entries(settings['venues'] as Record<string, Json>).map(([name, venue]) => {
        const url = kit.spotUrls[name as keyof typeof kit.spotUrls]
        return [name, { ...venue, ...('book_url' in venue ? { book_url: url } : {}), url, per_second: 1000 }]
      }),
    ),
  }))
  // Older pages are another test's subject: they are read at a pace of real time.
  const withoutHistory = 'history' in SOURCE_SETTINGS ? { history: false } : {}
  edit('regime.json', () => ({ since: start }))
  edit('potus.json', () => ({
    sources: Object.fromEntries(
      Object.entries(kit.sourceUrls).map(([id, url]) => [
        id,
        { url, ...withoutHistory, ...(sources ? { enabled: sources.includes(id) } : {}) },
      ]),
    ),
  }))
  edit('x/perp-funding-rates.json', (settings) => ({
    history_symbols: ['BTC', 'ETH'],
    history_days: 3,
    history_pause_ms: 0,
    venues: Object.fromEntries(
      Object.entries(settings['venues'] as Record<string, Json>).map(([name, venue]) => [
        name,
        { ...venue, url: kit.perpetualUrls[name as keyof typeof kit.perpetualUrls] },
      ]),
    ),
  }))
  edit('x/agent-economy-directory.json', () => ({
    sources: Object.entries(kit.listingUrls).map(([id, url]) => ({
      id,
      kind: 'bazaar',
      enabled: true,
      url: `${url}/discovery/resources`,
    })),
    sweep_hours: 0.1,
    // The listed services are made up, so there is nobody to visit.
    visit_hours: 0,
    pause_ms: 0,
  }))
  return folder
}
