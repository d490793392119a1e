/** How a plan ends: a token expires, or the plan is no longer sold. */
import { readFileSync, writeFileSync } from 'node:fs'
import { expect } from 'chai'
import { decodeJwt } from 'jose'
import { proves } from '../../../requirements.ts'
import { ask, buy, json } from '../../../support/agent.ts'
import { feedCatalog, openFeedGateway } from '../feed-gateway.ts'

describe('the plans of the feed', () => {
  it('expire to the second', async () => {
    proves('token-window')
    const gateway = await openFeedGateway(feedCatalog())
    try {
      const token = await gateway.token('live/24h')
      const get = () => ask(`${gateway.url}/v1/potus/feeds`, { headers: { 'x-service-token': token } })
      const left = (decodeJwt(token).exp as number) - gateway.now().getTime() / 1000
      gateway.advance(left - 30)
      expect((await get()).status).to.equal(200)
      gateway.advance(30)
      const response = await get()
      expect(response.status).to.equal(402)
      expect((await json(response))['code']).to.equal('token_expired')
    } finally {
      await gateway.close()
    }
  })

  it('keep their tokens valid after a plan is no longer sold', async () => {
    const catalog = feedCatalog()
    const gateway = await openFeedGateway(catalog)
    try {
      const token = await gateway.token('archive/30d')
      const plans = JSON.parse(readFileSync(`${catalog}/plans.json`, 'utf8')) as { plans: Record<string, unknown>[] }
      writeFileSync(
        `${catalog}/plans.json`,
        JSON.stringify({ ...plans, plans: plans.plans.map((plan) => ({ ...plan, enabled: false })) }),
      )
      await gateway.gateway.reload()
      const list = await json(await ask(`${gateway.url}/v1/potus/subscribe`))
      expect(list).to.include({ enabled: false })
      expect(
        (await ask(`${gateway.url}/v1/potus/archive?limit=1`, { headers: { 'x-service-token': token } })).status,
      ).to.equal(200)
      const refused = await buy(`${gateway.url}/v1/potus/subscribe/archive/30d`, gateway.wallet, 2, { method: 'POST' })
      expect(refused.status).to.equal(503)
      expect((await json(refused))['code']).to.equal('product_suspended')
    } finally {
      await gateway.close()
    }
  })
})
