/**
 * The cost of the gas of settlements, by network. Each process adds what its own transactions have cost since its
 * last write, so the sums cover all processes that share a database, and survive them.
 */
import type { Knex } from 'knex'
import type { GasAccount } from '../methods/payment-method.ts'
import { migrate, type Step } from '../stores/migrations.ts'

/** Wei on one network. */
export interface GasSpent {
  /** Name of the network. */
  readonly network: string
  readonly spent: bigint
  /** The part of it that failed transactions cost. */
  readonly spentOnFailures: bigint
}

export interface GasSpending {
  /** Writes what was spent since the last call. */
  record(accounts: readonly GasAccount[]): Promise<void>
  /** The sums since this moment (milliseconds since the epoch), at most a day ago. Networks without any are left out. */
  since(at: number): Promise<readonly GasSpent[]>
}

/** Wei are too many for the integers of SQLite, so they are text. */
interface Row {
  readonly at: number
  readonly network: string
  readonly spent: string
  readonly spent_on_failures: string
}

const TABLE = 'gas_spent'
const KEPT_MS = 86_400_000

const STEPS: readonly Step[] = [
  (db) =>
    db.schema.createTable(TABLE, (table) => {
      table.bigInteger('at').notNullable().index()
      table.text('network').notNullable()
      table.text('spent').notNullable()
      table.text('spent_on_failures').notNullable()
    }),
]

/** Opens the table of costs and migrates it. */
export async function openGasSpending(db: Knex, now: () => Date): Promise<GasSpending> {
  await migrate(db, 'gas', STEPS)
  /** The spending of each account at the last write. */
  const written = new Map<string, Pick<GasAccount, 'spent' | 'spentOnFailures'>>()

  return {
    async record(accounts) {
      const at = now().getTime()
      const rows: Row[] = []
      for (const { network, address, spent, spentOnFailures } of accounts) {
        const before = written.get(`${network.name} ${address}`) ?? { spent: 0n, spentOnFailures: 0n }
        if (spent === before.spent) continue
        const onFailures = String(spentOnFailures - before.spentOnFailures)
        rows.push({ at, network: network.name, spent: String(spent - before.spent), spent_on_failures: onFailures })
      }
      if (rows.length === 0) return
      await db<Row>(TABLE).insert(rows)
      for (const { network, address, ...sums } of accounts) written.set(`${network.name} ${address}`, sums)
      await db<Row>(TABLE)
        .where('at', '<', at - KEPT_MS)
        .delete()
    },
    async since(at) {
      const sums = new Map<string, GasSpent>()
      for (const { network, spent, spent_on_failures: failed } of await db<Row>(TABLE).where('at', '>=', at)) {
        const sum = sums.get(network) ?? { network, spent: 0n, spentOnFailures: 0n }
        const spentOnFailures = sum.spentOnFailures + BigInt(failed)
        sums.set(network, { network, spent: sum.spent + BigInt(spent), spentOnFailures })
      }
      return [...sums.values()]
    },
  }
}
