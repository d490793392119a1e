/**
 * `npm run new-product gold-price`: writes a working product. On a terminal it asks for what no flag gives; otherwise it
 * uses the defaults that the questions show in brackets. Flags follow `--`:
 * `npm run new-product -- gold-price --title "Gold price" --summary "..." --price 0.005`, and
 * `--upstream http://gold.internal/{day}` for a product without code.
 */
import { spawnSync } from 'node:child_process'
import { join, relative } from 'node:path'
import { createInterface } from 'node:readline'
import { parseArgs } from 'node:util'
import { parsePrice } from '../gateway/catalog/product-drafts.ts'
import { readConfig } from '../gateway/config/config.ts'
import { PROJECT_ROOT } from '../gateway/config/project-root.ts'
import type { NewProduct } from './new-product/texts.ts'
import { nameIn, writeProduct } from './new-product/write-product.ts'
import { showUsage } from './command-line.ts'

const USAGE = `npm run new-product -- NAME [--title WORDS] [--summary WORDS] [--price 0.005|free] [--upstream ADDRESS]

Writes a working product: document, plugin, schema and test. With --upstream (http://gold.internal/{day}) it writes the
document only. On a terminal it asks for what no flag gives.`

interface Question {
  readonly name: keyof NewProduct
  readonly question: string
  /** Describes what is wrong with an answer. Null if it is valid. */
  readonly problemOf: (answer: string) => string | null
  /** Returns the default for an empty answer. Without it, an answer is required. */
  readonly otherwise?: (given: Partial<NewProduct>) => string
}

const filled = (answer: string): string | null => (answer === '' ? 'Must not be empty.' : null)

const QUESTIONS: readonly Question[] = [
  {
    name: 'product',
    question: 'Name, in lower case with hyphens (gold-price)',
    problemOf: (answer) =>
      /^[a-z][a-z0-9]*(-[a-z0-9]+)*$/.test(answer)
        ? null
        : `${answer === '' ? 'A name is required' : `"${answer}" is not a valid name`}: write lower case letters, digits and hyphens, ` +
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
        : `"${answer}" is not a valid price: write "free", or dollars above zero with at most six decimals, such as 0.005.`,
    otherwise: () => '0.005',
  },
  {
    name: 'upstream',
    question: 'Address of the upstream (http://gold.internal/{day}), or nothing to write a plugin',
    problemOf: (answer) =>
      answer === '' || /^https?:\/\/[^/{}@\s]+(\/\S*)?$/.test(answer)
        ? null
        : `"${answer}" is not a valid address: write http:// or https://, a host and a path. Parameters in braces may be in the path only.`,
    otherwise: () => '',
  },
]

type Given = Partial<Record<keyof NewProduct, string>>

/** Reads the command line. Throws for unknown flags, and for values whose flags npm consumed. */
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
      `Unexpected argument ${rest.join(' ')}. Quote values with spaces, and write flags after "--":\n` +
        `  npm run new-product -- ${nameIn(product ?? '')} --price 0.005`,
    )
  return { ...(product === undefined ? {} : { product }), ...values }
}

/** Reads the flags, and asks for the rest until each answer is valid. Throws an error that lists every problem. */
async function answers(): Promise<NewProduct> {
  const given = flags()
  const { stdin: input, stdout: output } = process
  // Without a name there are no defaults, so answers are read from a pipe too.
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
    const fallback = otherwise?.(given)
    const orDefault = (given: string): string => (given === '' ? (fallback ?? '') : given)
    let answer = given[name]?.trim()
    while (answer === undefined || (input.isTTY && problemOf(orDefault(answer)) !== null)) {
      if (answer !== undefined) output.write(`${problemOf(orDefault(answer))}\n`)
      const line = await ask(`${question}${fallback ? ` [${fallback}]` : ''}: `)
      answer = line ?? ''
      if (line === null) break
    }
    given[name] = orDefault(answer)
    const problem = problemOf(given[name])
    if (problem !== null) problems.push(`--${name}: ${problem}`)
  }
  reader?.close()
  if (problems.length > 0) throw new Error(problems.join('\n'))
  return given as NewProduct
}

/** Generates the types of the new operations. */
function writeTypes(root: string): number {
  const command = [join(root, 'scripts', 'command.mjs'), 'types']
  return spawnSync(process.execPath, command, { cwd: root, stdio: 'inherit' }).status ?? 1
}

try {
  const { catalogDir, schemaDir, pluginDirs } = readConfig()
  const root = PROJECT_ROOT
  const product = await answers()
  const files = await writeProduct(product, { root, catalogDir, schemaDir, pluginDir: pluginDirs[0] as string })
  const isPlugin = product.upstream === ''
  process.exitCode = isPlugin ? writeTypes(root) : 0
  const written = files.map((file) => `  ${relative(root, file)}`)
  const price = product.price === 'free' ? 'is free' : `costs $${product.price} a call`
  process.stdout.write(
    `Written:\n${written.join('\n')}\n\n` +
      `${product.title} ("${product.summary}") ${price}. A running gateway offers it now.\n` +
      `Next: ${isPlugin ? 'put your data into the plugin' : 'describe the answer in the document'}, then ` +
      `npm run check, npm test -- --product ${product.product}\n` +
      `To remove it: delete ${isPlugin ? 'these files, then npm run types' : 'this file'}\n`,
  )
} catch (error) {
  process.stderr.write(`${(error as Error).message}\n`)
  process.exitCode = 1
}
