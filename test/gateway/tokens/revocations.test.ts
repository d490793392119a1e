/** A token taken back at one of two gateways that share a database: real processes. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { expect } from 'chai'
import { generatePrivateKey } from 'viem/accounts'
import { createTokens, type Tokens } from '../../../gateway/tokens/access-tokens.ts'
import { createKey } from '../../../gateway/tokens/key-set.ts'
import { openSchema, type Schema } from '../../contracts/postgres.ts'
import { ask, json } from '../../support/agent.ts'
import { freePort, PAY_TO } from '../../support/gateway.ts'
import { start, type Started } from '../../support/process.ts'

const fixtures = resolve(import.meta.dirname, '../../fixtures/shop')
const OPERATOR = 'an-operator-token-of-a-test'
const HOUR = { subject: PAY_TO, plan: 'late-1h', tier: 'live', durationSeconds: 3600 }

describe('a token that is revoked at one of two gateways', () => {
  let schema: Schema | null
  const folders: string[] = []
  const running: Started[] = []
  before(async () => {
    schema = await openSchema()
  })
  afterEach(async () => {
    await Promise.all(running.splice(0).map((each) => each.stop()))
  })
  after(async () => {
    await schema?.drop()
    for (const folder of folders) rmSync(folder, { recursive: true, force: true })
  })

  function folder(): string {
    const made = mkdtempSync(join(tmpdir(), 'tollgate-revoked-'))
    folders.push(made)
    return made
  }

  /** Two gateways with one public address and one set of keys; nothing settles, since a token needs no chain. */
  async function openTwo(shared: (nth: number) => Record<string, string>): Promise<{ urls: string[]; tokens: Tokens }> {
    const ports = [await freePort(), await freePort()]
    const baseUrl = `http://127.0.0.1:${ports[0]}`
    const keys = JSON.stringify({ keys: [await createKey()] })
    const environment = {
      NETWORK: 'base-sepolia',
      PAY_TO,
      SETTLE_RPC_URL: `http://127.0.0.1:${await freePort()}`,
      SETTLE_KEY: generatePrivateKey(),
      BASE_URL: baseUrl,
      TOKEN_KEYS: keys,
      OPERATOR_TOKEN: OPERATOR,
      CATALOG_DIR: join(fixtures, 'catalog'),
      PLUGIN_DIRS: join(fixtures, 'plugins'),
      LOG_LEVEL: 'silent',
    }
    const started = await Promise.all(
      ports.map((port, nth) =>
        start('gateway/main.ts', /is open at/, { ...environment, ...shared(nth), PORT: String(port) }),
      ),
    )
    running.push(...started)
    const tokens = await createTokens({ keys, dataDir: null, issuer: baseUrl, now: () => new Date() })
    return { urls: ports.map((port) => `http://127.0.0.1:${port}`), tokens }
  }

  async function isFelt({ urls, tokens }: { urls: string[]; tokens: Tokens }): Promise<void> {
    const [here = '', there = ''] = urls
    const [taken, kept] = [await tokens.issue({ ...HOUR, id: 'taken' }), await tokens.issue({ ...HOUR, id: 'kept' })]
    const late = (url: string, { token }: { token: string }): Promise<Response> =>
      ask(`${url}/v1/late`, { headers: { 'x-service-token': token } })
    for (const url of urls) expect((await late(url, taken)).status).to.equal(200)
    const revoked = await ask(`${here}/operator/subscriptions/revoke`, {
      method: 'POST',
      body: { id: 'taken' },
      headers: { authorization: `Bearer ${OPERATOR}`, accept: 'application/json' },
    })
    expect(revoked.status).to.equal(200)
    expect((await late(here, taken)).status).to.equal(402)
    let response = await late(there, taken)
    // Two seconds at most on a machine with nothing else to do; five are promised.
    for (let looks = 0; response.status === 200 && looks < 100; looks += 1) {
      await new Promise((wake) => setTimeout(wake, 50))
      response = await late(there, taken)
    }
    expect(response.status).to.equal(402)
    expect((await json(response))['code']).to.equal('token_invalid')
    for (const url of urls) expect((await late(url, kept)).status).to.equal(200)
  }

  it('is refused by the other within seconds if they share a data folder', async () => {
    const dataDir = folder()
    await isFelt(await openTwo(() => ({ DATA_DIR: dataDir })))
  })

  it('is refused by the other within seconds if they share a PostgreSQL database', async function () {
    if (!schema) {
      process.stdout.write('    (skipped: no PostgreSQL server answers)\n')
      this.skip()
    }
    const { url } = schema
    await isFelt(await openTwo(() => ({ DATA_DIR: folder(), DATABASE_URL: url })))
  })
})
