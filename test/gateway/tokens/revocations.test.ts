/** Revoked access tokens, within one process and between two real gateways that share a database. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { expect } from 'chai'
import { pino } from 'pino'
import { generatePrivateKey } from 'viem/accounts'
import { openDatabase } from '../../../gateway/stores/database.ts'
import { createTokens, type Tokens } from '../../../gateway/tokens/access-tokens.ts'
import { createKey } from '../../../gateway/tokens/key-set.ts'
import { createRevocations } from '../../../gateway/tokens/revocations.ts'
import { openSchema, type Schema } from '../../contracts/postgres.ts'
import { ask, json } from '../../support/agent.ts'
import { freePort, PAY_TO } from '../../support/gateway.ts'
import { startGateway, type Started } from '../../support/process.ts'
import { until } from '../../support/until.ts'

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
    await Promise.all(running.splice(0).map((process) => process.stop()))
  })
  after(async () => {
    await schema?.drop()
    for (const folder of folders) rmSync(folder, { recursive: true, force: true })
  })

  function folder(): string {
    const path = mkdtempSync(join(tmpdir(), 'tollgate-revoked-'))
    folders.push(path)
    return path
  }

  /** Starts two gateways with the same base URL and keys. Nothing settles, because tokens need no chain. */
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
      ports.map((port, nth) => startGateway(/is open at/, { ...environment, ...shared(nth), PORT: String(port) })),
    )
    running.push(...started)
    const tokens = await createTokens({ keys, dataDir: null, issuer: baseUrl, now: () => new Date() })
    return { urls: ports.map((port) => `http://127.0.0.1:${port}`), tokens }
  }

  /** Revokes a token at the first gateway and expects both to refuse it. */
  async function expectRevocation({ urls, tokens }: { urls: string[]; tokens: Tokens }): Promise<void> {
    const [here = '', there = ''] = urls
    const [lost, valid] = [await tokens.issue({ ...HOUR, id: 'lost' }), await tokens.issue({ ...HOUR, id: 'valid' })]
    const getLate = (url: string, { token }: { token: string }): Promise<Response> =>
      ask(`${url}/v1/late`, { headers: { 'x-service-token': token } })
    for (const url of urls) expect((await getLate(url, lost)).status).to.equal(200)
    const revoked = await ask(`${here}/operator/subscriptions/revoke`, {
      method: 'POST',
      body: { id: 'lost' },
      headers: { authorization: `Bearer ${OPERATOR}`, accept: 'application/json' },
    })
    expect(revoked.status).to.equal(200)
    expect((await getLate(here, lost)).status).to.equal(402)
    let response = await getLate(there, lost)
    // An idle machine takes at most two seconds; the promise is five.
    for (let attempts = 0; response.status === 200 && attempts < 100; attempts += 1) {
      await new Promise((wake) => setTimeout(wake, 50))
      response = await getLate(there, lost)
    }
    expect(response.status).to.equal(402)
    expect((await json(response))['code']).to.equal('token_invalid')
    for (const url of urls) expect((await getLate(url, valid)).status).to.equal(200)
  }

  it('is refused by the other within seconds if they share a data folder', async () => {
    const dataDir = folder()
    await expectRevocation(await openTwo(() => ({ DATA_DIR: dataDir })))
  })

  it('is refused by the other within seconds if they share a PostgreSQL database', async function () {
    if (!schema) {
      process.stdout.write('    (skipped: no PostgreSQL server answers)\n')
      this.skip()
    }
    const { url } = schema
    await expectRevocation(await openTwo(() => ({ DATA_DIR: folder(), DATABASE_URL: url })))
  })
})

describe('revoked access tokens', () => {
  it('are refused by other processes after their next read, and after a restart', async function () {
    this.timeout(5000)
    const db = openDatabase({ file: ':memory:' })
    const log = pino({ level: 'silent' })
    const [here, there] = [createRevocations(db, log), createRevocations(db, log, 50)]
    await there.start()
    await here.revoke('a', 'lost')
    await here.revoke('a', 'lost twice')
    expect([...here.ids]).to.deep.equal(['a'])
    await until(() => there.ids.has('a'))
    const later = createRevocations(db, log)
    await later.read()
    expect([...later.ids]).to.deep.equal(['a'])
    there.stop()
    await db.destroy()
  })

  it('stay refused while the database table cannot be read', async () => {
    const db = openDatabase({ file: ':memory:' })
    const warnings: string[] = []
    const log = { warn: (_: unknown, text: string) => void warnings.push(text) } as never
    const revocations = createRevocations(db, log, 5)
    await revocations.revoke('a', 'lost')
    await revocations.start()
    await db.schema.dropTable('revoked_tokens')
    await until(() => warnings.length > 0)
    expect(revocations.ids.has('a')).to.equal(true)
    revocations.stop()
    await db.destroy()
  })
})
