/**
 * `tollgate init my-shop`: writes a shop of one's own: its package, one product with its test, and what it needs to run
 * elsewhere. On a terminal it asks about the product; `--yes` takes the defaults.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, dirname, join, relative, resolve } from 'node:path'
import { PROJECT_ROOT, SHOP_ROOT } from '../gateway/config/project-root.ts'
import { readFlags } from './flags.ts'
import { type PackageFile, shopFiles, withShop } from './init/texts.ts'
import { answers, type Given } from './new-product/questions.ts'
import { nameIn, writeProduct } from './new-product/write-product.ts'

const USAGE = `npx tollgate init [FOLDER] [--yes] [--price 0.005|free] [--upstream ADDRESS]

Writes a shop into a folder, the current one by default: a package, one product, its test, and a Dockerfile. With --upstream
(http://gold.internal/{day}) the product passes calls on; without, a plugin answers them. On a terminal it asks about the
product, and --yes takes the defaults.`

const readPackage = (folder: string): PackageFile =>
  JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as PackageFile

/** The product that is written if nobody is asked. */
function defaultsFor(upstream: string | undefined): Given {
  if (upstream === undefined)
    return { product: 'hourly-values', summary: 'One made-up value an hour, newest first.', upstream: '' }
  const address = upstream.replace(/\{\w+\}/g, '')
  const { hostname, pathname } = URL.canParse(address) ? new URL(address) : { hostname: upstream, pathname: '' }
  const last = pathname.split('/').findLast((part) => part !== '')
  return { product: nameIn(last ?? hostname), summary: `The answer of ${hostname}.` }
}

/** Writes the files that do not depend on the product, and returns their paths. Files that exist already stay. */
function writeShop(folder: string): string[] {
  const file = join(folder, 'package.json')
  const former = existsSync(file) ? readPackage(folder) : {}
  const merged = withShop(former, nameIn(basename(folder)), readPackage(PROJECT_ROOT))
  mkdirSync(folder, { recursive: true })
  writeFileSync(file, `${JSON.stringify(merged, null, 2)}\n`)
  const others = Object.entries(shopFiles).filter(([name]) => !existsSync(join(folder, name)))
  for (const [name, text] of others) {
    mkdirSync(dirname(join(folder, name)), { recursive: true })
    writeFileSync(join(folder, name), text)
  }
  return [file, ...others.map(([name]) => join(folder, name))]
}

async function init(): Promise<number> {
  const { values, positionals } = readFlags(USAGE, {
    allowPositionals: true,
    options: {
      yes: { type: 'boolean', default: false },
      price: { type: 'string' },
      upstream: { type: 'string' },
    },
  })
  const [name = '.', ...rest] = positionals
  if (rest.length > 0) throw new Error(`Unexpected argument ${rest.join(' ')}.\n\n${USAGE}`)
  if (SHOP_ROOT === PROJECT_ROOT)
    throw new Error('This is a checkout of Tollgate, which is a shop: add a product to it.')
  const folder = resolve(name)
  const [catalogDir, schemaDir, pluginDir] = ['catalog', 'schemas', 'plugins'].map((each) => join(folder, each))
  if (catalogDir === undefined || schemaDir === undefined || pluginDir === undefined) return 1
  if (existsSync(catalogDir)) throw new Error(`${catalogDir} exists already: this is a shop.`)
  const { yes, ...given } = values
  const isAsking = !yes && process.stdin.isTTY
  const product = await answers({ ...(isAsking ? {} : defaultsFor(given.upstream)), ...given }, isAsking)
  const shop = writeShop(folder)
  for (const each of [catalogDir, schemaDir, pluginDir]) mkdirSync(each)
  const files = await writeProduct(product, { root: folder, runner: 'node', catalogDir, schemaDir, pluginDir })
  const command = [join(PROJECT_ROOT, 'scripts', 'tollgate.mjs'), 'types']
  const { status } = spawnSync(process.execPath, command, { cwd: folder, stdio: 'inherit' })
  const [, route = ''] = /"route": "([^"]+)"/.exec(readFileSync(files.at(-1) as string, 'utf8')) ?? []
  const place = relative('.', folder)
  process.stdout.write(
    `Written:\n${[...shop, ...files].map((file) => `  ${relative('.', file)}`).join('\n')}\n\n` +
      `Next:\n${place === '' ? '' : `  cd ${place}\n`}  npm install\n  npm start` +
      `\nand in a second terminal:\n  npx tollgate pay ${route}\n`,
  )
  return status ?? 1
}

try {
  process.exitCode = await init()
} catch (error) {
  process.stderr.write(`${(error as Error).message}\n`)
  process.exitCode = 1
}
