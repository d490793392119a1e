/** Revoked access tokens, within one process and between real processes that share a database. */
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { type IncomingMessage, request } from 'node:http'
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
import { ask } from '../../support/agent.ts'
import { freePort, PAY_TO } from '../../support/gateway.ts'
import { startGateway, type Started } from '../../support/process.ts'
import { msUntil, until } from '../../support/until.ts'

const fixtures = resolve(import.meta.dirname, '../../fixtures/shop')
const OPERATOR = 'an-operator-token-of-a-test'
const HOUR = { subject: PAY_TO, plan: 'late-1h', tier: 'live', durationSeconds: 3600 }

/** Calls with a token on a connection of its own, so that workers take turns. */
async function callWith(token: string, url: string): Promise<{ readonly status: number; readonly code: unknown }> {
  const sent = request(`${url}/v1/late`, { agent: false, headers: { 'x-service-token': token } })
  sent.end()
  const [answer] = (await once(sent, 'response')) as [IncomingMessage]
  let text = ''
  for await (const chunk of answer.setEncoding('utf8')) text += chunk
  return { status: answer.statusCode ?? 0, code: (JSON.parse(text) as { code?: string }).code }
}

describe('a token that is revoked at one of two processes', function () {
  this.timeout(60_000)
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

  /** Starts a gateway for each environment, all with the same base URL and keys. Nothing settles, because tokens need no chain. */
  async function open(
    environments: readonly Record<string, string>[],
    args: readonly string[] = [],
  ): Promise<{ urls: string[]; tokens: Tokens }> {
    const ports = await Promise.all(environments.map(() => freePort()))
    const baseUrl = `http://127.0.0.1:${ports[0]}`
    const keys = JSON.stringify({ keys: [await createKey()] })
    const environment = {
      NETWORK: 'base-sepolia',
      PAY_TO,
      SETTLE_RPC_URL: `http://127.0.0.1:${await freePort()}`,
      SETTLE_KEY: `${generatePrivateKey()} ${generatePrivateKey()}`,
      BASE_URL: baseUrl,
      TOKEN_KEYS: keys,
      OPERATOR_TOKEN: OPERATOR,
      CATALOG_DIR: join(fixtures, 'catalog'),
      PLUGIN_DIRS: join(fixtures, 'plugins'),
      LOG_LEVEL: 'silent',
    }
    const start = (own: Record<string, string>, nth: number): Promise<Started> =>
      startGateway(/is open at/, { ...environment, ...own, PORT: String(ports[nth]) }, undefined, args)
    running.push(...(await Promise.all(environments.map(start))))
    const tokens = await createTokens({ keys, dataDir: null, issuer: baseUrl, now: () => new Date() })
    return { urls: ports.map((port) => `http://127.0.0.1:${port}`), tokens }
  }

  /** Revokes a token at the first address and expects that all refuse every call with it that is sent a second later. */
  async function expectRevocation({ urls, tokens }: { urls: string[]; tokens: Tokens }): Promise<void> {
    const [{ token: lost }, { token: valid }] = [
      await tokens.issue({ ...HOUR, id: 'lost' }),
      await tokens.issue({ ...HOUR, id: 'valid' }),
    ]
    // Two calls at an address reach both workers, if there are two.
    const callAll = (token: string) => Promise.all([...urls, ...urls].map((url) => callWith(token, url)))
    // What verifies a token may remember that it did.
    for (let round = 0; round < 3; round++)
      expect((await callAll(lost)).map(({ status }) => status)).to.deep.equal(urls.flatMap(() => [200, 200]))
    const revoked = await ask(`${urls[0]}/operator/subscriptions/revoke`, {
      method: 'POST',
      body: { id: 'lost' },
      headers: { authorization: `Bearer ${OPERATOR}`, accept: 'application/json' },
    })
    expect(revoked.status).to.equal(200)
    const ms = await msUntil(async () => (await callAll(lost)).every(({ status }) => status === 402))
    expect(ms, 'milliseconds until all refuse it').to.be.lessThan(1_000)
    for (const { code } of await callAll(lost)) expect(code).to.equal('token_invalid')
    for (const { status } of await callAll(valid)) expect(status).to.equal(200)
  }

  it('is refused by the other within a second if they are workers of one gateway, on SQLite', async () => {
    await expectRevocation(await open([{ DATA_DIR: folder() }], ['--workers', '2']))
  })

  it('is refused by the other within a second if they are gateways that share a data folder', async () => {
    const dataDir = folder()
    await expectRevocation(await open([{ DATA_DIR: dataDir }, { DATA_DIR: dataDir }]))
  })

  it('is refused by the other within a second if they are gateways that share a PostgreSQL database', async function () {
    if (!schema) {
      process.stdout.write('    (skipped: no PostgreSQL server answers)\n')
      this.skip()
    }
    const { url } = schema
    await expectRevocation(
      await open([
        { DATA_DIR: folder(), DATABASE_URL: url },
        { DATA_DIR: folder(), DATABASE_URL: url },
      ]),
    )
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
    await there.stop()
    await db.destroy()
  })

  it('stay revoked if the operator revoked them too, whatever becomes of their payment', async () => {
    const db = openDatabase({ file: ':memory:' })
    const revocations = createRevocations(db, pino({ level: 'silent' }))
    const [reversed, mayEnd] = ['its payment was reversed', { mayEnd: true }]
    for (const id of ['restored', 'after', 'before']) {
      if (id === 'before') await revocations.revoke(id, 'by the operator')
      await revocations.revoke(id, reversed, mayEnd)
      if (id === 'after') await revocations.revoke(id, 'by the operator')
      // Each look at a reversed payment revokes its token again.
      await revocations.revoke(id, reversed, mayEnd)
      await revocations.restore(id, reversed)
    }
    await revocations.read()
    expect([...revocations.ids]).to.have.members(['after', 'before'])
    await db.destroy()
  })

  it('are read whichever process wrote them, if its clock is some seconds behind', async () => {
    const db = openDatabase({ file: ':memory:' })
    const revocations = createRevocations(db, pino({ level: 'silent' }))
    await revocations.revoke('newest', 'lost')
    await revocations.read()
    await db('revoked_tokens').insert({ id: 'behind', at: Date.now() - 30_000, reason: 'lost' })
    await revocations.read()
    expect([...revocations.ids]).to.have.members(['newest', 'behind'])
    await db.destroy()
  })

  it('are found by an index, however many there are', async () => {
    const db = openDatabase({ file: ':memory:' })
    const revocations = createRevocations(db, pino({ level: 'silent' }))
    await revocations.read()
    const statements: { sql: string; bindings: readonly (number | string)[] }[] = []
    db.on('query', (query: (typeof statements)[number]) => statements.push(query))
    await revocations.read()
    const [read] = statements
    const plan = (await db.raw(`explain query plan ${read?.sql}`, [...(read?.bindings ?? [])])) as { detail: string }[]
    expect(plan.map(({ detail }) => detail).join()).to.match(/SEARCH revoked_tokens USING .*INDEX .*at/)
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
    await revocations.stop()
    await db.destroy()
  })
})
