/** Starts gateways on data whose files are torn, damaged or read-only. */
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { NETWORKS } from '../../gateway/config/networks.ts'
import { DataError } from '../../gateway/stores/data-error.ts'
import { ask, json, payment, send } from '../support/agent.ts'
import { freePort, openGateway, PAY_TO, type TestGateway } from '../support/gateway.ts'
import { startGateway } from '../support/process.ts'
import { openSmallDisk } from '../support/small-disk.ts'

const DATA = 'sandbox-sample'
const NAMED = { headers: { 'idempotency-key': 'a-purchase-of-this-test' } }

describe('a gateway whose log of the journal was cut off', function () {
  this.timeout(60_000)
  let folder: string
  let shop: TestGateway
  let port: string
  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), 'tollgate-torn-'))
    port = String(await freePort())
    shop = await openGateway({ DATA_DIR: join(folder, 'data'), PORT: port }, { inMemory: false })
  })
  afterEach(async () => {
    await shop.close()
    rmSync(folder, { recursive: true, force: true })
  })

  /** What a machine leaves that stops at this moment, with less of the log than was written. */
  async function restartAfter(cut: (bytes: number) => number): Promise<TestGateway> {
    cpSync(join(folder, 'data'), join(folder, 'torn'), { recursive: true })
    const log = join(folder, 'torn', DATA, 'journal.sqlite-wal')
    truncateSync(log, cut(statSync(log).size))
    const { settler } = shop
    await shop.close()
    const settlement = {
      network: NETWORKS['base-sepolia'],
      payTo: PAY_TO,
      settler,
      sandbox: null,
      close: async () => {},
    }
    const opened = await openGateway({ DATA_DIR: join(folder, 'torn'), PORT: port }, { inMemory: false, settlement })
    return (shop = { ...opened, settler })
  }

  for (const [where, cut] of Object.entries({
    'in the middle of a record': (bytes: number) => bytes - 1_500,
    'in half': (bytes: number) => Math.floor(bytes / 2),
    'to nothing': () => 0,
  }))
    it(`${where} goes on with what is whole, and charges nobody twice for the rest`, async () => {
      const url = `${shop.url}/v1/echo/hello`
      const header = await payment(url, shop.wallet)
      const answer = await (await send(url, header, 2, NAMED)).text()
      await send(url, await payment(url, shop.wallet))
      const { transfers } = shop.settler
      expect(transfers).to.have.length(2)
      await restartAfter(cut)
      const repeated = await send(url, header, 2, NAMED)
      if (repeated.status === 200) expect(await repeated.text()).to.equal(answer)
      else expect([repeated.status, (await json(repeated))['error']]).to.deep.equal([402, 'invalid_transaction_state'])
      expect(transfers).to.have.length(2)
      expect((await send(url, await payment(url, shop.wallet))).status).to.equal(200)
      expect(transfers).to.have.length(3)
    })
})

describe('a gateway that cannot use its data', function () {
  this.timeout(60_000)
  let folder: string
  beforeEach(() => (folder = mkdtempSync(join(tmpdir(), 'tollgate-data-'))))
  afterEach(() => rmSync(folder, { recursive: true, force: true }))

  for (const name of ['journal.sqlite', 'products.sqlite'])
    it(`does not start if ${name} ends within a page, and says how to restore it`, async () => {
      await (await openGateway({ DATA_DIR: folder }, { inMemory: false })).close()
      const file = join(folder, DATA, name)
      truncateSync(file, statSync(file).size - 1_000)
      const before = readFileSync(file)
      const error = await openGateway({ DATA_DIR: folder }, { inMemory: false }).catch((thrown: unknown) => thrown)
      expect(error).to.be.instanceOf(DataError)
      expect((error as Error).message)
        .to.contain(`${file} is damaged`)
        .and.to.contain('npm run restore')
      expect(readFileSync(file).equals(before)).to.equal(true)
    })

  it('ends with that message alone, without a stack', async () => {
    const environment = { DATA_DIR: folder, PORT: String(await freePort()), LOG_LEVEL: 'silent', NETWORK: 'sandbox' }
    mkdirSync(join(folder, DATA), { recursive: true })
    writeFileSync(join(folder, DATA, 'journal.sqlite'), 'not a database'.repeat(100))
    const failed = await startGateway(/is open at/, environment).catch((error: Error) => error.message)
    expect(failed).to.contain('ended with 1').and.to.contain('its header is not that of a SQLite database')
    expect(failed).not.to.match(/^ +at /m)
  })

  it('does not start on a read-only disk, says so, and starts once the disk can be written', async function () {
    const disk = openSmallDisk(this)
    try {
      const open = (): Promise<TestGateway> => openGateway({ DATA_DIR: disk.folder }, { inMemory: false })
      await (await open()).close()
      disk.remount('ro')
      const error = await open().catch((thrown: unknown) => thrown)
      expect(error).to.be.instanceOf(DataError)
      expect((error as Error).message)
        .to.contain('cannot be written')
        .and.to.contain('read-only')
      disk.remount('rw')
      const shop = await open()
      const url = `${shop.url}/v1/echo/hello`
      expect((await send(url, await payment(url, shop.wallet))).status).to.equal(200)
      expect((await ask(`${shop.url}/v1/late`)).status).to.equal(402)
      await shop.close()
    } finally {
      disk.close()
    }
  })

  it('does not start on a full disk, says so, and starts once there is room', async function () {
    const disk = openSmallDisk(this)
    try {
      const open = (): Promise<TestGateway> => openGateway({ DATA_DIR: disk.folder }, { inMemory: false })
      disk.fill()
      const error = await open().catch((thrown: unknown) => thrown)
      expect(error).to.be.instanceOf(Error)
      expect((error as Error).message).to.match(/disk is full|no space left on device/i)
      disk.empty()
      await (await open()).close()
    } finally {
      disk.close()
    }
  })
})
