/** The price page: every priced route and plan of the catalog, price changes, and how to pay. */
import { TOKEN_HEADER } from '../../plugin/catalog.ts'
import { type Call, type Catalog, type Operation, Reply } from '../../plugin/plugin.ts'
import {
  anchorOf,
  ask,
  askIfAvailable,
  byPrice,
  clientLimitOf,
  type Discovery,
  networksOf,
  pricedGets,
  recipientsOf,
  routeParts,
  problemMessage,
} from './page-data.ts'
import { listed } from '../listed-operations.ts'
import { toolCall } from '../../../views/assets/snippets.js'
import { exampleCurl, examplePath } from './example-request.ts'
import { linkedOffers } from './structured-data.ts'
import type { WalletTerms } from './wallet-terms.ts'

/** Where the page is. */
const PATH = '/pricing'
/** Maximum characters of examples on the whole page, and of one example. The documentation shows them in full. */
const EXAMPLE_BUDGET = 20_000
const MAX_SAMPLE = 1000
/** With a smaller budget per route, the page only links to the examples. */
const MIN_ROUTE_BUDGET = 500

interface PriceHistory {
  readonly changes: readonly {
    readonly operation: string
    readonly route: string
    readonly old_price_usd: number | null
    readonly new_price_usd: number | null
    readonly changed_at: string
  }[]
}

/** The route that a button on the page buys with a browser wallet. `amount` is the price shown on the page. */
interface WalletPurchase {
  readonly method: string
  readonly address: string
  readonly amount: string
}

/** The page without a notice. Prices change with the catalog only. */
const plainPages = new WeakMap<Catalog, Reply>()

/** Returns the priced routes and plans with their examples, the price changes, and how to pay. */
export async function pricing(call: Call, wallet: WalletTerms) {
  const { catalog, input } = call
  const isPlain = input.query['ok'] !== 1 && problemMessage(input.query['err']) === null
  const known = isPlain ? plainPages.get(catalog) : undefined
  if (known) return known
  const history = await askIfAvailable<PriceHistory>(call, 'getPriceHistory')
  const page = { ...(await pageOf(call, history)), wallet }
  if (!isPlain || history === null) return page
  const reply = Reply.constant(page)
  plainPages.set(catalog, reply)
  return reply
}

async function pageOf(call: Call, history: PriceHistory | null) {
  const { catalog } = call
  const { base_url: baseUrl, payment } = await ask<Discovery>(call, 'getDiscovery')
  return {
    linked: linkedOffers(catalog, baseUrl),
    thanks: call.input.query['ok'] === 1,
    problem: problemMessage(call.input.query['err']),
    network: networksOf(payment),
    currency: payment.currency,
    recipients: recipientsOf(payment),
    how: payment.how,
    clientLimits: payment.client_limits.map(clientLimitOf),
    program: payment.program ?? null,
    /** On a test network the page shows this project's payment command. */
    isTest: /sepolia|test|fuji|amoy/.test(payment.network),
    first: cheapest(catalog),
    tool: toolExample(catalog),
    groups: groups(catalog, baseUrl, history),
    changes: changesOf(history),
    plans: plans(catalog),
    planModel: catalog.plans.model,
    planNote: catalog.plans.note,
    tokenHeader: TOKEN_HEADER,
    signUp: signUpOf(catalog),
  }
}

/** A form that sends its visitors back to this page, such as a list of people who want to hear more. */
function signUpOf(catalog: Catalog) {
  const operation = listed(catalog).find(({ form }) => form?.success.split('?')[0] === PATH)
  if (operation === undefined) return null
  const { path, summary, description, product } = operation
  return { action: path, title: catalog.products.find(({ id }) => id === product)?.title, summary, description }
}

function cheapest(catalog: Catalog) {
  const [operation] = pricedGets(catalog)
  return operation ? row(operation, catalog) : null
}

/** Returns the JSON-RPC request of a paid tool call. */
function toolExample(catalog: Catalog) {
  const [operation] = pricedGets(catalog).filter(({ tool }) => tool !== null)
  if (operation === undefined) return null
  const { tool: name, example } = operation
  if (name === null) return null
  const args = { ...example?.request.query, payment_signature: '<base64 of the signed payment>' }
  return toolCall(name, args)
}

/** Returns the products with their priced routes, the cheapest product first, without the purchases of plans. */
function groups(catalog: Catalog, baseUrl: string, history: PriceHistory | null) {
  const priced = listed(catalog).filter(({ price, plan }) => price !== null && plan === null)
  const budget = EXAMPLE_BUDGET / priced.length
  return catalog.products
    .map(({ id, title, summary }) => ({
      id: anchorOf(id),
      title,
      summary,
      operations: priced
        .filter(({ product }) => product === id)
        .map((operation) => ({
          ...row(operation, catalog),
          call: budget < MIN_ROUTE_BUDGET ? null : exampleCurl(operation, catalog, baseUrl),
          sample: sampleOf(operation, Math.min(MAX_SAMPLE, budget)),
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
    walletPurchase: walletPurchaseOf(operation, catalog),
  }
}

/** Returns the example response, cut after a whole line to `maxLength` characters, or null if there is none. */
function sampleOf(
  { example }: Operation,
  maxLength: number,
): { readonly text: string; readonly isCut: boolean } | null {
  if (example?.response === undefined) return null
  const whole = JSON.stringify(example.response, null, 2)
  if (whole.length <= maxLength) return { text: whole, isCut: false }
  return { text: `${whole.slice(0, whole.lastIndexOf('\n', maxLength))}\n  …`, isCut: true }
}

/** Returns what a browser wallet needs to buy the route, or null if the request needs a body. */
function walletPurchaseOf(operation: Operation, catalog: Catalog): WalletPurchase | null {
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

/** Older changes are only in the price history. */
const MAX_CHANGES = 20

/** Returns the price changes, newest first, without new routes and without free routes that were removed. */
export function changesOf(history: PriceHistory | null) {
  const changes = (history?.changes ?? []).filter(
    ({ old_price_usd: before, new_price_usd: after }) => before !== null && (before > 0 || (after ?? 0) > 0),
  )
  return changes.slice(0, MAX_CHANGES)
}

function plans(catalog: Catalog) {
  const purchases = listed(catalog).filter(({ plan }) => plan !== null)
  return purchases.flatMap((operation) => {
    const { plan } = operation
    if (plan === null) return []
    return [
      {
        ...row(operation, catalog),
        label: plan.label,
        seconds: plan.durationSeconds,
        freshnessSeconds: plan.maxFreshnessSeconds,
        /** What must be true of the data of every route of the plan for it to be sold; null: nothing. */
        conditions: typeof operation.fresh === 'object' ? operation.fresh : null,
        enabled: plan.enabled,
        routes: plan.authorizes.flatMap((id) => {
          const authorized = catalog.operations.get(id)
          return authorized ? [routeParts(authorized)] : []
        }),
      },
    ]
  })
}
