import { canonicalAddress } from '../public-addresses.ts'
import { createPage, EMPTY, type Page } from '../listing.ts'
import { nameOf, tagsOf, textOf } from '../listing-fields.ts'
import { isRow, listOf, rowOf } from '../../lib/feeds/payloads.ts'

/** Bindings in the order in which clients try them. */
const BINDINGS = ['JSONRPC', 'HTTP+JSON', 'GRPC']

/**
 * Reads an A2A agent card: `url` (0.x) or `supportedInterfaces` (1.0). Returns null for any other document.
 *
 * Source: A2A specification, "Agent Card"; /.well-known/agent-card.json.
 *
 * @param host The host that served the card. Addresses at other hosts are dropped. Null if no host served it.
 */
export function readCard(payload: unknown, host: string | null): Page | null {
  if (!isRow(payload) || textOf(payload['name']) === null) return null
  const interfaces = listOf(payload['supportedInterfaces']).map(rowOf)
  const inOrder = BINDINGS.flatMap((binding) => interfaces.filter((row) => row['protocolBinding'] === binding))
  const addresses = [...inOrder, ...interfaces, payload]
    .filter(({ url }) => url !== undefined)
    .map(({ url }) => canonicalAddress(url))
  const address = addresses.find(({ reason }) => reason === null) ?? addresses[0] ?? canonicalAddress(undefined)
  const page = createPage()
  if (address.reason !== null) page.drop(address.reason)
  else {
    const skills = listOf(payload['skills']).map(rowOf)
    page.add({
      ...EMPTY,
      url: address.url,
      isTemplate: address.isTemplate,
      kind: 'a2a_agent',
      name: nameOf(payload['name']),
      description: textOf(payload['description']),
      provider: nameOf(rowOf(payload['provider'])['organization']),
      tags: tagsOf(skills.flatMap((skill) => listOf(skill['tags']))),
      protocols: ['a2a'],
      hasSchema: skills.length > 0,
      version: nameOf(payload['version']),
      isOwn: address.host === host,
    })
  }
  return page.end(1)
}
