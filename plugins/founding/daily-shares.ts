/**
 * How many sign-ups one client, and all clients together, may send in a day (UTC). Only the counts of the present day are
 * kept, apart from the addresses: nothing says who has signed up from where.
 */
import { type Database, type Migration, RateLimited, Unavailable } from 'tollgate/plugin'

export const sharesTable: Migration = async (db) => {
  await db.schema.createTable('founding_sign_ups', (table) => {
    table.integer('day').notNullable()
    table.text('client').notNullable()
    table.integer('sign_ups').notNullable()
    table.primary(['day', 'client'])
  })
}

interface Limits {
  readonly perClient: number
  readonly total: number
}

/** An office may share an address. A sign-up takes less than 1 kB, so the list grows by 5 MB a day at most. */
const LIMITS: Limits = { perClient: 20, total: 5_000 }
const DAY_MS = 86_400_000
/** Stands for all clients together. */
const ALL = ''

const dayOf = (at: Date): number => Math.floor(at.getTime() / DAY_MS)

/**
 * Counts a sign-up, whether or not its address is known already. Call it in the transaction that stores the address, so that
 * a refused sign-up counts nowhere.
 *
 * @throws RateLimited if the client, or Unavailable if all clients together have sent as many as they may today
 */
export async function countSignUp(
  transaction: Database,
  client: string,
  at: Date,
  { perClient, total }: Limits = LIMITS,
): Promise<void> {
  const secondsLeft = Math.ceil(((dayOf(at) + 1) * DAY_MS - at.getTime()) / 1000)
  if (!(await add(transaction, client, dayOf(at), perClient)))
    throw new RateLimited(`No more than ${perClient} sign-ups a day are taken from one network address.`, secondsLeft)
  if (!(await add(transaction, ALL, dayOf(at), total)))
    throw new Unavailable('The list takes no more sign-ups today. Please sign up again tomorrow.', secondsLeft)
}

/** Adds one to a count that is below its limit, in one statement: other processes may do the same. */
async function add(db: Database, client: string, day: number, limit: number): Promise<boolean> {
  const counted = (await db('founding_sign_ups')
    .insert({ day, client, sign_ups: 1 })
    .onConflict(['day', 'client'])
    .merge({ sign_ups: db.raw('founding_sign_ups.sign_ups + 1') })
    .where('founding_sign_ups.sign_ups', '<', limit)
    .returning('sign_ups')) as unknown[]
  return counted.length === 1
}

/** Deletes the counts of former days. */
export async function forgetFormerDays(db: Database, now: Date): Promise<void> {
  await db('founding_sign_ups').where('day', '<', dayOf(now)).delete()
}
