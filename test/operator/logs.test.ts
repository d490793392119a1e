import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { expect } from 'chai'
import type { Hex } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { ask, buy, json, payment, send } from '../support/agent.ts'
import { freePort } from '../support/gateway.ts'
import { startGateway, type Started } from '../support/process.ts'

const shop = resolve(import.meta.dirname, '../fixtures/shop')
const TOKEN = 'correct-horse-battery'

describe('the log of a running gateway at the most verbose level', function () {
  this.timeout(90_000)
  let folder: string
  let running: Started
  let url: string
  let buyer: ReturnType<typeof privateKeyToAccount>
  const secrets = new Map([['the operator token', TOKEN]])

  /** Adds what no line may contain of a payment: the header, a long piece from its middle, and the signature. */
  function addSecretsOf(name: string, header: string): void {
    const { payload } = JSON.parse(Buffer.from(header, 'base64').toString()) as { payload: { signature: string } }
    secrets.set(`the header of ${name}`, header)
    secrets.set(`a piece of ${name}`, header.slice(200, 260))
    secrets.set(`the signature of ${name}`, payload.signature)
  }

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'tollgate-logs-'))
    const port = await freePort()
    url = `http://127.0.0.1:${port}`
    running = await startGateway(/Tollgate is open/, {
      PORT: String(port),
      DATA_DIR: folder,
      CATALOG_DIR: join(shop, 'catalog'),
      PLUGIN_DIRS: join(shop, 'plugins'),
      LOG_LEVEL: 'trace',
      OPERATOR_TOKEN: TOKEN,
    })
    const home = join(folder, 'sandbox-sample')
    const { private_key: key } = (
      JSON.parse(readFileSync(join(home, 'sandbox.json'), 'utf8')) as { buyer: { private_key: Hex } }
    ).buyer
    const keys = JSON.parse(readFileSync(join(home, 'chain/keys.json'), 'utf8')) as Record<string, string>
    for (const [name, value] of Object.entries(keys)) secrets.set(`the key "${name}"`, value)
    buyer = privateKeyToAccount(key)
  })
  after(async () => {
    await running?.stop()
    rmSync(folder, { recursive: true, force: true })
  })

  it('names calls and payments, and contains no payment header, key, token or body', async () => {
    for (const version of [1, 2] as const) {
      const header = await payment(`${url}/v1/echo/quietly`, buyer, version)
      addSecretsOf(`a paid call of x402 v${version}`, header)
      expect((await send(`${url}/v1/echo/quietly`, header, version)).status).to.equal(200)
      expect((await send(`${url}/v1/late`, header, version)).status).to.equal(409)
    }
    const failing = { method: 'POST', body: { text: 'words of a buyer', fault: 'throw' } }
    secrets.set('a body', 'words of a buyer')
    const failedPayment = await payment(`${url}/v1/echo`, buyer, 2, failing)
    addSecretsOf('a call that failed', failedPayment)
    expect((await send(`${url}/v1/echo`, failedPayment, 2, failing)).status).to.equal(502)
    secrets.set('a broken header', 'not-a-payment-at-all')
    await send(`${url}/v1/echo/quietly`, 'not-a-payment-at-all')

    const pass = await json(await buy(`${url}/v1/passes/late/1h`, buyer, 2, { method: 'POST' }))
    secrets.set('an access token', String(pass['token']))
    expect((await ask(`${url}/v1/late`, { headers: { 'x-service-token': String(pass['token']) } })).status).to.equal(
      200,
    )
    secrets.set('a wrong access token', 'a-token-of-nobody')
    await ask(`${url}/v1/late`, { headers: { 'x-service-token': 'a-token-of-nobody' } })

    const toolPayment = await payment(`${url}/v1/echo/tool`, buyer)
    addSecretsOf('a tool call', toolPayment)
    const call = { name: 'get_echo', arguments: { word: 'tool', payment_signature: toolPayment } }
    await ask(`${url}/mcp`, {
      method: 'POST',
      body: { jsonrpc: '2.0', id: 1, method: 'tools/call', params: call },
      headers: { accept: 'application/json, text/event-stream' },
    })
    secrets.set('a guess of the operator token', 'a-guess-of-a-token')
    await fetch(`${url}/operator/login`, { method: 'POST', body: new URLSearchParams({ token: 'a-guess-of-a-token' }) })
    const login = await fetch(`${url}/operator/login`, {
      method: 'POST',
      body: new URLSearchParams({ token: TOKEN }),
      redirect: 'manual',
    })
    const cookie = (login.headers.get('set-cookie') ?? '').split(';')[0] as string
    secrets.set('the session of the operator', cookie.slice(cookie.indexOf('=') + 1))
    expect((await ask(`${url}/operator`, { headers: { cookie } })).status).to.equal(200)
    expect((await ask(`${url}/metrics`, { headers: { authorization: `Bearer ${TOKEN}` } })).status).to.equal(200)
    await running.stop()

    const lines = running
      .output()
      .split('\n')
      .filter((line) => line.startsWith('{'))
      .map((line) => JSON.parse(line) as Record<string, unknown>)
    expect(lines.filter(({ call: id }) => typeof id === 'string').length).to.be.greaterThan(15)
    expect(lines.filter(({ payment: key }) => typeof key === 'string').length).to.be.greaterThan(5)
    expect(new Set(lines.map(({ level }) => level))).to.include.all.keys('info', 'warn', 'error')
    const leaked = [...secrets].filter(([, secret]) => secret.length < 8 || running.output().includes(secret))
    expect(leaked.map(([name]) => name)).to.deep.equal([])
  })
})
