/** The built-in plugin that sells plans: the free list of them, and purchases that hand out access tokens. */
import { type Catalog, type Plan, TOKEN_HEADER } from '../../plugin/catalog.ts'
import { termsOf } from '../../catalog/terms.ts'
import { ServiceError } from '../../errors.ts'
import { type Call, definePlugin, type Plugin, Unavailable } from '../../plugin/plugin.ts'
import type { Tokens } from '../../tokens/access-tokens.ts'
import { documentHandler } from '../document.ts'
import type { Reissue, ReissueBody } from './reissue.ts'

export interface PlansParts {
  readonly tokens: Pick<Tokens, 'issue'>
  /** Public address without a trailing slash. */
  readonly baseUrl: string
  /** Absent where there is no ledger to look into. */
  readonly reissue?: Reissue
}

const SETTINGS = {
  type: 'object',
  required: ['lists', 'sells'],
  additionalProperties: false,
  properties: { lists: { type: 'boolean' }, sells: { type: 'boolean' }, reissues: { type: 'boolean' } },
} as const

/** The plugin "plans". A purchase writes nothing: it is the settled payment, and the token leaves only after it. */
export function createPlansPlugin({ tokens, baseUrl, reissue }: PlansParts): Plugin {
  const purchase = async ({ operation, access, catalog, id }: Call) => {
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
    return purchaseOf(catalog, plan, issued)
  }
  const getPlans = documentHandler((catalog) => planList(catalog, baseUrl))

  /** Every token of the wallet that still opens something. */
  async function reissueTokens({ catalog, input }: Call) {
    if (!reissue) throw new Unavailable('There is no ledger here to look into.')
    const again = await reissue(catalog, input.body as ReissueBody)
    return { count: again.length, tokens: again.map(({ plan, ...issued }) => purchaseOf(catalog, plan, issued)) }
  }

  return definePlugin({
    name: 'plans',
    settings: SETTINGS,
    setup: ({ settings }) => ({
      handlers: {
        ...(settings['lists'] ? { getPlans } : {}),
        ...(settings['sells'] ? { purchase } : {}),
        ...(settings['reissues'] ? { reissueTokens } : {}),
      },
    }),
  })
}

type Issued = Awaited<ReturnType<Tokens['issue']>>

/** What a buyer gets: the token, where to send it, and what it opens until when. */
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
export function planList(catalog: Catalog, baseUrl: string) {
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

/** Routes a token of the plan opens, in display form: "GET /v1/x/gold/*". */
export function authorizedRoutes(catalog: Catalog, plan: Plan): string[] {
  return plan.authorizes.flatMap((id) => catalog.operations.get(id)?.displayRoute ?? []).sort()
}
