/** Trade preflight: regime, cost and limits in one signed answer that says allow, reduce or deny. It places nothing. */
import { type Call, definePlugin } from 'tollgate/plugin'
import { dataSettings } from '../lib/deployment.ts'
import type { Hex } from 'viem'
import type { Preflight, PreflightRequest, PreflightSigner } from '../../schemas/types.d.ts'
import { askFunding, askRegime } from './asking.ts'
import { canonicalize } from './canonical.ts'
import { checksOf, decide } from './checks.ts'
import { migrations, openKeys, type PublishedKey } from './keys.ts'
import { method, MODEL } from './method.ts'

const VALID_SECONDS = 60
/** What the demo asks about the first market that is always open, else the first. */
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
        description: 'Private key that signs, as "env:NAME". Without it a key is made and kept in the database.',
      },
      rotate_days: {
        type: 'number',
        exclusiveMinimum: 0,
        default: 90,
        description: 'A key of our own lasts this long.',
      },
    },
  },
  async setup(context) {
    const { db, settings } = context
    const { dataMode } = dataSettings(context)
    const given = (settings['key'] as Hex | undefined) ?? null
    const rotateDays = Number(settings['rotate_days'] ?? 90)
    const keys = await openKeys({ db, given, rotateDays, now: () => Math.floor(context.now().getTime() / 1000) })

    async function signed(call: Call, request: PreflightRequest, demo: { demo?: true }): Promise<Preflight> {
      const { id, ask, asOf } = call
      const cost = await ask('estimateExecutionCost', { params: {}, query: {}, body: orderOf(request) })
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
        preflightTrade: (call: Call<{ body: PreflightRequest }>) => signed(call as Call, call.input.body, {}),
        async getPreflightDemo(call: Call) {
          const { symbols } = await call.ask('getSymbols', { params: {}, query: {}, body: undefined })
          const { symbol = 'BTC-USD' } = symbols.find(({ session }) => session === '24x7') ?? symbols[0] ?? {}
          return signed(call, { symbol, ...DEMO }, { demo: true })
        },
        async getPreflightSigner(): Promise<PreflightSigner> {
          const [current, ...previous] = (await keys.published()).map(publicKeyOf)
          const { valid_until: _, ...key } = current!
          return { scheme: 'eip191', canonical: 'RFC8785', ...key, previous }
        },
        getPreflightMethod: () => method(),
      },
      jobs: [{ name: 'rotate', everySeconds: 3600, run: () => keys.rotate() }],
    }
  },
})

/** What of a request is the order itself. */
function orderOf(request: PreflightRequest) {
  const { limit_price: _l, max_cost_bps: _c, account_equity_usd: _e, max_position_pct: _p, client_ref: _r, ...order } = request // prettier-ignore
  return order
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
