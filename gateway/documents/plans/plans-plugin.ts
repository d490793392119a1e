/** The built-in plugin that sells plans: the free list of plans, purchases that return access tokens, and reissue. */
import { type Catalog, type Plan, TOKEN_HEADER } from '../../plugin/catalog.ts'
import { termsOf } from '../../catalog/plans.ts'
import { claimedBy, readsClaim } from '../../products/claimed-request.ts'
import { freshnessOfPlan } from '../../products/freshness.ts'
import { ServiceError } from '../../errors.ts'
import { type Call, definePlugin, type Plugin, Unavailable } from '../../plugin/plugin.ts'
import type { Tokens } from '../../tokens/access-tokens.ts'
import { documentHandler } from '../document.ts'
import type { Reissue, ReissueBody } from './reissue.ts'

export interface PlansParts {
  readonly tokens: Pick<Tokens, 'issue'>
  /** Public address without a trailing slash. */
  readonly baseUrl: string
  /** Absent without a journal, in which purchases are looked up. */
  readonly reissue?: Reissue
}

const SETTINGS = {
  type: 'object',
  required: ['lists', 'sells'],
  additionalProperties: false,
  properties: { lists: { type: 'boolean' }, sells: { type: 'boolean' }, reissues: { type: 'boolean' } },
} as const

/** The plugin "plans". A purchase stores nothing: it is the settled payment, and the token is sent only after it. */
export function createPlansPlugin({ tokens, baseUrl, reissue }: PlansParts): Plugin {
  const purchase = async (call: Call) => {
    const { operation, access, catalog, id } = call
    const { plan } = operation
    if (!plan || access.kind !== 'payment') throw new ServiceError('payment_required')
    const issued = await tokens.issue({
      subject: access.payer,
      plan: plan.plan,
      tier: plan.tier,
      durationSeconds: plan.durationSeconds,
      id,
      ...(access.at ? { issuedAt: access.at } : {}),
    })
    const freshness = await freshnessOfPlan(call)
    return { ...purchaseOf(catalog, plan, issued), ...(freshness.length === 0 ? {} : { freshness }) }
  }
  const getPlans = documentHandler((catalog) => planList(catalog, baseUrl))

  /** Every token of the wallet that is still valid. */
  async function reissueTokens(call: Call) {
    if (!reissue) throw new Unavailable('Purchases cannot be looked up here.')
    const { catalog, input } = call
    const reissued = await reissue(catalog, input.body as ReissueBody, claimedBy(call)?.callerPlace ?? null)
    return { count: reissued.length, tokens: reissued.map(({ plan, ...issued }) => purchaseOf(catalog, plan, issued)) }
  }

  return definePlugin({
    name: 'plans',
    settings: SETTINGS,
    setup: ({ settings }) => ({
      handlers: {
        ...(settings['lists'] ? { getPlans } : {}),
        ...(settings['sells'] ? { purchase } : {}),
        ...(settings['reissues'] ? { reissueTokens: readsClaim(reissueTokens) } : {}),
      },
    }),
  })
}

type Issued = Awaited<ReturnType<Tokens['issue']>>

/** The answer to a purchase: the token, its header, and what it opens until when. */
function purchaseOf(catalog: Catalog, plan: Plan, { token, issuedAt, expiresAt }: Issued) {
  return {
    token,
    header: TOKEN_HEADER,
    ...termsOf(plan),
    issued_at: issuedAt.toISOString(),
    expires_at: expiresAt.toISOString(),
    authorized_routes: authorizedRoutes(catalog, plan),
  }
}

/** The subscription catalog document (interface 2.7) with its plan records (2.6). */
function planList(catalog: Catalog, baseUrl: string) {
  const { model, note, enabled, plans } = catalog.plans
  return {
    service: catalog.service.name,
    model,
    enabled,
    header: TOKEN_HEADER,
    note,
    plans: plans.map((plan) => ({
      ...termsOf(plan),
      route: plan.route,
      price_usd: Number(plan.priceText),
      url: `${baseUrl}${plan.route.slice(plan.route.indexOf('/'))}`,
      authorized_routes: authorizedRoutes(catalog, plan),
    })),
  }
}

/** The routes that a token of the plan opens, in display form: "GET /v1/x/gold/*". */
function authorizedRoutes(catalog: Catalog, plan: Plan): string[] {
  return plan.authorizes.flatMap((id) => catalog.operations.get(id)?.displayRoute ?? []).sort()
}
