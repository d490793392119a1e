/** /health: what works and what does not, with reasons; and /v1/stats: the statistics of each product. */
import type { Edition, ProductStatus } from '../editions/edition.ts'
import type { Issue } from '../validation/issue.ts'
import { recipientsOf } from '../config/pay-to.ts'
import type { Network } from '../config/networks.ts'
import { type Catalog, Reply } from '../plugin/plugin.ts'
import { type DocumentParts, liveHeaders } from './document.ts'

/** The part of the status that changes seldom, written as JSON without its last bracket, and what it was written of. */
interface WrittenHealth {
  readonly edition: Edition
  readonly products: readonly ProductStatus[]
  readonly issues: readonly Issue[]
  readonly settlers: string
  /** The number of warnings, which are never withdrawn. */
  readonly warnings: number
  readonly text: string
}

/** Creates the handler of /health. The status is looked at in every call and written when it has changed. */
export function createHealth(parts: DocumentParts): (catalog: Catalog) => Reply {
  const networks = recipientsOf(parts).map(({ network }) => network)
  let last: WrittenHealth | null = null

  function written(): string {
    const edition = parts.editions()
    const products = edition.status()
    const issues = parts.issues()
    const settlers = JSON.stringify([parts.settlerHealth(), networks.map((network) => parts.settlerHealth(network))])
    const warnings = parts.warnings().length
    if (
      last?.edition !== edition ||
      last.products !== products ||
      last.issues !== issues ||
      last.settlers !== settlers ||
      last.warnings !== warnings
    ) {
      const text = JSON.stringify(health(edition, parts)).slice(0, -1)
      last = { edition, products, issues, settlers, warnings, text }
    }
    return last.text
  }

  return (catalog) => {
    const now = parts.now()
    const uptime = Math.max(0, Math.floor((now.getTime() - parts.started.getTime()) / 1000))
    const text = `${written()},"uptime_seconds":${uptime},"time":"${now.toISOString()}"}`
    return Reply.json(Buffer.from(text), { headers: liveHeaders(catalog) })
  }
}

/**
 * Returns the current status. It is `degraded` if a product is disabled or suspended, if the files have errors and an
 * earlier edition is still served, or if payments cannot be settled.
 */
function health(edition: Edition, parts: DocumentParts) {
  const products = edition.status()
  const settler = parts.settlerHealth()
  const issues = parts.issues()
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
    warnings: parts.warnings(),
    started: parts.started.toISOString(),
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
