/**
 * Bundles targets with what they import, and counts in the bundle how often each branch of the project's code was taken.
 * The counts are what tells the fuzzer that an input did something new.
 */
import { readFile, writeFile } from 'node:fs/promises'
import { dirname, join, sep } from 'node:path'
import { parse, type Node } from 'acorn'
import { build, type Plugin, transform } from 'esbuild'
import { PROJECT_ROOT } from '../../../gateway/config/project-root.ts'

/** Where the counts are, in the bundle and in what it imports. */
export const COUNTS = '__branchCounts'
/** Packages that read what callers send, so they are bundled and counted too. */
const COUNTED_PACKAGES = ['papaparse', '@fastify/busboy']
const COUNTED_FOLDERS = ['gateway', 'plugins', join('test', 'fixtures')]

/** The names by which plugins import the gateway. */
const OWN_NAMES: Readonly<Record<string, string>> = {
  'tollgate/plugin': 'gateway/plugin/plugin.ts',
  '#gateway': 'gateway/plugin/plugin.ts',
}

/**
 * Writes a bundle that runs `worker` with the targets of a module. Returns how many branches it counts.
 *
 * @param targets the module that exports `TARGETS`
 * @param worker the module that exports `work`
 * @param outfile below the project, so that the bundle finds its packages
 */
export async function bundleTargets(targets: string, worker: string, outfile: string): Promise<number> {
  const counter: Counter = { branches: 0 }
  const { outputFiles } = await build({
    stdin: {
      contents: `import { TARGETS } from ${JSON.stringify(targets)}; import { work } from ${JSON.stringify(worker)}; await work(TARGETS)`,
      resolveDir: PROJECT_ROOT,
    },
    write: false,
    bundle: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    // CommonJS packages in the bundle call require.
    banner: {
      js: "import { createRequire as __createRequire } from 'node:module'; const require = __createRequire(import.meta.url);",
    },
    plugins: [counting(counter)],
    logLevel: 'error',
  })
  // The counts are words of four bytes, which are compared with zero at once.
  const counts = Math.ceil(counter.branches / 4) * 4
  await writeFile(outfile, `globalThis.${COUNTS} = new Uint8Array(${counts});\n${outputFiles[0]?.text ?? ''}`)
  return counter.branches
}

interface Counter {
  branches: number
}

function counting(counter: Counter): Plugin {
  return {
    name: 'counting',
    setup(bundle) {
      bundle.onResolve({ filter: /^[^./]/ }, ({ path, kind }) => {
        const own = OWN_NAMES[path]
        if (own) return { path: join(PROJECT_ROOT, own) }
        const isCounted = COUNTED_PACKAGES.some((name) => path === name || path.startsWith(`${name}/`))
        return isCounted || kind === 'entry-point' ? undefined : { path, external: true }
      })
      bundle.onLoad({ filter: /\.[cm]?[jt]s$/ }, async ({ path }) => {
        const source = await readFile(path, 'utf8')
        const { code } = path.endsWith('.ts')
          ? await transform(source, { loader: 'ts', target: 'es2024', sourcefile: path })
          : { code: source }
        return { contents: instrument(code, path, isCounted(path) ? counter : null), loader: 'js' }
      })
    },
  }
}

function isCounted(path: string): boolean {
  const folders = [...COUNTED_FOLDERS, ...COUNTED_PACKAGES.map((name) => join('node_modules', name))]
  return folders.some((folder) => path.startsWith(join(PROJECT_ROOT, folder) + sep))
}

/** A text to be put into the code. */
interface Insertion {
  readonly at: number
  /** Texts that close something come first: they belong to what ends there. */
  readonly isEnd: boolean
  readonly text: string
}

interface AnyNode extends Node {
  readonly [field: string]: unknown
}

/** Counts the branches of a module, and makes `import.meta` say where its source is. */
export function instrument(code: string, path: string, counter: Counter | null): string {
  const program = parseModule(code)
  if (!program) return code
  const insertions: Insertion[] = []
  const replaced: { readonly start: number; readonly end: number; readonly text: string }[] = []
  const visit = (node: AnyNode): void => {
    if (node.type === 'MemberExpression' && isNode(node['object']) && node['object'].type === 'MetaProperty') {
      const { name } = node['property'] as { name?: string }
      const known: Readonly<Record<string, string>> = {
        dirname: dirname(path),
        filename: path,
        url: new URL(`file://${path}`).href,
      }
      const value = known[name ?? '']
      if (value !== undefined) replaced.push({ start: node.start, end: node.end, text: JSON.stringify(value) })
      return
    }
    const wrap = counter ? branchesOf(node) : []
    const ends: Insertion[] = []
    for (const { node: branch, before, after } of wrap) {
      insertions.push({ at: branch.at, isEnd: false, text: before.replace('#', countOf(counter as Counter)) })
      if (after !== undefined && branch.end !== undefined)
        ends.push({ at: branch.end, isEnd: true, text: after.replace('#', () => countOf(counter as Counter)) })
    }
    for (const value of Object.values(node)) {
      if (isNode(value)) visit(value)
      else if (Array.isArray(value)) for (const each of value) if (isNode(each)) visit(each)
    }
    insertions.push(...ends)
  }
  visit(program)
  return apply(code, insertions, replaced)
}

/** Modules first, then CommonJS. Null for what is neither, for example newer syntax in a package. */
function parseModule(code: string): AnyNode | null {
  for (const sourceType of ['module', 'script'] as const)
    try {
      const options = {
        ecmaVersion: 'latest',
        sourceType,
        allowHashBang: true,
        allowReturnOutsideFunction: true,
      } as const
      return parse(code, options) as unknown as AnyNode
    } catch {
      // Tried as the other kind, or left as it is.
    }
  return null
}

function isNode(value: unknown): value is AnyNode {
  return typeof value === 'object' && value !== null && typeof (value as { type?: unknown }).type === 'string'
}

function countOf(counter: Counter): string {
  const branch = counter.branches
  counter.branches += 1
  return `${COUNTS}[${branch}]++`
}

interface Branch {
  readonly node: { readonly at: number; readonly end?: number }
  /** `#` stands for the counting. */
  readonly before: string
  readonly after?: string
}

/** Where a node begins branches: bodies of functions and loops, sides of conditions, cases. */
function branchesOf(node: AnyNode): Branch[] {
  const child = (name: string): AnyNode | null => (isNode(node[name]) ? node[name] : null)
  switch (node.type) {
    case 'FunctionDeclaration':
    case 'FunctionExpression':
    case 'ArrowFunctionExpression': {
      const body = child('body')
      return body?.type === 'BlockStatement' ? atStart(body) : around(body)
    }
    case 'IfStatement': {
      const [consequent, alternate] = [child('consequent') as AnyNode, child('alternate')]
      if (alternate) return [...asBlock(consequent), ...asBlock(alternate)]
      const [block] = asBlock(consequent)
      const end = `${block?.after ?? ''}else{#}`
      return [
        {
          node: { at: block?.node.at ?? consequent.start, end: consequent.end },
          before: block?.before ?? '',
          after: end,
        },
      ]
    }
    case 'ForStatement':
    case 'ForOfStatement':
    case 'ForInStatement':
    case 'WhileStatement':
    case 'DoWhileStatement':
      return asBlock(child('body') as AnyNode)
    case 'CatchClause':
      return atStart(child('body') as AnyNode)
    case 'ConditionalExpression':
      return [...around(child('consequent')), ...around(child('alternate'))]
    case 'LogicalExpression':
      return around(child('right'))
    case 'SwitchCase': {
      const [first] = node['consequent'] as AnyNode[]
      return first ? [{ node: { at: first.start }, before: '#;' }] : []
    }
    default:
      return []
  }
}

/** Behind the brace and the directives. */
function atStart(block: AnyNode): Branch[] {
  const statements = block['body'] as AnyNode[]
  const last = statements.findLast((each) => typeof each['directive'] === 'string')
  return [{ node: { at: last?.end ?? block.start + 1 }, before: ';#;' }]
}

const around = (expression: AnyNode | null): Branch[] =>
  expression ? [{ node: { at: expression.start, end: expression.end }, before: '(#,', after: ')' }] : []

const asBlock = (statement: AnyNode): Branch[] =>
  statement.type === 'BlockStatement'
    ? atStart(statement)
    : [{ node: { at: statement.start, end: statement.end }, before: '{#;', after: '}' }]

function apply(
  code: string,
  insertions: readonly Insertion[],
  replaced: readonly { readonly start: number; readonly end: number; readonly text: string }[],
): string {
  const edits = [
    ...insertions.map(({ at, isEnd, text }) => ({ start: at, end: at, rank: isEnd ? 0 : 1, text })),
    ...replaced.map((each) => ({ ...each, rank: 2 })),
  ].sort((one, other) => one.start - other.start || one.rank - other.rank)
  let output = ''
  let at = 0
  for (const { start, end, text } of edits) {
    output += code.slice(at, start) + text
    at = end
  }
  return output + code.slice(at)
}
