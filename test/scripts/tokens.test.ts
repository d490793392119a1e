/** Runs `npm run tokens` on the data folder of a running gateway. */
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { expect } from 'chai'
import { decodeJwt } from 'jose'
import { ask, buy, json } from '../support/agent.ts'
import { openGateway, type TestGateway } from '../support/gateway.ts'
import { until } from '../support/until.ts'

const root = resolve(import.meta.dirname, '../..')

interface CommandResult {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

describe('npm run tokens', () => {
  let shop: TestGateway
  let environment: Record<string, string>
  before(async () => {
    shop = await openGateway({}, { inMemory: false })
    const { dataRoot, catalogDir } = shop.gateway.config
    environment = { DATA_DIR: dataRoot, CATALOG_DIR: catalogDir }
  })
  after(() => shop.close())

  /** Runs the script in a process of its own; this process is the gateway. */
  function run(args: readonly string[], change: Record<string, string> = {}): Promise<CommandResult> {
    const child = spawn(process.execPath, ['scripts/tollgate.mjs', 'tokens', ...args], {
      cwd: root,
      env: { PATH: process.env['PATH'], ...environment, ...change },
    })
    const output = { stdout: '', stderr: '' }
    child.stdout.on('data', (chunk: Buffer) => (output.stdout += chunk.toString()))
    child.stderr.on('data', (chunk: Buffer) => (output.stderr += chunk.toString()))
    return new Promise((done) => child.once('close', (code) => done({ code, ...output })))
  }
  async function buyPass(): Promise<{ token: string; id: string; expires: string }> {
    const answer = await json(await buy(`${shop.url}/v1/passes/late/1h`, shop.wallet, 2, { method: 'POST' }))
    const token = String(answer['token'])
    return { token, id: String(decodeJwt(token).jti), expires: `${String(answer['expires_at']).slice(0, 19)}Z` }
  }
  const status = async (token: string): Promise<number> =>
    (await ask(`${shop.url}/v1/late`, { headers: { 'x-service-token': token } })).status

  it('lists the plans that were bought, newest first, with payer and expiry, and never a token', async () => {
    const [one, two] = [await buyPass(), await buyPass()]
    const { code, stdout } = await run(['list'])
    expect(code).to.equal(0)
    const payer = shop.wallet.address.toLowerCase()
    const row = ({ id, expires }: typeof one): string => `${id}  late-1h       ${payer}  ${expires}`
    expect(stdout.split('\n')).to.deep.equal(['2 bought', row(two), row(one), ''])
  })

  it('revokes a token by its id or by the token itself while the gateway runs', async () => {
    const [one, two, three] = [await buyPass(), await buyPass(), await buyPass()]
    expect(await run(['revoke', one.id, 'asked', 'for', 'it'])).to.deep.include({ code: 0, stderr: '' })
    const { stdout } = await run(['revoke', two.token])
    expect(stdout).to.equal(`${two.id} (late-1h of ${shop.wallet.address.toLowerCase()}) is revoked.\n`)
    await until(async () => (await status(one.token)) === 402 && (await status(two.token)) === 402)
    expect(await status(three.token)).to.equal(200)
    const list = (await run(['list'])).stdout
    expect(list.match(/revoked$/gm)).to.have.length(2)
  })

  it('revokes nothing if list is given an id, because a mistyped command must not end a plan', async () => {
    const bought = await buyPass()
    const listed = await run(['list', bought.id])
    expect(listed).to.include({ code: 1, stdout: '' })
    expect(listed.stderr).to.match(/^list takes no arguments\.\n\nnpm run tokens -- list\n/)
    expect((await run(['list'])).stdout).to.match(new RegExp(`^${bought.id} .*Z$`, 'm'))
    expect(await status(bought.token)).to.equal(200)
  })

  it('explains what is wrong with an unknown id, an unknown command or a folder without a gateway', async () => {
    const empty = mkdtempSync(join(tmpdir(), 'tollgate-tokens-'))
    try {
      const [unknownId, unknownCommand, noGateway] = await Promise.all([
        run(['revoke', 'nobody-bought-this']),
        run(['rotate']),
        run(['list'], { DATA_DIR: empty }),
      ])
      expect(unknownId).to.include({ code: 1, stdout: '' })
      expect(unknownId.stderr).to.include('No plan was bought under nobody-bought-this')
      expect(unknownCommand).to.include({ code: 1, stdout: '' })
      expect(unknownCommand.stderr).to.include('npm run tokens -- revoke')
      expect(noGateway).to.include({ code: 1, stdout: '' })
      expect(noGateway.stderr).to.include('products.sqlite')
    } finally {
      rmSync(empty, { recursive: true, force: true })
    }
  })
})
