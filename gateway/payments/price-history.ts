/**
 * The price history of every route, stored in SQL whenever an edition changes a price. For a grace period after a
 * change, payments signed for the former price are still accepted, also by a process that started after the change.
 */
import type { Knex } from 'knex'
import type { Catalog, Operation, OperationId } from '../plugin/catalog.ts'
import { migrate, type Step } from '../stores/migrations.ts'

/** A change of one price. Amounts are in atomic units; 0n means free, null means not sold. */
interface PriceChange {
  readonly operation: OperationId
  /** Display form, e.g. "GET /v1/x/gold/*". */
  readonly route: string
  readonly before: bigint | null
  readonly after: bigint | null
  readonly at: Date
  /** The catalog version that made the change. */
  readonly version: string
}

/** The former prices of an operation that are still accepted, each with the catalog version that had it. */
export type FormerPrices = ReadonlyMap<bigint, string>

export interface PriceHistory {
  /**
   * Stores every price that differs from the last stored one. The newest writer wins: a change that another process
   * stored after `readAt` is kept.
   * @param isComplete false if parts of the catalog are disabled: then a missing operation does not count as removed
   * @param readAt when the catalog was read; now if absent
   */
  record(catalog: Catalog, isComplete: boolean, readAt?: Date): Promise<void>
  /** Synchronous, because every payment needs it. */
  former(operation: Operation): FormerPrices
  /** Changes of listed routes, newest first. `route` is in display form. */
  history(filter: { readonly limit: number; readonly route?: string }): Promise<readonly PriceChange[]>
}

interface PriceHistoryParts {
  readonly db: Knex
  readonly now: () => Date
  /** How long a former price is accepted after a change. */
  readonly graceSeconds: number
}

interface Row {
  readonly operation: string
  /** Numbers the changes of one operation, from 1. */
  readonly step: number
  readonly route: string
  readonly listed: boolean | number
  readonly before: string | null
  readonly after: string | null
  readonly at: number
  readonly version: string
}

const TABLE = 'price_changes'
const ROWS_PER_INSERT = 100

const STEPS: readonly Step[] = [
  (db) =>
    db.schema.createTable(TABLE, (table) => {
      table.text('operation').notNullable()
      table.integer('step').notNullable()
      table.text('route').notNullable()
      table.boolean('listed').notNullable()
      table.text('before')
      table.text('after')
      table.bigInteger('at').notNullable()
      table.text('version').notNullable()
      table.primary(['operation', 'step'])
      table.index(['at'])
    }),
]

/** Creates the table if necessary and returns the price history of a database. */
export async function openPriceHistory({ db, now, graceSeconds }: PriceHistoryParts): Promise<PriceHistory> {
  await migrate(db, 'prices', STEPS)
  let accepted = new Map<OperationId, readonly AcceptedPrice[]>()

  return {
    async record(catalog, isComplete, readAt = now()) {
      const known = byOperation(await db<Row>(TABLE).orderBy('step'))
      const rows = changesOf(catalog, isComplete, known, now().getTime()).filter(({ operation }) => {
        const last = known.get(operation)?.at(-1)
        return last === undefined || last.at <= readAt.getTime()
      })
      // A process that found the same change first has stored the same step.
      for (let at = 0; at < rows.length; at += ROWS_PER_INSERT)
        await db<Row>(TABLE)
          .insert(rows.slice(at, at + ROWS_PER_INSERT))
          .onConflict(['operation', 'step'])
          .ignore()
      for (const row of rows) known.set(row.operation, [...(known.get(row.operation) ?? []), row])
      accepted = new Map([...known].map(([operation, own]) => [operation, acceptedPrices(own, graceSeconds * 1000)]))
    },

    former({ id }) {
      const at = now().getTime()
      const current = (accepted.get(id) ?? []).filter(({ until }) => at < until)
      return new Map(current.map(({ amount, version }) => [amount, version]))
    },

    async history({ limit, route }) {
      const rows = await db<Row>(TABLE)
        .where({ listed: true, ...(route === undefined ? {} : { route }) })
        .whereNot((firstSeen) => void firstSeen.whereNull('before').where({ after: '0' }))
        .orderBy([{ column: 'at', order: 'desc' }, { column: 'operation' }, { column: 'step', order: 'desc' }])
        .limit(limit)
      return rows.map(changeOf)
    },
  }
}

interface AcceptedPrice {
  readonly amount: bigint
  readonly version: string
  /** Milliseconds since the epoch. */
  readonly until: number
}

/** The replaced prices, each with the end of its grace period. A former price of zero is left out: nobody pays zero. */
function acceptedPrices(rows: readonly Row[], graceMs: number): AcceptedPrice[] {
  return rows.flatMap(({ before, at }, index) => {
    const introduced = rows[index - 1]
    if (!introduced || before === null || before === '0') return []
    return [{ amount: BigInt(before), version: introduced.version, until: at + graceMs }]
  })
}

function byOperation(rows: readonly Row[]): Map<OperationId, readonly Row[]> {
  const known = new Map<OperationId, Row[]>()
  for (const row of rows) known.set(row.operation, [...(known.get(row.operation) ?? []), row])
  return known
}

/** The rows to add: operations that are new or have another price, and, if the catalog is complete, removed ones. */
function changesOf(
  catalog: Catalog,
  isComplete: boolean,
  known: ReadonlyMap<string, readonly Row[]>,
  at: number,
): Row[] {
  const { version } = catalog
  const routed = [...catalog.operations.values()].filter(({ internal }) => !internal)
  const present = routed.flatMap((operation): Row[] => {
    const last = known.get(operation.id)?.at(-1)
    const before = last?.after ?? null
    const after = operation.retired ? null : String(operation.price ?? 0n)
    if (before === after) return []
    const { id, displayRoute: route, listed } = operation
    return [{ operation: id, step: (last?.step ?? 0) + 1, route, listed, before, after, at, version }]
  })
  if (!isComplete) return present
  const gone = [...known.values()].flatMap((rows): Row[] => {
    const last = rows.at(-1)
    if (!last || last.after === null || catalog.operations.has(last.operation)) return []
    return [{ ...last, step: last.step + 1, before: last.after, after: null, at, version }]
  })
  return [...present, ...gone]
}

function changeOf({ operation, route, before, after, at, version }: Row): PriceChange {
  const amount = (text: string | null): bigint | null => (text === null ? null : BigInt(text))
  return { operation, route, before: amount(before), after: amount(after), at: new Date(at), version }
}
