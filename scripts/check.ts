/** `npm run check`: the price list, or every mistake of the catalog with its place. `--json` for machines. */
import type { Catalog } from '../gateway/plugin/catalog.ts'
import { type Issue, lineOf } from '../gateway/validation/issue.ts'
import { openCatalog } from '../gateway/compose.ts'
import { ConfigError, readConfig } from '../gateway/config/config.ts'
import { readFlags } from './command-line.ts'

const USAGE = `npm run check [-- --json]

Builds everything strictly and prints the price list; or every mistake with its place, and ends with 1.`

/** The catalog as a table: price, route, product, and whether it is a tool. */
function table(catalog: Catalog): string {
  const rows = [...catalog.operations.values()]
    .filter((operation) => !operation.internal)
    .map((operation) => [
      operation.price === null ? 'free' : `$${operation.priceText}`,
      operation.route,
      operation.product,
      operation.id,
      [operation.tool && 'tool', operation.plan && 'plan', operation.retired && 'retired'].filter(Boolean).join(' '),
    ])
  const all = [['PRICE', 'ROUTE', 'PRODUCT', 'OPERATION', ''], ...rows]
  const widths = [0, 1, 2, 3].map((column) => Math.max(...all.map((row) => (row[column] as string).length)))
  return all
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}

function report(catalog: Catalog | null, mistakes: readonly Issue[]): string {
  const lines = catalog ? [table(catalog), ''] : []
  if (catalog)
    lines.push(
      `${catalog.operations.size} operations of ${catalog.products.length} products, catalog ${catalog.version}`,
    )
  if (mistakes.length === 0) return [...lines, 'No mistakes.'].join('\n')
  lines.push(`${mistakes.length} ${mistakes.length === 1 ? 'mistake' : 'mistakes'}:`)
  for (const mistake of mistakes) lines.push(`  ${lineOf(mistake)} [${mistake.rule}]`)
  return lines.join('\n')
}

function asJson(catalog: Catalog | null, mistakes: readonly Issue[]): string {
  const operations = [...(catalog?.operations.values() ?? [])].map(
    ({ id, product, route, priceText, price, tool }) => ({
      operation: id,
      product,
      route,
      price: price === null ? 'free' : priceText,
      tool,
    }),
  )
  return JSON.stringify({ ok: mistakes.length === 0, version: catalog?.version ?? null, mistakes, operations }, null, 2)
}

async function check(): Promise<number> {
  const { values } = readFlags(USAGE, { options: { json: { type: 'boolean', default: false } } })
  const { edition, mistakes, close } = await openCatalog(readConfig())
  const catalog = edition?.catalog ?? null
  process.stdout.write(`${(values.json ? asJson : report)(catalog, mistakes)}\n`)
  await close()
  return mistakes.length === 0 ? 0 : 1
}

try {
  process.exitCode = await check()
} catch (error) {
  process.stderr.write(`${error instanceof ConfigError ? error.message : ((error as Error).stack ?? String(error))}\n`)
  process.exitCode = 1
}
