/**
 * Access tokens for the operator. `list`: what was bought, newest first, and until when it opens its routes.
 * `revoke <id> [reason]`: takes a token back, by its id or by itself; every gateway on this database refuses it within
 * five seconds.
 */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { decodeJwt } from 'jose'
import { type BoughtPlan, boughtPlans } from '../gateway/documents/plans/purchases.ts'
import { createCatalog } from '../gateway/catalog/resolve.ts'
import { CatalogError } from '../gateway/validation/issue.ts'
import { readDocuments } from '../gateway/catalog/documents.ts'
import { readSchemas } from '../gateway/catalog/schemas.ts'
import { type Config, ConfigError, readConfig } from '../gateway/config/config.ts'
import { createLog } from '../gateway/observe/log.ts'
import { openJournal } from '../gateway/payments/journal/open-journal.ts'
import { createRevocations } from '../gateway/tokens/revocations.ts'
import { openDatabase } from '../gateway/stores/database.ts'

const USAGE = 'npm run tokens -- list\nnpm run tokens -- revoke <id or token> [reason]\n'
const SHOWN = 1000
const ALL = 1_000_000

async function run([command, named, ...reason]: readonly string[]): Promise<number> {
  if (command !== 'list' && (command !== 'revoke' || named === undefined)) {
    process.stderr.write(USAGE)
    return 1
  }
  const config = readConfig()
  const db = openDatabase(placeOf(config, 'products.sqlite'))
  try {
    const revocations = createRevocations(db, createLog('silent'))
    await revocations.read()
    if (named === undefined) {
      process.stdout.write(listed(await bought(config, SHOWN), revocations.ids))
      return 0
    }
    const id = idOf(named)
    const plan = (await bought(config, ALL)).find((each) => each.id === id)
    if (!plan) {
      process.stderr.write(`No plan was bought under ${id}. The ids are those of: npm run tokens -- list\n`)
      return 1
    }
    await revocations.revoke(id, reason.join(' ') || 'by the operator')
    process.stdout.write(`${id} (${plan.plan.plan} of ${plan.payer}) is refused from now on.\n`)
    return 0
  } finally {
    await db.destroy()
  }
}

/** Where a database is; throws ConfigError where no gateway has made it yet. */
function placeOf({ databaseUrl, dataDir }: Config, name: string): { file: string } | { url: string } {
  const file = join(dataDir, name)
  if (databaseUrl !== null) return { url: databaseUrl }
  if (!existsSync(file)) throw new ConfigError([`DATA_DIR has no ${file} yet.`])
  return { file }
}

async function bought(config: Config, most: number): Promise<readonly BoughtPlan[]> {
  const { documents } = await readDocuments(config.catalogDir)
  const { schemas } = await readSchemas(config.schemaDir)
  const { catalog } = createCatalog(documents, schemas)
  const journal = await openJournal(placeOf(config, 'journal.sqlite'))
  try {
    return await boughtPlans(journal, catalog, { most })
  } finally {
    await journal.close()
  }
}

/** The id in a token, or the id itself. */
function idOf(named: string): string {
  if (!named.includes('.')) return named
  try {
    return decodeJwt(named).jti ?? named
  } catch {
    return named
  }
}

function listed(plans: readonly BoughtPlan[], revoked: ReadonlySet<string>): string {
  const rows = plans.map(({ id, plan, payer, expiresAt }) => {
    const state = revoked.has(id) ? 'revoked' : expiresAt > new Date() ? '' : 'ended'
    return `${id}  ${plan.plan.padEnd(12)}  ${payer}  ${expiresAt.toISOString().slice(0, 19)}Z  ${state}`.trimEnd()
  })
  return [`${plans.length} bought${plans.length === SHOWN ? ', or more' : ''}`, ...rows, ''].join('\n')
}

try {
  process.exitCode = await run(process.argv.slice(2))
} catch (error) {
  const isPlain = error instanceof ConfigError || error instanceof CatalogError
  process.stderr.write(`${isPlain ? error.message : ((error as Error).stack ?? String(error))}\n`)
  process.exitCode = 1
}
