/** The price page: every priced route and plan of the catalog, and how to pay. */
import type { Call, Catalog, Operation } from '#gateway'
import { ask, byPrice, type Discovery, routeParts, shown } from './asking.ts'
import { problem } from './problem.ts'

const TOKEN_HEADER = 'X-SERVICE-TOKEN'

interface Row {
  readonly id: string
  readonly method: string
  readonly path: string
  readonly href: string
  readonly summary: string
  readonly maxFreshnessSeconds: number
  readonly price: bigint | null
}

export async function pricing(call: Call) {
  const { catalog } = call
  const { payment } = await ask<Discovery>(call, 'getDiscovery')
  const founding = shown(catalog).find(({ route }) => route === 'POST /founding')
  return {
    thanks: call.input.query['ok'] === 1,
    problem: problem(call.input.query['err']),
    network: payment.network,
    currency: payment.currency,
    payTo: payment.pay_to,
    how: payment.how,
    caps: payment.client_limits,
    program: payment.program ?? null,
    /** The sandbox and the test network are paid with the project's own command. */
    isTest: payment.network !== 'base',
    first: cheapest(catalog),
    groups: groups(catalog),
    plans: plans(catalog),
    planModel: catalog.plans.model,
    planNote: catalog.plans.note,
    tokenHeader: TOKEN_HEADER,
    founding: founding ? { summary: founding.summary, promise: founding.description } : null,
  }
}

function cheapest(catalog: Catalog): Row | null {
  const [operation] = shown(catalog)
    .filter(({ price, method, path }) => price !== null && method === 'GET' && !path.includes('{'))
    .sort((one, other) => Number((one.price ?? 0n) - (other.price ?? 0n)))
  return operation ? row(operation) : null
}

/** Products with their priced routes, the cheapest product first; purchases of plans stand apart. */
function groups(catalog: Catalog) {
  const priced = shown(catalog).filter(({ price, plan }) => price !== null && plan === null)
  return catalog.products
    .map(({ id, title, summary }) => ({
      id: `product-${id}`,
      title,
      summary,
      operations: priced.filter(({ product }) => product === id).map(row),
    }))
    .filter(({ operations }) => operations.length > 0)
    .sort((one, other) => byPrice(one.operations, other.operations))
}

function row(operation: Operation): Row {
  const { id, summary, maxFreshnessSeconds, price } = operation
  return { id, ...routeParts(operation), href: `/docs#${id}`, summary, maxFreshnessSeconds, price }
}

function plans(catalog: Catalog) {
  const purchases = shown(catalog).filter(({ plan }) => plan !== null)
  return purchases.flatMap((operation) => {
    const { plan } = operation
    if (plan === null) return []
    return [
      {
        label: plan.label,
        ...row(operation),
        seconds: plan.durationSeconds,
        freshnessSeconds: plan.maxFreshnessSeconds,
        enabled: plan.enabled,
        routes: plan.authorizes.flatMap((id) => {
          const authorized = catalog.operations.get(id)
          return authorized ? [routeParts(authorized)] : []
        }),
      },
    ]
  })
}
