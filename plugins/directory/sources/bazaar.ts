import { canonicalAddress } from '../public-addresses.ts'
import { createPage, EMPTY, type Page } from '../listing.ts'
import { pricesOf, versionOf } from '../payment-terms.ts'
import { nameOf, countOf, sourceTime, tagsOf, textOf } from '../listing-fields.ts'
import { isRow, listOf, type Row, rowOf } from '../../lib/feeds/payloads.ts'

export interface BazaarPage extends Page {
  /** Number of rows on all pages; null if the source does not state it. */
  readonly total: number | null
}

/**
 * Reads a page of a facilitator's listing, version 1 or 2. The address is in `resource` or `url`, times are seconds,
 * milliseconds or ISO 8601, and one facilitator wraps everything in `data`. Returns null for any other document.
 *
 * Source: x402 specification, section 8.1, and CDP's discovery interface.
 */
export function readBazaar(payload: unknown, now: number): BazaarPage | null {
  const top = rowOf(payload)
  const found = isRow(top['data']) ? top['data'] : top
  const items = found['items'] ?? found['resources']
  if (!Array.isArray(items)) return null
  const page = createPage()
  for (const item of items) {
    if (!isRow(item)) {
      page.drop('malformed')
      continue
    }
    const resource = isRow(item['resource']) ? item['resource'] : null
    const address = canonicalAddress(resource?.['url'] ?? item['resource'] ?? item['url'])
    if (address.reason !== null) {
      page.drop(address.reason)
      continue
    }
    const { accepts } = item
    // A row whose values are null would take away the price that is known.
    if (accepts !== undefined && !Array.isArray(accepts)) {
      page.drop('malformed')
      continue
    }
    const offer = rowOf(listOf(accepts)[0])
    const metadata = rowOf(item['metadata'])
    const bazaar = rowOf(rowOf(item['extensions'])['bazaar'])
    const quality = rowOf(item['quality'])
    const tool = item['type'] === 'mcp' ? toolOf(item, bazaar) : null
    page.add({
      ...EMPTY,
      url: address.url,
      tool,
      isTemplate: address.isTemplate,
      kind: item['type'] === 'mcp' ? 'mcp_tool' : 'http_endpoint',
      name: nameOf(item['serviceName']) ?? nameOf(metadata['name']) ?? tool,
      description:
        textOf(item['description']) ??
        textOf(resource?.['description']) ??
        textOf(offer['description']) ??
        textOf(metadata['description']),
      provider: nameOf(metadata['provider']),
      tags: tagsOf(listOf(item['tags']), metadata['category']),
      protocols: item['type'] === 'mcp' ? ['x402', 'mcp'] : ['x402'],
      x402Version: versionOf(accepts, item['x402Version']),
      prices: pricesOf(accepts),
      hasSchema:
        isRow(bazaar['schema']) ||
        isRow(bazaar['info']) ||
        listOf(accepts).some((row) => isRow(rowOf(row)['outputSchema'])),
      updated: sourceTime(item['lastUpdated'], now),
      calls30d: countOf(quality['l30DaysTotalCalls']),
      payers30d: countOf(quality['l30DaysUniquePayers']),
    })
  }
  return { ...page.end(items.length), total: countOf(rowOf(found['pagination'])['total']) }
}

function toolOf(item: Row, bazaar: Row): string | null {
  return nameOf(rowOf(rowOf(bazaar['info'])['input'])['tool']) ?? nameOf(item['toolName'])
}
