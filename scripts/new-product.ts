/**
 * `npm run new-product gold-price`: writes a product that works. What no flag gives is asked for on a terminal; without
 * one, what a question offers in brackets is taken. Flags stand behind `--`:
 * `npm run new-product -- gold-price --title "Gold price" --summary "..." --price 0.005`, and
 * `--upstream http://gold.internal/{day}` for a product without code.
 */
import { spawnSync } from 'node:child_process'
import { join, relative, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { parseArgs } from 'node:util'
import { parsePrice } from '../gateway/catalog/product-drafts.ts'
import { readConfig } from '../gateway/config/config.ts'
import type { NewProduct } from './product/texts.ts'
import { nameIn, writeProduct } from './product.ts'
import { showUsage } from './command-line.ts'

const USAGE = `npm run new-product -- NAME [--title WORDS] [--summary WORDS] [--price 0.005|free] [--upstream ADDRESS]

Writes a product that works: document, plugin, schema and test; with --upstream (http://gold.internal/{day}) the
document alone. On a terminal it asks for what no flag gives.`

interface Question {
  readonly name: keyof NewProduct
  readonly question: string
  /** What is wrong with an answer, or null. */
  readonly problemOf: (answer: string) => string | null
  /** What an empty answer means; absent: it must be answered. */
  readonly otherwise?: (given: Partial<NewProduct>) => string
}

const filled = (answer: string): string | null => (answer === '' ? 'Write something.' : null)

const QUESTIONS: readonly Question[] = [
  {
    name: 'product',
    question: 'Name, in lower case with hyphens (gold-price)',
    problemOf: (answer) =>
      /^[a-z][a-z0-9]*(-[a-z0-9]+)*$/.test(answer)
        ? null
        : `${answer === '' ? 'Give a name' : `"${answer}" is no name`}: write lower case letters, digits and hyphens, ` +
          `such as ${nameIn(answer)}.`,
  },
  {
    name: 'title',
    question: 'Title for people',
    problemOf: filled,
    otherwise: ({ product = '' }) => product.charAt(0).toUpperCase() + product.slice(1).replaceAll('-', ' '),
  },
  {
    name: 'summary',
    question: 'What one call returns, in one sentence',
    problemOf: filled,
    otherwise: ({ title = '' }) => `${title}, newest first.`,
  },
  {
    name: 'price',
    question: 'Price in US dollars, or free',
    problemOf: (answer) =>
      answer === 'free' || parsePrice(answer) !== null
        ? null
        : `"${answer}" is no price: write "free", or dollars such as 0.005, above nothing, with at most six decimals.`,
    otherwise: () => '0.005',
  },
  {
    name: 'upstream',
    question: 'Address that answers (http://gold.internal/{day}), or nothing to write a plugin',
    problemOf: (answer) =>
      answer === '' || /^https?:\/\/[^/{}@\s]+(\/\S*)?$/.test(answer)
        ? null
        : `"${answer}" is no address: write http:// or https://, a host and a path, parameters in braces in the path only.`,
    otherwise: () => '',
  },
]

type Given = Partial<Record<keyof NewProduct, string>>

/** What the command line says. Throws for flags that there are not, or that npm has kept to itself. */
function flags(): Given {
  showUsage(USAGE)
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
  const [product, ...rest] = positionals
  if (rest.length > 0)
    throw new Error(
      `What is ${rest.join(' ')}? Quote words with spaces, and write flags behind "--":\n` +
        `  npm run new-product -- ${nameIn(product ?? '')} --price 0.005`,
    )
  return { ...(product === undefined ? {} : { product }), ...values }
}

/** Reads the flags, then asks on the terminal for what is missing until each answer is valid. Throws with all errors. */
async function answers(): Promise<NewProduct> {
  const given = flags()
  const { stdin: input, stdout: output } = process
  // Without a product every answer is needed, so ask even if the input is a pipe.
  const isAsking = input.isTTY || given.product === undefined
  const reader = isAsking ? createInterface({ input, output }) : null
  const lines = reader?.[Symbol.asyncIterator]()
  const ask = async (text: string): Promise<string | null> => {
    reader?.setPrompt(text)
    reader?.prompt()
    const line = await lines?.next()
    return line === undefined || line.done ? null : line.value.trim()
  }
  const problems: string[] = []
  for (const { name, question, problemOf, otherwise } of QUESTIONS) {
    const offered = otherwise?.(given)
    const settle = (said: string): string => (said === '' ? (offered ?? '') : said)
    let answer = given[name]?.trim()
    while (answer === undefined || (input.isTTY && problemOf(settle(answer)) !== null)) {
      if (answer !== undefined) output.write(`${problemOf(settle(answer))}\n`)
      const said = await ask(`${question}${offered ? ` [${offered}]` : ''}: `)
      answer = said ?? ''
      if (said === null) break
    }
    given[name] = settle(answer)
    const problem = problemOf(given[name])
    if (problem !== null) problems.push(`--${name}: ${problem}`)
  }
  reader?.close()
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
  const written = files.map((file) => `  ${relative(root, file)}`)
  const price = made.price === 'free' ? 'is free' : `costs $${made.price} a call`
  process.stdout.write(
    `Written:\n${written.join('\n')}\n\n` +
      `${made.title} ("${made.summary}") ${price}. A gateway that runs offers it by now, one that starts will.\n` +
      `Next: ${isPlugin ? 'put your data into the plugin' : 'describe the answer in the document'}, then ` +
      `npm run check, npm test -- --product ${made.product}\n` +
      `To take it away: delete ${isPlugin ? 'these files, then npm run types' : 'this file'}\n`,
  )
} catch (error) {
  process.stderr.write(`${(error as Error).message}\n`)
  process.exitCode = 1
}
