/** The records of some services, made anew from what is said and seen of them. */
import type { Knex } from 'tollgate/plugin'
import type { Listing } from './listing.ts'
import type { Health } from './liveness.ts'
import { columnsOf, merge, payeesOf, pricesOf, type Said } from './record.ts'
import type { EntryRow, ListingRow } from './tables.ts'

/** How far back visits are counted. */
export const MONTH = 30 * 86_400

interface Current {
  readonly id: string
  readonly record: string
}

interface Counted {
  readonly id: string
  readonly checks: number
  readonly ok: number
}

/**
 * Writes the records of these services anew where they changed: the version before is superseded at `at`, and what
 * nobody lists any more has no version after it. Within the caller's transaction.
 */
export async function refresh(trx: Knex, ids: readonly string[], at: number): Promise<void> {
  // Locked, where the database can: a sweep and a visit may meet at one service, and each must see what the other wrote.
  const entries = (await trx('directory_entries').whereIn('id', ids).orderBy('id').forUpdate()) as EntryRow[]
  const listings = (await trx('directory_listings').whereIn('id', ids)) as ListingRow[]
  const current = (await trx('directory_records')
    .whereIn('id', ids)
    .whereNull('superseded_at')
    .select('id', 'record')) as Current[]
  const visits = (await trx('directory_visits')
    .whereIn('id', ids)
    .where('at', '>', at - MONTH)
    .groupBy('id')
    .select('id')
    .count('* as checks')
    .sum('ok as ok')) as unknown as Counted[]
  const over: string[] = []
  const fresh: object[] = []
  const paid: EntryRow[] = []
  for (const entry of entries) {
    const { id, first_seen } = entry
    const said = listings
      .filter((row) => row.id === id)
      .map(({ listing, ...row }): Said => ({ ...row, listing: JSON.parse(listing) as Listing }))
      .toSorted((a, b) => a.rank - b.rank || (a.source < b.source ? -1 : 1))
    const old = current.find((record) => record.id === id)
    if (said.length === 0) {
      if (old) over.push(id)
      continue
    }
    const health = JSON.parse(entry.health) as Health
    const payees = keptPayees(entry, payeesOf(pricesOf(said, health)), at)
    if (payees) paid.push({ ...entry, ...payees })
    const { payto_changed } = payees ?? entry
    const { checks = 0, ok = 0 } = visits.find((counted) => counted.id === id) ?? {}
    const body = merge(said, { id, first_seen, health, payto_changed, checks_30d: checks, ok_30d: ok }, at)
    const record = JSON.stringify(body)
    if (old?.record === record) continue
    if (old) over.push(id)
    fresh.push({ id, known_at: at, superseded_at: null, record, first_seen, ...columnsOf(body) })
  }
  if (paid.length > 0) await trx('directory_entries').insert(paid).onConflict('id').merge(['payees', 'payto_changed'])
  if (over.length > 0)
    await trx('directory_records').whereIn('id', over).whereNull('superseded_at').update({ superseded_at: at })
  if (fresh.length > 0) await trx.batchInsert('directory_records', fresh as never, 50)
}

/** Who is paid and when that changed, where it is to be written anew; a service that stops telling it has not changed it. */
function keptPayees(
  entry: EntryRow,
  payees: readonly string[],
  at: number,
): Pick<EntryRow, 'payees' | 'payto_changed'> | null {
  const before = JSON.parse(entry.payees) as string[]
  if (payees.length === 0 || payees.join() === before.join()) return null
  return { payees: JSON.stringify(payees), payto_changed: before.length > 0 ? at : entry.payto_changed }
}
