/**
 * The feeds and their plans in a real gateway, beside every other priced route of the catalog. The others are there to be
 * refused: what would make them is left out, so that a test need not wait for it.
 */
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import type { Overrides } from '../../../gateway/compose.ts'
import { buy, json } from '../../support/agent.ts'
import { openGateway, type TestGateway } from '../../support/gateway.ts'
import { root } from './newsroom.ts'

type Json = Record<string, unknown>

/** Documents kept whole. */
const WHOLE = ['potus.json', 'market.json', 'plans.json', 'service.json', 'documents.json']

/** A catalog in a folder of its own; `change` sees the documents kept whole. */
export function stallCatalog(change: (name: string, document: Json) => void = () => {}): string {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-stall-'))
  for (const file of readdirSync(join(root, 'catalog'), { recursive: true })
    .map(String)
    .filter((name) => name.endsWith('.json'))) {
    const document = JSON.parse(readFileSync(join(root, 'catalog', file), 'utf8')) as Json
    const name = basename(file)
    if (WHOLE.includes(name)) {
      if (name === 'documents.json') (document['settings'] as Json)['docs'] = '/openapi.json'
      change(name, document)
      writeFileSync(join(folder, name), JSON.stringify(document))
      continue
    }
    const priced = Object.entries((document['operations'] ?? {}) as Record<string, Json>).filter(
      ([, { price, retired }]) => price !== undefined && price !== 'free' && !retired,
    )
    if (priced.length === 0) continue
    const plain = priced.map(([id, { handler: _, ...operation }]) => [id, operation])
    const { plugin: _, uses: __, settings: ___, ...rest } = document
    const upstream = { url: 'http://127.0.0.1:9/nowhere' }
    writeFileSync(join(folder, name), JSON.stringify({ ...rest, upstream, operations: Object.fromEntries(plain) }))
  }
  return folder
}

/** The same without the bars of the market, which take their time to be made. */
export function feedCatalog(change: (name: string, document: Json) => void = () => {}): string {
  const folder = stallCatalog(change)
  rmSync(join(folder, 'market.json'))
  return folder
}

export interface Stall extends TestGateway {
  /** Buys a plan and returns its token. */
  token(plan: 'live/24h' | 'live/30d' | 'archive/30d'): Promise<string>
}

export async function openStall(
  catalog = stallCatalog(),
  overrides: Overrides = {},
  environment: Readonly<Record<string, string>> = {},
): Promise<Stall> {
  const folders = { CATALOG_DIR: catalog, PLUGIN_DIRS: join(root, 'plugins') }
  const shop = await openGateway({ ...folders, ...environment }, overrides)
  return {
    ...shop,
    async token(plan) {
      const response = await buy(`${shop.url}/v1/potus/subscribe/${plan}`, shop.wallet, 2, { method: 'POST' })
      if (response.status !== 200) throw new Error(`the plan was not sold: ${await response.text()}`)
      return String((await json(response))['token'])
    },
    async close() {
      await shop.close()
      rmSync(catalog, { recursive: true, force: true })
    },
  }
}
