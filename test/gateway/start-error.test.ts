import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import sqlite3 from 'sqlite3'
import { startErrorText } from '../../gateway/start-error.ts'
import { createLog } from '../../gateway/observe/log.ts'
import { connectSigner } from '../../gateway/stores/signer-client.ts'
import { DataError } from '../../gateway/stores/data-error.ts'
import { SERVICE } from '../support/catalog.ts'
import { freePort } from '../support/gateway.ts'
import { environmentIn, startGateway } from '../support/process.ts'

/** The error of a server that cannot listen there. */
const listenError = (host: string): Promise<Error> =>
  new Promise((resolve, reject) => {
    const server = createServer().once('error', resolve)
    server.listen(0, host, () => server.close(() => reject(new Error(`${host} can be listened on`))))
  })

function errorOf(work: () => unknown): unknown {
  try {
    return work()
  } catch (error) {
    return error
  }
}

describe('the text of a start that fails', () => {
  let folder: string
  before(() => (folder = mkdtempSync(join(tmpdir(), 'tollgate-start-'))))
  after(() => rmSync(folder, { recursive: true }))

  it('blames HOST for an address that this machine does not have', async () => {
    expect(startErrorText(await listenError('192.0.2.1'))).to.match(
      /^listen EADDRNOTAVAIL.* Set HOST to an address of this machine/,
    )
    expect(startErrorText(await listenError('host.invalid'))).to.match(
      /^getaddrinfo E.* If host\.invalid is what HOST says/,
    )
  })

  it('blames PORT, and not DATA_DIR, for a port that only root may use', () => {
    const denied = { code: 'EACCES', syscall: 'listen', port: 80, address: '0.0.0.0' }
    const text = startErrorText(Object.assign(new Error('listen EACCES: permission denied 0.0.0.0:80'), denied))
    expect(text).to.contain('may not listen on port 80: set PORT to 1024 or more').and.not.contain('DATA_DIR')
  })

  it('blames DATA_DIR for a folder that cannot be made, and TMPDIR for one of temporary files', () => {
    writeFileSync(join(folder, 'file'), '')
    const made = errorOf(() => mkdirSync(join(folder, 'file/data'), { recursive: true }))
    expect(startErrorText(made)).to.match(/^ENOTDIR.*DATA_DIR must name a folder\.$/)
    expect(startErrorText(errorOf(() => mkdtempSync(join(folder, 'none/of-'))))).to.match(/^ENOENT.* Set TMPDIR to/)
    const full = Object.assign(new Error('ENOSPC: no space left on device, write'), {
      code: 'ENOSPC',
      syscall: 'write',
    })
    expect(startErrorText(full)).to.contain('must be able to write to DATA_DIR')
  })

  it('says how to reach a signer that does not answer', async () => {
    const error: unknown = await connectSigner(join(folder, 'none'), createLog('silent'), 1).catch(
      (thrown: unknown) => thrown,
    )
    expect(startErrorText(error)).to.match(/^The signer at .* does not answer\. \(.+\) Start the signer first/)
  })

  it('is a message alone for data that are damaged, and a stack for a fault of ours', () => {
    expect(startErrorText(new DataError('Restore it.'))).to.equal('Restore it.')
    expect(startErrorText(new Error('a bug'))).to.match(/^Error: a bug\n {4}at /)
    expect(startErrorText('nothing')).to.equal('nothing')
  })
})

describe('a gateway that cannot start', function () {
  this.timeout(60_000)
  let folder: string
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'tollgate-start-'))
    mkdirSync(join(folder, 'plugins'))
    mkdirSync(join(folder, 'catalog'))
    writeFileSync(join(folder, 'catalog/service.json'), JSON.stringify(SERVICE))
  })
  afterEach(() => rmSync(folder, { recursive: true, force: true }))

  /** What a gateway with these variables prints before it ends. */
  async function printed(change: Readonly<Record<string, string>>): Promise<string> {
    const environment = { ...environmentIn(folder, await freePort()), ...change }
    return startGateway(/is open at/, environment).then(
      async ({ stop }) => {
        await stop()
        return 'it started'
      },
      (error: Error) => error.message,
    )
  }

  it('names HOST if it cannot listen there, and prints no stack', async () => {
    const text = await printed({ HOST: '192.0.2.1', BASE_URL: 'https://shop.example' })
    expect(text)
      .to.contain('Set HOST to an address of this machine')
      .and.not.match(/\n {4}at /)
  })

  it('says that the database does not answer, where it was looked for, and prints no stack', async () => {
    const text = await printed({ DATABASE_URL: 'postgresql://shop:s3cret@localhost:9/shop' })
    expect(text)
      .to.match(/The database of DATABASE_URL cannot be used: connect ECONNREFUSED \S+:9.*Check that the server runs/)
      .and.not.match(/\n {4}at |s3cret/)
  })

  it('asks to update first if a later release has written the journal, and prints no stack', async () => {
    mkdirSync(join(folder, 'data/base-sepolia-sample'), { recursive: true })
    const file = join(folder, 'data/base-sepolia-sample/journal.sqlite')
    await new Promise<void>((done, failed) => {
      const database = new sqlite3.Database(file)
      database.exec('CREATE TABLE payments (id integer); PRAGMA user_version = 9999;', (error) =>
        error ? failed(error) : database.close(() => done()),
      )
    })
    const text = await printed({})
    expect(text)
      .to.contain(`${file} was written by a later release (format 9999). Update first.`)
      .and.not.match(/\n {4}at /)
  })
})
