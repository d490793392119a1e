/**
 * Access tokens for the operator. `list`: what was bought, newest first, and until when it opens its routes.
 * `revoke <id> [reason]`: takes a token back; every gateway on this database refuses it within five seconds.
 */
import { join } from 'node:path'
import { createLog } from '../gateway/log.ts'
import { ConfigError, readConfig } from '../gateway/config.ts'
import { openJournal } from '../gateway/payments/journal/index.ts'
import { createRevocations } from '../gateway/revocations.ts'
import { openDatabase } from '../gateway/stores/database.ts'
import { buildStrictly } from './strict.ts'

const MOST = 1000
const USAGE = 'Write: tokens list, or tokens revoke <id> [reason]. The ids are those of the list.\n'

async function run([command, id, ...reason]: readonly string[]): Promise<string> {
  const config = readConfig()
  const { databaseUrl } = config
  const at = (name: string) => (databaseUrl === null ? { file: join(config.dataDir, name) } : { url: databaseUrl })
  const db = openDatabase(at('products.sqlite'))
  const revocations = createRevocations(db, createLog('silent'))
  try {
    if (command === 'revoke' && id !== undefined) {
      await revocations.revoke(id, reason.join(' ') || 'by the operator')
      return `${id} is refused from now on.\n`
    }
    if (command !== 'list') return USAGE
    await revocations.read()
    return await list(at('journal.sqlite'), revocations.ids)
  } finally {
    await db.destroy()
  }
}

async function list(where: Parameters<typeof openJournal>[0], revoked: ReadonlySet<string>): Promise<string> {
  const strict = await buildStrictly(readConfig())
  const plans = new Map(
    [...(strict.edition?.catalog.operations ?? [])].flatMap(([id, { plan }]) => (plan ? [[id, plan]] : [])),
  )
  await strict.close()
  const journal = await openJournal(where)
  const records = await journal.list({ states: ['settled'], operations: [...plans.keys()], limit: MOST })
  await journal.close()
  const rows = records.map(({ callId, payer, operation, createdAt }) => {
    const plan = plans.get(operation)
    const ends = new Date(createdAt + (plan?.durationSeconds ?? 0) * 1000).toISOString().slice(0, 19)
    return `${callId}  ${(plan?.plan ?? operation).padEnd(12)}  ${payer}  ${ends}Z  ${revoked.has(callId) ? 'revoked' : ''}`.trimEnd()
  })
  return [`${records.length} bought`, ...rows, ''].join('\n')
}

try {
  process.stdout.write(await run(process.argv.slice(2)))
} catch (error) {
  process.stderr.write(`${error instanceof ConfigError ? error.message : ((error as Error).stack ?? String(error))}\n`)
  process.exitCode = 1
}
