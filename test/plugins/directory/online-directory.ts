/** The directory in online mode, with a local server as every source, a fake internet, and a clock that tests set. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { definePlugin } from 'tollgate/plugin'
import { openDatabase, type OpenDatabase } from '../../../gateway/stores/database.ts'
import { createDirectory } from '../../../plugins/directory/index.ts'
import { createPace, createVisitor, LIMITS } from '../../../plugins/directory/visits.ts'
import type { Directory, DirectoryRecord } from '../../../schemas/types.d.ts'
import { openPluginHost, type PluginHost } from '../plugin-host.ts'
import { type FakeInternet, openFakeInternet } from './fake-internet.ts'

/** 2026-11-20T12:00:00Z, epoch seconds. */
export const NOON = Date.UTC(2026, 10, 20, 12) / 1000
export const USDC = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913'
export const PAYEE = '0x209693Bc6afc0C5328bA36FaF03C514EF312287C'

export interface OnlineDirectory {
  readonly internet: FakeInternet
  readonly db: OpenDatabase
  clock: number
  /** What the sources serve: listings of `bazaar` and `second`, servers of `registry`. */
  readonly sources: Record<'bazaar' | 'second' | 'registry', unknown[]>
  /** Answers that replace a page, by source. */
  readonly faults: Map<string, (page: number) => { status: number; text: string } | null>
  /** Requested pages: "bazaar 100" is the page of `bazaar` at offset 100. */
  readonly pages: string[]
  run(...jobs: readonly string[]): Promise<void>
  find(query?: object, asOf?: number): Promise<Directory>
  /** The only record of an address. Throws if there are none or several. */
  record(url: string, query?: object): Promise<DirectoryRecord>
  close(): Promise<void>
}

/** An item of a listing, version 2. */
export function listingItem(url: string, fields: object = {}): object {
  const accepts = [{ scheme: 'exact', network: 'eip155:8453', asset: USDC, amount: '10000', payTo: PAYEE }]
  return { resource: url, type: 'http', x402Version: 2, lastUpdated: NOON - 3600, accepts, ...fields }
}

/** Our own discovery document, as the gateway would answer it. */
const documents = definePlugin({
  name: 'documents',
  setup: () => ({
    handlers: {
      getDiscovery: () => ({
        base_url: 'http://127.0.0.1:4021',
        service: 'Us',
        resources: ['http://127.0.0.1:4021/v1/x/thing'],
        paid_endpoints: { 'GET /v1/x/thing': '$0.02' },
        payment: { network: 'base-sepolia', currency: 'USDC', pay_to: PAYEE },
      }),
    },
  }),
})

export async function openOnlineDirectory(
  db: OpenDatabase = openDatabase({ file: ':memory:' }),
  settings: object = {},
): Promise<OnlineDirectory> {
  const internet = await openFakeInternet()
  const pages: string[] = []
  const faults: OnlineDirectory['faults'] = new Map()
  const sources: OnlineDirectory['sources'] = { bazaar: [], second: [], registry: [] }
  const server = createServer((request, response) => {
    const url = new URL(request.url ?? '', 'http://source')
    const name = url.pathname.slice(1) as keyof typeof sources
    const limit = Number(url.searchParams.get('limit'))
    const offset = Number(url.searchParams.get('offset') ?? url.searchParams.get('cursor') ?? 0)
    pages.push(`${name} ${offset}`)
    const fault = faults.get(name)?.(offset / 100) ?? null
    if (fault) return void response.writeHead(fault.status, { location: '/registry' }).end(fault.text)
    const rows = sources[name].slice(offset, offset + limit)
    const hasMore = offset + limit < sources[name].length
    const page =
      name === 'registry'
        ? {
            servers: rows.map((one) => ({ server: one })),
            metadata: hasMore ? { nextCursor: String(offset + limit) } : {},
          }
        : { x402Version: 2, items: rows, pagination: { limit, offset, total: sources[name].length } }
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(page))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const visit = createVisitor(internet.world, { ...LIMITS, milliseconds: 2000 }, createPace({ apartMs: 0 }))
  const host: PluginHost = await openPluginHost(
    [
      { plugin: documents, settings: {} },
      {
        plugin: createDirectory(visit),
        settings: {
          sources: [
            { id: 'origins', kind: 'origins', enabled: true, origins: ['http://own.example.org'] },
            { id: 'bazaar', kind: 'bazaar', enabled: true, url: `${base}/bazaar` },
            { id: 'second', kind: 'bazaar', enabled: true, url: `${base}/second` },
            { id: 'off', kind: 'bazaar', enabled: false, url: `${base}/bazaar` },
            { id: 'registry', kind: 'mcp_registry', enabled: true, url: `${base}/registry` },
            { id: 'cards', kind: 'agent_cards', enabled: true },
          ],
          sweep_hours: 6,
          visit_hours: 24,
          pause_ms: 0,
          keep_hours: 48,
          ...settings,
        },
      },
    ],
    { dataMode: 'online', now: () => new Date(directory.clock * 1000), db },
  )
  const directory: OnlineDirectory = {
    internet,
    db,
    clock: NOON,
    sources,
    faults,
    pages,
    async run(...jobs) {
      for (const job of jobs) await host.run(job)
    },
    find: (query = {}, asOf = directory.clock) =>
      host.call('getAgentDirectory', { sort: 'name', limit: 200, ...query }, { asOf: new Date(asOf * 1000) }),
    async record(url, query) {
      const found = (await directory.find(query)).records.filter((record) => record.url === url)
      if (found.length !== 1) throw new Error(`${found.length} records of ${url}`)
      return found[0]!
    },
    async close() {
      await host.stop()
      await db.destroy()
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
      await internet.close()
    },
  }
  return directory
}
