/** Tests of who can read what a gateway and its commands write: real processes, under each umask. */
import { execFile } from 'node:child_process'
import {
  chmodSync,
  cpSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative, resolve } from 'node:path'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { privateKeyToAccount } from 'viem/accounts'
import { anvilBinary } from '../../gateway/sandbox/anvil.ts'
import { createKey } from '../../gateway/tokens/key-set.ts'
import { buy } from '../support/agent.ts'
import { PLANS, SERVICE } from '../support/catalog.ts'
import { freePort } from '../support/gateway.ts'
import { startGateway, type Started } from '../support/process.ts'
import { wordProduct } from './live-gateway.ts'

const root = resolve(import.meta.dirname, '../..')
const WORD = `import { definePlugin } from 'tollgate/plugin'
export default definePlugin({ name: 'word', setup: () => ({ handlers: { getWord: () => ({ word: 'sold' }) } }) })
`

/** Everything below a folder, and the folder itself, with its mode. */
function modesBelow(folder: string): Readonly<Record<string, string>> {
  const paths = [
    folder,
    ...readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((name) => join(folder, name)),
  ]
  return Object.fromEntries(paths.map((path) => [relative(folder, path), (lstatSync(path).mode & 0o777).toString(8)]))
}

/** What is open to others than the owner: anything but folders of mode 700 and files of mode 600. */
function openBelow(folder: string): readonly (readonly [string, string])[] {
  return Object.entries(modesBelow(folder)).filter(
    ([name, mode]) => mode !== (lstatSync(join(folder, name)).isDirectory() ? '700' : '600'),
  )
}

/** Begins something whose first process has this umask. */
function under<Result>(mask: number, begin: () => Result): Result {
  const before = process.umask(mask)
  try {
    return begin()
  } finally {
    process.umask(before)
  }
}

describe('the files of a gateway', function () {
  this.timeout(120_000)
  let folder: string
  let dataDir: string
  let environment: Record<string, string>
  let running: Started | null = null

  before(function () {
    if (process.platform === 'win32') return this.skip()
    try {
      anvilBinary()
    } catch {
      this.skip()
    }
  })
  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), 'tollgate-private-files-'))
    for (const part of ['catalog', 'plugins/word']) mkdirSync(join(folder, part), { recursive: true })
    cpSync(join(root, 'catalog/documents.json'), join(folder, 'catalog/documents.json'))
    const plans = PLANS.plans.map((plan) => ({ ...plan, authorizes: ['getWord'] }))
    const documents = {
      'service.json': SERVICE,
      'plans.json': { ...PLANS, plans },
      'word.json': wordProduct('word', { price: '0.005' }),
    }
    for (const [file, document] of Object.entries(documents))
      writeFileSync(join(folder, 'catalog', file), JSON.stringify(document))
    writeFileSync(join(folder, 'plugins/word/index.ts'), WORD)
    dataDir = join(folder, 'data')
    environment = {
      DATA_DIR: dataDir,
      CATALOG_DIR: join(folder, 'catalog'),
      PLUGIN_DIRS: join(folder, 'plugins'),
      PORT: String(await freePort()),
      LOG_LEVEL: 'warn',
    }
  })
  afterEach(async () => {
    await stop()
    rmSync(folder, { recursive: true, force: true })
  })

  async function start(mask: number, ...args: readonly string[]): Promise<Started> {
    running = await under(mask, () => startGateway(/is open at/, environment, undefined, args))
    return running
  }
  async function stop(): Promise<void> {
    await running?.stop()
    running = null
  }
  /** Buys an answer and a plan. */
  async function sell(): Promise<void> {
    const { buyer } = JSON.parse(readFileSync(join(dataDir, 'sandbox-sample/sandbox.json'), 'utf8')) as {
      buyer: { private_key: `0x${string}` }
    }
    const wallet = privateKeyToAccount(buyer.private_key)
    const url = `http://127.0.0.1:${environment['PORT']}`
    expect((await buy(`${url}/v1/word`, wallet)).status).to.equal(200)
    expect((await buy(`${url}/v1/plans/live/24h`, wallet, 2, { method: 'POST' })).status).to.equal(200)
  }
  async function command(mask: number, name: string, ...args: readonly string[]): Promise<string> {
    const env = { PATH: process.env['PATH'], ...environment }
    const line = [join(root, 'scripts/tollgate.mjs'), name, ...args]
    return (await under(mask, () => promisify(execFile)(process.execPath, line, { cwd: root, env }))).stdout
  }

  for (const mask of [0o000, 0o022, 0o077])
    it(`are closed to other users under umask ${mask.toString(8).padStart(4, '0')}, and so are backups, restored data and keys`, async () => {
      const { output } = await start(mask)
      await sell()
      expect(Object.keys(modesBelow(dataDir))).to.include.members([
        'sandbox-sample/journal.sqlite-wal',
        'sandbox-sample/products.sqlite-wal',
        'sandbox-sample/token-keys.json',
        'sandbox-sample/chain/keys.json',
      ])
      expect(openBelow(dataDir)).to.deep.equal([])
      expect(output()).not.to.contain('other users')

      const backups = join(folder, 'backups')
      await command(mask, 'backup', '--to', backups, '--with-keys')
      const [backup = ''] = readdirSync(backups)
      expect(readdirSync(join(backups, backup))).to.include.members(['journal.sqlite', 'token-keys.json'])
      expect(openBelow(backups)).to.deep.equal([])
      await stop()
      expect(openBelow(dataDir)).to.deep.equal([])

      // Once into nothing, and once beside what is there.
      for (const place of [join(folder, 'elsewhere'), dataDir]) {
        environment['DATA_DIR'] = place
        await command(mask, 'restore', join(backups, backup), '--replace')
        expect(Object.keys(modesBelow(place))).to.include('sandbox-sample/journal.sqlite')
        expect(openBelow(place)).to.deep.equal([])
      }
      const keys = join(folder, 'keys')
      mkdirSync(keys, { mode: 0o700 })
      await command(mask, 'keys', '--file', join(keys, 'keys.env'))
      expect(openBelow(keys)).to.deep.equal([])
    })

  it('are closed at the start if they were open, with one warning, by one process and by workers', async () => {
    await start(0o022)
    await sell()
    await stop()
    for (const args of [[], ['--workers', '2']]) {
      // As a gateway of an earlier release left them under umask 0000.
      const found = Object.keys(modesBelow(dataDir))
      for (const name of found)
        chmodSync(join(dataDir, name), lstatSync(join(dataDir, name)).isDirectory() ? 0o777 : 0o644)
      const { output } = await start(0o022, ...args)
      expect(openBelow(dataDir)).to.deep.equal([])
      const warnings = output()
        .split('\n')
        .filter((line) => line.includes('other users'))
        .map((line) => JSON.parse(line) as Record<string, unknown>)
      expect(warnings).to.have.length(1)
      expect(warnings[0]).to.deep.include({ level: 'warn', folder: dataDir, closed: found.length })
      await sell()
      await stop()
    }
  })

  it('are closed by a signer that the operator runs', async () => {
    const own = join(dataDir, 'sandbox-sample')
    mkdirSync(own, { recursive: true })
    writeFileSync(join(own, 'token-keys.json'), JSON.stringify({ keys: [await createKey()] }))
    for (const path of [dataDir, own]) chmodSync(path, 0o777)
    environment['SIGNER_SOCKET'] = join(folder, 'socket')
    running = await startGateway(/could read or change/, environment, undefined, ['--as', 'signer'])
    expect(openBelow(dataDir)).to.deep.equal([])
  })
})
