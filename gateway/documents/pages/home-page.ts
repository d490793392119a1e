/** The start page: what is sold, a paid call to copy, and the tools. */
import type { Call, Catalog, Operation } from '../../plugin/plugin.ts'
import { exampleCurl } from './example-request.ts'
import { isPriced, listed } from '../listed-operations.ts'
import { anchorOf, ask, byPrice, type Discovery, networksOf, pricedGets, problemMessage, tools } from './page-data.ts'
import { linkedService } from './structured-data.ts'

/** Returns the steps of a paid call, the products and the tools. A page of the shop's own may show more beside them. */
export async function homePage(call: Call) {
  const { catalog, input } = call
  const discovery = await ask<Discovery>(call, 'getDiscovery')
  const { payment, base_url: baseUrl } = discovery
  return {
    linked: linkedService(catalog, baseUrl),
    problem: problemMessage(input.query['err']),
    network: networksOf(payment),
    currency: payment.currency,
    calls: steps(catalog, discovery),
    products: products(catalog),
    tools: tools(catalog),
  }
}

/** Shows one paid call in three steps: that of the cheapest route. */
function steps(catalog: Catalog, { base_url: baseUrl, payment }: Discovery) {
  const [operation] = pricedGets(catalog)
  if (operation === undefined) return []
  const answer = operation.example?.response
  return [
    {
      title: 'Call',
      text: 'Call the route with any client. The response is 402 with the price, the network and the address to pay.',
      label: 'Terminal',
      code: exampleCurl(operation, catalog, baseUrl),
    },
    ...(payment.program === undefined
      ? []
      : [
          {
            title: 'Pay',
            text: `The client signs one payment in ${payment.currency} and repeats the call. It sends no transaction and pays no gas.`,
            label: 'Node, with the x402 client',
            code: payment.program,
          },
        ]),
    ...(answer === undefined
      ? []
      : [
          {
            title: 'Receive',
            text: 'The answer arrives with a receipt. If the call fails, you are not charged.',
            label: '200 OK',
            code: JSON.stringify(answer, null, 2),
          },
        ]),
  ]
}

/** Returns the products with a price, the cheapest first, with the range of their prices. */
function products(catalog: Catalog) {
  const sold = (operations: readonly Operation[]) => operations.filter(isPriced)
  const shown = new Set(listed(catalog))
  return catalog.products
    .map(({ id, title, summary, operations }) => ({
      id,
      title,
      summary,
      operations: sold(operations.filter((each) => shown.has(each))),
    }))
    .sort((one, other) => byPrice(one.operations, other.operations))
    .flatMap(({ id, title, summary, operations }) => {
      const prices = operations.map(({ price }) => price).sort((one, other) => Number(one - other))
      if (prices.length === 0) return []
      return [{ title, summary, href: `/docs#${anchorOf(id)}`, from: prices[0], to: prices.at(-1) }]
    })
}
