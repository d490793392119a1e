import { expect } from 'chai'
import { callerOf } from '../../../gateway/workers/timeout.ts'
import type { BoundOperation, Edition } from '../../../gateway/products/edition.ts'
import type { Access, ServiceError } from '../../../gateway/plugin/plugin.ts'
import { callOperation } from '../../../gateway/testing/testing.ts'
import { BASE_URL, gold, openCatalog, openEditionBuilder, thing, type TestCatalog } from '../../support/catalog.ts'

const plan = (name: string, fields: object) => ({
  plan: name,
  label: `Plan ${name}`,
  tier: 'live',
  max_freshness_seconds: 0,
  duration_seconds: 86_400,
  price: '50.00',
  ...fields,
})

const PLANS = {
  path: '/v1/x/subscribe',
  family: 'x',
  model: 'One payment buys unmetered access to one tier for one window.',
  note: 'Send the token in the header.',
  plans: [
    plan('live-24h', { route: 'POST /v1/x/subscribe/live/24h', authorizes: ['getThing', 'getGold'] }),
    plan('archive-30d', {
      route: 'POST /v1/x/subscribe/archive/30d',
      tier: 'archive',
      max_freshness_seconds: 86_400,
      duration_seconds: 2_592_000,
      price: '0.1',
      authorizes: ['getGold'],
    }),
  ],
}

describe('the plans', () => {
  let catalog: TestCatalog
  let builder: Awaited<ReturnType<typeof openEditionBuilder>>
  let edition: Edition

  before(async () => {
    const params = { type: 'object', properties: { day: { type: 'string' } } }
    catalog = openCatalog({
      'gold.json': gold(),
      'throws.json': thing('throws', { route: 'GET /v1/days/{day}', params }),
      'plans.json': PLANS,
    })
    builder = await openEditionBuilder(catalog)
    edition = (await builder.build()).edition
  })

  after(async () => {
    await edition.stop()
    await builder.close()
    catalog.close()
  })

  it('are listed as the interface describes them (2.7, 2.6)', async () => {
    expect(await callOperation(edition, 'getPlans', { asOf: new Date(0) })).to.deep.equal({
      service: 'Shop',
      model: 'One payment buys unmetered access to one tier for one window.',
      enabled: true,
      header: 'X-SERVICE-TOKEN',
      note: 'Send the token in the header.',
      plans: [
        {
          plan: 'live-24h',
          label: 'Plan live-24h',
          tier: 'live',
          max_freshness_seconds: 0,
          duration_seconds: 86_400,
          route: 'POST /v1/x/subscribe/live/24h',
          price_usd: 50,
          url: `${BASE_URL}/v1/x/subscribe/live/24h`,
          authorized_routes: ['GET /v1/days/*', 'GET /v1/gold'],
        },
        {
          plan: 'archive-30d',
          label: 'Plan archive-30d',
          tier: 'archive',
          max_freshness_seconds: 86_400,
          duration_seconds: 2_592_000,
          route: 'POST /v1/x/subscribe/archive/30d',
          price_usd: 0.1,
          url: `${BASE_URL}/v1/x/subscribe/archive/30d`,
          authorized_routes: ['GET /v1/gold'],
        },
      ],
    })
  })

  async function buy(id: string, access: Access, raw: { query?: object; body?: unknown } = {}): Promise<unknown> {
    const bound = edition.bound.get(id) as BoundOperation
    return bound.handle({
      id: 'call-7',
      operation: bound.operation,
      catalog: edition.catalog,
      input: bound.validate({ params: {}, query: { ...raw.query }, body: raw.body }),
      access,
      asOf: builder.now(),
      caller: callerOf(new AbortController().signal),
    })
  }

  const paid: Access = { kind: 'payment', payer: '0xb2', amount: 100_000n }

  it('return a token for the plan, the payer and the window', async () => {
    const { token, ...rest } = (await buy('purchasePlanArchive30d', paid)) as { token: string }
    expect(rest).to.deep.equal({
      header: 'X-SERVICE-TOKEN',
      plan: 'archive-30d',
      label: 'Plan archive-30d',
      tier: 'archive',
      max_freshness_seconds: 86_400,
      duration_seconds: 2_592_000,
      issued_at: '2026-06-01T12:00:00.000Z',
      expires_at: '2026-07-01T12:00:00.000Z',
      authorized_routes: ['GET /v1/gold'],
    })
    expect(await builder.tokens.verify(token)).to.deep.equal({
      plan: 'archive-30d',
      tier: 'archive',
      subject: '0xb2',
      id: 'call-7',
      expiresAt: new Date('2026-07-01T12:00:00Z'),
    })
  })

  it('are chosen by the route alone; query and body change nothing', async () => {
    const raw = {
      query: { plan: 'live-24h', price: '0', duration_seconds: '1' },
      body: { plan: 'live-24h', price_usd: 0 },
    }
    expect(await buy('purchasePlanArchive30d', paid, raw)).to.include({
      plan: 'archive-30d',
      duration_seconds: 2_592_000,
    })
  })

  it('are sold for a payment only', async () => {
    const others: readonly Access[] = [
      { kind: 'free' },
      { kind: 'token', plan: 'live-24h', subject: '0xb2', expiresAt: new Date(0) },
    ]
    for (const access of others) {
      const error = await buy('purchasePlanArchive30d', access).catch((thrown: unknown) => thrown)
      expect((error as ServiceError).code).to.equal('payment_required')
    }
  })

  it('are listed but not sold while they are disabled', async () => {
    catalog.write('plans.json', { ...PLANS, enabled: false })
    const closed = (await builder.build()).edition
    expect(await callOperation(closed, 'getPlans', { asOf: new Date(0) })).to.include({ enabled: false })
    expect(() => closed.bound.get('purchasePlanLive24h')?.assertAvailable()).to.throw(/live-24h is not sold/)
    await closed.stop()
  })
})
