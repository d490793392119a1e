/** The folder of the project, from its sources and from its build. */
import { existsSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'

/** True if the gateway runs from `dist`, which `npm run build` writes. There is no loader for TypeScript then. */
export const IS_BUILT = import.meta.filename.endsWith('.js')

/** The folder above `gateway`: the project, or `dist`. */
export const GATEWAY_ROOT = resolve(import.meta.dirname, '../..')

/** The folder of the package: the schemas and views of the gateway are in it. */
export const PROJECT_ROOT = IS_BUILT ? dirname(GATEWAY_ROOT) : GATEWAY_ROOT

/** True if the gateway is a package of somebody's project. A checkout has its sources. */
const IS_PACKAGE = !existsSync(join(PROJECT_ROOT, 'gateway'))

/** The folder of the shop, with `catalog`, `schemas` and `plugins`. A checkout is a shop itself. */
export const SHOP_ROOT = IS_PACKAGE ? process.cwd() : PROJECT_ROOT

/** Where an editor finds the schema of a document in catalog/x. */
export const PRODUCT_SCHEMA = `../../${IS_PACKAGE ? 'node_modules/tollgate/' : ''}schemas/catalog/product.json`

/**
 * Writes the commands in a text as an operator calls them here: "npm run pay -- GET /" is "npx tollgate pay GET /" where the
 * gateway is a package.
 */
export function withCommands(text: string): string {
  if (!IS_PACKAGE) return text
  return text
    .replaceAll('npm run new-product', 'npm run new')
    .replace(/npm run ([a-z]+)(?:( \[?)-- ?)?/g, (_, name: string, before = '') => `npx tollgate ${name}${before}`)
}
