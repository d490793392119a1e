/** /health: what works and what does not, with reasons. */
import type { Edition } from '../../editions/edition.ts'
import type { DocumentParts } from './parts.ts'

/** The status of this moment. `degraded`: a product is withheld or suspended, or payments cannot be settled. */
export function health(edition: Edition, parts: DocumentParts) {
  const products = edition.status()
  const settler = parts.settlerHealth()
  const now = parts.now()
  const whole = settler.ready && edition.withheld.length === 0 && products.every(({ status }) => status === 'ok')
  return {
    status: whole ? 'ok' : 'degraded',
    service: edition.catalog.service.name,
    version: edition.catalog.service.version,
    catalog_version: edition.catalog.version,
    data_mode: parts.dataMode,
    network: parts.network.name,
    settler,
    products,
    withheld: edition.withheld,
    started: parts.started.toISOString(),
    uptime_seconds: Math.max(0, Math.floor((now.getTime() - parts.started.getTime()) / 1000)),
    time: now.toISOString(),
  }
}
