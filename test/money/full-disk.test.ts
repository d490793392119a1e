/** What a gateway does whose disk is full, read-only or broken, on real disks. */
import { execFileSync, spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { expect } from 'chai'
import { createLog } from '../../gateway/observe/log.ts'
import { openJournal } from '../../gateway/payments/journal/open-journal.ts'
import { JournalError, type PaymentRecord } from '../../gateway/payments/journal/journal.ts'
import { answerOf, INTENT, paymentIn, reservationOf, TRANSACTION } from '../contracts/journal-payments.ts'
import { openSchema } from '../contracts/postgres.ts'
import { ask, json, payment, send } from '../support/agent.ts'
import { newWallet, openGateway, type TestGateway, until } from '../support/gateway.ts'
import type { ScriptedTransfer } from '../support/settler.ts'
import { openFailingDisk, openSmallDisk, type SmallDisk } from '../support/small-disk.ts'

const root = resolve(import.meta.dirname, '../..')

describe('a gateway whose disk is full', function () {
  this.timeout(120_000)
  let disk: SmallDisk
  let shop: TestGateway
  /** On another disk. */
  let folder: string
  const echo = (): string => `${shop.url}/v1/echo/hello`
  const health = async (): Promise<Record<string, unknown>> => json(await ask(`${shop.url}/health`))

  before(async function () {
    disk = openSmallDisk(this)
    folder = mkdtempSync(join(tmpdir(), 'tollgate-full-'))
    const catalog = join(folder, 'catalog')
    cpSync(join(root, 'test/fixtures/shop/catalog'), catalog, { recursive: true })
    // With the routes that need no database: /health and the documents.
    cpSync(join(root, 'catalog/documents.json'), join(catalog, 'documents.json'))
    const environment = { DATA_DIR: disk.folder, CATALOG_DIR: catalog, DISK_LOW_MB: '8' }
    shop = await openGateway(environment, { inMemory: false, log: createLog('silent'), alarmSeconds: 0.2 })
  })
  afterEach(() => disk?.empty())
  after(async () => {
    await shop?.close()
    disk?.close()
    rmSync(folder, { recursive: true, force: true })
  })

  /** Sends a payment until it is answered otherwise than by a journal that cannot be written. */
  async function untilTaken(header: string): Promise<Response> {
    let response = await send(echo(), header)
    await until(async () => {
      if (response.status !== 503) return true
      response = await send(echo(), header)
      return response.status !== 503
    })
    return response
  }

  it('refuses purchases with 503 and charges nothing, and takes the same payment when there is room', async () => {
    const header = await payment(echo(), shop.wallet)
    disk.fill()
    let refused = await send(echo(), header)
    // What the log of the database had room for is used up by then.
    for (let tries = 0; refused.status === 200 && tries < 50; tries++)
      refused = await send(echo(), await payment(echo(), newWallet()))
    expect(refused.status).to.equal(503)
    expect(refused.headers.get('retry-after')).to.equal('2')
    const body = await json(refused)
    expect(body).to.include({ code: 'payment_not_recorded', retry: 'same_payment' })
    expect(body['message']).to.contain('Nothing was charged')
    const sold = shop.settler.transfers.length
    disk.empty()
    const taken = await untilTaken(header)
    expect(taken.status).to.equal(200)
    expect(shop.settler.transfers.length - sold).to.be.at.most(1)
    expect(
      shop.settler.transfers.filter(({ from }) => from.toLowerCase() === shop.wallet.address.toLowerCase()),
    ).to.have.length(1)
  })

  it('goes on with free routes, bought answers and access tokens, and says in /health that it takes no payment', async () => {
    const named = { headers: { 'idempotency-key': 'bought-before-it-was-full' } }
    const header = await payment(echo(), shop.wallet)
    const answer = await (await send(echo(), header, 2, named)).text()
    const pass = `${shop.url}/v1/passes/late/1h`
    const bought = await send(pass, await payment(pass, shop.wallet, 2, { method: 'POST' }), 2, { method: 'POST' })
    const { token } = (await json(bought)) as { token: string }
    disk.fill()
    await until(async () => {
      await send(echo(), await payment(echo(), newWallet()))
      return (await health())['status'] === 'degraded'
    })
    expect((await health())['journal']).to.deep.include({ ready: false })
    expect(JSON.stringify(await health())).not.to.contain(disk.folder)
    expect((await ask(`${shop.url}/pricing.json`)).status).to.equal(200)
    expect(await (await send(echo(), header, 2, named)).text()).to.equal(answer)
    expect((await ask(`${shop.url}/v1/late`, { headers: { 'x-service-token': token } })).status).to.equal(200)
    const settings = { PATH: process.env['PATH'], DATA_DIR: disk.folder }
    const backup = spawnSync(process.execPath, ['scripts/tollgate.mjs', 'backup', '--to', join(folder, 'backups')], {
      cwd: root,
      env: settings,
      encoding: 'utf8',
    })
    expect(backup.stdout, backup.stderr).to.contain('Wrote ')
    disk.empty()
    await until(async () => (await health())['status'] === 'ok')
  })

  for (const step of ['answered and sent', 'settled'] as const)
    it(`charges once and delivers once if the disk fills up before a payment is recorded as ${step}`, async () => {
      const wallet = newWallet()
      const header = await payment(echo(), wallet)
      const sold = shop.settler.transfers.length
      const { journal } = shop.gateway
      const { submitted, settled } = journal
      let isFull = false
      const fillOnce = async (): Promise<void> => {
        if (isFull) return
        isFull = true
        disk.fill()
        await fillLog()
      }
      if (step === 'settled')
        journal.settled = async (...args) => {
          await fillOnce()
          return settled(...args)
        }
      else
        journal.submitted = async (...args) => {
          await fillOnce()
          return submitted(...args)
        }
      const response = await send(echo(), header)
      Object.assign(journal, { submitted, settled })
      expect(response.status).to.equal(503)
      const { code } = await json(response)
      expect(code).to.equal(step === 'settled' ? 'settlement_pending' : 'payment_not_recorded')
      expect(shop.settler.transfers.length - sold).to.equal(step === 'settled' ? 1 : 0)
      disk.empty()
      const taken = await untilTaken(header)
      expect(taken.status).to.equal(200)
      expect(shop.settler.transfers.length - sold).to.equal(1)
    })

  it('does not call a payment uncharged that others may have settled after it was released', async () => {
    const wallet = newWallet()
    const header = await payment(echo(), wallet)
    shop.settler.next('unsent')
    expect((await send(echo(), header)).status).to.equal(402)
    const [{ key, payTo: to, amount }] = (await shop.gateway.journal.list({ payer: wallet.address, limit: 1 })) as [
      PaymentRecord,
    ]
    const stranger = { key, from: wallet.address, to, amount, transaction: TRANSACTION }
    ;(shop.settler.transfers as ScriptedTransfer[]).push(stranger)
    disk.fill()
    await fillLog()
    const response = await send(echo(), header)
    expect([response.status, (await json(response))['code']]).to.deep.equal([503, 'ledger_unavailable'])
    disk.empty()
    const owed = await untilTaken(header)
    expect([owed.status, (await json(owed))['code']]).to.deep.equal([402, 'payment_owed'])
  })

  /** Writes until the journal has no room left. */
  async function fillLog(): Promise<void> {
    for (let tries = 0; tries < 1_000 && shop.gateway.journal.health().ready; tries++)
      await shop.gateway.journal.reserve(reservationOf()).catch(() => {})
  }
})

describe('a gateway whose disk becomes read-only while it serves', function () {
  this.timeout(120_000)

  it('refuses purchases uncharged, and takes the same payment after the disk was repaired and it was started again', async function () {
    const disk = openFailingDisk(this)
    const environment = { DATA_DIR: disk.folder }
    const overrides = { inMemory: false, log: createLog('silent') }
    let shop = await openGateway(environment, overrides)
    try {
      const echo = (): string => `${shop.url}/v1/echo/readonly`
      const before = await payment(echo(), shop.wallet)
      const sold = await send(echo(), before)
      expect(sold.status).to.equal(200)
      const header = await payment(echo(), newWallet())
      disk.fail()
      const refused = await send(echo(), header)
      expect(refused.status).to.equal(503)
      expect(await json(refused)).to.include({ code: 'payment_not_recorded', retry: 'same_payment' })
      expect(shop.gateway.journal.health().ready).to.equal(false)
      expect(shop.settler.transfers).to.have.length(1)
      expect((await send(echo(), before)).status).to.equal(200)
      await shop.gateway.close()
      disk.repair()
      shop = await openGateway(environment, overrides)
      expect((await send(echo(), header)).status).to.equal(200)
      expect(shop.settler.transfers).to.have.length(1)
    } finally {
      await shop.gateway.close().catch(() => {})
      disk.close()
    }
  })
})

describe('the journal', function () {
  this.timeout(60_000)
  let folder: string
  beforeEach(() => (folder = mkdtempSync(join(tmpdir(), 'tollgate-faults-'))))
  afterEach(() => rmSync(folder, { recursive: true, force: true }))

  it('says of a full disk that certainly nothing was written, and can be written again when there is room', async function () {
    const disk = openSmallDisk(this, 2)
    let recovered = 0
    const journal = await openJournal({
      file: join(disk.folder, 'journal.sqlite'),
      onRecovered: () => (recovered += 1),
    })
    try {
      disk.fill()
      let failure: unknown = null
      for (let tries = 0; failure === null && tries < 1_000; tries++)
        await journal.reserve(reservationOf()).catch((error: unknown) => (failure = error))
      expect(failure).to.be.instanceOf(JournalError)
      expect(journal.health()).to.deep.include({ ready: false })
      disk.empty()
      await until(() => journal.health().ready)
      expect(recovered).to.equal(1)
      expect((await journal.reserve(reservationOf())).reserved).to.equal(true)
    } finally {
      await journal.close()
      disk.close()
    }
  })

  it('cannot be written while PostgreSQL is read-only or gone, and can when it is back', async function () {
    const schema = await openSchema()
    if (!schema) this.skip()
    const role = `tollgate_${randomBytes(4).toString('hex')}`
    // Sessions that begin from now on are read-only, as those of a server whose disk is full and that was failed over.
    const restart = async (mode: 'on' | 'off'): Promise<void> => {
      await schema.sql(`ALTER ROLE ${role} SET default_transaction_read_only = ${mode}`)
      await schema.sql(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '${role}'`)
    }
    await schema.sql(`CREATE ROLE ${role} LOGIN SUPERUSER`)
    const url = new URL(schema.url)
    url.username = role
    const journal = await openJournal({ url: url.href })
    try {
      await restart('on')
      let failure: unknown = null
      await until(async () => {
        failure = await journal.reserve(reservationOf()).catch((error: unknown) => error)
        return failure instanceof JournalError && failure.message.includes('25006')
      })
      expect(journal.health()).to.deep.include({ ready: false })
      await restart('off')
      await until(() => journal.health().ready)
      expect((await journal.reserve(reservationOf())).reserved).to.equal(true)
    } finally {
      await journal.close()
      await schema.sql(`DROP OWNED BY ${role} CASCADE; DROP ROLE ${role}`)
      await schema.drop()
    }
  })

  it('says of a disk that reports errors that it cannot know what was written', async () => {
    const journal = await openJournal({ file: join(folder, 'journal.sqlite') })
    const limit = (bytes: string): void =>
      void execFileSync('prlimit', ['--pid', String(process.pid), `--fsize=${bytes}:`])
    try {
      const [key, attempt] = [await paymentIn(journal, 'reserved'), 1]
      limit('1')
      const failure = await journal
        .submitted(key, attempt, INTENT, { answer: answerOf('a'.repeat(10_000)) })
        .catch((error: unknown) => error)
      limit('unlimited')
      expect(failure).to.be.instanceOf(JournalError).with.property('wroteNothing', false)
      await until(() => journal.health().ready)
      expect(await journal.submitted(key, attempt, INTENT, { answer: answerOf('b') })).to.equal(true)
    } finally {
      limit('unlimited')
      await journal.close()
    }
  })
})
