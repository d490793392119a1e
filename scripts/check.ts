/** `npm run check`: prints the price list of the catalog, or every issue with its position. `--json` prints JSON. */
import type { Catalog } from '../gateway/plugin/catalog.ts'
import { type Issue, lineOf } from '../gateway/validation/issue.ts'
import { openCatalog } from '../gateway/compose.ts'
import { type Config, ConfigError, readConfig } from '../gateway/config/config.ts'
import { ONE_JOURNAL } from '../gateway/config/pay-to.ts'
import { SANDBOX } from '../gateway/config/settlement.ts'
import { readFlags, reportError } from './command-line.ts'

const USAGE = `npm run check [-- --json]

Builds the catalog and prints its price list. If there are errors, prints each with its position and exits with 1.`

/** Formats the catalog as a table: price, route, product, operation and kind. */
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

function asText(catalog: Catalog | null, issues: readonly Issue[], notes: readonly string[]): string {
  const lines = catalog ? [table(catalog), ''] : []
  if (catalog)
    lines.push(
      `${catalog.operations.size} operations of ${catalog.products.length} products, catalog ${catalog.version}`,
    )
  lines.push(...notes)
  if (issues.length === 0) return [...lines, 'No errors.'].join('\n')
  lines.push(`${issues.length} ${issues.length === 1 ? 'error' : 'errors'}:`)
  for (const issue of issues) lines.push(`  ${lineOf(issue)} [${issue.rule}]`)
  return lines.join('\n')
}

/** What an operator should know although nothing is wrong. */
function notesOn({ network, payTo }: Config): readonly string[] {
  return network === SANDBOX ? [] : [`Paid to ${payTo}. ${ONE_JOURNAL}`]
}

function asJson(catalog: Catalog | null, issues: readonly Issue[]): string {
  const operations = [...(catalog?.operations.values() ?? [])].map(
    ({ id, product, route, priceText, price, tool }) => ({
      operation: id,
      product,
      route,
      price: price === null ? 'free' : priceText,
      tool,
    }),
  )
  return JSON.stringify(
    { ok: issues.length === 0, version: catalog?.version ?? null, mistakes: issues, operations },
    null,
    2,
  )
}

async function check(): Promise<number> {
  const { values } = readFlags(USAGE, { options: { json: { type: 'boolean', default: false } } })
  const config = readConfig()
  const { edition, issues, close } = await openCatalog(config)
  const catalog = edition?.catalog ?? null
  process.stdout.write(`${values.json ? asJson(catalog, issues) : asText(catalog, issues, notesOn(config))}\n`)
  await close()
  return issues.length === 0 ? 0 : 1
}

try {
  process.exitCode = await check()
} catch (error) {
  reportError(error, ConfigError)
}
