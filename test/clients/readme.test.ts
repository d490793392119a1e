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
    const current = { ...getGold, route: 'GET /v1/regime/current', handler: 'getGold' }
    mkdirSync(join(folder, 'catalog'))
    const write = (file: string, content: unknown): void =>
      writeFileSync(join(folder, 'catalog', file), JSON.stringify(content))
    write('service.json', SERVICE)
    write('gold.json', { ...gold(), operations: { getRegimeCurrent: current, getGoldColumns } })
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

  it('buy over HTTP and MCP exactly as documented', async () => {
    const readme = readFileSync(join(root, 'README.md'), 'utf8')
    const programs = [...readme.matchAll(/^```js\n([\s\S]*?)^```/gm)].map(([, program]) => program)
    expect(programs).to.have.length(2)
    const program = programs.join('\n').replace(`'data/`, `'${folder}/data/`)
    // They also end by themselves.
    const { stdout } = await run(process.execPath, ['--input-type=module', '--eval', program], { cwd: root })
    expect(stdout.match(/price: 1900/g)).to.have.length(2)
    expect(stdout).to.match(/success: true/)
    const [receipt = ''] = /eyJ[\w=+/-]+/.exec(stdout) ?? []
    expect(JSON.parse(Buffer.from(receipt, 'base64').toString())).to.include({ success: true, network: 'eip155:84532' })
  })

  it('call the route that the gateway suggests when it starts', () => {
    expect(gateway.output()).to.contain('npm run pay -- GET /v1/regime/current')
  })
})
