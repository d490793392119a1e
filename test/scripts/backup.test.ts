/** Runs `npm run backup` and `npm run restore` as an operator does, on gateways that settle on a local chain. */
import { spawn } from 'node:child_process'
import {
  appendFileSync,
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { expect } from 'chai'
import type { LocalAccount } from 'viem'
import type { Hex } from '../../gateway/config/networks.ts'
import { openJournal } from '../../gateway/payments/journal/open-journal.ts'
import type { Manifest } from '../../scripts/backup/manifest.ts'
import { openSchema } from '../contracts/postgres.ts'
import { ask, json, payment, send } from '../support/agent.ts'
import { startChain, type TestChain } from '../support/chain.ts'
import { freePort, newWallet, openGateway, type TestGateway, until } from '../support/gateway.ts'
import { newBuyer, newSettleKey } from '../support/payments.ts'

const root = resolve(import.meta.dirname, '../..')
const PRICE = 5_000n
const OPERATOR_TOKEN = 'the-operator-of-this-test'

interface CommandResult {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

/** Runs a script in a process of its own, as beside a gateway. */
function run(
  script: string,
  environment: Readonly<Record<string, string>>,
  ...args: readonly string[]
): Promise<CommandResult> {
  const child = spawn(process.execPath, [join(root, 'scripts/tollgate.mjs'), script, ...args], {
    cwd: root,
    env: { PATH: process.env['PATH'], ...environment },
  })
  const output = { stdout: '', stderr: '' }
  child.stdout.on('data', (chunk: Buffer) => (output.stdout += chunk.toString()))
  child.stderr.on('data', (chunk: Buffer) => (output.stderr += chunk.toString()))
  return new Promise((done) => child.once('close', (code) => done({ code, ...output })))
}

const manifestOf = (folder: string): Manifest =>
  JSON.parse(readFileSync(join(folder, 'manifest.json'), 'utf8')) as Manifest

/** A payment of a buyer, with the name of its purchase, which proves later that it is his. */
interface Bought {
  readonly url: string
  readonly header: string
  readonly name: string
  readonly answer: string
}

/** A gateway that is opened again and again on the same data. */
class Operator {
  readonly chain: TestChain
  readonly folder = mkdtempSync(join(tmpdir(), 'tollgate-backup-'))
  readonly settings: Record<string, string>
  readonly buyer: LocalAccount
  gateway: TestGateway | null = null
  #bought = 0

  constructor(chain: TestChain, buyer: LocalAccount, settings: Readonly<Record<string, string>>) {
    this.chain = chain
    this.buyer = buyer
    this.settings = {
      DATA_DIR: join(this.folder, 'data'),
      NETWORK: 'base-sepolia',
      SETTLE_RPC_URL: chain.rpcUrl,
      OPERATOR_TOKEN,
      ...settings,
    }
  }

  get dataDir(): string {
    return join(this.folder, 'data/base-sepolia-sample')
  }

  async start(): Promise<string> {
    // Without a scripted settlement, the configuration says how payments are settled.
    const overrides = { settlement: undefined as never, inMemory: false, reconcileSeconds: 1 }
    this.gateway = await openGateway(this.settings, overrides)
    return this.gateway.url
  }

  async stop(): Promise<void> {
    await this.gateway?.close()
    this.gateway = null
  }

  /** Runs a command as a job that holds no key. The ledger is compared with the chain by an address and a node. */
  run(script: string, ...args: readonly string[]): Promise<CommandResult> {
    const { SETTLE_KEY, OPERATOR_TOKEN, SETTLE_RPC_URL: RPC_URL = '', PAY_TO = '', ...storage } = this.settings
    return run(script, script === 'ledger' ? { ...storage, PAY_TO, RPC_URL } : storage, ...args)
  }

  /** Makes a backup and returns its folder. */
  async backUp(...args: readonly string[]): Promise<string> {
    const to = join(this.folder, 'backups')
    const before = existsSync(to) ? readdirSync(to) : []
    // The folder is named after the second in which it is made.
    await until(() => !before.some((each) => each.includes(new Date().toISOString().slice(0, 19).replace(/[-:]/g, ''))))
    const { code, stdout, stderr } = await this.run('backup', '--to', to, ...args)
    expect(code, stderr + stdout).to.equal(0)
    const [name] = readdirSync(to).filter((each) => !before.includes(each))
    return join(to, name as string)
  }

  /** Buys an answer. */
  async buy(path = '/v1/echo/hello', method = 'GET'): Promise<Bought> {
    this.#bought += 1
    const name = `purchase-number-${this.#bought}`
    const url = `${this.gateway?.url}${path}`
    const header = await payment(url, this.buyer, 2, { method })
    const response = await send(url, header, 2, { method, headers: { 'idempotency-key': name } })
    expect(response.status).to.equal(200)
    return { url: path, header, name, answer: await response.text() }
  }

  /** Sends the same payment for the same purchase again. */
  again({ url, header, name }: Bought, method = 'GET'): Promise<Response> {
    return send(`${this.gateway?.url}${url}`, header, 2, { method, headers: { 'idempotency-key': name } })
  }

  received(): Promise<bigint> {
    return this.chain.balanceOf(this.settings['PAY_TO'] as Hex)
  }

  async close(): Promise<void> {
    await this.stop()
    rmSync(this.folder, { recursive: true, force: true })
  }
}

interface Store {
  readonly settings: Readonly<Record<string, string>>
  /** Loses the databases, as an operator does before a restore into an empty one. */
  empty(): Promise<unknown>
  drop(): Promise<void>
}

const STORES: Readonly<Record<string, () => Promise<Store | null>>> = {
  SQLite: async () => ({ settings: {}, empty: async () => {}, drop: async () => {} }),
  async PostgreSQL() {
    const schema = await openSchema()
    if (!schema) return null
    const name = /search_path%3D(\w+)/.exec(schema.url)?.[1]
    return {
      settings: { DATABASE_URL: schema.url },
      empty: () => schema.sql(`SET client_min_messages = warning; DROP SCHEMA ${name} CASCADE; CREATE SCHEMA ${name}`),
      drop: () => schema.drop(),
    }
  },
}

for (const [name, open] of Object.entries(STORES))
  describe(`npm run backup and npm run restore on ${name}`, function () {
    this.timeout(240_000)
    let chain: TestChain
    let store: Store
    let operator: Operator
    let backup: string
    let token: string
    let early: Bought
    let late: Bought
    const isSqlite = name === 'SQLite'

    before(async function () {
      const opened = await open()
      if (!opened) this.skip()
      store = opened
      chain = await startChain(this)
      const settings = {
        // Tokens name the address of the gateway.
        PORT: String(await freePort()),
        PAY_TO: newWallet().address,
        SETTLE_KEY: await newSettleKey(chain),
        ...store.settings,
      }
      operator = new Operator(chain, await newBuyer(chain, 100_000_000n), settings)
      await operator.start()
    })
    after(async () => {
      await operator?.close()
      await chain?.stop()
      await store?.drop()
    })

    it('copies everything that was sold before it began, while the gateway goes on selling', async () => {
      early = await operator.buy()
      const { answer } = await operator.buy('/v1/passes/late/1h', 'POST')
      ;({ token } = JSON.parse(answer) as { token: string })
      let isOver = false
      const selling = (async () => {
        let sold = 0
        while (!isOver) {
          await operator.buy()
          sold += 1
        }
        return sold
      })()
      backup = await operator.backUp().finally(() => (isOver = true))
      expect(await selling).to.be.greaterThan(0)
      const { databases, database, newest_event, secrets, network, data_mode } = manifestOf(backup)
      expect({ database, network, data_mode, secrets }).to.deep.equal({
        database: isSqlite ? 'sqlite' : 'postgresql',
        network: 'base-sepolia',
        data_mode: 'sample',
        secrets: [],
      })
      const tables = Object.assign({}, ...databases.map((each) => each.tables)) as Record<string, number>
      expect(tables['payments']).to.be.at.least(2)
      expect(tables).to.include.keys('payment_events', 'price_changes', 'revoked_tokens', 'reconciled_to')
      expect(newest_event?.id).to.be.at.least(4)
      for (const path of [backup, ...readdirSync(backup).map((file) => join(backup, file))])
        expect([path, statSync(path).mode & 0o077]).to.deep.equal([path, 0])
    })

    it('names what it leaves out, and includes private keys only on request', async () => {
      const { not_included } = manifestOf(backup)
      expect(not_included.map((each) => each.name)).to.include.members(['token-keys.json', 'environment', 'catalog'])
      expect(readdirSync(backup)).not.to.include('token-keys.json')
      const { stdout } = await operator.run('backup', '--to', join(operator.folder, 'with-keys'), '--with-keys')
      expect(stdout).to.contain('token-keys.json: PRIVATE KEYS')
    })

    it('refuses to restore into data that are in use', async () => {
      const { code, stderr } = await operator.run('restore', backup, '--replace')
      expect(code).to.equal(1)
      expect(stderr).to.match(
        isSqlite ? /is in use by another process. Stop the gateway first/ : /has \d+ tables. Nothing was changed/,
      )
      expect(await (await operator.again(early)).text()).to.equal(early.answer)
    })

    it('refuses a backup that is not as it was made, of another network, or unfinished', async () => {
      const other = join(operator.folder, 'other')
      cpSync(backup, other, { recursive: true })
      const [file] = manifestOf(backup).databases
      appendFileSync(join(other, String(file?.name)), 'x')
      expect((await operator.run('restore', other)).stderr).to.contain('SHA-256 differs')
      const outside = { ...manifestOf(backup), databases: [{ ...file, name: '../journal.sqlite' }] }
      writeFileSync(join(other, 'manifest.json'), JSON.stringify(outside))
      expect((await operator.run('restore', other)).stderr).to.match(
        /is not a manifest of npm run backup \(databases\.0\.name: .+journal\.sqlite/,
      )
      rmSync(join(other, 'manifest.json'))
      expect((await operator.run('restore', other)).stderr).to.contain('it is no backup, or one that was not finished')
      const changed = await run('restore', { ...operator.settings, DATA_MODE: 'online' }, backup)
      expect(changed.stderr).to.contain('its DATA_MODE is sample, here it is online')
    })

    it('refuses to go back behind payments that the backup does not have, unless it is told to', async () => {
      late = await operator.buy()
      await operator.stop()
      const { code, stderr } = await operator.run('restore', backup)
      expect(code).to.equal(1)
      expect(stderr).to.match(
        isSqlite ? /is newer than the backup.+add --replace/ : /Restore into a new, empty database/,
      )
    })

    it('restores it, says what it did, and keeps the former files', async () => {
      await store.empty()
      // As where root restores what belongs to the user of a service.
      if (process.getuid?.() === 0) chownSync(operator.dataDir, 65_534, 65_534)
      const { code, stdout, stderr } = await operator.run('restore', backup, ...(isSqlite ? ['--replace'] : []))
      expect(code, stderr).to.equal(0)
      expect(stdout)
        .to.contain('Restored')
        .and.to.contain('npm run ledger -- reconcile')
        .and.to.contain('token-keys.json was there and stays')
      if (!isSqlite) return
      for (const file of ['journal.sqlite', 'products.sqlite'])
        expect(statSync(join(operator.dataDir, file)).uid).to.equal(statSync(operator.dataDir).uid)
      const [aside] = readdirSync(operator.dataDir).filter((each) => each.startsWith('before-restore-'))
      expect(readdirSync(join(operator.dataDir, String(aside)))).to.include.members([
        'journal.sqlite',
        'products.sqlite',
      ])
    })

    it('lets the gateway go on: bought answers are replayed, plans work, new payments are taken', async () => {
      await operator.start()
      const received = await operator.received()
      const replayed = await operator.again(early)
      expect([replayed.status, await replayed.text()]).to.deep.equal([200, early.answer])
      expect(replayed.headers.get('idempotent-replay')).to.equal('true')
      const plan = await ask(`${operator.gateway?.url}/v1/late`, { headers: { 'x-service-token': token } })
      expect(plan.status).to.equal(200)
      expect(await operator.received()).to.equal(received)
      await operator.buy()
      expect(await operator.received()).to.equal(received + PRICE)
    })

    it('charges nobody twice for a payment that was made after the backup', async () => {
      const received = await operator.received()
      const repeated = await operator.again(late)
      expect(repeated.status).to.equal(402)
      expect(await json(repeated)).to.include({ error: 'invalid_transaction_state' })
      expect(await operator.received()).to.equal(received)
    })

    it('lets reconciliation find the payments that were made after the backup', async () => {
      await chain.rpc.call('anvil_mine', '0x20')
      const { code, stdout, stderr } = await operator.run('ledger', 'reconcile', '--format', 'json')
      expect(code, stderr).to.equal(1)
      expect(stderr).to.equal('')
      const { authorization } = (
        JSON.parse(Buffer.from(late.header, 'base64').toString()) as {
          payload: { authorization: { nonce: string } }
        }
      ).payload
      expect(stdout.toLowerCase()).to.contain(authorization.nonce.toLowerCase())
      expect(stdout).to.contain('an authorization that is not in the journal')
    })

    it('raises the alarm of payments that the journal does not know, within seconds', async () => {
      const metrics = async (): Promise<string> =>
        (
          await ask(`${operator.gateway?.url}/metrics`, { headers: { authorization: `Bearer ${OPERATOR_TOKEN}` } })
        ).text()
      await until(async () => /tollgate_alarm\{[^}]*"payments\.foreign"[^}]*\} 1/.test(await metrics()))
    })

    it('releases a payment that was under way at the backup, lists it, and charges nobody for it again', async () => {
      const { journal } = (operator.gateway as TestGateway).gateway
      const { submitted } = journal
      let taken = ''
      journal.submitted = async (...args) => {
        if (taken === '') taken = await operator.backUp()
        return submitted(...args)
      }
      const underWay = await operator.buy()
      await operator.stop()
      await store.empty()
      const { code, stderr } = await operator.run('restore', taken, ...(isSqlite ? ['--replace'] : []))
      expect(code, stderr).to.equal(0)
      const received = await operator.received()
      await operator.start()
      const { authorization } = (
        JSON.parse(Buffer.from(underWay.header, 'base64').toString()) as {
          payload: { authorization: { nonce: string } }
        }
      ).payload
      await chain.rpc.call('anvil_mine', '0x20')
      const { stdout } = await operator.run('ledger', 'reconcile', '--format', 'json')
      const { rows } = JSON.parse(stdout) as { rows: { payment: string | null; note: string }[] }
      const row = rows.find(({ payment }) => payment?.endsWith(authorization.nonce.toLowerCase()))
      expect(row).to.include({ note: 'the journal says released' })
      const repeated = await operator.again(underWay)
      expect([repeated.status, (await json(repeated))['error']]).to.deep.equal([402, 'invalid_transaction_state'])
      expect(await operator.received()).to.equal(received)
    })

    it('restores on another machine, where the plan needs the keys', async () => {
      const withKeys = join(operator.folder, 'with-keys')
      const [made] = readdirSync(withKeys)
      await operator.stop()
      await store.empty()
      renameSync(join(operator.folder, 'data'), join(operator.folder, 'former-machine'))
      // As after a copy to a disk without modes.
      for (const file of readdirSync(join(withKeys, String(made)))) chmodSync(join(withKeys, String(made), file), 0o444)
      // As on a disk that is mounted for reading only, nothing can be written beside the dump.
      if (!isSqlite) mkdirSync(join(withKeys, String(made), 'postgresql.dump.list'))
      const { stdout } = await operator.run('restore', join(withKeys, String(made)))
      expect(stdout).to.contain('private keys, which only you can read')
      for (const file of readdirSync(operator.dataDir))
        expect([file, statSync(join(operator.dataDir, file)).mode & 0o777]).to.deep.equal([file, 0o600])
      await operator.start()
      const plan = await ask(`${operator.gateway?.url}/v1/late`, { headers: { 'x-service-token': token } })
      expect(plan.status).to.equal(200)
      expect(await (await operator.again(early)).text()).to.equal(early.answer)
    })

    if (!isSqlite) return

    it('is the way back from a damaged journal: the gateway does not start, and says how to restore it', async () => {
      await operator.stop()
      const saved = await operator.backUp()
      const file = join(operator.dataDir, 'journal.sqlite')
      const bytes = readFileSync(file)
      bytes.fill(0x5a, 8_192, 16_384)
      rmSync(file)
      appendFileSync(file, bytes)
      const error = await operator.start().catch((thrown: Error) => thrown)
      expect(String(error)).to.contain(`${file} is damaged`).and.to.contain('npm run restore -- <backup> --replace')

      const refused = await operator.run('restore', saved)
      expect(refused.stderr).to.match(/journal.sqlite .*(cannot be read|is newer).+--replace/s)
      const { code, stderr } = await operator.run('restore', saved, '--replace')
      expect(code, stderr).to.equal(0)
      const aside = readdirSync(operator.dataDir).find((each) => each.startsWith('before-restore-'))
      expect(readFileSync(join(operator.dataDir, String(aside), 'journal.sqlite')).equals(bytes)).to.equal(true)
      await operator.start()
      expect(await (await operator.again(early)).text()).to.equal(early.answer)
    })

    it('keeps the gateway from starting while a restore is unfinished, and finishes it when it is run again', async () => {
      const saved = await operator.backUp()
      await operator.stop()
      // As a machine leaves it that stops while the files are moved.
      writeFileSync(join(operator.dataDir, 'restore-under-way'), saved)
      rmSync(join(operator.dataDir, 'journal.sqlite'))
      const error = await operator.start().catch((thrown: Error) => thrown)
      expect(String(error)).to.contain('was interrupted. Run it again: npm run restore')
      const { code, stderr } = await operator.run('restore', saved)
      expect(code, stderr).to.equal(0)
      await operator.start()
      expect(await (await operator.again(early)).text()).to.equal(early.answer)
    })
  })

describe('npm run backup', function () {
  this.timeout(60_000)
  let folder: string
  beforeEach(() => (folder = mkdtempSync(join(tmpdir(), 'tollgate-backup-'))))
  afterEach(() => rmSync(folder, { recursive: true, force: true }))

  it('makes no backup of an empty folder, and says which settings to look at', async () => {
    const { code, stderr } = await run('backup', { DATA_DIR: join(folder, 'data') }, '--to', join(folder, 'backups'))
    expect(code).to.equal(1)
    expect(stderr).to.contain('journal.sqlite does not exist. Start the gateway first, or set DATA_DIR')
    expect(existsSync(join(folder, 'backups')) ? readdirSync(join(folder, 'backups')) : []).to.deep.equal([])
  })

  it('says that a folder cannot be written, without a stack', async () => {
    await (await openJournal({ file: join(folder, 'data/sandbox-sample/journal.sqlite') })).close()
    writeFileSync(join(folder, 'file'), '')
    const { code, stderr } = await run(
      'backup',
      { DATA_DIR: join(folder, 'data') },
      '--to',
      join(folder, 'file/backups'),
    )
    expect(code).to.equal(1)
    expect(stderr)
      .to.match(/^No backup was made: ENOTDIR.* Name a folder with --to/)
      .and.not.match(/\n {4}at /)
  })

  it('makes no backup of a damaged journal', async () => {
    const file = join(folder, 'data/sandbox-sample/journal.sqlite')
    await (await openJournal({ file })).close()
    const damaged = readFileSync(file)
    damaged.fill(0x5a, 8_192, 12_288)
    rmSync(file)
    appendFileSync(file, damaged)
    const { code, stderr } = await run('backup', { DATA_DIR: join(folder, 'data') }, '--to', join(folder, 'backups'))
    expect(code).to.equal(1)
    expect(stderr).to.contain('journal.sqlite is damaged').and.to.contain('Keep your last good backup')
    expect(readdirSync(join(folder, 'backups'))).to.deep.equal([])
  })

  it('says that PostgreSQL does not answer, without a stack', async () => {
    const environment = { DATABASE_URL: 'postgresql://shop:s3cret@localhost:9/shop' }
    const { code, stderr } = await run('backup', environment, '--to', join(folder, 'backups'))
    expect(code).to.equal(1)
    expect(stderr)
      .to.match(/^The database of DATABASE_URL cannot be used: connect ECONNREFUSED/)
      .and.not.match(/\n {4}at |s3cret/)
  })

  it('names the package to install where pg_dump is missing', async function () {
    const schema = await openSchema()
    if (!schema) this.skip()
    try {
      await (await openJournal({ url: schema.url })).close()
      const environment = { DATABASE_URL: schema.url, PATH: folder }
      const { code, stderr } = await run('backup', environment, '--to', join(folder, 'backups'))
      expect(code).to.equal(1)
      expect(stderr).to.contain('apt-get install postgresql-client')
    } finally {
      await schema.drop()
    }
  })
})
