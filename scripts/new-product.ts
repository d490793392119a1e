/**
 * `npm run new-product gold-price`: writes a working product. On a terminal it asks for what no flag gives; otherwise it
 * uses the defaults that the questions show in brackets. Flags follow `--`:
 * `npm run new-product -- gold-price --title "Gold price" --summary "..." --price 0.005`, and
 * `--upstream http://gold.internal/{day}` for a product without code.
 */
import { spawnSync } from 'node:child_process'
import { join, relative } from 'node:path'
import { parseArgs } from 'node:util'
import { readConfig } from '../gateway/config/config.ts'
import { PROJECT_ROOT, SHOP_ROOT, withCommands } from '../gateway/config/project-root.ts'
import { answers, type Given } from './new-product/questions.ts'
import { nameIn, writeProduct } from './new-product/write-product.ts'
import { showUsage } from './flags.ts'

const USAGE =
  withCommands(`npm run new-product -- NAME [--title WORDS] [--summary WORDS] [--price 0.005|free] [--upstream ADDRESS]

Writes a working product: document, plugin, schema and test. With --upstream (http://gold.internal/{day}) it writes the
document only. On a terminal it asks for what no flag gives.`)

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
        withCommands(`  npm run new-product -- ${nameIn(product ?? '')} --price 0.005`),
    )
  return { ...(product === undefined ? {} : { product }), ...values }
}

/** Generates the types of the new operations. */
function writeTypes(root: string): number {
  const command = [join(PROJECT_ROOT, 'scripts', 'tollgate.mjs'), 'types']
  return spawnSync(process.execPath, command, { cwd: root, stdio: 'inherit' }).status ?? 1
}

try {
  const { catalogDir, schemaDir, pluginDirs } = readConfig()
  const root = SHOP_ROOT
  const isCheckout = root === PROJECT_ROOT
  const given = flags()
  // Without a name there are no defaults, so answers are read from a pipe too.
  const product = await answers(given, process.stdin.isTTY || given.product === undefined)
  const files = await writeProduct(product, {
    root,
    runner: isCheckout ? 'mocha' : 'node',
    catalogDir,
    schemaDir,
    pluginDir: pluginDirs[0] as string,
  })
  const isPlugin = product.upstream === ''
  process.exitCode = isPlugin ? writeTypes(root) : 0
  const written = files.map((file) => `  ${relative(root, file)}`)
  const price = product.price === 'free' ? 'is free' : `costs $${product.price} a call`
  process.stdout.write(
    `Written:\n${written.join('\n')}\n\n` +
      `${product.title} ("${product.summary}") ${price}. A running gateway offers it now.\n` +
      `Next: ${isPlugin ? 'put your data into the plugin' : 'describe the answer in the document'}, then ` +
      `${withCommands('npm run check')}, ${isCheckout ? `npm test -- --product ${product.product}` : 'npm test'}\n` +
      `To remove it: delete ${isPlugin ? `these files, then ${withCommands('npm run types')}` : 'this file'}\n`,
  )
} catch (error) {
  process.stderr.write(`${(error as Error).message}\n`)
  process.exitCode = 1
}
