import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { expect } from 'chai'
import { nameIn } from '../../scripts/product.ts'

const root = resolve(import.meta.dirname, '../..')
const PARTS = ['gateway', 'scripts', 'schemas', 'package.json', 'tsconfig.json', 'catalog/service.json']
const MADE = ['gold-price', '--summary', 'The price of gold by hour.', '--price', '0.005']

describe('new-product', () => {
  let copy: string

  /** A script or test file run in a copy of the project that has no product. */
  const run = (...args: readonly string[]) => runWith('', ...args)
  /** The same, with something on its standard input. */
  const runWith = (input: string, ...args: readonly string[]) =>
    spawnSync(process.execPath, ['--import', 'tsx/esm', ...args], {
      cwd: copy,
      input,
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
  })

  it('writes a test that passes', () => {
    const tested = run('node_modules/mocha/bin/mocha.js', '--no-package', 'test/plugins/gold-price/index.test.ts')
    expect(tested.stdout, tested.stdout).to.match(/6 passing/)
    expect(tested.status).to.equal(0)
  })

  it('writes types that the plugin fits', () => {
    expect(readFileSync(join(copy, 'schemas/types.d.ts'), 'utf8')).to.contain('getGoldPrice')
    const tsc = spawnSync(process.execPath, [join(root, 'node_modules/typescript/bin/tsc'), '--noEmit', '-p', '.'], {
      cwd: copy,
      encoding: 'utf8',
    })
    expect(tsc.stdout.split('\n').filter((line) => line.includes('gold-price'))).to.deep.equal([])
  })

  it('writes a product without code as one document', () => {
    const flags = ['--summary', 'Silver by day.', '--price', '0.01', '--upstream', 'http://silver.internal/{day}']
    const made = run('scripts/new-product.ts', 'silver-price', ...flags)
    expect(made.stderr).to.equal('')
    expect(made.stdout).to.match(/^Written:\n {2}catalog\/x\/silver-price\.json\n\n/)
    const checked = run('scripts/check.ts')
    expect(checked.stdout).to.match(/\$0\.01 +GET \/v1\/x\/silver-price\/\{day\} +silver-price +getSilverPrice +tool/)
    expect(checked.status).to.equal(0)
  })

  it('uses the defaults of its questions without a terminal', () => {
    const made = run('scripts/new-product.ts', 'tin-2')
    expect([made.stderr, made.status]).to.deep.equal(['', 0])
    expect(made.stdout).to.contain('Tin 2 ("Tin 2, newest first.") costs $0.005 a call.')
    expect(run('scripts/check.ts').stdout).to.match(/\$0\.005 +GET \/v1\/x\/tin-2 +tin-2 +getTin2 +tool/)
  })

  it('asks every question if no name is given, and reads answers from a pipe', () => {
    const answers = ['zinc', '', 'The price of zinc.', '0.01', 'https://zinc.internal/now', ''].join('\n')
    const made = runWith(answers, 'scripts/new-product.ts')
    expect([made.stderr, made.status]).to.deep.equal(['', 0])
    expect(made.stdout).to.match(/Title for people \[Zinc\]: .*Price in US dollars, or free \[0\.005\]: /s)
    const document = JSON.parse(readFileSync(join(copy, 'catalog/x/zinc.json'), 'utf8')) as object
    expect(document).to.deep.include({ title: 'Zinc', summary: 'The price of zinc.' })
    expect(document).to.have.nested.property('operations.getZinc.price', '0.01')
    expect(document).to.have.nested.property('upstream.url', 'https://zinc.internal/now')
  })

  const refused: readonly (readonly [string, readonly string[], RegExp])[] = [
    ['a product that exists', MADE, /plugins\/gold-price\/index\.ts.* exist already/],
    ['a folder that exists', ['half-done'], /plugins\/half-done exists already/],
    ['an operation id that another product has', ['tin2'], /getTin2 is already defined at x\/tin-2\.json/],
    [
      'an invalid name, price and address, and reports all of them',
      ['Gold 2', '--price', '0.0000001', '--upstream', 'http://{host}.internal/'],
      /^--product: "Gold 2" is not a valid name: .* such as gold-2\.\n--price: "0\.0000001" is not a valid price.*\n--upstream: .*\n$/,
    ],
    ['a missing name', [], /^--product: A name is required.* such as gold-price\.\n/],
    ['flags that npm consumed', ['lead', '0.01'], /Unexpected argument 0\.01\..*\n.*new-product -- lead --price/],
    ['unknown flags', ['lead', '--prize', '1'], /^Unknown option '--prize'[^\n]*\n$/],
  ]
  for (const [title, args, reason] of refused)
    it(`refuses ${title}, and writes nothing`, () => {
      mkdirSync(join(copy, 'plugins/half-done'), { recursive: true })
      const before = filesOf(copy)
      const made = run('scripts/new-product.ts', ...args)
      expect(made.stderr).to.match(reason)
      expect(made.status).to.equal(1)
      expect(filesOf(copy)).to.deep.equal(before)
    })
})

describe('a name that is not valid', () => {
  it('is turned into one that is valid', () => {
    const names = ['Gold 2', 'gold/x', '../etc', '2nd gold', 'GOLD_price!', 'Büro', ''].map(nameIn)
    expect(names).to.deep.equal(['gold-2', 'gold-x', 'etc', 'nd-gold', 'gold-price', 'b-ro', 'gold-price'])
  })
})

/** Lists every file of the folders that products have files in. */
function filesOf(copy: string): string[] {
  return ['catalog', 'plugins', 'schemas', 'test'].flatMap((folder) =>
    readdirSync(join(copy, folder), { recursive: true }).map((file) => join(folder, String(file))),
  )
}
