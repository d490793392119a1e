/**
 * `npm run new-product -- --product gold-price --title "Gold price" --summary "..." --price 0.005`: writes a product
 * that works. What is not given is asked for.
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
}

const filled = (answer: string): string | null => (answer.trim() === '' ? 'Write something.' : null)

const QUESTIONS: readonly Question[] = [
  {
    name: 'product',
    question: 'Name, in lower case with hyphens (gold-price): ',
    problemOf: (answer) =>
      /^[a-z][a-z0-9]*(-[a-z0-9]+)*$/.test(answer) ? null : 'Write lower case letters, digits and hyphens.',
  },
  { name: 'title', question: 'Title for people (Gold price): ', problemOf: filled },
  { name: 'summary', question: 'What one call returns, in one sentence: ', problemOf: filled },
  {
    name: 'price',
    question: 'Price in US dollars (0.005), or free: ',
    problemOf: (answer) =>
      answer === 'free' || parsePrice(answer) !== null ? null : 'Write "free", or dollars with at most six decimals.',
  },
]

const { values } = parseArgs({
  options: {
    product: { type: 'string' },
    title: { type: 'string' },
    summary: { type: 'string' },
    price: { type: 'string' },
  },
})

/** Flags first; a terminal is asked for the rest. Throws where an answer is wrong or missing. */
async function answers(): Promise<NewProduct> {
  const given: Partial<Record<keyof NewProduct, string>> = { ...values }
  const terminal = process.stdin.isTTY ? createInterface({ input: process.stdin, output: process.stdout }) : null
  for (const { name, question, problemOf } of QUESTIONS) {
    const answer = given[name] ?? (await terminal?.question(question))?.trim()
    const problem = answer === undefined ? `Give it with --${name}.` : problemOf(answer)
    if (problem !== null) throw new Error(`${name}: ${problem}`)
    given[name] = answer as string
  }
  terminal?.close()
  return given as NewProduct
}

try {
  const { catalogDir, schemaDir, pluginDirs } = readConfig()
  const root = resolve(import.meta.dirname, '..')
  const made = await answers()
  const files = await writeProduct(made, { root, catalogDir, schemaDir, pluginDir: pluginDirs[0] as string })
  const types = spawnSync(process.execPath, ['--import', 'tsx', join(root, 'scripts', 'types.ts')], {
    cwd: root,
    stdio: 'inherit',
  })
  const list = [...files, join(schemaDir, 'types.d.ts')].map((file) => `  ${relative(root, file)}`).join('\n')
  process.stdout.write(`Written:\n${list}\n\nNow: npm run check, then put your data into the plugin.\n`)
  process.exitCode = types.status ?? 1
} catch (error) {
  process.stderr.write(`${(error as Error).message}\n`)
  process.exitCode = 1
}
