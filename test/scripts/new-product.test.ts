import { spawnSync } from 'node:child_process'
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { expect } from 'chai'

const root = resolve(import.meta.dirname, '../..')
const PARTS = [
  'gateway',
  'scripts',
  'schemas',
  'package.json',
  'tsconfig.json',
  'catalog/service.json',
  'test/contracts',
]
const MADE = ['gold-price', '--summary', 'The price of gold by hour.', '--price', '0.005']

describe('new-product', () => {
  let copy: string

  /** A script or test file run in a copy of the project that has no product. */
  const run = (...args: readonly string[]) =>
    spawnSync(process.execPath, ['--import', 'tsx/esm', ...args], {
      cwd: copy,
      encoding: 'utf8',
      env: { PATH: process.env['PATH'], HOME: process.env['HOME'] },
    })

  before(() => {
    copy = mkdtempSync(join(tmpdir(), 'tollgate-copy-'))
    for (const part of PARTS) cpSync(join(root, part), join(copy, part), { recursive: true })
    symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'))
  })

  after(() => rmSync(copy, { recursive: true, force: true }))

  it('writes a product that is on the price list at once', () => {
    const made = run('scripts/new-product.ts', ...MADE)
    expect(made.stderr).to.equal('')
    expect(made.status).to.equal(0)
    const checked = run('scripts/check.ts')
    expect(checked.stdout).to.match(/\$0\.005 +GET \/v1\/x\/gold-price +gold-price +getGoldPrice +tool/)
    expect(checked.status).to.equal(0)
  }).timeout(60_000)

  it('writes a test that passes', () => {
    const tested = run('node_modules/mocha/bin/mocha.js', '--no-package', 'test/plugins/gold-price/index.test.ts')
    expect(tested.stdout, tested.stdout).to.match(/6 passing/)
    expect(tested.status).to.equal(0)
  }).timeout(60_000)

  it('writes types that the plugin fits', () => {
    expect(readFileSync(join(copy, 'schemas/types.d.ts'), 'utf8')).to.contain('getGoldPrice')
    const tsc = spawnSync(process.execPath, [join(root, 'node_modules/typescript/bin/tsc'), '--noEmit', '-p', '.'], {
      cwd: copy,
      encoding: 'utf8',
    })
    expect(tsc.stdout.split('\n').filter((line) => line.includes('gold-price'))).to.deep.equal([])
  }).timeout(60_000)

  it('writes a product without code in one document', () => {
    const flags = ['--summary', 'Silver by day.', '--price', '0.01', '--upstream', 'http://silver.internal/{day}']
    const made = run('scripts/new-product.ts', 'silver-price', ...flags)
    expect(made.stderr).to.equal('')
    expect(made.stdout).to.match(/^Written:\n {2}catalog\/x\/silver-price\.json\n\n/)
    const checked = run('scripts/check.ts')
    expect(checked.stdout).to.match(/\$0\.01 +GET \/v1\/x\/silver-price\/\{day\} +silver-price +getSilverPrice +tool/)
    expect(checked.status).to.equal(0)
  }).timeout(60_000)

  it('refuses to write over a product', () => {
    const before = readFileSync(join(copy, 'plugins/gold-price/index.ts'), 'utf8')
    const again = run('scripts/new-product.ts', ...MADE)
    expect(again.status).to.equal(1)
    expect(again.stderr).to.contain('is there already')
    expect(readFileSync(join(copy, 'plugins/gold-price/index.ts'), 'utf8')).to.equal(before)
  }).timeout(60_000)

  it('says which answer is missing or wrong, and writes nothing', () => {
    const missing = run('scripts/new-product.ts', 'silver')
    expect(missing.stderr).to.match(/--summary.*\n.*--price/)
    const open = run('scripts/new-product.ts', ...MADE.slice(1), 'silver', '--upstream', 'http://{host}.internal/')
    expect(open.stderr).to.contain('upstream: ')
    const wrong = run('scripts/new-product.ts', '--product', 'Silver Price')
    expect(wrong.stderr).to.contain('lower case')
    expect(existsSync(join(copy, 'plugins/silver'))).to.equal(false)
  }).timeout(60_000)
})
