/** /health: what works and what does not, with reasons. */
import type { Edition } from '../editions/edition.ts'
import { recipientsOf } from '../config/pay-to.ts'
import type { Network } from '../config/networks.ts'
import type { DocumentParts } from './document.ts'

/**
 * The status of this moment. `degraded`: a product is withheld or suspended, the files have mistakes and an earlier
 * edition of them serves on, or payments cannot be settled.
 */
export function health(edition: Edition, parts: DocumentParts) {
  const products = edition.status()
  const settler = parts.settlerHealth()
  const mistakes = parts.mistakes()
  const now = parts.now()
  const nothingAmiss = mistakes.length === 0 && edition.withheld.length === 0
  const payees = recipientsOf(parts)
  const settles = settler.ready && settler.reason === undefined
  const whole = settles && nothingAmiss && products.every(({ status }) => status === 'ok')
  return {
    status: whole ? 'ok' : 'degraded',
    service: edition.catalog.service.name,
    version: edition.catalog.service.version,
    catalog_version: edition.catalog.version,
    data_mode: parts.dataMode,
    network: parts.network.name,
    settler,
    ...(payees.length === 1 ? {} : { settlers: payees.map(({ network }) => settlerOf(network, parts)) }),
    products,
    withheld: edition.withheld,
    mistakes,
    started: parts.started.toISOString(),
    uptime_seconds: Math.max(0, Math.floor((now.getTime() - parts.started.getTime()) / 1000)),
    time: now.toISOString(),
  }
}

function settlerOf(network: Network, { settlerHealth }: DocumentParts) {
  return { network: network.name, ...settlerHealth(network) }
}

/** All facts by product, and those of the leading product at the top. A product without facts is not named. */
export async function stats(edition: Edition, leading: string | null) {
  const facts = Object.entries(await edition.facts()).filter(([, fact]) => Object.keys(fact).length > 0)
  const products = Object.fromEntries(facts)
  const top = leading === null ? {} : (products[leading] ?? {})
  return { ...top, catalog_version: edition.catalog.version, products }
}
