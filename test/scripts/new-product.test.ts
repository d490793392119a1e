import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { expect } from 'chai'
import { nameIn } from '../../scripts/new-product/write-product.ts'
import { requireBuild } from '../support/process.ts'

const root = resolve(import.meta.dirname, '../..')
/** What the scripts need of the project. */
const PARTS = [
  'gateway',
  'scripts',
  'schemas',
  'views',
  'package.json',
  'package-lock.json',
  'tsconfig.json',
  'catalog/service.json',
  'dist/build.json',
  'dist/gateway',
  'dist/package.json',
  'dist/scripts',
]
const GOLD_PRICE = ['gold-price', '--summary', 'The price of gold by hour.', '--price', '0.005']

describe('npm run new-product', () => {
  let copy: string

  /** Runs a command in a copy of the project that has no product. */
  const run = (...args: readonly string[]) => runWith('', ...args)
  /** The same, with `input` on its standard input. */
  const runWith = (input: string, ...args: readonly string[]) => runNode(input, 'scripts/tollgate.mjs', ...args)
  const runNode = (input: string, ...args: readonly string[]) =>
    spawnSync(process.execPath, args, {
      cwd: copy,
      input,
      encoding: 'utf8',
      env: { PATH: process.env['PATH'], HOME: process.env['HOME'] },
    })

  before(() => {
    requireBuild()
    copy = mkdtempSync(join(tmpdir(), 'tollgate-copy-'))
    for (const part of PARTS) cpSync(join(root, part), join(copy, part), { recursive: true })
    symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'))
  })

  after(() => rmSync(copy, { recursive: true, force: true }))

  it('writes a product that is on the price list at once', () => {
    const created = run('new', ...GOLD_PRICE)
    expect(created.stderr).to.equal('')
    expect(created.status).to.equal(0)
    const checked = run('check')
    expect(checked.stdout).to.match(/\$0\.005 +GET \/v1\/x\/gold-price +gold-price +getGoldPrice +tool/)
    expect(checked.status).to.equal(0)
  })

  it('writes a test that passes', () => {
    const mocha = 'node_modules/mocha/bin/mocha.js'
    const tested = runNode('', '--import', 'tsx/esm', mocha, '--no-package', 'test/plugins/gold-price/index.test.ts')
    expect(tested.stdout, tested.stdout).to.match(/7 passing/)
    expect(tested.status).to.equal(0)
  })

  describe('compiled with all that it imports', () => {
    const UNHANDLED = 'plugins/gold-price/unhandled.ts'
    /** The messages about the product, one string each, with a second plugin beside it that lacks the handler. */
    let errors: readonly string[]
    before(() => {
      const setup = 'setup({ now }) { return { handlers: {}, facts: async () => ({ now: now() }) } }'
      const imports = "import { definePlugin } from 'tollgate/plugin'"
      writeFileSync(
        join(copy, UNHANDLED),
        `${imports}\nexport default definePlugin({ name: 'gold-price', ${setup} })\n`,
      )
      const tsc = join(root, 'node_modules/typescript/bin/tsc')
      const project = { extends: './tsconfig.json', include: ['plugins', 'schemas', 'test'] }
      writeFileSync(join(copy, 'tsconfig.product.json'), JSON.stringify(project))
      // Several checkers would each check what they share.
      const args = [tsc, '--noEmit', '--checkers', '1', '-p', 'tsconfig.product.json']
      const { stdout } = spawnSync(process.execPath, args, { cwd: copy, encoding: 'utf8' })
      rmSync(join(copy, UNHANDLED))
      errors = stdout.split(/\n(?! )/).filter((message) => message.includes('gold-price'))
    })

    it('has types that the plugin compiles with', () => {
      expect(readFileSync(join(copy, 'schemas/types.d.ts'), 'utf8')).to.contain('getGoldPrice')
      expect(errors.filter((message) => !message.startsWith(UNHANDLED))).to.deep.equal([])
    })

    it('has types that name a missing handler in one short error', () => {
      const messages = errors.filter((message) => message.startsWith(UNHANDLED))
      expect(messages).to.have.length(1)
      expect(messages[0]?.split('\n')).to.have.length(2)
      expect(messages[0]).to.contain('"setup returns no handler getGoldPrice"')
    })
  })

  it('gives every type the name of its product, so that a second product renames none', () => {
    const typeNames = () =>
      readFileSync(join(copy, 'schemas/types.d.ts'), 'utf8').match(/(?<=^export type )\w+/gm) ?? []
    expect(typeNames()).to.include.members(['GoldPriceQuery', 'GoldPriceAnswer'])
    expect(run('new', 'amber').status).to.equal(0)
    expect(typeNames()).to.include.members(['AmberQuery', 'AmberAnswer', 'GoldPriceQuery', 'GoldPriceAnswer'])
  })

  it('writes a product without code as one document', () => {
    const flags = ['--summary', 'Silver by day.', '--price', '0.01', '--upstream', 'http://silver.internal/{day}']
    const created = run('new', 'silver-price', ...flags)
    expect(created.stderr).to.equal('')
    expect(created.stdout).to.match(/^Written:\n {2}catalog\/x\/silver-price\.json\n\n/)
    const checked = run('check')
    expect(checked.stdout).to.match(/\$0\.01 +GET \/v1\/x\/silver-price\/\{day\} +silver-price +getSilverPrice +tool/)
    expect(checked.status).to.equal(0)
  })

  it('uses the defaults of its questions if there is no terminal', () => {
    const created = run('new', 'tin-2')
    expect([created.stderr, created.status]).to.deep.equal(['', 0])
    expect(created.stdout).to.contain('Tin 2 ("Tin 2, newest first.") costs $0.005 a call.')
    expect(run('check').stdout).to.match(/\$0\.005 +GET \/v1\/x\/tin-2 +tin-2 +getTin2 +tool/)
  })

  it('asks every question if no name is given, and reads answers from a pipe', () => {
    const answers = ['zinc', '', 'The price of zinc.', '0.01', 'https://zinc.internal/now', ''].join('\n')
    const created = runWith(answers, 'new')
    expect([created.stderr, created.status]).to.deep.equal(['', 0])
    expect(created.stdout).to.match(/Title for people \[Zinc\]: .*Price in US dollars, or free \[0\.005\]: /s)
    const document = JSON.parse(readFileSync(join(copy, 'catalog/x/zinc.json'), 'utf8')) as object
    expect(document).to.deep.include({ title: 'Zinc', summary: 'The price of zinc.' })
    expect(document).to.have.nested.property('operations.getZinc.price', '0.01')
    expect(document).to.have.nested.property('upstream.url', 'https://zinc.internal/now')
  })

  const refused: readonly (readonly [string, readonly string[], RegExp])[] = [
    ['a product that exists', GOLD_PRICE, /plugins\/gold-price\/index\.ts.* exist already/],
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
      const created = run('new', ...args)
      expect(created.stderr).to.match(reason)
      expect(created.status).to.equal(1)
      expect(filesOf(copy)).to.deep.equal(before)
    })
})

describe('an invalid product name', () => {
  it('is turned into a valid one', () => {
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
