/** Turns the files that hold plans into the free list of plans, one purchase operation per plan, and the route that reissues tokens. */
import type { CatalogDocument } from './documents.ts'
import { promisesFreshData, readFreshData } from './fresh-data.ts'
import { nearest } from './names-and-references.ts'
import { type OperationDraft, type Route, parsePrice, parseRoute, strings, textOf } from './product-drafts.ts'
import {
  type Example,
  type Operation,
  type OperationId,
  type Plan,
  type PlanCatalog,
  type Product,
  TOKEN_HEADER,
} from '../plugin/catalog.ts'
import { type Issue, pointerOf } from '../validation/issue.ts'
import { isObject } from '../validation/json.ts'

const PRODUCT = 'plans'
const LIST_ID = 'getPlans'
const REISSUE_ID = 'reissueTokens'
const PURCHASE_SECONDS = 10
/** Signatures of contract wallets can be long. */
const REISSUE_BYTES = 16_384

type Fields = Readonly<Record<string, unknown>>

/** Returns the id of the operation that sells a plan. @example purchaseId('live-24h') → "purchasePlanLive24h" */
function purchaseId(plan: string): OperationId {
  return `purchasePlan${plan
    .split('-')
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join('')}`
}

/** Lists the operations that a file of plans adds, as drafts. Product documents cannot use their ids and routes. */
export function planDrafts({ file, content }: CatalogDocument): OperationDraft[] {
  const { path } = content
  const list = typeof path === 'string' ? [draft(file, LIST_ID, '/path', `GET ${path}`, false)] : []
  const reissue = reissuePath(content)
  return [
    ...list,
    ...(reissue === null ? [] : [draft(file, REISSUE_ID, '/reissue', `POST ${reissue}`, false)]),
    ...planFields(content).map(([pointer, fields]) =>
      draft(file, purchaseId(textOf(fields['plan'])), pointer, textOf(fields['route']), true),
    ),
  ]
}

function draft(file: string, id: string, pointer: string, routeText: string, isPriced: boolean): OperationDraft {
  const flags = { isPriced, isInternal: false, isRetired: false, tool: null }
  return { id, file, product: PRODUCT, pointer, fields: {}, routeText, route: parseRoute(routeText), ...flags }
}

/** Returns false for a document that has neither a list nor plans. Then there is no product that sells plans. */
export function sellsPlans(content: Fields): boolean {
  return typeof content['path'] === 'string' || planFields(content).length > 0
}

/** Returns the path that reissues lost tokens, or null. */
function reissuePath({ reissue }: Fields): string | null {
  return typeof reissue === 'string' ? reissue : null
}

function planFields(content: Fields): (readonly [pointer: string, fields: Fields])[] {
  const plans = Array.isArray(content['plans']) ? (content['plans'] as unknown[]) : []
  return plans.flatMap((fields, index) => (isObject(fields) ? [[pointerOf('plans', index), fields] as const] : []))
}

/**
 * Checks what the schema of plans cannot: routes, prices, that a plan opens operations that exist and are sold, and that
 * files do not say the same twice. The first file has the path of the list.
 */
export function planIssues(files: readonly CatalogDocument[], operations: readonly OperationDraft[]): Issue[] {
  const byId = new Map(operations.map((operation) => [operation.id, operation]))
  const [leading] = files
  const isListed = typeof leading?.content['path'] === 'string'
  const unlisted = isListed ? undefined : files.find(({ content }) => planFields(content).length > 0)
  const message = 'Buyers need the list of the plans that are sold. Write its path.'
  return [
    ...(unlisted ? [{ file: unlisted.file, pointer: '/path', rule: 'path', message }] : []),
    ...files.flatMap((file) => fileIssues(file, byId)),
    ...doublePlans(files),
  ]
}

/** Reports plans whose id another plan has, and fields that only one file may have. */
function doublePlans(files: readonly CatalogDocument[]): Issue[] {
  const first = new Map<string, string>()
  const issues: Issue[] = []
  const claim = (name: string, what: string, file: string, pointer: string): void => {
    const other = first.get(name)
    if (other === undefined) first.set(name, `${file}#${pointer}`)
    else issues.push({ file, pointer, rule: 'plan-taken', message: `${what} at ${other}. Keep one of them.` })
  }
  for (const { file, content } of files) {
    for (const field of ['model', 'note'])
      if (content[field] !== undefined) claim(field, `All plans have one ${field}: there is one`, file, `/${field}`)
    for (const [pointer, { plan }] of planFields(content))
      claim(`plan ${textOf(plan)}`, `The plan ${textOf(plan)} is already defined`, file, `${pointer}/plan`)
  }
  return issues
}

function fileIssues({ file, content }: CatalogDocument, byId: ReadonlyMap<string, OperationDraft>): Issue[] {
  const issues: Issue[] = []
  const report = (pointer: string, rule: string, message: string) => issues.push({ file, pointer, rule, message })
  const { path, family } = content
  const plans = planFields(content)
  const routes = [
    ...(typeof path === 'string' ? [['/path', `GET ${path}`] as const] : []),
    ...(reissuePath(content) === null ? [] : [['/reissue', `POST ${reissuePath(content)}`] as const]),
    ...plans.map(([pointer, fields]) => [`${pointer}/route`, textOf(fields['route'])] as const),
  ]
  for (const [pointer, text] of routes) {
    const route = parseRoute(text)
    if (!route || route.params.length > 0)
      report(pointer, 'route', `Is ${text}. Write a path without parameters, query or trailing slash.`)
    else if (typeof family === 'string' && !route.path.startsWith(`/v1/${family}/`))
      report(pointer, 'family', `Plans of the family ${family} are served below /v1/${family}. Write such a path.`)
  }
  for (const [pointer, fields] of plans) {
    if (/^[0.]+$/.test(textOf(fields['price'])))
      report(`${pointer}/price`, 'price', 'A plan cannot be free. Write a price above zero.')
    strings(fields['authorizes']).forEach((id, index) => {
      const problem = tokenProblem(id, byId)
      if (problem) report(pointer + pointerOf('authorizes', index), 'authorizes', problem)
    })
  }
  return issues
}

/** Explains why a token cannot open an operation. Null if it can. */
function tokenProblem(id: string, byId: ReadonlyMap<string, OperationDraft>): string | null {
  const operation = byId.get(id)
  if (!operation) return `No product has the operation ${id}. ${nearest(id, byId)}`
  if (operation.isInternal) return `${id} is internal and has no route. Write a priced operation.`
  if (operation.isRetired) return `${id} is retired. Write the operation that replaced it.`
  return operation.isPriced
    ? null
    : `${id} is free, so no token is needed for it. Remove it, or write a priced operation.`
}

/** The list of plans of a catalog without plans.json. */
export const NO_PLANS: PlanCatalog = { path: null, model: '', note: '', enabled: false, plans: [] }

/**
 * The plan list. A plan is sold only while everything it opens can be served: while a product is disabled, its
 * plans are not enabled, and tokens issued before keep working for the other routes.
 */
export function readPlans(files: readonly CatalogDocument[], served: ReadonlySet<OperationId>): PlanCatalog {
  const content = joined(files)
  const plans = files.flatMap((file) => plansOf(file.content, served))
  return {
    path: (content['path'] as string | null | undefined) ?? null,
    model: (content['model'] as string | undefined) ?? 'One payment buys unmetered access to one tier for one window.',
    note: (content['note'] as string | undefined) ?? '',
    enabled: plans.some((plan) => plan.enabled),
    plans,
  }
}

/** The fields of all files of plans, each from the first file that has it. */
function joined(files: readonly CatalogDocument[]): Fields {
  return Object.assign({}, ...files.map(({ content }) => content).reverse()) as Fields
}

function plansOf(content: Fields, served: ReadonlySet<OperationId>): Plan[] {
  const isSold = content['enabled'] !== false
  return planFields(content).map(([, fields]): Plan => {
    const authorizes = strings(fields['authorizes'])
    return {
      plan: fields['plan'] as string,
      label: fields['label'] as string,
      tier: fields['tier'] as Plan['tier'],
      maxFreshnessSeconds: fields['max_freshness_seconds'] as number,
      durationSeconds: fields['duration_seconds'] as number,
      route: fields['route'] as string,
      price: parsePrice(fields['price'] as string) as bigint,
      priceText: fields['price'] as string,
      authorizes: authorizes.filter((id) => served.has(id)),
      fresh: readFreshData(fields['fresh']),
      enabled: isSold && fields['enabled'] !== false && authorizes.every((id) => served.has(id)),
    }
  })
}

/** Creates the product that sells the plans, which the built-in plugin "plans" answers. Null if there is nothing to sell. */
export function planProduct(
  files: readonly CatalogDocument[],
  catalog: PlanCatalog,
  products: readonly Product[],
): Product | null {
  const [leading] = files
  if (!leading || !sellsPlans(leading.content)) return null
  const content = joined(files)
  const family = familyOf(leading.content)
  const families = new Map(
    files.flatMap((each) => planFields(each.content).map(([, { plan }]) => [plan, familyOf(each.content)])),
  )
  const shared = { product: PRODUCT, family, tags: [] }
  const reissue = reissuePath(content)
  const operations = [
    ...(catalog.path === null ? [] : [{ ...listOperation(catalog.path), ...shared }]),
    ...catalog.plans.map((plan) => ({
      ...purchaseOperation(plan, products),
      ...shared,
      family: families.get(plan.plan) ?? null,
    })),
    ...(reissue === null ? [] : [{ ...reissueOperation(reissue), ...shared }]),
  ]
  return {
    id: PRODUCT,
    title: 'Access plans',
    summary: catalog.model,
    whenToUse: '',
    family,
    tags: [],
    plugin: { name: PRODUCT, version: null },
    upstream: null,
    settings: {
      lists: catalog.path !== null,
      sells: catalog.plans.length > 0,
      ...(reissue === null ? {} : { reissues: true }),
    },
    uses: [],
    operations,
    file: leading.file,
  }
}

const familyOf = ({ family }: Fields): string | null => (family as string | undefined) ?? null

/** Where a plan is written. */
export function placeOfPlan(
  files: readonly CatalogDocument[],
  plan: string,
): { readonly file: string; readonly pointer: string } | null {
  for (const { file, kind, content } of files)
    for (const [pointer, fields] of kind === 'plans' ? planFields(content) : [])
      if (fields['plan'] === plan) return { file, pointer }
  return null
}

/** An operation without the fields that it shares with its product. */
type Own = Omit<Operation, 'product' | 'family' | 'tags'>

const PLAIN = {
  description: '',
  params: null,
  query: null,
  body: null,
  bodyMedia: [],
  rows: null,
  chart: null,
  view: null,
  viewRefusals: false,
  form: null,
  tool: null,
  upstream: null,
  readOnly: false,
  maxFreshnessSeconds: 0,
  fresh: null,
  sellEmpty: true,
  trial: null,
  limit: null,
  timeoutSeconds: PURCHASE_SECONDS,
  queue: 'free',
  costPerMegabyte: 0,
  maxBytes: 1,
  cacheSeconds: 0,
  listed: true,
  internal: false,
  example: null,
  wait: 'confirmed',
  identifier: 'optional',
  accepts: null,
  retired: false,
  replacement: null,
} as const satisfies Partial<Operation>

function listOperation(path: string): Own {
  return {
    ...PLAIN,
    ...routeFields(parseRoute(`GET ${path}`) as Route),
    id: LIST_ID,
    summary: 'The plans on sale: price, validity, and the routes each one opens.',
    price: null,
    priceText: 'free',
    response: { $ref: 'plans.json#/$defs/PlanList' },
    handler: LIST_ID,
    plan: null,
  }
}

function reissueOperation(path: string): Own {
  return {
    ...PLAIN,
    ...routeFields(parseRoute(`POST ${path}`) as Route),
    id: REISSUE_ID,
    summary: 'Reissues lost access tokens to the wallet that paid for them, with the same plan and expiry.',
    description:
      'Sign this message with the wallet that paid (personal_sign, EIP-191). Use the address as you send it and the current time in ISO 8601: ' +
      '"Give me my access tokens for {base_url} again.\n\nWallet: {address}\nIssued At: {issued_at}". A contract wallet signs in the way its code accepts (ERC-1271). A signature works once, ' +
      'for ten minutes. The answer holds every token of the wallet that has not expired.',
    price: null,
    priceText: 'free',
    body: { $ref: 'plans.json#/$defs/Reissue' },
    bodyMedia: ['application/json'],
    maxBytes: REISSUE_BYTES,
    response: { $ref: 'plans.json#/$defs/Reissued' },
    handler: REISSUE_ID,
    plan: null,
  }
}

function purchaseOperation(plan: Plan, products: readonly Product[]): Own {
  return {
    ...PLAIN,
    ...routeFields(parseRoute(plan.route) as Route),
    id: purchaseId(plan.plan),
    summary: `Buy the plan ${plan.label}: an access token for its routes.`,
    price: plan.price,
    priceText: plan.priceText,
    queue: 'paid',
    response: { $ref: 'plans.json#/$defs/Purchase' },
    handler: 'purchase',
    fresh: plan.fresh,
    example: purchaseExample(plan, products),
    plan,
  }
}

/** Returns the fields of an operation that describe its route. */
export function routeFields(route: Route): Pick<Operation, 'method' | 'path' | 'route' | 'displayRoute'> {
  return { method: route.method, path: route.path, route: `${route.method} ${route.path}`, displayRoute: route.display }
}

/** When the purchase in the example is made. */
const EXAMPLE_TIME = Date.UTC(2026, 10, 20)

/** The fields that the list of plans and the answer to a purchase share. */
export function termsOf({ plan, label, tier, maxFreshnessSeconds, durationSeconds }: Plan) {
  return { plan, label, tier, max_freshness_seconds: maxFreshnessSeconds, duration_seconds: durationSeconds }
}

/** Creates the example of a purchase: no input, and an answer with a shortened token that is valid for the plan's time. */
function purchaseExample(plan: Plan, products: readonly Product[]): Example {
  const operations = new Map(products.flatMap((product) => product.operations.map((each) => [each.id, each])))
  const opened = plan.authorizes
    .flatMap((id) => operations.get(id) ?? [])
    .sort((one, other) => (one.displayRoute < other.displayRoute ? -1 : 1))
  const freshness = opened.filter(promisesFreshData).map(({ displayRoute, fresh }) => ({
    route: displayRoute,
    newest: new Date(EXAMPLE_TIME).toISOString(),
    sources: fresh.sources ?? null,
    coverage: 1,
  }))
  return {
    request: {},
    response: {
      token: 'eyJhbGciOiJFZERTQSJ9.eyJwbGFuIjoi4oCmIn0.c2ln',
      header: TOKEN_HEADER,
      ...termsOf(plan),
      issued_at: new Date(EXAMPLE_TIME).toISOString(),
      expires_at: new Date(EXAMPLE_TIME + plan.durationSeconds * 1000).toISOString(),
      authorized_routes: opened.map(({ displayRoute }) => displayRoute),
      ...(freshness.length === 0 ? {} : { freshness }),
    },
  }
}
