import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { expect } from 'chai'
import type { Logger } from '../../../gateway/plugin/plugin.ts'
import { type Copy, createCopies } from '../../../gateway/editions/code-copies.ts'

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

  it('fail if the folder is gone', async () => {
    const failure = await copy(dir, 'silver', 0).catch((error: unknown) => error)
    expect((failure as NodeJS.ErrnoException).code).to.equal('ENOENT')
  })

  it('are not used on a read-only disk, which is logged once', async () => {
    writeFileSync(join(folder, 'file'), '')
    const warnings: unknown[] = []
    const log = { warn: (...args: unknown[]) => void warnings.push(args.at(-1)) } as unknown as Logger
    const unwritable = createCopies(join(folder, 'file/copies'), { log })
    write('tin/index.ts', '')
    expect([await unwritable(dir, 'gold', 0), await unwritable(dir, 'tin', 1)]).to.deep.equal([
      join(dir, 'gold'),
      join(dir, 'tin'),
    ])
    expect(warnings).to.have.length(1)
    expect(String(warnings[0])).to.match(/an edit of it takes effect after a restart/)
  })
})
