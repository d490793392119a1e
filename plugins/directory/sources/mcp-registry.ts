import { canonicalAddress } from '../public-addresses.ts'
import { createPage, EMPTY, idOf, type Listing, type Package, type Page } from '../listing.ts'
import { nameOf, sourceTime, tagsOf, textOf } from '../listing-fields.ts'
import { isRow, listOf, type Row, rowOf } from '../../lib/feeds/payloads.ts'

export interface RegistryPage extends Page {
  readonly nextCursor: string | null
}

const MOST_PACKAGES = 20
const OFFICIAL = 'io.modelcontextprotocol.registry/official'

/**
 * Reads a page of the MCP registry: `{servers: [{server, _meta}], metadata}`, or a plain list of servers like its seed
 * files. Also reads records of 2025-05 (`version_detail`, `registry_name`). Of several versions of a server the newest
 * counts. A server without a remote address is listed with its packages. Returns null for any other document.
 *
 * Source: MCP registry API v0.1 and its server schema.
 */
export function readRegistry(payload: unknown, now: number): RegistryPage | null {
  const rows = Array.isArray(payload) ? (payload as unknown[]) : rowOf(payload)['servers']
  if (!Array.isArray(rows)) return null
  const page = createPage()
  const newest = new Map<string, Listing>()
  for (const row of rows.map(rowOf)) {
    const server = isRow(row['server']) ? row['server'] : row
    const official = rowOf(rowOf(row['_meta'])[OFFICIAL])
    const name = nameOf(server['name'])
    if (name === null) page.drop('malformed')
    else if (official['status'] === 'deleted' || official['isLatest'] === false) page.drop('superseded')
    else {
      const listing = listingOf(name, server, official, now)
      const other = newest.get(name)
      if (other) page.drop('superseded')
      if (!other || isNewer(listing.version, other.version)) newest.set(name, listing)
    }
  }
  // Two names for one address are one service.
  const byId = new Map([...newest.values()].map((listing) => [idOf(listing), listing]))
  byId.forEach(page.add)
  return { ...page.end(rows.length), nextCursor: textOf(rowOf(rowOf(payload)['metadata'])['nextCursor']) }
}

function listingOf(name: string, server: Row, official: Row, now: number): Listing {
  const detail = rowOf(server['version_detail'])
  const remote = listOf(server['remotes'])
    .map((row) => canonicalAddress(rowOf(row)['url']))
    .find(({ reason }) => reason === null)
  const address = remote?.reason === null ? remote : null
  return {
    ...EMPTY,
    url: address?.url ?? null,
    tool: address ? null : name,
    isTemplate: address?.isTemplate ?? false,
    kind: 'mcp_server',
    name: nameOf(server['title']) ?? name,
    description: textOf(server['description']),
    // The registry gives "io.github.owner/server" only to the verified owner.
    provider: name.includes('/') ? name.slice(0, name.indexOf('/')) : null,
    tags: tagsOf(listOf(server['tags'])),
    protocols: ['mcp'],
    packages: listOf(server['packages'])
      .slice(0, MOST_PACKAGES)
      .flatMap((row) => packageOf(rowOf(row))),
    version: nameOf(server['version']) ?? nameOf(detail['version']),
    updated: sourceTime(official['updatedAt'] ?? detail['release_date'], now),
  }
}

function packageOf(row: Row): Package[] {
  const registry = nameOf(row['registryType']) ?? nameOf(row['registry_name'])
  const identifier = nameOf(row['identifier']) ?? nameOf(row['name'])
  return registry && identifier ? [{ registry, identifier, version: nameOf(row['version']) }] : []
}

/** Compares versions by their numbers. A missing version is the oldest. */
function isNewer(a: string | null, b: string | null): boolean {
  const numbers = (version: string | null): number[] => (version ?? '').split(/\D+/).filter(Boolean).map(Number)
  const [one, other] = [numbers(a), numbers(b)]
  for (let i = 0; i < Math.max(one.length, other.length); i += 1)
    if ((one[i] ?? -1) !== (other[i] ?? -1)) return (one[i] ?? -1) > (other[i] ?? -1)
  return true
}
