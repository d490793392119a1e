/** `npm run tokens`: lists the plans that were bought, and revokes their access tokens. */
import { decodeJwt } from 'jose'
import { type PlanPurchase, planPurchases } from '../gateway/documents/plans/plan-purchases.ts'
import { withBuiltIn, withBuiltInSchemas } from '../gateway/catalog/built-in.ts'
import { createCatalog } from '../gateway/catalog/resolve.ts'
import { readDocuments } from '../gateway/catalog/documents.ts'
import { readSchemas } from '../gateway/catalog/schemas.ts'
import { type Config, readStorageConfig } from '../gateway/config/config.ts'
import { createLog } from '../gateway/observe/log.ts'
import { openJournal } from '../gateway/payments/journal/open-journal.ts'
import { createRevocations } from '../gateway/tokens/revocations.ts'
import { openDatabase } from '../gateway/stores/database.ts'
import { existingDatabase, reportError } from './command-line.ts'
import { showUsage } from './flags.ts'
import { withCommands } from '../gateway/config/project-root.ts'

const USAGE = withCommands(`npm run tokens -- list
npm run tokens -- revoke ID [REASON]

list prints the plans that were bought, newest first, with payer and expiry. revoke takes an id of that list, or the token
itself; every gateway on this database refuses the token within a second.`)
const MAX_LISTED = 1000
const MAX_SEARCHED = 1_000_000

async function run([command, token, ...reason]: readonly string[]): Promise<number> {
  if (command === 'list' && token !== undefined) return refuse('list takes no arguments.')
  if (command !== 'list' && command !== 'revoke') return refuse(command && `${command} is not a command.`)
  if (command === 'revoke' && token === undefined) return refuse()
  const config = readStorageConfig()
  const db = openDatabase(existingDatabase(config, 'products.sqlite'))
  try {
    const revocations = createRevocations(db, createLog('silent'))
    await revocations.read()
    if (token === undefined) {
      process.stdout.write(listPlans(await boughtPlansOf(config, MAX_LISTED), revocations.ids))
      return 0
    }
    const id = idOf(token)
    const plan = (await boughtPlansOf(config, MAX_SEARCHED)).find((each) => each.id === id)
    if (!plan) {
      process.stderr.write(withCommands(`No plan was bought under ${id}. List the ids with: npm run tokens -- list\n`))
      return 1
    }
    await revocations.revoke(id, reason.join(' ') || 'by the operator')
    process.stdout.write(`${id} (${plan.plan.plan} of ${plan.payer}) is revoked.\n`)
    return 0
  } finally {
    await db.destroy()
  }
}

/** Prints the problem, if there is one, and the usage. Returns the exit code. */
function refuse(problem?: string): number {
  process.stderr.write(`${problem ? `${problem}\n\n` : ''}${USAGE}\n`)
  return 1
}

async function boughtPlansOf(config: Config, most: number): Promise<readonly PlanPurchase[]> {
  const { documents } = await readDocuments(config.catalogDir)
  const { schemas } = await readSchemas(config.schemaDir)
  const { catalog } = createCatalog(withBuiltIn(documents), withBuiltInSchemas(schemas))
  const journal = await openJournal(existingDatabase(config, 'journal.sqlite'))
  try {
    return await planPurchases(journal, catalog, { limit: most })
  } finally {
    await journal.close()
  }
}

/** Returns the id of a token, which may be given as the id itself. */
function idOf(token: string): string {
  if (!token.includes('.')) return token
  try {
    return decodeJwt(token).jti ?? token
  } catch {
    return token
  }
}

function listPlans(plans: readonly PlanPurchase[], revoked: ReadonlySet<string>): string {
  const rows = plans.map(({ id, plan, payer, expiresAt }) => {
    const state = revoked.has(id) ? 'revoked' : expiresAt > new Date() ? '' : 'ended'
    return `${id}  ${plan.plan.padEnd(12)}  ${payer}  ${expiresAt.toISOString().slice(0, 19)}Z  ${state}`.trimEnd()
  })
  return [`${plans.length} bought${plans.length === MAX_LISTED ? ', or more' : ''}`, ...rows, ''].join('\n')
}

showUsage(USAGE)
try {
  process.exitCode = await run(process.argv.slice(2))
} catch (error) {
  reportError(error)
}
