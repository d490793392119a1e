/** The price page: every priced route and plan of the catalog, what changed, and how to pay. */
import type { Call, Catalog, Operation } from 'tollgate/plugin'
import {
  anchorOf,
  ask,
  askIfThere,
  byPrice,
  capOf,
  type Discovery,
  networksOf,
  payeesOf,
  routeParts,
  shown,
} from './asking.ts'
import { curl, examplePath } from './curl.ts'
import { linkedOffers } from './linked.ts'
import { problem } from './problem.ts'

const TOKEN_HEADER = 'X-SERVICE-TOKEN'
/** Letters of calls and sample answers on the whole page, and of one sample: all of it stands in the documentation. */
const ROOM = 24_000
const LONGEST_SAMPLE = 1000
/** Where there is less for each route, so many products are sold that a link has to do. */
const LEAST_ROOM = 500

interface PriceHistory {
  readonly changes: readonly {
    readonly operation: string
    readonly route: string
    readonly old_price_usd: number | null
    readonly new_price_usd: number | null
    readonly changed_at: string
  }[]
}

/** What a wallet in the browser is told of a route: where to ask, and the price the page shows. */
interface Till {
  readonly method: string
  readonly address: string
  readonly amount: string
}

export async function pricing(call: Call) {
  const { catalog } = call
  const [{ base_url: baseUrl, payment }, history] = await Promise.all([
    ask<Discovery>(call, 'getDiscovery'),
    askIfThere<PriceHistory>(call, 'getPriceHistory'),
  ])
  const founding = shown(catalog).find(({ route }) => route === 'POST /founding')
  return {
    linked: linkedOffers(catalog, baseUrl),
    thanks: call.input.query['ok'] === 1,
    problem: problem(call.input.query['err']),
    network: networksOf(payment),
    currency: payment.currency,
    payees: payeesOf(payment),
    how: payment.how,
    caps: payment.client_limits.map(capOf),
    program: payment.program ?? null,
    /** The sandbox and the test network are paid with the project's own command. */
    isTest: /sepolia|test|fuji|amoy/.test(payment.network),
    first: cheapest(catalog),
    tool: toolCall(catalog),
    groups: groups(catalog, baseUrl, history),
    changes: changesOf(history),
    plans: plans(catalog),
    planModel: catalog.plans.model,
    planNote: catalog.plans.note,
    tokenHeader: TOKEN_HEADER,
    founding: founding ? { summary: founding.summary, promise: founding.description } : null,
  }
}

function cheapest(catalog: Catalog) {
  const [operation] = pricedGets(catalog)
  return operation ? row(operation, catalog) : null
}

/** Priced routes that need no input, the cheapest first. */
function pricedGets(catalog: Catalog): readonly Operation[] {
  return shown(catalog)
    .filter(({ price, method, path }) => price !== null && method === 'GET' && !path.includes('{'))
    .sort((one, other) => byPrice([one], [other]))
}

/** A paid tool as an MCP client calls it. */
function toolCall(catalog: Catalog) {
  const [operation] = pricedGets(catalog).filter(({ tool }) => tool !== null)
  if (operation === undefined) return null
  const { tool: name, example } = operation
  const given = { ...example?.request.query, payment_signature: '<base64 of the signed payment>' }
  return JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: given } }, null, 2)
}

/** Products with their priced routes, the cheapest product first; purchases of plans stand apart. */
function groups(catalog: Catalog, baseUrl: string, history: PriceHistory | null) {
  const priced = shown(catalog).filter(({ price, plan }) => price !== null && plan === null)
  const room = ROOM / priced.length
  return catalog.products
    .map(({ id, title, summary }) => ({
      id: anchorOf(id),
      title,
      summary,
      operations: priced
        .filter(({ product }) => product === id)
        .map((operation) => ({
          ...row(operation, catalog),
          call: room < LEAST_ROOM ? null : curl(operation, baseUrl),
          sample: sampleOf(operation, Math.min(LONGEST_SAMPLE, room)),
          since: history?.changes.find((change) => change.operation === operation.id)?.changed_at ?? null,
        })),
    }))
    .filter(({ operations }) => operations.length > 0)
    .sort((one, other) => byPrice(one.operations, other.operations))
}

function row(operation: Operation, catalog: Catalog) {
  const { id, summary, maxFreshnessSeconds, price } = operation
  return {
    id,
    ...routeParts(operation),
    href: `/docs/${id}`,
    summary,
    maxFreshnessSeconds,
    price,
    till: tillOf(operation, catalog),
  }
}

/** The example's answer, or as many whole lines of it as there is room for; null where there is none. */
function sampleOf({ example }: Operation, room: number): { readonly text: string; readonly isCut: boolean } | null {
  if (example?.response === undefined) return null
  const whole = JSON.stringify(example.response, null, 2)
  if (whole.length <= room) return { text: whole, isCut: false }
  return { text: `${whole.slice(0, whole.lastIndexOf('\n', room))}\n  …`, isCut: true }
}

/** A browser can buy what it can ask for without writing a body. */
function tillOf(operation: Operation, catalog: Catalog): Till | null {
  const { method, path, price, plan } = operation
  if (price === null || (method !== 'GET' && plan === null)) return null
  const address = needsInput(operation, catalog) ? examplePath(operation) : path
  return address.includes('{') ? null : { method, address, amount: String(price) }
}

function needsInput({ path, query }: Operation, catalog: Catalog): boolean {
  const ref = query?.['$ref']
  const [file = '', pointer = ''] = typeof ref === 'string' ? ref.split('#/') : []
  const found = pointer
    .split('/')
    .reduce<unknown>((at, token) => (at as Record<string, unknown> | undefined)?.[token], catalog.schemas.get(file))
  const { required = [] } = ((ref === undefined ? query : found) ?? {}) as { required?: readonly string[] }
  return path.includes('{') || required.length > 0
}

/** Older changes stand in the price history only. */
const MOST_CHANGES = 20

/** Changes of what was sold before, newest first: the first day of a route is no change, nor is a page that goes. */
export function changesOf(history: PriceHistory | null) {
  const changes = (history?.changes ?? []).filter(
    ({ old_price_usd: before, new_price_usd: after }) => before !== null && (before > 0 || (after ?? 0) > 0),
  )
  return changes.slice(0, MOST_CHANGES)
}

function plans(catalog: Catalog) {
  const purchases = shown(catalog).filter(({ plan }) => plan !== null)
  return purchases.flatMap((operation) => {
    const { plan } = operation
    if (plan === null) return []
    return [
      {
        ...row(operation, catalog),
        label: plan.label,
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
