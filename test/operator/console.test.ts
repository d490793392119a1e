import { expect } from 'chai'
import { OperatorSessions } from '../../gateway/http/operator-session.ts'
import { ask, buy, json, payment, send } from '../support/agent.ts'
import { newWallet, openGateway, type TestGateway } from '../support/gateway.ts'

const TOKEN = 'correct-horse-battery'
const bearer = { authorization: `Bearer ${TOKEN}` }
const SCREENS = ['', '/ledger', '/products', '/subscriptions', '/reconciliation', '/prices', '/catalog']
const FORM = 'application/x-www-form-urlencoded'

describe('the operator console', () => {
  let shop: TestGateway

  before(async () => {
    shop = await openGateway({ OPERATOR_TOKEN: TOKEN })
  })
  after(() => shop.close())

  const at = (path: string): string => `${shop.url}${path}`
  const post = (path: string, fields: Record<string, string>, headers: Record<string, string> = {}) =>
    fetch(at(path), {
      method: 'POST',
      body: new URLSearchParams(fields),
      headers: { 'content-type': FORM, accept: 'text/html', ...headers },
      redirect: 'manual',
    })

  /** Logs in as a browser does. */
  async function logIn(): Promise<{ cookie: string; csrf_token: string }> {
    const login = await post('/operator/login', { token: TOKEN })
    expect(login.status).to.equal(303)
    const setCookie = login.headers.get('set-cookie') ?? ''
    expect(setCookie)
      .to.match(/HttpOnly/)
      .and.match(/SameSite=Strict/)
      .and.match(/Path=\/operator/)
    expect(setCookie).not.to.contain(TOKEN)
    const cookie = setCookie.split(';')[0] as string
    const page = await (await fetch(at('/operator/catalog'), { headers: { cookie, accept: 'text/html' } })).text()
    return { cookie, csrf_token: /name="csrf_token" value="([^"]+)"/.exec(page)?.[1] ?? '' }
  }

  it('does not exist if no token is configured', async () => {
    const withoutConsole = await openGateway()
    for (const path of ['/operator', '/operator/login', '/operator/products', '/metrics'])
      expect((await ask(`${withoutConsole.url}${path}`, { headers: bearer })).status, path).to.equal(404)
    await withoutConsole.close()
  })

  it('answers 401 on every path without the token or with a wrong one', async () => {
    const unauthorized = [{}, { authorization: 'Bearer wrong-horse-battery' }, { cookie: 'operator=9999999999999.abc' }]
    for (const headers of unauthorized)
      for (const path of [...SCREENS.map((screen) => `/operator${screen}`), '/metrics', '/operator/nothing']) {
        const response = await ask(at(path), { headers })
        expect(response.status, path).to.equal(401)
        expect(await response.text()).to.contain('"code":"unauthorized"')
      }
    expect((await ask(at('/operator/nothing'), { headers: bearer })).status).to.equal(404)
  })

  it('shows every screen as a page and as JSON, and forbids caching and embedding', async () => {
    for (const screen of SCREENS) {
      const data = await ask(at(`/operator${screen}`), { headers: bearer })
      expect(data.status).to.equal(200)
      expect(await json(data)).to.be.an('object')
      expect(data.headers.get('cache-control')).to.equal('no-store')
      expect(data.headers.get('access-control-allow-origin')).to.equal(null)
      const page = await ask(at(`/operator${screen}`), { headers: { ...bearer, accept: 'text/html' } })
      expect(page.status).to.equal(200)
      expect(await page.text()).to.contain('<h1>')
    }
  })

  it('logs a browser in with the token only, and logs it out again', async () => {
    const refused = await post('/operator/login', { token: 'wrong-horse-battery' })
    expect(refused.status).to.equal(401)
    expect(refused.headers.get('set-cookie')).to.equal(null)
    const { cookie, csrf_token } = await logIn()
    expect((await fetch(at('/operator'), { headers: { cookie } })).status).to.equal(200)
    const out = await post('/operator/logout', { csrf_token }, { cookie })
    expect(out.headers.get('set-cookie')).to.match(/Max-Age=0/)
    const thirteenHoursAgo = new Date(shop.now().getTime() - 13 * 3600_000)
    const old = new OperatorSessions(TOKEN, shop.url, () => thirteenHoursAgo).open().split(';')[0] as string
    expect((await fetch(at('/operator'), { headers: { cookie: old } })).status, 'an old session').to.equal(401)
  })

  it('restricts its cookie to HTTPS if the gateway is public', () => {
    const sessions = new OperatorSessions(TOKEN, 'https://gate.example', () => new Date())
    expect(sessions.open()).to.match(/; Secure$/)
    expect(new OperatorSessions(TOKEN, shop.url, () => new Date()).open()).to.not.contain('Secure')
    const cookie = sessions.open().split(';')[0] as string
    expect(sessions.authenticate({ cookie })).to.equal('cookie')
    expect(sessions.authenticate({ cookie: cookie.replace(/=\d/, '=9') }), 'a later end').to.equal(null)
    expect(
      new OperatorSessions('another-operator-token', shop.url, () => new Date()).authenticate({ cookie }),
    ).to.equal(null)
  })

  it('revokes a subscription from its own form, and from no other page', async () => {
    await buy(at('/v1/passes/late/1h'), shop.wallet, 2, { method: 'POST' })
    const listed = async () =>
      (await json(await ask(at('/operator/subscriptions'), { headers: bearer })))['subscriptions'] as {
        id: string
        state: string
      }[]
    const [subscription] = await listed()
    expect(subscription?.state).to.equal('active')
    const id = subscription?.id ?? ''
    const { cookie, csrf_token } = await logIn()
    const revoke = (fields: Record<string, string>, headers: Record<string, string> = {}) =>
      post('/operator/subscriptions/revoke', { id, ...fields }, { cookie, ...headers })
    expect((await revoke({})).status, 'without the CSRF token').to.equal(401)
    expect((await revoke({ csrf_token: 'x'.repeat(csrf_token.length) })).status, 'with a wrong CSRF token').to.equal(
      401,
    )
    expect((await revoke({ csrf_token }, { origin: 'https://evil.example' })).status, 'from another origin').to.equal(
      401,
    )
    expect((await revoke({ csrf_token }, { 'sec-fetch-site': 'cross-site' })).status).to.equal(401)
    expect((await listed())[0]?.state).to.equal('active')
    expect((await revoke({ csrf_token }, { origin: shop.url })).status).to.equal(303)
    expect((await listed())[0]?.state).to.equal('revoked')
  })

  it("shows revenue without payments from the operator's own wallets, and the funnel with its reasons", async () => {
    const gateway = await openGateway({
      OPERATOR_TOKEN: TOKEN,
      OWN_WALLETS: `0x${'c1'.repeat(20)} ${shop.wallet.address}`,
    })
    const stranger = newWallet()
    await buy(`${gateway.url}/v1/echo/a`, shop.wallet)
    const header = await payment(`${gateway.url}/v1/echo/b`, stranger)
    for (let times = 0; times < 2; times++) await send(`${gateway.url}/v1/echo/b`, header)
    await send(`${gateway.url}/v1/echo/c`, header)
    const failing = { method: 'POST', body: { text: 'a', fault: 'throw' } }
    await buy(`${gateway.url}/v1/echo`, stranger, 2, failing)
    const money = await json(await ask(`${gateway.url}/operator`, { headers: bearer }))
    const revenue = money['revenue'] as Record<string, { payments: number; amount: string }>
    expect(revenue['total']).to.deep.include({ payments: 1, amount: '5000' })
    expect(revenue['own']).to.deep.include({ payments: 1, amount: '5000' })
    const {
      refused_by_reason: refused,
      not_charged_by_reason: notCharged,
      ...counts
    } = money['funnel'] as Record<string, unknown>
    expect(counts).to.include({ offered: 3, delivered: 2, repeated: 1, refused: 1, not_charged: 1 })
    expect(refused).to.deep.equal([{ reason: 'payment_conflict', count: 1 }])
    expect(notCharged).to.deep.equal([{ reason: 'product_failed', count: 1 }])
    await gateway.close()
  })
})
