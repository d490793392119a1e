import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import type { CallerAddress } from '../../gateway/http/caller-address.ts'
import { OperatorSessions } from '../../gateway/http/operator-session.ts'
import { ask, buy, json, payment, send } from '../support/agent.ts'
import { newWallet, openGateway, type TestGateway, until } from '../support/gateway.ts'

const TOKEN = 'correct-horse-battery'
const bearer = { authorization: `Bearer ${TOKEN}` }
const SCREENS = ['', '/ledger', '/payments', '/products', '/subscriptions', '/reconciliation', '/prices', '/catalog']
const HERE: CallerAddress = { address: '127.0.0.1', isKnown: true, isShared: false }
const FORM = 'application/x-www-form-urlencoded'

const sessionsAt = (token: string, baseUrl: string, now = () => new Date()): OperatorSessions =>
  new OperatorSessions(token, baseUrl, { now, revocations: { ids: new Set(), revoke: async () => {} } })

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

  it('takes a token of several words from programs, as it does from its form', () => {
    const sessions = sessionsAt('correct horse battery', 'https://shop.example')
    const access = (authorization: string) => sessions.authenticate({ authorization }, HERE)
    expect(sessions.isToken('correct horse battery', HERE)).to.equal(true)
    expect(access('Bearer correct horse battery')).to.equal('bearer')
    for (const wrong of ['correct', 'correct horse', 'correct horse battery staple', ''])
      expect(access(`Bearer ${wrong}`), wrong).to.equal(null)
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
    const old = sessionsAt(TOKEN, shop.url, () => thirteenHoursAgo)
      .open()
      .split(';')[0] as string
    expect((await fetch(at('/operator'), { headers: { cookie: old } })).status, 'an old session').to.equal(401)
  })

  it('ends a session for good when it is logged out, here, after a restart and in other processes, and no other session', async () => {
    const dataDir = mkdtempSync(join(tmpdir(), 'tollgate-console-'))
    const open = () => openGateway({ OPERATOR_TOKEN: TOKEN, DATA_DIR: dataDir }, { inMemory: false })
    const sessionOf = async ({ url }: TestGateway): Promise<string> => {
      const body = new URLSearchParams({ token: TOKEN })
      const login = await fetch(`${url}/operator/login`, { method: 'POST', body, redirect: 'manual' })
      return login.headers.get('set-cookie')?.split(';')[0] ?? ''
    }
    const statusOf = async ({ url }: TestGateway, cookie: string): Promise<number> =>
      (await fetch(`${url}/operator`, { headers: { cookie } })).status
    const [first, other] = [await open(), await open()]
    try {
      const [mine, theirs] = [await sessionOf(first), await sessionOf(first)]
      expect(mine).not.to.equal(theirs)
      expect(await statusOf(other, mine)).to.equal(200)
      const headers = { cookie: mine }
      const out = await fetch(`${first.url}/operator/logout`, { method: 'POST', headers, redirect: 'manual' })
      expect(out.status).to.equal(303)
      expect(await statusOf(first, mine), 'a stolen copy of the cookie').to.equal(401)
      expect(await statusOf(first, `${mine}.x`), 'a copy with more at its end').to.equal(401)
      expect(await statusOf(first, theirs), 'another session').to.equal(200)
      await until(async () => (await statusOf(other, mine)) === 401)
      await first.gateway.close()
      const again = await open()
      expect(await statusOf(again, mine), 'after a restart').to.equal(401)
      expect(await statusOf(again, theirs), 'another session after a restart').to.equal(200)
      await again.close()
    } finally {
      await Promise.all([first.close(), other.close()])
      rmSync(dataDir, { recursive: true, force: true })
    }
  })

  it('restricts its cookie to HTTPS if the gateway is public', () => {
    const sessions = sessionsAt(TOKEN, 'https://gate.example')
    expect(sessions.open()).to.match(/; Secure$/)
    expect(sessionsAt(TOKEN, shop.url).open()).to.not.contain('Secure')
    const cookie = sessions.open().split(';')[0] as string
    expect(sessions.authenticate({ cookie }, HERE)).to.equal('cookie')
    expect(sessions.authenticate({ cookie: cookie.replace(/=\d/, '=9') }, HERE), 'a later end').to.equal(null)
    expect(sessionsAt('another-operator-token', shop.url).authenticate({ cookie }, HERE)).to.equal(null)
  })

  it('shows until when a subscription was sold, also after its plan has another duration', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'tollgate-durations-'))
    cpSync(shop.gateway.config.catalogDir, folder, { recursive: true })
    const own = await openGateway({ OPERATOR_TOKEN: TOKEN, CATALOG_DIR: folder })
    try {
      const sold = await json(await buy(`${own.url}/v1/passes/late/1h`, own.wallet, 2, { method: 'POST' }))
      const file = join(folder, 'plans.json')
      writeFileSync(file, readFileSync(file, 'utf8').replace('3600', '60'))
      expect(await own.gateway.reload()).to.deep.equal([])
      const { subscriptions } = await json(await ask(`${own.url}/operator/subscriptions`, { headers: bearer }))
      const [shown] = subscriptions as { ends_at: string; state: string }[]
      expect(new Date(shown?.ends_at ?? '')).to.deep.equal(new Date(String(sold['expires_at'])))
      expect(shown?.state).to.equal('active')
    } finally {
      await own.close()
      rmSync(folder, { recursive: true, force: true })
    }
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

  it('pauses an operation and sells it again, from its own form only', async () => {
    const { cookie, csrf_token } = await logIn()
    const act = (action: string, fields: Record<string, string>) =>
      post(`/operator/products/${action}`, fields, { cookie, origin: shop.url, accept: 'text/html' })
    expect((await act('pause', { name: 'getLate' })).status).to.equal(401)
    expect((await act('pause', { csrf_token, name: 'getNothing' })).status).to.equal(422)
    expect((await ask(at('/v1/late'))).status).to.equal(402)
    expect((await act('pause', { csrf_token, name: 'getLate', reason: 'Repairs.' })).status).to.equal(303)
    const refused = await ask(at('/v1/late'))
    expect(refused.status).to.equal(503)
    expect(await json(refused)).to.include({ code: 'paused' })
    const page = await (await ask(at('/operator/products'), { headers: { cookie, accept: 'text/html' } })).text()
    expect(page).to.contain('Resume getLate</button>').and.contain('getLate: Repairs.')
    expect((await act('resume', { csrf_token, name: 'getLate' })).status).to.equal(303)
    expect((await ask(at('/v1/late'))).status).to.equal(402)
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

type Init = Omit<RequestInit, 'headers'> & { readonly headers: Readonly<Record<string, string>> }

describe('wrong operator tokens', () => {
  let shop: TestGateway
  /** Stands still unless a test moves it. */
  let time = 0
  const now = (): Date => new Date(time)
  const wait = (seconds: number): void => void (time += seconds * 1000)
  let guesses = 0
  /** A token that was not sent before. */
  const guess = (): string => `guess-${++guesses}`
  beforeEach(async () => {
    time = Date.now()
    shop = await openGateway({ OPERATOR_TOKEN: TOKEN, TRUSTED_PROXIES: '127.0.0.1' }, { now })
  })
  afterEach(() => shop.close())

  const send = (address: string, init: Init, path: string) =>
    fetch(shop.url + path, { redirect: 'manual', ...init, headers: { 'x-forwarded-for': address, ...init.headers } })
  const asBearer = (address: string, token: string, path = '/operator') =>
    send(address, { headers: { authorization: `Bearer ${token}` } }, path)
  const inForm = (address: string, token: string) => {
    const init = { method: 'POST', headers: { accept: 'text/html' }, body: new URLSearchParams({ token }) }
    return send(address, init, '/operator/login')
  }
  /** Sends wrong tokens, each after the wait that the last one brought. Returns the waits in seconds, 0 for none. */
  async function waitsOf(address: string, times: number): Promise<number[]> {
    const waits: number[] = []
    for (let at = 0; at < times; at++) {
      expect((await asBearer(address, guess())).status).to.equal(401)
      const next = await asBearer(address, TOKEN, '/metrics')
      waits.push(Number(next.headers.get('retry-after') ?? 0))
      if (next.status !== 429) break
      wait(waits.at(-1) as number)
    }
    return waits
  }

  it('make their address wait longer each time, in the form and as bearer tokens alike, until the right one comes', async () => {
    const [address, other] = ['203.0.113.7', '203.0.113.8']
    for (const path of ['/operator', '/metrics', '/operator/login', '/operator/nothing'])
      expect((await asBearer(address, guess(), path)).status, path).to.equal(path === '/operator/login' ? 200 : 401)
    expect((await inForm(address, guess())).status).to.equal(401)
    for (const path of ['/operator', '/metrics', '/operator/login', '/operator/nothing']) {
      const refused = await asBearer(address, TOKEN, path)
      expect([refused.status, refused.headers.get('retry-after')], path).to.deep.equal([429, '1'])
      expect(await json(refused)).to.include({ code: 'rate_limited', retry: 'after_delay' })
    }
    const page = await inForm(address, TOKEN)
    expect([page.status, page.headers.get('retry-after')]).to.deep.equal([429, '1'])
    expect(page.headers.get('set-cookie')).to.equal(null)
    expect(await page.text()).to.match(
      /role="alert"[^>]*>Too many wrong operator tokens came from this address.* Wait 1 s\./,
    )
    expect((await asBearer(other, TOKEN)).status, 'another address').to.equal(200)
    wait(1)
    expect(await waitsOf(address, 11)).to.deep.equal([2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900])
    expect((await inForm(address, TOKEN)).status).to.equal(303)
    for (let at = 0; at < 4; at++) expect((await asBearer(address, guess())).status).to.equal(401)
    expect((await asBearer(address, TOKEN)).status, 'counted anew').to.equal(200)
  })

  it('are five from one address, also if more come at once', async () => {
    const all = await Promise.all(Array.from({ length: 30 }, () => inForm('203.0.113.7', guess())))
    expect(all.filter(({ status }) => status === 401)).to.have.length(5)
    expect(all.filter(({ status }) => status === 429)).to.have.length(25)
  })

  it('of an IPv6 customer count together, and do not end a session', async () => {
    const login = await inForm('2001:db8::1', TOKEN)
    const cookie = login.headers.get('set-cookie')?.split(';')[0] ?? ''
    for (const last of ['1', '0002', '0:0:0:3', 'ffff:0:1:4', '5'])
      expect((await inForm(`2001:DB8::${last}`, guess())).status).to.equal(401)
    expect((await inForm('2001:db8::6', TOKEN)).status).to.equal(429)
    expect((await send('2001:db8::6', { headers: { cookie } }, '/operator')).status).to.equal(200)
  })

  it('count once if they are the same: a program with a former token does not lock the operator out', async () => {
    for (let at = 0; at < 9; at++) expect((await asBearer('203.0.113.7', 'former-token')).status).to.equal(401)
    expect((await asBearer('203.0.113.7', TOKEN)).status).to.equal(200)
  })

  it('from many addresses make each of them wait from its first one on, and nobody else', async () => {
    for (let at = 0; at < 100; at++) expect((await asBearer(`198.51.100.${at}`, guess())).status).to.equal(401)
    expect((await asBearer('198.51.100.1', TOKEN)).status, 'a mistake before').to.equal(200)
    expect(await waitsOf('203.0.113.7', 4)).to.deep.equal([64, 128, 256, 512])
    expect((await asBearer('203.0.113.8', TOKEN)).status).to.equal(200)
    expect((await inForm('203.0.113.9', TOKEN)).status).to.equal(303)
    wait(900)
    expect(await waitsOf('203.0.113.10', 1), 'later').to.deep.equal([0])
  })

  it('that come through a proxy that is not named do not lock out who calls from its machine', async () => {
    await shop.close()
    shop = await openGateway({ OPERATOR_TOKEN: TOKEN })
    for (let at = 0; at < 5; at++) expect((await asBearer(`203.0.113.${at}`, guess())).status).to.equal(401)
    expect((await asBearer('203.0.113.9', TOKEN)).status).to.equal(429)
    expect((await ask(`${shop.url}/operator`, { headers: bearer })).status).to.equal(200)
  })
})
