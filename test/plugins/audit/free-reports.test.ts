/** What free audits store: each address has its own places, and no address takes those of others. */
import { cpSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { expect } from 'chai'
import { openDatabase } from '../../../gateway/stores/database.ts'
import { buy, json } from '../../support/agent.ts'
import { openGateway, type TestGateway } from '../../support/gateway.ts'
import { makeDays, makeTrades, ROUND_TRIPS, tradeLine } from './audit-fixtures.ts'

const root = resolve(import.meta.dirname, '../../..')
const file = `${[ROUND_TRIPS, ...makeTrades(makeDays(60)).slice(0, 20).map(tradeLine)].join('\n')}\n`
const [VICTIM, ATTACKER, STRANGER] = ['198.51.100.1', '198.51.100.2', '198.51.100.3']
/** What an address may hold, and all addresses together. */
const [SHARE, PLACES] = [10, 10_000]

describe('the reports of free audits', function () {
  this.timeout(60_000)
  const folder = mkdtempSync(join(tmpdir(), 'free-reports-'))
  const environment = {
    CATALOG_DIR: join(folder, 'catalog'),
    PLUGIN_DIRS: join(root, 'plugins'),
    DATA_DIR: join(folder, 'data'),
    TRUSTED_PROXIES: '127.0.0.1',
  }
  let gateway: TestGateway
  const open = async (): Promise<void> => {
    gateway = await openGateway(environment, { inMemory: false })
  }
  before(async () => {
    mkdirSync(environment.CATALOG_DIR)
    for (const name of ['service', 'documents', 'audit', 'audit-pages', 'market', 'qc'])
      cpSync(join(root, 'catalog', `${name}.json`), join(environment.CATALOG_DIR, `${name}.json`))
    await open()
  })
  after(async () => {
    await gateway.close()
    rmSync(folder, { recursive: true })
  })

  const audit = (address: string): Promise<Response> =>
    fetch(`${gateway.url}/audit`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-forwarded-for': address },
      body: JSON.stringify({ file }),
    })
  const reportOf = async (address: string): Promise<string> => {
    const response = await audit(address)
    expect(response.status).to.equal(200)
    return String((await json(response))['report_url'])
  }
  const statusOf = async (path: string): Promise<number> => (await fetch(gateway.url + path)).status

  /** Stores reports as other addresses would, each the newest. */
  async function fill(count: number): Promise<void> {
    const db = openDatabase({ file: join(environment.DATA_DIR, 'sandbox-sample', 'products.sqlite') })
    const columns = Object.keys((await db('audit_reports').first()) as object)
    const expires = gateway.now().getTime() + 31 * 86_400_000
    const rows = Array.from({ length: count }, (_, at) => {
      const row = { rid: `of others ${at}`, created: 0, report: '{}', expires: expires + at, client: `other ${at}` }
      return Object.fromEntries(Object.entries(row).filter(([column]) => columns.includes(column)))
    })
    await db.batchInsert('audit_reports', rows, 100)
    await db.destroy()
  }

  it('make room for newer ones of their own address only', async () => {
    const victims = await reportOf(VICTIM)
    const attackers: string[] = []
    for (let at = 0; at < SHARE + 2; at += 1) attackers.push(await reportOf(ATTACKER))
    const statuses = await Promise.all(attackers.map(statusOf))
    expect(statuses).to.deep.equal([404, 404, ...Array<number>(SHARE).fill(200)])
    expect(await statusOf(victims)).to.equal(200)
  })

  it('stay when all places are taken, and more are refused before the work, except to buyers', async () => {
    const victims = await reportOf(VICTIM)
    await fill(PLACES)
    await gateway.close()
    await open()
    const refused = await audit(STRANGER)
    expect(refused.status).to.equal(503)
    expect(Number(refused.headers.get('retry-after'))).to.be.within(29 * 86_400, 30 * 86_400)
    const { code, message } = await json(refused)
    expect(code).to.equal('product_suspended')
    expect(message).to.match(/^No free report can be stored before 20.+Delete one of yours, or buy the audit/)
    expect(await statusOf(victims)).to.equal(200)
    // Whoever holds a full share replaces a report of its own.
    expect((await audit(ATTACKER)).status).to.equal(200)
    const bought = await buy(`${gateway.url}/v1/audit`, gateway.wallet, 2, { method: 'POST', body: { file } })
    expect(await statusOf(String((await json(bought))['report_url']))).to.equal(200)
  })

  it('are described where they are promised as they are kept', async () => {
    const kept = 'the newest 10 of each network address'
    const read = async (path: string): Promise<string> => (await fetch(gateway.url + path)).text()
    expect(await read('/audit-tool')).to.contain(`for 30 days, ${kept}`)
    expect(await read('/openapi.json')).to.contain(`for 30 days, ${kept}`)
    expect(await read('/report/AAAAAAAAAAAAAAAAAAAAAAAA')).to.contain(kept)
  })
})
