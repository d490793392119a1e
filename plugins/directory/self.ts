/** Our own service in the directory: what its discovery document says, read like everybody else's. */
import type { Ask } from 'tollgate/plugin'
import { rowOf, textOf } from './reading.ts'
import { SELF } from './record.ts'
import { readOrigin } from './sources/origin.ts'
import type { Store } from './store.ts'

/** Asks the discovery document and takes it in; nobody is visited for it. */
export async function listOurselves(ask: Ask, store: Store, at: number): Promise<void> {
  const document = await ask('getDiscovery', { params: {}, query: {}, body: undefined })
  const base = textOf(rowOf(document)['base_url'])
  const page = base === null ? null : readOrigin(document, new URL(base).origin, true)
  if (!page) return
  await store.hear({ source: SELF, rank: 0, listings: page.listings, sweep: at, at, visitAt: null })
  await store.conclude(SELF, at, at)
}
