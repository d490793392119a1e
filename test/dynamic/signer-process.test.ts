/** Tests of the signer as a process: what it was started with, what happens when it dies, and one that the operator runs. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { expect } from 'chai'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { isAlive } from '../../gateway/sandbox/processes.ts'
import { anvilBinary } from '../../gateway/sandbox/anvil.ts'
import { createKey } from '../../gateway/tokens/key-set.ts'
import { payment } from '../support/agent.ts'
import { SERVICE } from '../support/catalog.ts'
import { freePort } from '../support/gateway.ts'
import { environmentIn, requireBuild, startGateway, type Started } from '../support/process.ts'
import { until } from '../support/until.ts'
import { wordProduct } from './live-gateway.ts'

const root = resolve(import.meta.dirname, '../..')
const WORD = `import { definePlugin } from 'tollgate/plugin'
export default definePlugin({ name: 'word', setup: () => ({ handlers: { getWord: () => ({ word: 'sold' }) } }) })
`

describe('the signer process', function () {
  this.timeout(90_000)
  let folder: string
  let port: number
  let url: string
  let running: Started | null = null
  let signer: ChildProcess | null = null

  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), 'tollgate-signer-process-'))
    for (const part of ['catalog', 'plugins/word']) mkdirSync(join(folder, part), { recursive: true })
    writeFileSync(join(folder, 'catalog/service.json'), JSON.stringify(SERVICE))
    const product = wordProduct('word', { route: 'GET /v1/word', price: '0.005' })
    cpSync(join(root, 'catalog/documents.json'), join(folder, 'catalog/documents.json'))
    writeFileSync(join(folder, 'catalog/word.json'), JSON.stringify(product))
    writeFileSync(join(folder, 'plugins/word/index.ts'), WORD)
    port = await freePort()
    url = `http://127.0.0.1:${port}`
  })
  afterEach(async () => {
    await running?.stop()
    running = null
    signer?.kill('SIGKILL')
    signer = null
    rmSync(folder, { recursive: true, force: true })
  })

  /** The processes that the gateway was started with, by what they are. */
  function processes(started: Started): ReadonlyMap<string, number> {
    const pid = started.child.pid as number
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean).map(Number)
    return new Map(
      children.map((child) => [readFileSync(`/proc/${child}/cmdline`, 'utf8').split('\0').at(-2) ?? '', child]),
    )
  }
  const tokenKeysOf = async (): Promise<readonly string[]> => {
    const { keys } = (await (await fetch(`${url}/.well-known/jwks.json`)).json()) as { keys: { kid: string }[] }
    return keys.map(({ kid }) => kid)
  }

  it('gets the keys through a pipe: they stand in the environment of no process', async () => {
    const key = generatePrivateKey()
    const jwk = await createKey()
    const environment = { ...environmentIn(folder, port), SETTLE_KEY: key, TOKEN_KEYS: JSON.stringify({ keys: [jwk] }) }
    running = await startGateway(/is open at/, environment)
    const started = processes(running)
    expect([...started.keys()].sort()).to.deep.equal(['gateway', 'signer'])
    for (const [name, pid] of [...started, ['launcher', running.child.pid as number] as const])
      for (const file of ['environ', 'cmdline']) {
        const text = readFileSync(`/proc/${pid}/${file}`, 'utf8')
        for (const secret of [key, key.slice(2), jwk.d as string])
          expect(text.includes(secret), `${file} of the ${name}`).to.equal(false)
      }
    expect(await tokenKeysOf()).to.include(jwk.kid)
  })

  it('is started again when it has died, and receipts are signed as before', async function () {
    try {
      anvilBinary()
    } catch {
      return this.skip()
    }
    const { DATA_DIR, CATALOG_DIR, PLUGIN_DIRS, PORT } = environmentIn(folder, port)
    running = await startGateway(/is open at/, { DATA_DIR, CATALOG_DIR, PLUGIN_DIRS, PORT } as Record<string, string>)
    const { buyer } = JSON.parse(readFileSync(join(folder, 'data/sandbox-sample/sandbox.json'), 'utf8')) as {
      buyer: { private_key: `0x${string}` }
    }
    const buy = async (): Promise<readonly [number, boolean]> => {
      const header = await payment(`${url}/v1/word`, privateKeyToAccount(buyer.private_key))
      const response = await fetch(`${url}/v1/word`, { headers: { 'payment-signature': header } })
      const receipt = Buffer.from(response.headers.get('payment-response') ?? '', 'base64').toString()
      return [response.status, /"signature":"ey/.test(receipt)]
    }
    expect(await buy()).to.deep.equal([200, true])
    const keys = await tokenKeysOf()
    const pid = processes(running).get('signer') as number
    process.kill(pid, 'SIGKILL')
    await until(async () => !(await isAlive(pid)))
    // Asking waits until the signer is back.
    expect(await buy()).to.deep.equal([200, true])
    expect(processes(running).get('signer')).not.to.equal(pid)
    expect(await tokenKeysOf()).to.deep.equal(keys)
  })

  it('ends the start with a message if the token keys are not valid', async () => {
    const environment = { ...environmentIn(folder, port), TOKEN_KEYS: '{"keys":[]}' }
    for (const args of [[], ['--workers', '1']]) {
      const failure = await startGateway(/is open at/, environment, undefined, args).catch(
        (error: Error) => error.message,
      )
      expect(failure).to.contain('ended with 1').and.contain('TOKEN_KEYS is not a JWK set with private Ed25519 keys.')
    }
  })

  it('may be run by the operator at SIGNER_SOCKET, so that no process of the gateway ever has the keys', async () => {
    requireBuild()
    const jwk = await createKey()
    const socket = join(folder, 'socket')
    const shared = { ...environmentIn(folder, port), SIGNER_SOCKET: socket }
    const [, ...names] = ['', 'SETTLE_KEY', 'TOKEN_KEYS']
    const temporary = join(folder, 'temporary')
    mkdirSync(temporary)
    signer = spawn(process.execPath, ['dist/gateway/main.js', '--as', 'signer'], {
      cwd: root,
      env: { PATH: process.env['PATH'], ...shared, TOKEN_KEYS: JSON.stringify({ keys: [jwk] }) },
      stdio: 'inherit',
    })
    const environment = { ...shared, TMPDIR: temporary, ...Object.fromEntries(names.map((name) => [name, 'signer'])) }
    running = await startGateway(/is open at/, environment)
    expect([...processes(running).keys()]).to.deep.equal(['gateway'])
    expect(readdirSync(temporary).filter((name) => name.startsWith('tollgate-signer-'))).to.deep.equal([])
    expect(await tokenKeysOf()).to.include(jwk.kid)
    await running.stop()
    expect(signer.exitCode, 'the signer of the operator lives on').to.equal(null)
    expect(existsSync(socket)).to.equal(true)
    signer.kill('SIGTERM')
    await once(signer, 'exit')
  })
})
