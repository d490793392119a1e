/** `npm run check`: prints the price list of the catalog, or every issue with its position. `--json` prints JSON. */
import { setTimeout as pause } from 'node:timers/promises'
import type { Catalog, Operation } from '../gateway/plugin/catalog.ts'
import { type Issue, lineOf } from '../gateway/validation/issue.ts'
import { openCatalog } from '../gateway/compose.ts'
import { type Config, readConfig } from '../gateway/config/config.ts'
import {
  costText,
  operationsBelowCost,
  pricesText,
  type CostLimits,
} from '../gateway/accounting/settlement-against-prices.ts'
import { ONE_JOURNAL } from '../gateway/config/pay-to.ts'
import { SANDBOX } from '../gateway/config/settlement.ts'
import { freshWarnings } from '../gateway/products/fresh-warnings.ts'
import { readSettlementCosts, type ReadCost } from '../gateway/methods/exact-evm/open-settlers.ts'
import { createLog } from '../gateway/observe/log.ts'
import { reportError } from './command-line.ts'
import { readFlags } from './flags.ts'
import { textTable } from './text-table.ts'
import { withCommands } from '../gateway/config/project-root.ts'

const USAGE = withCommands(`npm run check [-- --json]

Builds the catalog and prints its price list, what a settlement costs now on each network with a SETTLE_KEY, and the
operations that sell for less. If there are errors, prints each with its position and exits with 1. Warns of operations
that are sold however old their data are.`)

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
  return textTable([['PRICE', 'ROUTE', 'PRODUCT', 'OPERATION', ''], ...rows], [0, 1, 2, 3, 4])
}

/** Findings in the documents. */
interface Found {
  readonly issues: readonly Issue[]
  /** Allowed, but perhaps not intended. */
  readonly warnings: readonly Issue[]
}

function asText(catalog: Catalog | null, { issues, warnings }: Found, notes: readonly string[]): string {
  const lines = catalog ? [table(catalog), ''] : []
  if (catalog)
    lines.push(
      `${catalog.operations.size} operations of ${catalog.products.length} products, catalog ${catalog.version}`,
    )
  const errors = issues.length === 0 ? ['No errors.'] : listed(issues, 'error')
  return [...lines, ...notes, ...errors, ...listed(warnings, 'warning')].join('\n')
}

/** The issues with their number, nothing if there are none. */
function listed(issues: readonly Issue[], kind: string): readonly string[] {
  if (issues.length === 0) return []
  const lines = issues.map((issue) => `  ${lineOf(issue)} [${issue.rule}]`)
  return [`${issues.length} ${kind}${issues.length === 1 ? '' : 's'}:`, ...lines]
}

/** Remarks for the operator: nothing is wrong. */
function notesOn({ network, payTo }: Config, settlements: readonly Settlement[]): readonly string[] {
  if (network === SANDBOX) return []
  return [`Paid to ${payTo}. ${ONE_JOURNAL}`, ...settlements.map(settlementNote)]
}

/** The cost of settling on one network, and the operations that sell for less. */
interface Settlement extends ReadCost {
  /** Millionths of a USD; null: not known. */
  readonly coinPrice: bigint | null
  readonly maxPercent: number
  readonly below: readonly Pick<Operation, 'id' | 'priceText'>[]
}

/** Reads what settling costs. The sandbox has no chain yet, and facilitators pay the gas themselves. */
async function settlementsOf(config: Config, catalog: Catalog | null): Promise<readonly Settlement[]> {
  if (config.network === SANDBOX) return []
  const coinPrices = new Map(config.networks.map(({ network, gasCoinPrice }) => [network, gasCoinPrice]))
  const limits: CostLimits = { coinPrices, maxPercent: config.gasMaxPercent }
  const operations = [...(catalog?.operations.values() ?? [])]
  return (await readSettlementCosts(config, createLog('silent'))).map((read) => ({
    ...read,
    coinPrice: coinPrices.get(read.network.name) ?? null,
    maxPercent: config.gasMaxPercent,
    below: read.cost instanceof Error ? [] : operationsBelowCost(operations, read.network.name, read.cost, limits),
  }))
}

function settlementNote({ network: { name }, cost, coinPrice, maxPercent, below }: Settlement): string {
  if (cost instanceof Error) return `What settling on ${name} costs could not be read: ${cost.message}`
  const text = costText(name, cost, coinPrice)
  const said = `${text.charAt(0).toUpperCase()}${text.slice(1)}.`
  if (coinPrice === null) return `${said} Set GAS_COIN_USD to compare that with prices.`
  if (below.length === 0) return `${said} No price is less than that needs (GAS_MAX_PERCENT=${maxPercent}).`
  return `${said} That is more than ${maxPercent} % of these prices: ${pricesText(below)}.`
}

function asJson(catalog: Catalog | null, { issues, warnings }: Found, settlements: readonly Settlement[]): string {
  const costs = settlements.map(({ network, cost, below }) => ({
    network: network.name,
    cost_wei: cost instanceof Error ? null : String(cost.wei),
    below_cost: below.map(({ id }) => id),
  }))
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
    {
      ok: issues.length === 0,
      version: catalog?.version ?? null,
      mistakes: issues,
      warnings,
      operations,
      settlements: costs,
    },
    null,
    2,
  )
}

async function check(): Promise<number> {
  const { values } = readFlags(USAGE, { options: { json: { type: 'boolean', default: false } } })
  const config = readConfig()
  const { edition, issues, close } = await openCatalog(config, { checksViews: true })
  const warnings = edition ? freshWarnings(edition) : []
  const catalog = edition?.catalog ?? null
  const settlements = await settlementsOf(config, catalog)
  const text = values.json
    ? asJson(catalog, { issues, warnings }, settlements)
    : asText(catalog, { issues, warnings }, notesOn(config, settlements))
  process.stdout.write(`${text}\n`)
  await Promise.race([close(), pause(CLOSE_MS)])
  return issues.length === 0 ? 0 : 1
}

/** How long plugins may take to stop. */
const CLOSE_MS = 5_000

try {
  process.exitCode = await check()
} catch (error) {
  reportError(error)
}
// A plugin may leave a timer or a connection behind, which would keep this process alive for ever.
process.stdout.write('', () => process.exit())
