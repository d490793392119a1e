/**
 * `npm run new-product gold-price`: writes a product that works. What is not given as a flag is asked for:
 * `--title "Gold price" --summary "..." --price 0.005`, and `--upstream http://gold.internal/{day}` for a product
 * without code.
 */
import { spawnSync } from 'node:child_process'
import { join, relative, resolve } from 'node:path'
import { createInterface } from 'node:readline/promises'
import { parseArgs } from 'node:util'
import { parsePrice } from '../gateway/catalog/price.ts'
import { readConfig } from '../gateway/config.ts'
import { type NewProduct, writeProduct } from './product.ts'

interface Question {
  readonly name: keyof NewProduct
  readonly question: string
  /** What is wrong with an answer, or null. */
  readonly problemOf: (answer: string) => string | null
  /** What an empty answer means; absent: it must be answered. */
  readonly otherwise?: (given: Partial<NewProduct>) => string
}

const filled = (answer: string): string | null => (answer.trim() === '' ? 'Write something.' : null)

const QUESTIONS: readonly Question[] = [
  {
    name: 'product',
    question: 'Name, in lower case with hyphens (gold-price): ',
    problemOf: (answer) =>
      /^[a-z][a-z0-9]*(-[a-z0-9]+)*$/.test(answer) ? null : 'Write lower case letters, digits and hyphens.',
  },
  {
    name: 'title',
    question: 'Title for people, or nothing for the name in words: ',
    problemOf: filled,
    otherwise: ({ product = '' }) => product.charAt(0).toUpperCase() + product.slice(1).replaceAll('-', ' '),
  },
  { name: 'summary', question: 'What one call returns, in one sentence: ', problemOf: filled },
  {
    name: 'price',
    question: 'Price in US dollars (0.005), or free: ',
    problemOf: (answer) =>
      answer === 'free' || parsePrice(answer) !== null ? null : 'Write "free", or dollars with at most six decimals.',
  },
  {
    name: 'upstream',
    question: 'Address that answers (http://gold.internal/{day}), or nothing to write a plugin: ',
    problemOf: (answer) =>
      answer === '' || /^https?:\/\/[^/{}@]+(\/|$)/.test(answer)
        ? null
        : 'Write http:// or https://, a host and a path.',
    otherwise: () => '',
  },
]

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    product: { type: 'string' },
    title: { type: 'string' },
    summary: { type: 'string' },
    price: { type: 'string' },
    upstream: { type: 'string' },
  },
})

/** Flags first; a terminal is asked for the rest. Throws with all that is wrong or missing. */
async function answers(): Promise<NewProduct> {
  const [named] = positionals
  const given: Partial<Record<keyof NewProduct, string>> = { ...(named ? { product: named } : {}), ...values }
  const terminal = process.stdin.isTTY ? createInterface({ input: process.stdin, output: process.stdout }) : null
  const problems: string[] = []
  for (const { name, question, problemOf, otherwise } of QUESTIONS) {
    const said = given[name] ?? (await terminal?.question(question))?.trim() ?? ''
    const answer = said === '' && otherwise ? otherwise(given) : said
    const problem = answer === '' && !otherwise ? `Give it with --${name}.` : problemOf(answer)
    if (problem !== null) problems.push(`${name}: ${problem}`)
    given[name] = answer
  }
  terminal?.close()
  if (problems.length > 0) throw new Error(problems.join('\n'))
  return given as NewProduct
}

/** Declares the new operations, so that the handlers are typed. */
function writeTypes(root: string): number {
  const script = join(root, 'scripts', 'types.ts')
  return spawnSync(process.execPath, ['--import', 'tsx/esm', script], { cwd: root, stdio: 'inherit' }).status ?? 1
}

try {
  const { catalogDir, schemaDir, pluginDirs } = readConfig()
  const root = resolve(import.meta.dirname, '..')
  const made = await answers()
  const files = await writeProduct(made, { root, catalogDir, schemaDir, pluginDir: pluginDirs[0] as string })
  const isPlugin = made.upstream === ''
  process.exitCode = isPlugin ? writeTypes(root) : 0
  const written = isPlugin ? [...files, join(schemaDir, 'types.d.ts')] : files
  const next = isPlugin ? 'Put your data into the plugin' : 'Describe the answer in the document'
  process.stdout.write(
    `Written:\n${written.map((file) => `  ${relative(root, file)}`).join('\n')}\n\n` +
      `A gateway that runs offers it by now. ${next}, then: npm run check, npm test -- --product ${made.product}\n`,
  )
} catch (error) {
  process.stderr.write(`${(error as Error).message}\n`)
  process.exitCode = 1
}
