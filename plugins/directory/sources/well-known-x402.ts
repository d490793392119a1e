import { canonicalAddress } from '../public-addresses.ts'
import { createPage, EMPTY, type Listing, type Page, type Price } from '../listing.ts'
import { networkOf, priceOf, stablecoinOf } from '../payment-terms.ts'
import { nameOf, textOf } from '../listing-fields.ts'
import { listOf, type Row, rowOf } from '../../lib/feeds/payloads.ts'

/**
 * Reads a `/.well-known/x402` document: `{version: 1, resources: [url]}`. Addresses at other origins are dropped. If it
 * also has `paid_endpoints` ("METHOD path" → "$0.005") with network and `pay_to`, like ours, the prices are read too.
 * Returns null for any other document.
 *
 * Source: x402scan discovery specification, part B.
 *
 * @param origin The origin that served it. Only our own may be a loopback address.
 */
export function readOrigin(payload: unknown, origin: string, isOurs = false): Page | null {
  const document = rowOf(payload)
  if (!Array.isArray(document['resources'])) return null
  const page = createPage()
  const priced = Object.entries(rowOf(document['paid_endpoints']))
  document['resources'].forEach((text: unknown, i) => {
    const address = isOurs ? ownAddress(text) : canonicalAddress(text)
    if (address.reason !== null) page.drop(address.reason)
    else if (new URL(address.url).origin !== origin) page.drop('other_origin')
    else {
      const [route, price] = priced.length === listOf(document['resources']).length ? priced[i]! : []
      page.add(listingOf(document, { ...address, route, price, x402Version: isOurs ? 2 : null }))
    }
  })
  return page.end(document['resources'].length)
}

/** Our own address, which may be a loopback address. */
function ownAddress(text: unknown): ReturnType<typeof canonicalAddress> {
  const { host, href, pathname } = new URL(String(text))
  return { url: href, host, isTemplate: /%7B|\{/.test(pathname), reason: null }
}

interface Resource {
  readonly url: string
  readonly isTemplate: boolean
  readonly route: string | undefined
  readonly price: unknown
  readonly x402Version: number | null
}

function listingOf(document: Row, { url, isTemplate, route, price, x402Version }: Resource): Listing {
  const service = nameOf(document['service'])
  const offer = offerOf(rowOf(document['payment']), price)
  return {
    ...EMPTY,
    url,
    isTemplate,
    kind: 'http_endpoint',
    name: service && route ? `${service}: ${route}` : service,
    description: textOf(document['what']) ?? textOf(document['instructions']),
    provider: service,
    protocols: ['x402'],
    x402Version,
    prices: offer,
    hasSchema: textOf(document['openapi']) !== null,
    isOwn: true,
  }
}

/** "$0.005" as a payment in the dollar token of the network. */
function offerOf(payment: Row, price: unknown): Price[] {
  const [, whole = '', fraction = ''] = /^\$(\d{1,12})(?:\.(\d{1,6}))?$/.exec(textOf(price) ?? '') ?? []
  const network = networkOf(textOf(payment['network']) ?? '')
  const asset = stablecoinOf(network, textOf(payment['currency']) ?? '')
  const payTo = textOf(payment['pay_to'])
  if (whole === '' || asset === null || payTo === null) return []
  return [priceOf({ scheme: 'exact', network, asset, amount: whole + fraction.padEnd(6, '0'), payTo })]
}
