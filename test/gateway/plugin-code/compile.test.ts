import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { SourceMap, type SourceMapPayload } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect } from 'chai'
import { CompileError, compilePlugin, type PluginFiles } from '../../../gateway/plugin-code/compile.ts'

type Sources = Readonly<Record<string, string>>

const compile = (sources: Sources): Promise<PluginFiles> =>
  compilePlugin(new Map(Object.entries(sources).map(([file, text]) => [file, Buffer.from(text)])))

const textOf = (files: PluginFiles, file: string): string => files.get(file)?.toString() ?? `there is no ${file}`

describe('the compiler of plugins', () => {
  let folder: string
  beforeEach(() => (folder = mkdtempSync(join(tmpdir(), 'compiled-'))))
  afterEach(() => rmSync(folder, { recursive: true }))

  /** Resolves with what the default export of a file is in a process without a TypeScript loader. */
  function defaultIn(files: PluginFiles, file: string): unknown {
    for (const [path, bytes] of new Map([['package.json', Buffer.from('{ "type": "module" }')], ...files])) {
      mkdirSync(dirname(join(folder, path)), { recursive: true })
      writeFileSync(join(folder, path), bytes)
    }
    const source = `import(process.argv[1]).then(({ default: value }) => console.log(JSON.stringify(value)))`
    const args = ['--no-warnings', '--eval', source, pathToFileURL(join(folder, file)).href]
    const { stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' })
    expect(stderr).to.equal('')
    return JSON.parse(stdout) as unknown
  }

  /** Compiles a plugin, and resolves with the default export of its index. */
  const defaultOf = async (sources: Sources): Promise<unknown> => defaultIn(await compile(sources), 'gold/index.js')

  /** Resolves with the message of the CompileError. */
  const errorOf = async (sources: Sources): Promise<string> => {
    const error: unknown = await compile(sources).catch((thrown: unknown) => thrown)
    expect(error).to.be.instanceOf(CompileError)
    return (error as CompileError).message
  }

  it('removes types, and imports of types that are not marked as such', async () => {
    const value = await defaultOf({
      'gold/index.ts': `import { Price, type Day } from './price.ts'
        import { Unknown } from 'a-package-of-types'
        const price: Price = { day: 'Monday' as Day, amount: 3 satisfies number }
        const unknown = undefined as Unknown | undefined
        export default { ...price, unknown: unknown ?? null } as const`,
      'gold/price.ts': `export type Day = 'Monday'\nexport interface Price { readonly day: Day; readonly amount: number }`,
    })
    expect(value).to.deep.equal({ day: 'Monday', amount: 3, unknown: null })
  })

  it('compiles enums, parameter properties, class fields and namespaces', async () => {
    const value = await defaultOf({
      'gold/index.ts': `enum Metal { Gold = 79, Silver = 47 }
        namespace Weights { export const ounce = 31.1 }
        class Coin { metal = Metal.Gold; constructor(readonly weight: number) {} }
        export default [Metal[47], new Coin(Weights.ounce)]`,
    })
    expect(value).to.deep.equal(['Silver', { metal: 79, weight: 31.1 }])
  })

  for (const [what, address, file] of [
    ['by the extension .ts', './price.ts', 'gold/price.ts'],
    ['by the extension .js', './price.js', 'gold/price.ts'],
    ['by the extension .mjs', './price.mjs', 'gold/price.mts'],
    ['without an extension', './price', 'gold/price.ts'],
    ['as a folder', './deep', 'gold/deep/index.ts'],
    ['as a folder with a slash', './deep/', 'gold/deep/index.ts'],
    ['as a folder whose name begins with index', './indexes', 'gold/indexes/index.ts'],
    ['in a folder', './deep/price', 'gold/deep/price.ts'],
    ['in a sibling folder', '../silver/price.ts', 'silver/price.ts'],
    ['with a query', './price.ts?again', 'gold/price.ts'],
    ['as JavaScript', './price.js', 'gold/price.js'],
  ] as const)
    it(`resolves an import ${what}, static or dynamic`, async () => {
      const value = await defaultOf({
        'gold/index.ts': `import { price } from '${address}'
          export { price as again } from '${address}'
          const { price: dynamic } = await import('${address}')
          export default [price, dynamic]`,
        [file]: 'export const price = 7',
      })
      expect(value).to.deep.equal([7, 7])
    })

  it('resolves dynamic imports of computed addresses', async () => {
    const value = await defaultOf({
      'gold/index.ts': `const price = async (name: string): Promise<number[]> => [
          (await import(\`./venues/\${name}.ts\`)).price,
          (await import('./venues/' + name + '.mts')).price,
          (await import(\`../\${'gold'}/venues/\${name}.ts\`)).price,
          (await import(/* import */ new URL(\`venues/\${name}.ts\`, import.meta.url).href)).price,
        ]
        const data = { type: 'json' }
        const kind = 'fees', table = await import(\`./venues/\${kind}.json\`, { with: data })
        class Venue { import(rows: number) { return rows } }
        export default [await price('north'), await price('south'), table.default, new Venue().import(8), 'import(\`x\`)']`,
      'gold/venues/north.ts': 'export const price = 1',
      'gold/venues/north.mts': 'export const price = 2',
      'gold/venues/south.ts': 'export const price = 3',
      'gold/venues/south.mts': 'export const price = 4',
      'gold/venues/fees.json': '{ "maker": 5 }',
    })
    expect(value).to.deep.equal([[1, 2, 1, 1], [3, 4, 3, 3], { maker: 5 }, 8, 'import(`x`)'])
  })

  it('makes imported JSON part of the code, and keeps the file', async () => {
    const sources = {
      'gold/index.ts': `import weights from './weights.json' with { type: 'json' }
        import { ounce } from './weights.json'
        import plain from '../table.json'
        const { default: dynamic } = await import('./weights.json', { with: { type: 'json' } })
        export default [weights.ounce, ounce, plain, dynamic.ounce]`,
      'gold/weights.json': '{ "ounce": 31.1 }',
      'table.json': '[1]',
    }
    expect(await defaultOf(sources)).to.deep.equal([31.1, 31.1, [1], 31.1])
    expect(textOf(await compile(sources), 'gold/weights.json')).to.equal('{ "ounce": 31.1 }')
  })

  it('compiles .mts to .mjs and .cts to .cjs', async () => {
    const value = await defaultOf({
      'gold/index.ts': `import { ounce } from './module.mts'\nimport { gram } from './common.cts'\nexport default [ounce, gram]`,
      'gold/module.mts': 'export const ounce: number = 31.1',
      'gold/common.cts': `import { unit } from './unit.cts'\nexport const gram: string = unit + typeof module`,
      'gold/unit.cts': `export const unit = 'g'`,
    })
    expect(value).to.deep.equal([31.1, 'gobject'])
  })

  it('prefers the TypeScript of a module that exists in both languages', async () => {
    const sources = { 'gold/index.js': 'export default "js"', 'gold/index.ts': 'export default "ts"' }
    expect(await defaultOf(sources)).to.equal('ts')
    expect([...(await compile(sources)).keys()].sort()).to.deep.equal(['gold/index.js', 'gold/index.js.map'])
  })

  it('returns other files as they are, and leaves out declarations of types', async () => {
    const sources = {
      'gold/index.ts': `export default new URL('./word.txt', import.meta.url).href.slice(-14)`,
      'gold/word.txt': 'gold',
      'gold/views/gold.pug': 'p gold',
      'gold/types.d.ts': 'export interface Price {}',
      'gold/run.mjs': '#!/usr/bin/env node\nexport const run = 1',
      // A script of a page: its functions are called from outside.
      'gold/assets/buy.js': 'function buy() {}\nwith (document) title = import(`./${title}.js`)',
      'gold/common.cjs': 'exports.price = 1',
    }
    const { 'gold/index.ts': _index, 'gold/types.d.ts': _types, ...others } = sources
    const compiled = await compile(sources)
    for (const [file, text] of Object.entries(others)) expect(textOf(compiled, file), file).to.equal(text)
    expect(compiled.size).to.equal(Object.keys(others).length + 2)
    expect(await defaultOf(sources)).to.equal('/gold/word.txt')
  })

  it('compiles JavaScript that imports TypeScript or JSON', async () => {
    const value = await defaultOf({
      'gold/index.js': `import { price } from './price.ts'\nimport { ounce } from './units.js'\nexport default [price, ounce]`,
      'gold/units.js': `import units from './units.json'\nexport const { ounce } = units`,
      'gold/price.ts': 'export const price: number = 7',
      'gold/units.json': '{ "ounce": 31.1 }',
    })
    expect(value).to.deep.equal([7, 31.1])
  })

  it('leaves imports of packages, of Node and of files that do not exist as they are', async () => {
    const code = textOf(
      await compile({
        'gold/index.ts': `import { definePlugin } from 'tollgate/plugin'
          import { join } from 'node:path'
          import table from 'tables/prices.json' with { type: 'json' }
          import { lost } from './lost.ts'
          export default [definePlugin, join, table, lost]`,
      }),
      'gold/index.js',
    )
    const addresses = [...code.matchAll(/^import .*? from (".*?");?$|^import .*? from (.*);$/gm)].map(([line]) =>
      line.slice(line.indexOf('"')),
    )
    expect(addresses).to.deep.equal([
      '"tollgate/plugin";',
      '"node:path";',
      '"tables/prices.json" with { type: "json" };',
      '"./lost.ts";',
    ])
  })

  it('throws a CompileError that names file, line and column of a syntax error', async () => {
    expect(
      await errorOf({ 'gold/index.ts': `export default 1`, 'gold/word.ts': `const word = 'é'; function (` }),
    ).to.match(/^Expected .* \(gold\/word\.ts:1:28\)$/)
    expect(await errorOf({ 'gold/index.ts': `\n\nexport default {` })).to.match(/ \(gold\/index\.ts:3:17\)$/)
    expect(await errorOf({ 'gold/index.js': 'export default }' })).to.match(/ \(gold\/index\.js:1:16\)$/)
    expect(await errorOf({ 'gold/index.ts': `import './bad.js'`, 'gold/bad.js': 'let 1' })).to.match(
      / \(gold\/bad\.js:1:5\)$/,
    )
    expect(await errorOf({ 'gold/index.ts': `import '../table.json'`, 'table.json': '[1,' })).to.match(
      / \(table\.json:1:4\)$/,
    )
  })

  it('adds source maps that lead back to the lines of the TypeScript', async () => {
    const source = `import { join } from 'node:path'
interface Price {
  readonly amount: number
}
const load = (name: string) => import(\`./\${name}.ts\`)
export function priceOf(price: Price): number {
  throw new Error(join('a', 'b', String(load)))
}
`
    const compiled = await compile({ 'gold/deep/price.ts': source })
    const map = JSON.parse(textOf(compiled, 'gold/deep/price.js.map')) as SourceMapPayload
    expect(map.sources).to.deep.equal(['price.ts'])
    const lines = textOf(compiled, 'gold/deep/price.js').split('\n')
    const line = lines.findIndex((text) => text.includes('throw new Error'))
    const entry = new SourceMap(map).findEntry(line, lines[line]?.indexOf('new Error') ?? 0)
    expect(entry).to.deep.include({ originalSource: 'price.ts', originalLine: 6, originalColumn: 8 })
  })
})
