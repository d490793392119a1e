/** The file .env of the folder in which a gateway was started, edited while it runs. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { expect } from 'chai'
import { freePort } from '../support/gateway.ts'
import { environmentIn, requireBuild, type Started, startNode } from '../support/process.ts'
import { until } from '../support/until.ts'

const TOLLGATE = resolve(import.meta.dirname, '../../scripts/tollgate.mjs')

describe('the file .env of a gateway that runs', () => {
  let folder: string
  let url: string
  let upstream: Server
  let running: Started
  const writeEnv = (...lines: readonly string[]): void => writeFileSync(join(folder, '.env'), lines.join('\n'))
  /** The key that the upstream was sent. */
  const keySent = async (): Promise<string> => (await fetch(`${url}/v1/tides`)).text()
  const told = (): string[] => running.output().match(/restart to use \w+/g) ?? []

  before(async () => {
    requireBuild()
    folder = mkdtempSync(join(tmpdir(), 'tollgate-env-'))
    upstream = createServer((request, response) => {
      response.setHeader('content-type', 'application/json').end(JSON.stringify(request.headers['x-key']))
    })
    await new Promise<void>((done) => upstream.listen(0, '127.0.0.1', done))
    const port = await freePort()
    url = `http://127.0.0.1:${port}`
    mkdirSync(join(folder, 'catalog'))
    const getTides = { route: 'GET /v1/tides', summary: 'Tides.', price: 'free', response: { type: 'string' } }
    const address = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}/`
    const product = { product: 'tides', title: 'Tides', summary: 'Tides.', operations: { getTides } }
    const document = { ...product, upstream: { url: address, headers: { 'x-key': 'env:TIDES_KEY' } } }
    writeFileSync(join(folder, 'catalog/tides.json'), JSON.stringify(document))
    const { SETTLE_KEY: key, ...environment } = environmentIn(folder, port)
    writeEnv('TIDES_KEY=first', `SETTLE_KEY=${key} ${key?.replace(/.{4}$/, 'aaaa')}`, 'LOG_LEVEL=info')
    running = await startNode([TOLLGATE, 'start', '--workers', '2'], /is open at/, environment, folder)
  })
  after(async () => {
    await running?.stop()
    upstream.close()
    rmSync(folder, { recursive: true, force: true })
  })

  it('changes the secrets that documents name, without a restart', async () => {
    expect(await keySent()).to.equal('"first"')
    writeEnv('TIDES_KEY=second')
    // Each worker sees the change by itself.
    await until(async () =>
      (await Promise.all([keySent(), keySent(), keySent(), keySent()])).every((key) => key === '"second"'),
    )
  })

  it('is told once that a setting needs a restart, by its name alone, unless the environment has set it', async () => {
    await until(() => told().length > 0)
    writeEnv('TIDES_KEY=third', 'OPERATOR_TOKEN=not-to-be-told', 'LOG_LEVEL=debug')
    await until(async () => (await keySent()) === '"third"')
    await until(() => told().length > 1)
    expect(told()).to.deep.equal(['restart to use SETTLE_KEY', 'restart to use OPERATOR_TOKEN'])
    expect(running.output())
      .not.to.contain('not-to-be-told')
      .and.not.to.match(/third|0x[0-9a-f]{64}/)
  })

  it('keeps a product on sale whose secret has gone, and says so', async () => {
    writeEnv('')
    const health = async () => (await fetch(`${url}/health`)).text()
    await until(async () => (await health()).includes('The environment has no TIDES_KEY.'))
    expect(await keySent()).to.equal('"third"')
  })
})
