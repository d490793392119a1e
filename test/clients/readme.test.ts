import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { gold, PLUGINS, SERVICE } from '../support/catalog.ts'
import { freePort } from '../support/gateway.ts'
import { startGateway, type Started } from '../support/process.ts'

const root = resolve(import.meta.dirname, '../..')
const run = promisify(execFile)

describe('the example programs of the README', function () {
  this.timeout(90_000)
  let folder: string
  let gateway: Started

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'tollgate-readme-'))
    const { getGold, getGoldColumns } = gold().operations
    const priced = { ...getGold, handler: 'getGold' }
    const fields = ['symbol', 'side', 'notional_usd', 'order_type']
    const operations = {
      getRegimeCurrent: { ...priced, route: 'GET /v1/regime/current' },
      estimateCost: {
        ...priced,
        route: 'POST /v1/cost/estimate',
        body: { type: 'object', required: fields },
        tool: false,
      },
      auditBacktest: { ...priced, route: 'POST /v1/audit', price: '5.00', tool: false },
      getGoldColumns,
    }
    mkdirSync(join(folder, 'catalog'))
    const write = (file: string, content: unknown): void =>
      writeFileSync(join(folder, 'catalog', file), JSON.stringify(content))
    write('service.json', SERVICE)
    write('gold.json', { ...gold(), operations })
    gateway = await startGateway(/is open at[\s\S]*\/pricing/, {
      CATALOG_DIR: join(folder, 'catalog'),
      PLUGIN_DIRS: PLUGINS,
      DATA_DIR: join(folder, 'data'),
      PORT: String(await freePort()),
      LOG_LEVEL: 'error',
    })
  })
  after(async () => {
    await gateway?.stop()
    rmSync(folder, { recursive: true, force: true })
  })

  const readme = readFileSync(join(root, 'README.md'), 'utf8')
  const programsIn = (page: string): readonly string[] =>
    [...page.matchAll(/^```js\n([\s\S]*?)^```/gm)].map(([, program = '']) => program)
  const programs = programsIn(readme)

  /** Runs a program in the folder of the project, as the README asks, and returns what it prints. It must end by itself. */
  async function output(program: string): Promise<string> {
    const env = { ...process.env, DATA_DIR: join(folder, 'data') }
    const { stdout } = await run(process.execPath, ['--input-type=module', '--eval', program], { cwd: root, env })
    return stdout
  }

  it('buy over HTTP and MCP exactly as documented', async () => {
    expect(programs).to.have.length(2)
    const stdout = await output(programs.join('\n'))
    expect(stdout.match(/price: 1900/g)).to.have.length(3)
    expect(stdout).to.match(/success: true/)
    const [receipt = ''] = /eyJ[\w=+/-]+/.exec(stdout) ?? []
    expect(JSON.parse(Buffer.from(receipt, 'base64').toString())).to.include({ success: true, network: 'eip155:84532' })
  })

  it('buy with our own client, within its limits', async () => {
    const [program = ''] = programsIn(readFileSync(join(root, 'docs/buying.md'), 'utf8'))
    const stdout = await output(program)
    expect(stdout).to.contain('price: 1900').and.to.contain('} true')
    expect(stdout)
      .to.contain('not bought: 5000000 exceeds the limit of 0.01 USDC a call')
      .and.to.match(/\ntrue\n$/)
  })

  it('buy for more than 1 dollar only once the limit of the client is raised', async () => {
    const [, raise = ''] = /`(wallet\.setSpendControls\(.*\))`/.exec(readme) ?? []
    const buy = "pay(`${base_url}/v1/audit`, { method: 'POST' })"
    const stdout = await output(`${programs[0]}
      await ${buy}.catch((error) => console.log('refused:', error.message))
      ${raise}
      console.log('status:', (await ${buy}).status)`)
    expect(stdout).to.match(/refused: .*maxAmountPerPayment \(\$1\b/)
    expect(stdout).to.contain('status: 200')
  })

  it('call the route that the gateway suggests when it starts', () => {
    expect(gateway.output()).to.contain('npm run pay -- GET /v1/regime/current')
  })
})
