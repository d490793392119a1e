/** /health: what works and what does not, with reasons; and /v1/stats: the statistics of each product. */
import type { Edition } from '../editions/edition.ts'
import { recipientsOf } from '../config/pay-to.ts'
import type { Network } from '../config/networks.ts'
import type { DocumentParts } from './document.ts'

/**
 * Returns the current status. It is `degraded` if a product is disabled or suspended, if the files have errors and an
 * earlier edition is still served, or if payments cannot be settled.
 */
export function health(edition: Edition, parts: DocumentParts) {
  const products = edition.status()
  const settler = parts.settlerHealth()
  const issues = parts.issues()
  const now = parts.now()
  const hasNoIssues = issues.length === 0 && edition.disabled.length === 0
  const recipients = recipientsOf(parts)
  const settles = settler.ready && settler.reason === undefined
  const isOk = settles && hasNoIssues && products.every(({ status }) => status === 'ok')
  return {
    status: isOk ? 'ok' : 'degraded',
    service: edition.catalog.service.name,
    version: edition.catalog.service.version,
    catalog_version: edition.catalog.version,
    data_mode: parts.dataMode,
    network: parts.network.name,
    settler,
    ...(recipients.length === 1 ? {} : { settlers: recipients.map(({ network }) => settlerOf(network, parts)) }),
    products,
    withheld: edition.disabled,
    mistakes: issues,
    started: parts.started.toISOString(),
    uptime_seconds: Math.max(0, Math.floor((now.getTime() - parts.started.getTime()) / 1000)),
    time: now.toISOString(),
  }
}

function settlerOf(network: Network, { settlerHealth }: DocumentParts) {
  return { network: network.name, ...settlerHealth(network) }
}

/** Returns the facts by product, and those of the product `leading` at the top level. Products without facts are omitted. */
export async function stats(edition: Edition, leading: string | null) {
  const facts = Object.entries(await edition.facts()).filter(([, fact]) => Object.keys(fact).length > 0)
  const products = Object.fromEntries(facts)
  const top = leading === null ? {} : (products[leading] ?? {})
  return { ...top, catalog_version: edition.catalog.version, products }
}
