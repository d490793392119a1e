/** The built-in plugin that sells plans: the free list of them, and purchases that hand out access tokens. */
import { type Catalog, type Plan, TOKEN_HEADER } from '../catalog/catalog.ts'
import { ServiceError } from '../errors.ts'
import { type Call, definePlugin, type Plugin } from '../plugin.ts'
import type { Tokens } from '../tokens.ts'

export interface PlansParts {
  readonly tokens: Pick<Tokens, 'issue'>
  /** Public address without a trailing slash. */
  readonly baseUrl: string
}

const SETTINGS = {
  type: 'object',
  required: ['lists', 'sells'],
  additionalProperties: false,
  properties: { lists: { type: 'boolean' }, sells: { type: 'boolean' } },
} as const

/** The plugin "plans". A purchase writes nothing: it is the settled payment, and the token leaves only after it. */
export function createPlansPlugin({ tokens, baseUrl }: PlansParts): Plugin {
  const purchase = async ({ operation, access, catalog, id }: Call) => {
    const { plan } = operation
    if (!plan || access.kind !== 'payment') throw new ServiceError('payment_required')
    const { token, issuedAt, expiresAt } = await tokens.issue({
      subject: access.payer,
      plan: plan.plan,
      tier: plan.tier,
      durationSeconds: plan.durationSeconds,
      id,
    })
    return {
      token,
      header: TOKEN_HEADER,
      plan: plan.plan,
      label: plan.label,
      tier: plan.tier,
      max_freshness_seconds: plan.maxFreshnessSeconds,
      duration_seconds: plan.durationSeconds,
      issued_at: issuedAt.toISOString(),
      expires_at: expiresAt.toISOString(),
      authorized_routes: authorizedRoutes(catalog, plan),
    }
  }
  const getPlans = ({ catalog }: Call) => planList(catalog, baseUrl)

  return definePlugin({
    name: 'plans',
    settings: SETTINGS,
    setup: ({ settings }) => ({
      handlers: { ...(settings['lists'] ? { getPlans } : {}), ...(settings['sells'] ? { purchase } : {}) },
    }),
  })
}

/** The subscription catalog document (interface 2.7) with its plan records (2.6). */
export function planList(catalog: Catalog, baseUrl: string) {
  const { model, note, enabled, plans } = catalog.plans
  return {
    service: catalog.service.name,
    model,
    enabled,
    header: TOKEN_HEADER,
    note,
    plans: plans.map((plan) => ({
      plan: plan.plan,
      label: plan.label,
      tier: plan.tier,
      max_freshness_seconds: plan.maxFreshnessSeconds,
      duration_seconds: plan.durationSeconds,
      route: plan.route,
      price_usd: Number(plan.priceText),
      url: `${baseUrl}${plan.route.slice(plan.route.indexOf('/'))}`,
      authorized_routes: authorizedRoutes(catalog, plan),
    })),
  }
}

/** Routes a token of the plan opens, in display form: "GET /v1/x/gold/*". */
export function authorizedRoutes(catalog: Catalog, plan: Plan): string[] {
  return plan.authorizes.flatMap((id) => catalog.operations.get(id)?.displayRoute ?? []).sort()
}
