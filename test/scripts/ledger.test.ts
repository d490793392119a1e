import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { expect } from 'chai'
import { openJournal } from '../../gateway/payments/journal/open-journal.ts'
import type { Journal } from '../../gateway/payments/journal/journal.ts'
import { connect } from '../../gateway/payments/journal/sqlite-connection.ts'
import { createRpc } from '../../gateway/methods/exact-evm/nodes/rpc.ts'
import { mintData } from '../../gateway/sandbox/contracts.ts'
import { LedgerError, readCommand } from '../../scripts/ledger-arguments.ts'
import { paymentIn, reservationOf, TRANSACTION } from '../contracts/journal-payments.ts'
import { openSchema } from '../contracts/postgres.ts'
import { buy } from '../support/agent.ts'
import { openSandboxGateway, SHOP } from '../support/sandbox.ts'

const root = resolve(import.meta.dirname, '../..')

/** Sends money to the seller that no sale explains. */
const DONOR = '0x00000000000000000000000000000000000fa0ce'
/** The test's own clock stands in a month that is not over, whenever the test runs. */
const MONTH = '2099-01'
const now = (): Date => new Date(`${MONTH}-15T12:00:00Z`)

interface CommandResult {
  readonly status: number | null
  readonly stdout: string
  readonly stderr: string
}

/** Runs the command in a process of its own, as beside a running gateway. */
function ledger(environment: Readonly<Record<string, string>>, ...args: readonly string[]): Promise<CommandResult> {
  const child = spawn(process.execPath, [join(root, 'scripts/tollgate.mjs'), 'ledger', ...args], {
    cwd: root,
    env: { PATH: process.env['PATH'], ...environment },
  })
  let [stdout, stderr] = ['', '']
  child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString()))
  child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()))
  return new Promise((done) => child.once('close', (status) => done({ status, stdout, stderr })))
}

const stores: Readonly<
  Record<
    string,
    () => Promise<{
      env: Record<string, string>
      journal: Journal
      sql(text: string): Promise<unknown>
      drop(): Promise<void>
    } | null>
  >
> = {
  async SQLite() {
    const dataDir = mkdtempSync(join(tmpdir(), 'tollgate-ledger-'))
    const file = join(dataDir, 'sandbox-sample/journal.sqlite')
    const journal = await openJournal({ file, now })
    const sql = async (text: string): Promise<void> => {
      const connection = await connect(file, 'write')
      await connection.exec(text)
      await connection.close()
    }
    const drop = async (): Promise<void> => {
      await journal.close()
      rmSync(dataDir, { recursive: true })
    }
    return { env: { DATA_DIR: dataDir }, journal, sql, drop }
  },
  async PostgreSQL() {
    const schema = await openSchema()
    if (!schema) return null
    const journal = await openJournal({ url: schema.url, now })
    const drop = async (): Promise<void> => {
      await journal.close()
      await schema.drop()
    }
    return { env: { DATABASE_URL: schema.url }, journal, sql: schema.sql, drop }
  },
}

for (const [name, open] of Object.entries(stores))
  describe(`npm run ledger on ${name}, while a gateway uses the same journal,`, function () {
    this.timeout(180_000)
    let store: NonNullable<Awaited<ReturnType<typeof open>>>
    const run = (...args: readonly string[]): Promise<CommandResult> => ledger(store.env, ...args)

    before(async function () {
      const opened = await open()
      if (!opened) this.skip()
      store = opened
      await paymentIn(store.journal, 'settled', reservationOf({ amount: 5_000n }))
    })
    after(() => store?.drop())

    it('exports the sales of a month with the same bytes each time', async () => {
      const [csv, repeated, json, old] = await Promise.all([
        run('export', '--month', MONTH),
        run('export', '--month', MONTH, '--format', 'csv'),
        run('export', '--month', MONTH, '--format', 'json'),
        run('export', '--month', '2020-01'),
      ])
      expect(csv.stdout.split('\r\n')).to.have.length(3)
      expect(csv.stdout).to.equal(repeated.stdout)
      expect(csv.stderr).to.contain('is not over')
      const { totals } = JSON.parse(json.stdout) as { totals: { amount: string }[] }
      expect(totals.map(({ amount }) => amount)).to.deep.equal(['0.005000'])
      expect(old.stderr, 'a month that is over').to.equal('')
    })

    it('lists a debt, marks it as repaid, and refuses to mark it twice', async () => {
      await paymentIn(store.journal, 'owed', reservationOf({ amount: 2_000_000n }))
      const [text, json] = await Promise.all([run('owed'), run('owed', '--format', 'json')])
      expect(text.stdout).to.contain('1 owed, 2.000000 USDC').and.to.contain(TRANSACTION)
      expect(JSON.parse(json.stdout)).to.deep.include({ amount: '2.000000', amount_atomic: '2000000' })
      const by = `0x${'5b'.repeat(32)}`
      const repaid = await run('mark-repaid', '--tx', TRANSACTION, '--by', by)
      expect(repaid).to.include({ status: 0, stderr: '' })
      expect(repaid.stdout).to.contain('2.000000 USDC').and.to.contain(by).and.to.contain('Nothing was sent')
      const [owed, refused] = await Promise.all([run('owed'), run('mark-repaid', '--tx', TRANSACTION)])
      expect(owed.stdout).to.equal('Nothing is owed.\n')
      expect(refused).to.include({ status: 1, stdout: '' })
      expect(refused.stderr).to.contain('was repaid on')
      // The command recorded the repayment by the real clock.
      const [, repaidIn = ''] = /was repaid on (\d{4}-\d\d)/.exec(refused.stderr) ?? []
      expect((await run('export', '--month', repaidIn)).stdout).to.match(new RegExp(`,repayment,2\\.000000,.*${by}`))
    })

    it('lists a debt of which nothing says how it ended, until the operator does, and books nothing for that', async () => {
      const key = await paymentIn(store.journal, 'owed', reservationOf({ amount: 3_000_000n }))
      await store.journal.repaid(key, 'a reorganisation took the payment back')
      await store.sql(`UPDATE payments SET ending = 'unknown' WHERE key = '${key}'`)
      const [text, json, before] = await Promise.all([
        run('owed'),
        run('owed', '--format', 'json'),
        run('export', '--month', MONTH),
      ])
      expect(text.stdout).to.contain('Nothing is owed.').and.to.contain('1 unclear').and.to.contain('3.000000 USDC')
      const listed = JSON.parse(json.stdout) as { debts: object[]; unclear: { payment: string }[] }
      expect([listed.debts, listed.unclear.map(({ payment }) => payment)]).to.deep.equal([[], [key]])
      expect((await run('decide', '--tx', `0x${'0'.repeat(64)}`, '--as', 'repaid')).stderr).to.contain(
        'Nothing is unclear',
      )
      const decided = await run('decide', '--tx', TRANSACTION, '--as', 'repaid')
      expect(decided).to.include({ status: 0, stderr: '' })
      expect(decided.stdout).to.contain('3.000000 USDC').and.to.contain('Nothing was sent')
      const [owed, after] = await Promise.all([run('owed'), run('export', '--month', MONTH)])
      expect(owed.stdout).to.equal('Nothing is owed.\n')
      expect(after.stdout).to.equal(before.stdout)
      expect(await store.journal.find(key)).to.include({ state: 'owed', ending: 'repaid' })
    })
  })

describe('npm run ledger', function () {
  this.timeout(180_000)

  it('compares the journal with the chain beside a running gateway, and exits with 1 if a transfer needs attention', async () => {
    const shop = await openSandboxGateway(SHOP)
    const { sandbox, gateway, url } = shop
    const run = (...args: readonly string[]): Promise<CommandResult> =>
      ledger({ DATA_DIR: gateway.config.dataRoot }, ...args)
    expect((await run('reconcile')).stderr).to.contain('There is no sandbox at')
    await sandbox.describe(url)
    await buy(`${url}/v1/echo/a`, shop.buyer)
    const matching = await run('reconcile')
    expect(matching).to.include({ status: 0, stderr: '' })
    expect(matching.stdout).to.match(/^matched +1$/m)
    const rpc = createRpc(sandbox.rpcUrl)
    const { network, payTo } = sandbox
    await rpc.call('anvil_setBalance', DONOR, '0x56bc75e2d63100000')
    await rpc.call('anvil_impersonateAccount', DONOR)
    const donation = { from: DONOR, to: network.asset, data: mintData(payTo, 123n), gas: '0x30d40' }
    await rpc.call('eth_sendTransaction', donation)
    const differing = await run('reconcile', '--format', 'json')
    expect(differing.status).to.equal(1)
    const { comparison, rows } = JSON.parse(differing.stdout) as { comparison: { buckets: object }; rows: object[] }
    expect(comparison.buckets).to.include({ matched: 1, unknown: 1, missing: 0 })
    expect(rows).to.have.length(1)
    expect((await run('reconcile')).stdout).to.contain('unknown  0.000123 USDC from')
    await shop.close()
  })

  it('prints its usage, and explains a missing ledger', async () => {
    const nowhere = join(tmpdir(), 'tollgate-there-is-no-ledger')
    const [help, missing] = await Promise.all([ledger({}, '--help'), ledger({ DATA_DIR: nowhere }, 'owed')])
    expect(help).to.include({ status: 0, stderr: '' })
    for (const command of ['owed', 'mark-repaid', 'decide', 'export', 'reconcile'])
      expect(help.stdout).to.contain(command)
    expect(missing).to.include({ status: 1, stdout: '' })
    expect(missing.stderr).to.match(
      /sandbox-sample.journal\.sqlite does not exist\. Start the gateway first, .*DATA_DIR.*\n$/,
    )
  })

  const hash = `0x${'5b'.repeat(32)}`
  const wrong: readonly (readonly [line: string, message: string])[] = [
    ['', 'Name a command'],
    ['pay-out', 'pay-out is not a command'],
    ['export', 'Name the month'],
    ['export --month 2026-13', '"2026-13" is not a month'],
    ['export --month 2026-11 --format xml', 'csv or json, not "xml"'],
    ['owed --month 2026-11', 'owed does not take --month'],
    ['owed now', 'now: unknown argument'],
    ['mark-repaid', 'Name the transaction'],
    ['mark-repaid --tx abc', 'not "abc"'],
    [`mark-repaid --tx ${hash} --by ${hash}`, 'not the settlement'],
    [`mark-repaid --txn ${hash}`, '--txn'],
    [`decide --tx ${hash}`, '--as withdrawn'],
    [`decide --tx ${hash} --as unknown`, 'repaid or withdrawn, not "unknown"'],
  ]
  for (const [line, message] of wrong)
    it(`refuses "${line.replaceAll(hash, '0x5b…')}" and explains why`, () => {
      expect(() => readCommand(line.split(' ').filter(Boolean))).to.throw(LedgerError, message)
    })
})
