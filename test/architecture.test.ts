import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve, sep } from 'node:path'
import { expect } from 'chai'

const root = resolve(import.meta.dirname, '..')
const files = (folder: string, ending: RegExp): string[] =>
  readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && ending.test(entry.name))
    .map((entry) => relative(root, join(entry.parentPath, entry.name)))
    .filter((path) => !path.split(sep).includes('node_modules'))

const imports = (file: string): string[] =>
  [...readFileSync(join(root, file), 'utf8').matchAll(/(?:from|import)\s*\(?\s*'([^']+)'/g)].map(
    (match) => match[1] as string,
  )

/** Path of an imported file from the root, or the bare name of a package. */
const target = (file: string, name: string): string =>
  name.startsWith('.') ? relative(root, resolve(root, dirname(file), name)) : name

interface Document {
  readonly product?: string
  readonly plugin?: string
  readonly family?: string
}

/** Datasets of our own; whoever adds another may call it by a word of our comments, such as gold. */
const DATASETS = ['agent-economy-directory', 'perp-funding-rates']

const productIds = (): string[] =>
  files('catalog', /\.json$/)
    .map((file) => JSON.parse(readFileSync(join(root, file), 'utf8')) as Document)
    .filter(({ family, product }) => family !== 'x' || DATASETS.includes(product ?? ''))
    .filter((document) => document.product && !['documents', 'plans', 'operator'].includes(document.plugin ?? ''))
    .map((document) => document.product as string)

/** Product ids that are everyday words too count only where they are quoted or stand in a path. */
const EVERYDAY = ['market', 'site', 'cost', 'directory']

const special = [...productIds().filter((id) => !EVERYDAY.includes(id)), 'ohlcv', 'backtest']
const productName = new RegExp(`\\b(${special.join('|')})\\b|['"/](${EVERYDAY.join('|')})['"/]`, 'i')

describe('the architecture', () => {
  it('names no product inside gateway/', () => {
    const found = files('gateway', /\.ts$/).flatMap((file) =>
      readFileSync(join(root, file), 'utf8')
        .split('\n')
        .flatMap((line, row) => (productName.test(line) ? [`${file}:${row + 1} ${line.trim()}`] : [])),
    )
    expect(found).to.deep.equal([])
  })

  it('lets no file of gateway/ import a plugin', () => {
    const found = files('gateway', /\.ts$/).filter((file) =>
      imports(file).some((name) => target(file, name).startsWith('plugins')),
    )
    expect(found).to.deep.equal([])
  })

  it('lets a plugin import only #gateway, plugins/quant, generated types, packages and its own folder', () => {
    const found = files('plugins', /\.ts$/).flatMap((file) => {
      const own = file.split(sep).slice(0, 2).join(sep)
      const allowed = (name: string): boolean => {
        const path = target(file, name)
        if (!name.startsWith('.')) return own !== join('plugins', 'quant') || name.startsWith('node:')
        const quant = join('plugins', 'quant') + sep
        return path.startsWith(own + sep) || path.startsWith(quant) || path.startsWith(join('schemas', 'types'))
      }
      return imports(file)
        .filter((name) => !allowed(name))
        .map((name) => `${file} imports ${name}`)
    })
    expect(found).to.deep.equal([])
  })

  it('has no cycle among the folders of gateway/', () => {
    const folder = (path: string): string | null => path.match(/^gateway[\\/]([^\\/]+)[\\/]/)?.[1] ?? null
    const edges = new Map<string, Set<string>>()
    for (const file of files('gateway', /\.ts$/)) {
      const from = folder(file)
      if (!from) continue
      for (const name of imports(file)) {
        const to = folder(target(file, name))
        if (to && to !== from) edges.set(from, (edges.get(from) ?? new Set()).add(to))
      }
    }
    const cycle = (at: string, path: string[]): string[] | null => {
      if (path.includes(at)) return [...path.slice(path.indexOf(at)), at]
      for (const next of edges.get(at) ?? []) {
        const found = cycle(next, [...path, at])
        if (found) return found
      }
      return null
    }
    const found = [...edges.keys()].map((start) => cycle(start, [])?.join(' → ')).filter(Boolean)
    expect(found).to.deep.equal([])
  })

  it('keeps every hand-written file within 250 lines', () => {
    const tracked = execFileSync('git', ['ls-files', '--', '*.ts', '*.mjs', '*.pug', '*.css', '*.sol'], {
      cwd: root,
      encoding: 'utf8',
    })
    const long = tracked
      .split('\n')
      .filter((file) => file && !file.endsWith('.d.ts'))
      .map((file) => ({ file, lines: readFileSync(join(root, file), 'utf8').split('\n').length - 1 }))
      .filter(({ lines }) => lines > 250)
    expect(long).to.deep.equal([])
  })

  it('reads the environment in one place only', () => {
    const code = (file: string): string => readFileSync(join(root, file), 'utf8').replace(/`[^`]*`/g, '')
    const found = [...files('gateway', /\.ts$/), ...files('plugins', /\.ts$/)].filter(
      (file) => file !== join('gateway', 'config.ts') && /process\.env/.test(code(file)),
    )
    expect(found).to.deep.equal([])
  })
})
