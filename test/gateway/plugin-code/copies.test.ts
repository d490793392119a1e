import {
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
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect } from 'chai'
import type { Logger } from '../../../gateway/plugin/plugin.ts'
import { type Copy, createCopies, isPluginCode } from '../../../gateway/plugin-code/copies.ts'
import { CompileError } from '../../../gateway/plugin-code/compile.ts'

describe('the copies of plugin code', () => {
  let folder: string
  let dir: string
  let root: string
  let copy: Copy
  const write = (file: string, text: string): void => {
    mkdirSync(dirname(join(dir, file)), { recursive: true })
    writeFileSync(join(dir, file), text)
  }
  const read = (home: string, file: string): string => readFileSync(join(home, file), 'utf8')

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'copies-'))
    dir = join(folder, 'plugins')
    root = join(folder, 'copies')
    mkdirSync(root)
    copy = createCopies(root)
    write('gold/index.ts', `export * from './deep/price.ts'`)
    write('gold/deep/price.ts', 'export const price = 1')
  })
  afterEach(() => rmSync(folder, { recursive: true }))

  it('have the same path for the same content, and another path for other content', async () => {
    const first = await copy(dir, 'gold', 0)
    expect(read(first, 'deep/price.ts')).to.equal('export const price = 1')
    expect(await copy(dir, 'gold', 0)).to.equal(first)
    write('gold/deep/price.ts', 'export const price = 2')
    const second = await copy(dir, 'gold', 0)
    expect(second).not.to.equal(first)
    expect(read(second, 'deep/price.ts')).to.equal('export const price = 2')
    expect(read(first, 'deep/price.ts')).to.equal('export const price = 1')
    write('gold/deep/price.ts', 'export const price = 1')
    expect(await copy(dir, 'gold', 0)).to.equal(first)
    expect(await copy(dir, 'gold', 1)).not.to.equal(first)
  })

  const loops: readonly (readonly [string, () => void, RegExp])[] = [
    [
      'its own folder',
      () => symlinkSync('.', join(dir, 'gold/again')),
      /gold\/again is a link to a folder that contains it/,
    ],
    [
      'a folder above the plugins',
      () => symlinkSync(folder, join(dir, 'gold/deep/up')),
      /gold\/deep\/up is a link to a folder that contains it/,
    ],
    [
      'folders that link to each other',
      () => {
        write('sums/mean.ts', '')
        write('gold/index.ts', `import '../sums/mean.ts'`)
        symlinkSync(join(dir, 'sums'), join(dir, 'gold/sums'))
        symlinkSync(join(dir, 'gold'), join(dir, 'sums/gold'))
      },
      /gold\/sums\/gold is a link to a folder that contains it/,
    ],
    ['itself', () => symlinkSync('self', join(dir, 'gold/self')), /ELOOP.*gold\/self/],
  ]
  for (const [what, link, message] of loops)
    it(`are refused with a clear error if a link leads to ${what}`, async () => {
      link()
      const refused = await copy(dir, 'gold', 0).catch((error: unknown) => error)
      expect((refused as Error).message).to.match(message)
    })

  it('follow links to other folders', async () => {
    mkdirSync(join(folder, 'elsewhere'))
    writeFileSync(join(folder, 'elsewhere/tin.ts'), 'export {}')
    for (const name of ['one', 'two']) symlinkSync(join(folder, 'elsewhere'), join(dir, 'gold', name))
    const home = await copy(dir, 'gold', 0)
    for (const name of ['one', 'two']) expect(read(home, `${name}/tin.ts`)).to.equal('export {}')
  })

  it('include the sibling folders that the code refers to, directly or indirectly, and no others', async () => {
    write(
      'gold/deep/price.ts',
      `import { mean } from '../../sums/mean.ts'\nnew URL("../../table.json", import.meta.url)`,
    )
    write('sums/mean.ts', `import '../more/add.ts'`)
    write('more/add.ts', 'export {}')
    write('table.json', '[]')
    write('silver/index.ts', 'export {}')
    const home = dirname(await copy(dir, 'gold', 0))
    expect(readdirSync(home).sort()).to.deep.equal(['gold', 'more', 'sums', 'table.json'])
    write('silver/index.ts', 'export const other = 1')
    expect(dirname(await copy(dir, 'gold', 0))).to.equal(home)
    write('more/add.ts', 'export const other = 1')
    expect(dirname(await copy(dir, 'gold', 0))).not.to.equal(home)
  })

  it('leave out hidden files, and a package.json that would change how imports resolve', async () => {
    write('gold/package.json', '{}')
    write('gold/.secret', 'x')
    write('gold/node_modules/tin/index.js', '')
    const home = await copy(dir, 'gold', 0)
    expect(readdirSync(home).sort()).to.deep.equal(['deep', 'index.ts', 'node_modules'])
    expect(existsSync(join(home, 'node_modules/tin/index.js'))).to.equal(true)
  })

  it('are complete, even if several processes write the same copy at once', async () => {
    const homes = await Promise.all(Array.from({ length: 10 }, () => createCopies(root)(dir, 'gold', 0)))
    expect(new Set(homes).size).to.equal(1)
    expect(readdirSync(root)).to.have.length(1)
  })

  it('are removed a week after their last use', async () => {
    const old = await copy(dir, 'gold', 0)
    write('gold/index.ts', 'export const next = 1')
    const eightDaysAgo = new Date(Date.now() - 8 * 86_400_000)
    utimesSync(dirname(old), eightDaysAgo, eightDaysAgo)
    const next = await createCopies(root)(dir, 'gold', 0)
    expect(readdirSync(root)).to.deep.equal([dirname(next).slice(root.length + 1)])
  })

  it('are complete if they were last used more than a week ago', async () => {
    write('tin/index.ts', 'export const price = 3')
    const homes = [await copy(dir, 'gold', 0), await copy(dir, 'tin', 0)]
    const eightDaysAgo = new Date(Date.now() - 8 * 86_400_000)
    for (const home of homes) utimesSync(dirname(home), eightDaysAgo, eightDaysAgo)
    const again = createCopies(root)
    expect(await Promise.all([again(dir, 'gold', 0), again(dir, 'tin', 0)])).to.deep.equal(homes)
    expect(homes.map((home) => readdirSync(home).sort())).to.deep.equal([['deep', 'index.ts'], ['index.ts']])
  })

  it('read a folder that they share once if they are made together, and again the next time', async () => {
    write('sums/mean.ts', 'export const mean = 1')
    for (const name of ['gold', 'tin']) write(`${name}/index.ts`, `import '../sums/mean.ts'`)
    const together = new Map()
    const gold = await copy(dir, 'gold', 0, together)
    write('sums/mean.ts', 'export const mean = 2')
    const tin = await copy(dir, 'tin', 0, together)
    for (const home of [gold, tin]) expect(read(home, '../sums/mean.ts')).to.equal('export const mean = 1')
    expect(read(await copy(dir, 'tin', 0), '../sums/mean.ts')).to.equal('export const mean = 2')
  })

  it('fail if the folder is gone', async () => {
    const failure = await copy(dir, 'silver', 0).catch((error: unknown) => error)
    expect((failure as NodeJS.ErrnoException).code).to.equal('ENOENT')
  })

  it('are compiled on demand, in a folder of another name than copies of the sources', async () => {
    const compiled = await createCopies(root, { compiles: true })(dir, 'gold', 0)
    expect(readdirSync(compiled).sort()).to.deep.equal(['deep', 'index.js', 'index.js.map'])
    expect(read(compiled, 'index.js')).to.contain('"./deep/price.js"')
    expect(read(compiled, 'deep/price.js')).to.contain('price = 1')
    const sources = await copy(dir, 'gold', 0)
    expect(readdirSync(sources).sort()).to.deep.equal(['deep', 'index.ts'])
    expect(dirname(compiled)).not.to.equal(dirname(sources))
    expect(readdirSync(root)).to.have.length(2)
  })

  it('are not written if the code does not compile', async () => {
    write('gold/deep/price.ts', 'export const price = = 1')
    const failure: unknown = await createCopies(root, { compiles: true })(dir, 'gold', 0).catch(
      (error: unknown) => error,
    )
    expect(failure).to.be.instanceOf(CompileError)
    expect(readdirSync(root)).to.deep.equal([])
  })

  describe('in a folder that cannot be written to', () => {
    let warnings: unknown[]
    const open = (compiles: boolean): Copy => {
      const log = { warn: (...args: unknown[]) => void warnings.push(args.at(-1)) } as unknown as Logger
      return createCopies(join(folder, 'file/copies'), { compiles, log })
    }
    beforeEach(() => {
      warnings = []
      writeFileSync(join(folder, 'file'), '')
      write(
        'gold/index.ts',
        `import { definePlugin } from 'tollgate/plugin'
        import { InvalidInput } from '#gateway'
        import { Cron } from 'croner'
        import { tin } from 'tin'
        import { price } from './deep/price.ts'
        export default definePlugin({ name: 'gold', setup: () => ({ handlers: {} }) })
        export const kinds = [typeof InvalidInput, typeof Cron, tin, price]`,
      )
      write('gold/node_modules/tin/index.js', 'exports.tin = 50')
    })

    for (const [kind, compiles] of [
      ['sources', false],
      ['compiled code', true],
    ] as const)
      it(`are ${kind} in a temporary folder, from which the plugin API and packages resolve`, async () => {
        const unwritable = open(compiles)
        const home = await unwritable(dir, 'gold', 0)
        expect(home.startsWith(folder)).to.equal(false)
        const index = pathToFileURL(join(home, compiles ? 'index.js' : 'index.ts')).href
        const { default: plugin, kinds } = (await import(index)) as { default: unknown; kinds: unknown }
        expect(plugin).to.include({ name: 'gold' })
        expect(kinds).to.deep.equal(['function', 'function', 50, 1])
        expect(await unwritable(dir, 'gold', 0)).to.equal(home)
        write('gold/deep/price.ts', 'export const price = 2')
        expect(await unwritable(dir, 'gold', 0)).not.to.equal(home)
        expect(warnings).to.deep.equal(['plugin code is copied to a temporary folder'])
      })

    it('are known as copies by a line of a stack', async () => {
      const home = await open(false)(dir, 'gold', 0)
      for (const place of [join(home, 'index.ts'), pathToFileURL(join(home, 'index.ts')).href])
        expect(isPluginCode(`    at Timeout._onTimeout (${place}:3:7)`)).to.equal(true)
      expect(isPluginCode(`    at Timeout._onTimeout (${join(dir, 'gold/index.ts')}:3:7)`)).to.equal(false)
    })
  })
})
