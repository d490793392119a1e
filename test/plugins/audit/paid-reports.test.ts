/** What paid audits store: a report stays once its call was charged, and goes if it never will be. */
import { once } from 'node:events'
import { cpSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { expect } from 'chai'
import type { JobTimers } from '../../../gateway/products/jobs.ts'
import { openDatabase, type OpenDatabase } from '../../../gateway/stores/database.ts'
import { json, payment, send } from '../../support/agent.ts'
import { nextRequest, openGateway, type TestGateway, until } from '../../support/gateway.ts'
import { makeDays, makeTrades, ROUND_TRIPS, tradeLine } from './audit-fixtures.ts'

const root = resolve(import.meta.dirname, '../../..')
const file = `${[ROUND_TRIPS, ...makeTrades(makeDays(60)).slice(0, 20).map(tradeLine)].join('\n')}\n`
const AUDIT = { method: 'POST', body: { file } }
/** Longer than any payment is valid. */
const TWO_HOURS = 7_200
const HUNDRED_DAYS = 100 * 86_400

describe('the reports of paid audits', function () {
  this.timeout(60_000)
  let folder: string
  const waiting = new Set<() => Promise<void>>()
  /** Jobs run when the test says so. */
  const jobTimers: JobTimers = {
    now: () => performance.now(),
    after(_ms, run) {
      waiting.add(run)
      return { cancel: () => waiting.delete(run) }
    },
  }
  let gateway: TestGateway
  let database: OpenDatabase
  let url: string

  // Wallets sign by the real clock, so a test may move that of its gateway only at its end.
  beforeEach(async () => {
    waiting.clear()
    folder = mkdtempSync(join(tmpdir(), 'paid-reports-'))
    const environment = {
      CATALOG_DIR: join(folder, 'catalog'),
      PLUGIN_DIRS: join(root, 'plugins'),
      DATA_DIR: join(folder, 'data'),
    }
    mkdirSync(environment.CATALOG_DIR)
    for (const name of ['service', 'documents', 'audit', 'audit-pages', 'market', 'qc'])
      cpSync(join(root, 'catalog', `${name}.json`), join(environment.CATALOG_DIR, `${name}.json`))
    gateway = await openGateway(environment, { inMemory: false, jobTimers, reconcileSeconds: 0.2 })
    url = `${gateway.url}/v1/audit`
    database = openDatabase({ file: join(environment.DATA_DIR, 'sandbox-sample', 'products.sqlite') })
  })
  afterEach(async () => {
    await database.destroy()
    await gateway.close()
    rmSync(folder, { recursive: true })
  })

  const runJobs = async (): Promise<void> => {
    const due = [...waiting]
    waiting.clear()
    for (const run of due) await run()
  }
  const sign = (): Promise<string> => payment(url, gateway.wallet, 2, AUDIT)
  const stored = async (): Promise<number> => (await database('audit_reports').select('rid')).length
  const reportOf = async (answer: Response): Promise<string> => {
    expect(answer.status).to.equal(200)
    return String((await json(answer))['report_url'])
  }
  const buyReport = async (): Promise<string> => reportOf(await send(url, await sign(), 2, AUDIT))
  const statusOf = async (path: string): Promise<number> => (await fetch(gateway.url + path)).status

  /** Hangs up when the report is made and before its payment is sent. Returns the payment. */
  async function leave(): Promise<string> {
    const { settler } = gateway
    const settle = settler.settle.bind(settler)
    const header = await sign()
    const leaving = new AbortController()
    const closed = nextRequest(gateway).then(({ response }) => once(response, 'close'))
    settler.settle = async (_payment, _requirements, { record }) => {
      leaving.abort()
      await closed
      await record({ kind: 'chain' })
      return { state: 'pending', transaction: null }
    }
    const before = await stored()
    await send(url, header, 2, { ...AUDIT, signal: leaving.signal }).catch(() => null)
    const isOpen = async () => (await gateway.gateway.journal.openPayments()).some(({ state }) => state === 'answered')
    await until(isOpen)
    settler.settle = settle
    expect(await stored(), 'the report was made').to.equal(before + 1)
    return header
  }

  it('go when the buyer left before paying and did not come back', async () => {
    const bought = await buyReport()
    const before = await stored()
    for (let nth = 0; nth < 3; nth += 1) await leave()
    await runJobs()
    expect(await stored(), 'the buyer may still come back').to.equal(before + 3)
    gateway.advance(TWO_HOURS)
    await until(async () => (await gateway.gateway.journal.openPayments()).length === 0)
    await runJobs()
    expect(await stored()).to.equal(before)
    expect(await statusOf(bought)).to.equal(200)
  })

  it('go when the settlement was refused', async () => {
    const before = await stored()
    gateway.settler.next('revert')
    expect((await send(url, await sign(), 2, AUDIT)).status).to.equal(402)
    expect(await stored()).to.equal(before + 1)
    gateway.advance(TWO_HOURS)
    await runJobs()
    expect(await stored()).to.equal(before)
  })

  it('stay until it is known what became of the payment, and then for good', async () => {
    gateway.settler.next('timeout')
    const status = gateway.settler.status.bind(gateway.settler)
    gateway.settler.status = async () => ({ state: 'pending', transaction: null })
    const header = await sign()
    expect((await send(url, header, 2, AUDIT)).status).to.equal(503)
    const before = await stored()
    gateway.advance(TWO_HOURS)
    await runJobs()
    expect(await stored(), 'nobody knows yet').to.equal(before)
    gateway.settler.status = status
    await until(async () => (await gateway.gateway.journal.openPayments()).length === 0)
    const report = await reportOf(await send(url, header, 2, AUDIT))
    await runJobs()
    gateway.advance(HUNDRED_DAYS)
    await runJobs()
    expect(await statusOf(report)).to.equal(200)
  })

  it('stay when the buyer left and came back with the same payment', async () => {
    const header = await leave()
    await runJobs()
    const report = await reportOf(await send(url, header, 2, AUDIT))
    expect(await reportOf(await send(url, header, 2, AUDIT)), 'once more').to.equal(report)
    await runJobs()
    gateway.advance(HUNDRED_DAYS)
    await runJobs()
    expect(await statusOf(report)).to.equal(200)
  })

  it('are not displaced by others of the same wallet, paid or not', async function () {
    this.timeout(300_000)
    const first = await buyReport()
    for (let nth = 0; nth < 220; nth += 1) await buyReport()
    await runJobs()
    expect(await statusOf(first)).to.equal(200)
  })

  it('are described where they are promised as they are kept', async () => {
    const read = async (path: string): Promise<string> => (await fetch(gateway.url + path)).text()
    expect(await read('/openapi.json')).to.contain('The report is kept at report_url until it is deleted; the ledger')
    expect(await read('/report/AAAAAAAAAAAAAAAAAAAAAAAA')).to.contain('paid ones until they are deleted')
  })
})
