import { spawn, spawnSync } from 'node:child_process'
import {
  appendFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { expect } from 'chai'
import { gold } from '../support/catalog.ts'

const root = resolve(import.meta.dirname, '../..')
/** What a build needs of the project. */
const PARTS = [
  'gateway',
  'schemas',
  'scripts',
  'views',
  'catalog/service.json',
  'package.json',
  'package-lock.json',
  'tsconfig.json',
]

describe('npm run build', () => {
  let copy: string
  /** Runs the script in a copy of the project, which sells one product, and resolves with its output. */
  const build = (): Promise<{ code: number | null; output: string }> => {
    const child = spawn(process.execPath, ['scripts/bootstrap.mjs', '--build'], {
      cwd: copy,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { PATH: process.env['PATH'], HOME: process.env['HOME'] },
    })
    let output = ''
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (chunk: Buffer) => void (output += chunk.toString()))
    return new Promise((done) => child.once('close', (code) => done({ code, output })))
  }
  const contentOf = (file: string): unknown => JSON.parse(readFileSync(join(copy, 'dist', file), 'utf8'))

  before(() => {
    copy = mkdtempSync(join(tmpdir(), 'tollgate-build-'))
    for (const part of PARTS) cpSync(join(root, part), join(copy, part), { recursive: true })
    symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'))
    cpSync(join(root, 'test/fixtures/plugins/gold'), join(copy, 'plugins/gold'), { recursive: true })
    mkdirSync(join(copy, 'plugins/lib'))
    writeFileSync(join(copy, 'plugins/lib/mean.ts'), 'export const mean = 1')
    writeFileSync(join(copy, 'catalog/gold.json'), JSON.stringify(gold()))
  })
  after(() => rmSync(copy, { recursive: true, force: true }))

  it('writes the gateway, the plugins and the list of checked schemas, once if it runs twice at the same time', async () => {
    const [one, other] = await Promise.all([build(), build()])
    expect([one.code, other.code], one.output + other.output).to.deep.equal([0, 0])
    expect((one.output + other.output).match(/^\[build\]/gm)).to.have.length(1)
    expect(existsSync(join(copy, 'dist/gateway/main.js'))).to.equal(true)
    const [home = '', ...others] = readdirSync(join(copy, 'dist/.plugins'))
    expect(others).to.deep.equal([])
    expect(readdirSync(join(copy, 'dist/.plugins', home, 'gold')).sort()).to.deep.equal(['index.js', 'index.js.map'])
    // service.json, and for gold and the three built-in products their schemas and their document.
    expect(contentOf('checked-schemas.json')).to.have.length(9)
  })

  for (const [state, lock] of [
    ['another process has its pid now', `${process.pid} 1`],
    ['its lock is empty', ''],
  ] as const)
    it(`does not wait for a build that was killed, even if ${state}`, async () => {
      rmSync(join(copy, 'dist/build.json'))
      writeFileSync(join(copy, '.install.lock'), lock)
      utimesSync(join(copy, '.install.lock'), 1, 1)
      const { code, output } = await build()
      expect(code, output).to.equal(0)
    })

  it('does nothing if no source of the gateway has changed', async () => {
    appendFileSync(join(copy, 'plugins/gold/index.ts'), '\n')
    writeFileSync(join(copy, 'catalog/gold.json'), JSON.stringify(gold({ price: '0.009' })))
    expect(await build()).to.deep.equal({ code: 0, output: '' })
  })

  it('fails with the place of a syntax error, and is repeated even if the sources are those of the last build', async () => {
    const source = readFileSync(join(copy, 'gateway/clock.ts'), 'utf8')
    writeFileSync(join(copy, 'gateway/clock.ts'), 'export const clock = = 1')
    const failed = await build()
    expect(failed.code).to.equal(1)
    expect(failed.output)
      .to.match(/gateway\/clock\.ts:1:21/)
      .and.match(/could not be built/)
    writeFileSync(join(copy, 'gateway/clock.ts'), source)
    writeFileSync(join(copy, 'dist/gateway/bundles/former.js'), '')
    const repeated = await build()
    expect(repeated.code).to.equal(0)
    expect(repeated.output).to.match(/^\[build\]/m)
    expect(existsSync(join(copy, 'dist/gateway/bundles/former.js'))).to.equal(false)
    expect(await build()).to.deep.equal({ code: 0, output: '' })
  })

  it('starts commands from the build, and from the sources once one has changed', () => {
    const built = join(copy, 'dist/scripts/keys.js')
    writeFileSync(built, 'process.stdout.write(`from the build: ${process.argv.slice(2)}`)')
    const keys = (): string => {
      const command = ['scripts/tollgate.mjs', 'keys', '--help']
      return spawnSync(process.execPath, command, { cwd: copy, encoding: 'utf8' }).stdout
    }
    expect(keys()).to.equal('from the build: --help')
    appendFileSync(join(copy, 'gateway/clock.ts'), '\n')
    expect(keys()).to.match(/^npm run keys /)
    expect(existsSync(built), 'a command must not build: a gateway may run from the build').to.equal(true)
  })
})
