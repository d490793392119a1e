/**
 * /.well-known/x402: the discovery document (docs/interface.md, section 2.9). It also has the fields that indexers read:
 * `version` 1 and `resources`, as in part B of the discovery specification of https://www.x402scan.com.
 */
import type { Catalog } from '../plugin/catalog.ts'
import { dollars } from '../dollars.ts'
import { addressOf, free, freshRoutes, priced, simplest } from './listed-operations.ts'
import type { DocumentContext } from './document.ts'
import {
  buyerProgram,
  capNotes,
  CURRENCY,
  howToPay,
  MCP_NOTE,
  MCP_PATHS,
  networkList,
  tokenNotes,
} from './how-to-pay.ts'

/** Returns the discovery document. Prices are strings with a leading $: "$0.005". */
export function discovery(catalog: Catalog, context: DocumentContext) {
  const { service } = catalog
  const operations = priced(catalog)
  const first = simplest(catalog)
  return {
    version: 1,
    service: service.name,
    what: service.summary,
    base_url: context.baseUrl,
    payment: {
      protocol: 'x402',
      network: context.network.name,
      currency: CURRENCY,
      how: howToPay(context),
      pay_to: context.payTo,
      ...networkList(context),
      client_limits: capNotes(catalog),
      ...(first === undefined ? {} : { program: buyerProgram(addressOf(first, context.baseUrl), first, context) }),
    },
    free_endpoints: [
      ...new Set(
        free(catalog)
          .filter(({ method }) => method === 'GET')
          .map(({ method, displayRoute }) => displayRoute.slice(method.length + 1)),
      ),
    ],
    paid_endpoints: Object.fromEntries(
      operations.map(({ displayRoute, price }) => [displayRoute, `$${dollars(price)}`]),
    ),
    fresh: freshRoutes(catalog),
    docs: context.docs,
    openapi: '/openapi.json',
    mcp: MCP_PATHS.named,
    resources: operations.map((operation) => addressOf(operation, context.baseUrl)),
    instructions: [...tokenNotes(catalog), MCP_NOTE, `Full text: ${context.baseUrl}/llms-full.txt`].join(' '),
    catalog_version: catalog.version,
  }
}
