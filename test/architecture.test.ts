import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, relative, resolve, sep } from 'node:path'
import { expect } from 'chai'

const root = resolve(import.meta.dirname, '..')

const files = (folder: string, ending: RegExp, base = root): string[] =>
  readdirSync(join(base, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && ending.test(entry.name))
    .map((entry) => relative(base, join(entry.parentPath, entry.name)))
    .filter((path) => !path.split(sep).includes('node_modules'))

/** Every module specifier a file names, in static, type-only and dynamic imports and in re-exports. */
const imports = (file: string, base = root): string[] =>
  [...readFileSync(join(base, file), 'utf8').matchAll(/(?:from|import)\s*\(?\s*'([^']+)'/g)].map(
    (match) => match[1] as string,
  )

/** What our own package name stands for, from the `exports` of package.json: 'tollgate/plugin' → 'gateway/plugin/…'. */
const ownModules = new Map(
  Object.entries(
    (JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { exports: Record<string, { types: string }> })
      .exports,
  ).map(([name, { types }]) => [
    name.replace(/^\./, 'tollgate'),
    join(types.replace('/dist/', '/').replace(/\.d\.ts$/, '.ts')),
  ]),
)

/** Path of an imported file from the root, or the bare name of a package. */
const target = (file: string, name: string, base = root): string =>
  name.startsWith('.') ? relative(base, resolve(base, dirname(file), name)) : (ownModules.get(name) ?? name)

/** Groups of files that import each other, directly or through others (Tarjan's strongly connected components). */
function cyclesOf(graph: ReadonlyMap<string, readonly string[]>): string[] {
  const order = new Map<string, number>()
  const stack: string[] = []
  const cycles: string[] = []
  const visit = (file: string): number => {
    let low = order.size
    order.set(file, low)
    stack.push(file)
    for (const next of graph.get(file) ?? []) {
      if (!graph.has(next)) continue
      if (!order.has(next)) low = Math.min(low, visit(next))
      else if (stack.includes(next)) low = Math.min(low, order.get(next) as number)
      if (next === file) cycles.push(`${file} imports itself`)
    }
    if (low === order.get(file)) {
      const group = stack.splice(stack.indexOf(file))
      if (group.length > 1) cycles.push(group.sort().join(', '))
    }
    return low
  }
  for (const file of graph.keys()) if (!order.has(file)) visit(file)
  return cycles
}

const graphOf = (folders: readonly string[], base = root): Map<string, string[]> =>
  new Map(
    folders
      .flatMap((folder) => files(folder, /\.ts$/, base))
      .map((file) => [file, imports(file, base).map((name) => target(file, name, base))]),
  )

interface Document {
  readonly product?: string
  readonly plugin?: string
  readonly family?: string
}

/** Datasets of our own. An operator may name a dataset with a word that our comments use, such as gold. */
const DATASETS = ['agent-economy-directory', 'perp-funding-rates']

const productIds = (): string[] =>
  files('catalog', /\.json$/)
    .map((file) => JSON.parse(readFileSync(join(root, file), 'utf8')) as Document)
    .filter(({ family, product }) => family !== 'x' || DATASETS.includes(product ?? ''))
    .filter((document) => document.product && !['documents', 'plans', 'operator'].includes(document.plugin ?? ''))
    .map((document) => document.product as string)

/** Product ids that are also everyday words count only in quotes or in a path. */
const EVERYDAY = ['market', 'site', 'cost', 'directory']

const special = [...productIds().filter((id) => !EVERYDAY.includes(id)), 'ohlcv', 'backtest']
const productName = new RegExp(`\\b(${special.join('|')})\\b|['"/](${EVERYDAY.join('|')})['"/]`, 'i')

/** The parts of gateway/, top to bottom. A part imports parts below it, never one beside or above it. */
const LAYERS = [
  ['main', 'testing'],
  ['process', 'launcher', 'cluster'],
  ['parent', 'signals', 'signer', 'start-error', 'v8-flags'],
  ['compose'],
  ['wiring'],
  ['mcp'],
  ['http'],
  ['documents', 'accounting', 'hooks'],
  ['calls'],
  ['products'],
  ['workers'],
  ['plugin-code'],
  ['payments'],
  ['sandbox'],
  ['methods'],
  ['x402'],
  ['catalog', 'tokens'],
  ['config', 'stores'],
  ['observe', 'validation'],
  ['plugin'],
  ['errors', 'clock', 'awaitable', 'once', 'keccak-256', 'tick-shape', 'dollars'],
] as const

/** Code that decides by what a payment's reason, detail or note says: by its text, by a pattern, or in SQL. */
const DECISIONS_ON_PROSE = [
  /\b(?:reason|detail|note)\b['"\])?!]*\.(?:startsWith|endsWith|includes|indexOf|match|matchAll|search)\(/,
  /\.(?:test|exec|startsWith|includes)\((?:[\w.?!]+\.)?(?:reason|detail|note)\b/,
  /\b(?:detail|note)\b\s*[!=]==(?!\s*(?:null\b|undefined\b|''))/,
  /\b(?:reason|detail|note)\b\s+(?:NOT\s+)?(?:I?LIKE|GLOB|REGEXP|SIMILAR|~)/,
  /\b(?:substr|substring|instr|position|left)\((?:\w+\.)?(?:reason|detail|note)\b/i,
]
const decidesOnProse = (line: string): boolean => DECISIONS_ON_PROSE.some((pattern) => pattern.test(line))

/** Reads, once, what earlier releases wrote as words. */
const READS_OLD_WORDS = join('gateway', 'payments', 'journal', 'read-old-words.ts')

const layerOf = (path: string): number => {
  const [, part = ''] = path.match(/^gateway[\\/]([^\\/.]+)/) ?? []
  return LAYERS.findIndex((parts) => (parts as readonly string[]).includes(part))
}

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

  it('lets a plugin import only the public plugin API, plugins/lib, generated types, packages and its own folder', () => {
    const lib = join('plugins', 'lib') + sep
    const found = files('plugins', /\.ts$/).flatMap((file) => {
      const own = file.split(sep).slice(0, 2).join(sep) + sep
      const allowed = (name: string): boolean => {
        const path = target(file, name)
        if (name.startsWith('#')) return false
        if (!name.startsWith('.')) return !name.startsWith('tollgate/') || name === 'tollgate/plugin'
        return [own, lib, join('schemas', 'types')].some((place) => path.startsWith(place))
      }
      return imports(file)
        .filter((name) => !allowed(name))
        .map((name) => `${file} imports ${name}`)
    })
    expect(found).to.deep.equal([])
  })

  it('lets each part of gateway/ import only the parts below it', () => {
    const found = [...graphOf(['gateway'])].flatMap(([file, targets]) =>
      targets
        .filter((path) => path.startsWith('gateway'))
        .filter((path) => layerOf(path) <= layerOf(file) && path.split(sep)[1] !== file.split(sep)[1])
        .map((path) => `${file} imports ${path}`),
    )
    expect(found).to.deep.equal([])
  })

  it('has no import cycle between files, type imports included', () => {
    expect(cyclesOf(graphOf(['gateway', 'plugins', 'scripts', 'test']))).to.deep.equal([])
  })

  it('finds an import cycle that is planted', () => {
    const folder = mkdtempSync(join(tmpdir(), 'tollgate-cycle-'))
    try {
      writeFileSync(join(folder, 'one.ts'), "import type { Two } from './two.ts'\nexport interface One { two: Two }\n")
      writeFileSync(join(folder, 'two.ts'), "import type { One } from './one.ts'\nexport interface Two { one: One }\n")
      expect(cyclesOf(graphOf(['.'], folder))).to.deep.equal(['one.ts, two.ts'])
    } finally {
      rmSync(folder, { recursive: true })
    }
  })

  it('decides by causes, never by what a reason or a note says', () => {
    const found = [...files(join('gateway', 'payments'), /\.ts$/), ...files(join('gateway', 'accounting'), /\.ts$/)]
      .filter((file) => file !== READS_OLD_WORDS)
      .flatMap((file) =>
        readFileSync(join(root, file), 'utf8')
          .split('\n')
          .flatMap((line, row) => (decidesOnProse(line) ? [`${file}:${row + 1} ${line.trim()}`] : [])),
      )
    expect(found).to.deep.equal([])
  })

  it('keeps the SQL of the journal in the folder of the journal', () => {
    const journal = join('gateway', 'payments', 'journal')
    const open = ['journal', 'open-journal', 'payment-states', 'group-commit'].map((name) =>
      join(journal, `${name}.ts`),
    )
    const found = [...graphOf(['gateway'])]
      .filter(([file]) => dirname(file) !== journal)
      .flatMap(([file, targets]) =>
        targets
          .filter((path) => dirname(path) === journal && !open.includes(path))
          .map((path) => `${file} imports ${path}`),
      )
    expect(found).to.deep.equal([])
  })

  it('finds a decision on prose that is planted', () => {
    const planted = [
      "if (record.reason?.startsWith('owed: ')) return",
      "if (record['note'].includes('repaid')) return",
      'if (/^repaid: /.test(event.note)) return',
      "if (NAMES.exec(reason ?? '')) return",
      'return last?.detail === TAKEN_BACK',
      "WHERE reason NOT LIKE 'nothing is owed: %'",
      "CASE WHEN substr(e.note, 1, 8) = 'repaid: ' THEN 1 END",
    ]
    expect(planted.filter((line) => !decidesOnProse(line))).to.deep.equal([])
    const allowed = ["if (note === '') return", 'if (reason !== null) return', 'UPDATE payments SET note = ?1']
    expect(allowed.filter(decidesOnProse)).to.deep.equal([])
  })

  it('reads the environment in one place only', () => {
    const code = (file: string): string => readFileSync(join(root, file), 'utf8').replace(/`[^`]*`/g, '')
    const found = [...files('gateway', /\.ts$/), ...files('plugins', /\.ts$/)].filter(
      (file) => file !== join('gateway', 'config', 'environment.ts') && /process\.env/.test(code(file)),
    )
    expect(found).to.deep.equal([])
  })

  it('uses timeouts that Node does not forget', () => {
    const found = [...files('gateway', /\.ts$/), ...files('plugins', /\.ts$/)].filter(
      (file) =>
        file !== join('gateway', 'plugin', 'timeout-signal.ts') &&
        /AbortSignal\.timeout\(/.test(readFileSync(join(root, file), 'utf8')),
    )
    expect(found, 'use timeoutSignal of the plugin API').to.deep.equal([])
  })
})
