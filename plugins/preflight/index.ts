/** Trade preflight: checks one order against regime, cost and limits, and signs the decision. It never places an order. */
import { type Ask, type Call, definePlugin, InvalidInput, ServiceError } from 'tollgate/plugin'
import { dataSettings } from '../lib/feeds/data-settings.ts'
import type { CostEstimate, Preflight, PreflightRequest, PreflightSigner, RegimeQuery } from '../../schemas/types.d.ts'
import { canonicalize, hasCanonicalForm } from './canonical-json.ts'
import { MODEL, preflightMethod } from './preflight-methodology.ts'
import { migrations, openKeys, type PublishedKey } from './signing-keys.ts'
import {
  checksOf,
  decide,
  fundingOf,
  type FundingView,
  type Missing,
  type RegimeView,
  spotMarketOf,
} from './trade-checks.ts'

/** Seconds after which a decision expires. */
const VALID_SECONDS = 60
/** The order of the demo. Its symbol is the first market that is always open, otherwise the first market. */
const DEMO = {
  side: 'buy',
  notional_usd: 25_000,
  order_type: 'market',
  max_cost_bps: 25,
  account_equity_usd: 1_000_000,
  max_position_pct: 10,
  client_ref: 'demo',
} as const satisfies Omit<PreflightRequest, 'symbol'>

export default definePlugin({
  name: 'preflight',
  migrations,
  settings: {
    type: 'object',
    additionalProperties: false,
    properties: {
      key: {
        type: 'string',
        pattern: '^0x[0-9a-fA-F]{64}$',
        description:
          'Private key that signs, as "env:NAME", in reach of plugins. Without it the signer of the gateway holds the key.',
      },
      rotate_days: {
        type: 'number',
        exclusiveMinimum: 0,
        default: 90,
        description: 'Days after which the key is replaced, unless the operator has chosen it.',
      },
    },
  },
  async setup(context) {
    const { db, attest, settings } = context
    const { dataMode } = dataSettings(context)
    const keys = await openKeys({
      db,
      attest,
      configuredKey: settings.key ?? null,
      rotateDays: settings.rotate_days,
      now: () => Math.floor(context.now().getTime() / 1000),
    })

    async function signedDecision(
      call: Pick<Call, 'id' | 'ask' | 'asOf' | 'catalog'>,
      request: PreflightRequest,
      demo: { demo?: true },
    ): Promise<Preflight> {
      const { id, ask, asOf } = call
      if (!hasCanonicalForm(request.client_ref ?? ''))
        throw new InvalidInput('Contains half of a character, which cannot be signed.', ['body', 'client_ref'])
      const cost = await ask('estimateExecutionCost', { body: orderOf(request) })
      const [regime, funding] = await Promise.all([askRegime(call, cost), askFunding(call, cost)])
      const checks = checksOf(request, regime, cost, funding)
      const { decision, recommended } = decide(request, regime, cost, checks)
      const answer = {
        id,
        decision,
        recommended_notional_usd: recommended,
        request,
        checks,
        regime: 'missing' in regime ? null : regime,
        cost,
        issued_at: asOf.toISOString(),
        expires_at: new Date(asOf.getTime() + VALID_SECONDS * 1000).toISOString(),
        data_mode: dataMode,
        model: MODEL,
        ...demo,
      }
      const { signer, value } = await keys.sign(canonicalize(answer))
      return { ...answer, signature: { scheme: 'eip191', signer, canonical: 'RFC8785', value } }
    }

    return {
      handlers: {
        preflightTrade: (call) => signedDecision(call, call.input.body, {}),
        async getPreflightDemo(call) {
          const { symbols } = await call.ask('getSymbols')
          const { symbol = 'BTC-USD' } = symbols.find(({ session }) => session === '24x7') ?? symbols[0] ?? {}
          return signedDecision(call, { symbol, ...DEMO }, { demo: true })
        },
        async getPreflightSigner(): Promise<PreflightSigner> {
          const [current, ...previous] = (await keys.published()).map(publicKeyOf)
          const { valid_until: _, ...key } = current!
          return { scheme: 'eip191', canonical: 'RFC8785', ...key, previous }
        },
        getPreflightMethod: preflightMethod,
      },
      /** A decision is as fresh as the estimate that it rests on. */
      freshness: ({ operation, body }, _, { freshnessOf }) =>
        operation === 'preflightTrade' ? freshnessOf('estimateExecutionCost', { body: orderOf(body) }) : null,
      async watched(_, { ask }) {
        const { symbols } = await ask('getSymbols')
        return symbols.map(({ symbol }) => ({ body: { symbol } }))
      },
      jobs: [{ name: 'rotate', everySeconds: 3600, run: () => keys.rotate() }],
    }
  },
})

/** The order of a request, with the question how large it may be within the caller's limit. */
function orderOf(request: PreflightRequest) {
  const { max_cost_bps, account_equity_usd: _e, max_position_pct: _p, client_ref: _r, ...order } = request
  return { ...order, largest_within_bps: max_cost_bps }
}

function publicKeyOf({ address, publicKey, validFrom, validUntil }: PublishedKey) {
  const iso = (seconds: number): string => new Date(seconds * 1000).toISOString()
  return {
    address,
    public_key: publicKey,
    valid_from: iso(validFrom),
    valid_until: validUntil === null ? null : iso(validUntil),
  }
}

/**
 * The current regime of the order's market, or that of the first market where its own is not collected: crypto markets
 * mostly turn volatile together. It does not apply to others.
 */
async function askRegime({ ask }: { readonly ask: Ask }, cost: CostEstimate): Promise<RegimeView> {
  if (cost.inputs.class === 'equity')
    return { missing: `The regime covers crypto markets and does not apply to ${cost.symbol}.` }
  const regimeOf = (query: RegimeQuery) => orMissing(ask('getRegimeCurrent', { query }))
  try {
    return await regimeOf({ symbol: spotMarketOf(cost) })
  } catch (error) {
    if (error instanceof ServiceError && error.code === 'not_found') return regimeOf({})
    throw error
  }
}

/** The funding rate of a perpetual, if the catalog offers funding rates. */
async function askFunding({ ask, catalog }: Pick<Call, 'ask' | 'catalog'>, cost: CostEstimate): Promise<FundingView> {
  if (cost.inputs.class !== 'perpetual') return { missing: `${cost.symbol} is not a perpetual, so no funding is paid.` }
  if (!catalog.operations.has('getPerpFundingRates')) return { missing: 'Funding rates are not offered here.' }
  const [base = ''] = cost.symbol.split('-')
  const query = { symbol: base, limit: 1000 }
  const answer = await orMissing(ask('getPerpFundingRates', { query }))
  return 'missing' in answer ? answer : fundingOf(answer.rates, base)
}

/** Returns the reason instead of an answer if the product is suspended, so that its check is skipped. Rethrows other errors. */
async function orMissing<Answer>(answer: Promise<Answer>): Promise<Answer | Missing> {
  try {
    return await answer
  } catch (error) {
    if (error instanceof ServiceError && error.code === 'product_suspended') return { missing: error.message }
    throw error
  }
}
