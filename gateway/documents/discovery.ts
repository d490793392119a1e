/**
 * /.well-known/x402: the discovery document (docs/interface.md, section 2.9). It also has the fields that indexers read:
 * `version` 1 and `resources`, as in part B of the discovery specification of https://www.x402scan.com.
 */
import type { Catalog } from '../plugin/catalog.ts'
import { addressOf, dollars, free, priced, simplest } from './listed-operations.ts'
import type { Place } from './document.ts'
import {
  buyerProgram,
  capNotes,
  CURRENCY,
  howToPay,
  MCP_NOTE,
  MCP_PATH,
  networkList,
  payeesFor,
  tokenNotes,
} from './how-to-pay.ts'

/** Returns the discovery document. Prices are strings with a leading $: "$0.005". */
export function discovery(catalog: Catalog, place: Place) {
  const { service } = catalog
  const operations = priced(catalog)
  const first = simplest(catalog)
  return {
    version: 1,
    service: service.name,
    what: service.summary,
    base_url: place.baseUrl,
    payment: {
      protocol: 'x402',
      network: place.network.name,
      currency: CURRENCY,
      how: howToPay(place),
      pay_to: place.payTo,
      ...networkList(place),
      client_limits: capNotes(catalog),
      ...(first === undefined
        ? {}
        : { program: buyerProgram(addressOf(first, place.baseUrl), payeesFor(first, place)) }),
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
    docs: place.docs,
    openapi: '/openapi.json',
    mcp: MCP_PATH,
    resources: operations.map((operation) => addressOf(operation, place.baseUrl)),
    instructions: [...tokenNotes(catalog), MCP_NOTE, `Full text: ${place.baseUrl}/llms.txt`].join(' '),
    catalog_version: catalog.version,
  }
}
