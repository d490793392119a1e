/** /health: what works and what does not, with reasons; and /v1/stats: the statistics of each product. */
import { andThen, type Awaitable } from '../awaitable.ts'
import { writtenFreshData } from '../catalog/fresh-data.ts'
import type { Edition, ProductStatus } from '../products/edition.ts'
import { type FreshnessState, writtenFreshness } from '../products/freshness.ts'
import type { Issue } from '../validation/issue.ts'
import { recipientsOf } from '../config/pay-to.ts'
import type { Network } from '../config/networks.ts'
import type { DataMode } from '../plugin/deployment.ts'
import { type Catalog, Reply } from '../plugin/plugin.ts'
import { type DocumentParts, liveHeaders } from './document.ts'

/** The part of the status that changes seldom, written as JSON without its last bracket, and what it was written of. */
interface WrittenHealth {
  readonly edition: Edition
  readonly products: readonly ProductStatus[]
  readonly issues: readonly Issue[]
  readonly freshness: readonly FreshnessState[]
  readonly settlers: string
  readonly journal: string
  /** The number of warnings, which are never withdrawn. */
  readonly warnings: number
  readonly json: Buffer
}

/** How long the answer of /health is sent again if nothing has changed: its `time` is that much old at most. */
const HEALTH_MS = 100

/** Creates the handler of /health. The status is looked at in every call and written when it has changed. */
export function createHealth(parts: DocumentParts): (catalog: Catalog) => Awaitable<Reply> {
  const networks = recipientsOf(parts).map(({ network }) => network)
  let last: WrittenHealth | null = null
  let sent: { readonly json: Buffer; readonly catalog: Catalog; readonly at: number; readonly reply: Reply } | null =
    null

  function written(freshness: readonly FreshnessState[]): Buffer {
    const edition = parts.editions()
    const products = edition.status()
    const issues = parts.issues()
    const each = networks.length === 1 ? [] : networks.map((network) => parts.settlerHealth(network))
    const settlers = JSON.stringify([parts.settlerHealth(), ...each])
    const journal = JSON.stringify(journalOf(parts))
    const warnings = parts.warnings().length
    if (
      last?.edition !== edition ||
      last.products !== products ||
      last.issues !== issues ||
      last.freshness !== freshness ||
      last.settlers !== settlers ||
      last.journal !== journal ||
      last.warnings !== warnings
    ) {
      const json = Buffer.from(JSON.stringify(health(edition, freshness, parts)).slice(0, -1))
      last = { edition, products, issues, freshness, settlers, journal, warnings, json }
    }
    return last.json
  }

  return (catalog) =>
    andThen(parts.editions().freshness(), (freshness) => {
      const now = parts.now()
      const at = now.getTime()
      const json = written(freshness)
      if (sent?.json === json && sent.catalog === catalog && Math.abs(at - sent.at) < HEALTH_MS) return sent.reply
      const uptime = Math.max(0, Math.floor((at - parts.started.getTime()) / 1000))
      const rest = Buffer.from(`,"uptime_seconds":${uptime},"time":"${now.toISOString()}"}`)
      const reply = Reply.shared(Reply.json([json, rest], { headers: liveHeaders(catalog) }))
      sent = { json, catalog, at, reply }
      return reply
    })
}

/**
 * Returns the current status. It is `degraded` if a product is disabled or suspended, if the data of an operation are not
 * fresh enough to be sold, if the files have errors and an earlier edition is still served, or if payments cannot be
 * recorded or settled.
 */
function health(edition: Edition, freshness: readonly FreshnessState[], parts: DocumentParts) {
  const products = edition.status()
  const settler = parts.settlerHealth()
  const issues = parts.issues()
  const hasNoIssues = issues.length === 0 && edition.disabled.length === 0
  const recipients = recipientsOf(parts)
  const settles = settler.ready && settler.reason === undefined
  const journal = journalOf(parts)
  const isOk =
    settles &&
    journal.ready &&
    hasNoIssues &&
    products.every(({ status }) => status === 'ok') &&
    !freshness.some(({ status }) => status === 'stale')
  return {
    status: isOk ? 'ok' : 'degraded',
    service: edition.catalog.service.name,
    version: edition.catalog.service.version,
    catalog_version: edition.catalog.version,
    data_mode: parts.dataMode,
    network: parts.network.name,
    journal,
    settler,
    ...(recipients.length === 1 ? {} : { settlers: recipients.map(({ network }) => settlerOf(network, parts)) }),
    products,
    freshness: freshness.map(freshnessOf),
    withheld: edition.disabled,
    mistakes: issues,
    warnings: parts.warnings(),
    started: parts.started.toISOString(),
  }
}

/** The state of one operation, or of one of its inputs. `found` is null if its product reported nothing. */
function freshnessOf({ operation, route, request, status, missing, required, found, reason }: FreshnessState) {
  return {
    operation,
    route,
    ...(request === undefined ? {} : { request }),
    status,
    missing,
    required: writtenFreshData(required),
    found: found && writtenFreshness(found),
    ...(reason === null ? {} : { reason }),
  }
}

/** Anybody may read this, so it does not say where the file is. */
function journalOf({ journalHealth }: DocumentParts) {
  const { ready } = journalHealth()
  return ready ? { ready } : { ready, reason: 'Payments cannot be recorded, so none is taken. The log says why.' }
}

function settlerOf(network: Network, { settlerHealth }: DocumentParts) {
  return { network: network.name, ...settlerHealth(network) }
}

/** How long the answer of /v1/stats is sent again. Products read their facts from databases. */
const STATS_MS = 1_000

interface WrittenStats {
  readonly edition: Edition
  readonly catalog: Catalog
  /** When the facts were read, in milliseconds. */
  readonly at: number
  /** A promise until the facts are there. */
  reply: Awaitable<Reply>
}

/**
 * Creates the handler of /v1/stats. It answers with the facts by product, and those of the product `leading` at the top
 * level, each with the data they rest on. Products without facts are omitted. The facts are read at most once a second,
 * however many calls come.
 */
export function createStats(
  { dataMode, editions, now }: Pick<DocumentParts, 'dataMode' | 'editions' | 'now'>,
  leading: string | null,
): (catalog: Catalog) => Awaitable<Reply> {
  let last: WrittenStats | null = null

  function write(edition: Edition, catalog: Catalog, at: number): Awaitable<Reply> {
    const reply = edition.facts().then((facts) => {
      const json = Buffer.from(JSON.stringify(stats(edition, facts, { dataMode, leading })))
      return (written.reply = Reply.shared(Reply.json(json, { headers: liveHeaders(catalog) })))
    })
    const written: WrittenStats = { edition, catalog, at, reply }
    last = written
    return reply
  }

  return (catalog) => {
    const edition = editions()
    const at = now().getTime()
    const known = last?.edition === edition && last.catalog === catalog ? last : null
    // A clock that was set back must not keep the answer for longer.
    const isRecent = known !== null && at >= known.at && at < known.at + STATS_MS
    return isRecent ? known.reply : write(edition, catalog, at)
  }
}

function stats(
  edition: Edition,
  facts: Awaited<ReturnType<Edition['facts']>>,
  { dataMode, leading }: { readonly dataMode: DataMode; readonly leading: string | null },
) {
  const known = Object.entries(facts).filter(([, fact]) => Object.keys(fact).length > 0)
  const products = Object.fromEntries(known.map(([product, fact]) => [product, { ...fact, data_mode: dataMode }]))
  const top = leading === null ? {} : (products[leading] ?? {})
  return { ...top, data_mode: dataMode, catalog_version: edition.catalog.version, products }
}
