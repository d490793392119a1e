/** The page /guard: what the service refuses to do and how it protects a buyer, with its current status. */
import type { Call, Catalog } from 'tollgate/plugin'
import { ask, byPrice, listedOperations, routeParts } from './page-data.ts'

/** The parts of /health that the page shows. */
interface Health {
  readonly status: string
  readonly data_mode: string
  readonly settler: { readonly ready: boolean; readonly reason?: string }
  readonly products: readonly { readonly product: string; readonly status: string }[]
  readonly started: string
  readonly time: string
}

const MODES = [
  {
    id: 'online',
    name: 'Online',
    meaning: 'Live data from public sources, each with its own health. This is what you pay for.',
  },
  {
    id: 'replay',
    name: 'Replay',
    meaning: 'Recorded data, processed by the same code. For tests and measurements.',
  },
  {
    id: 'sample',
    name: 'Sample',
    meaning: 'Invented data, for trying the service. They say nothing about any market.',
  },
] as const

/** Returns the status of the service and its products, the data modes, and the limits of the paid operations. */
export async function guardPage(call: Call) {
  const { catalog } = call
  const [health, { network, currency }] = await Promise.all([
    ask<Health>(call, 'getHealth'),
    ask<{ readonly network: string; readonly currency: string }>(call, 'getFrontPage'),
  ])
  return {
    network,
    currency,
    isWell: health.status === 'ok',
    settler: health.settler,
    products: states(health, catalog),
    mode: health.data_mode,
    modes: MODES.map((mode) => ({ ...mode, isCurrent: mode.id === health.data_mode })),
    started: health.started,
    time: health.time,
    limits: limits(catalog),
  }
}

/** Returns the status of every product with a price, and of any other product that has a problem. */
function states({ products }: Health, catalog: Catalog) {
  const titles = new Map(catalog.products.map(({ id, title }) => [id, title]))
  const priced = new Set(listedOperations(catalog).flatMap(({ price, product }) => (price === null ? [] : [product])))
  return products
    .filter(({ product, status }) => priced.has(product) || status !== 'ok')
    .map(({ product, status }) => ({
      id: product,
      title: titles.get(product) ?? product,
      status,
      isWell: status === 'ok',
    }))
}

/** Returns the maximum body and the timeout of every paid operation. */
function limits(catalog: Catalog) {
  return listedOperations(catalog)
    .filter(({ price, plan }) => price !== null && plan === null)
    .sort((one, other) => byPrice([one], [other]))
    .map((operation) => ({
      ...routeParts(operation),
      href: `/docs/${operation.id}`,
      bytes: operation.body === null ? null : operation.maxBytes,
      seconds: operation.timeoutSeconds,
    }))
}
