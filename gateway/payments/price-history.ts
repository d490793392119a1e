/**
 * What every route has cost, and since when: kept in SQL at each edition. Quotes signed before a change are honoured
 * from it for a while, also by a process that was started after the change.
 */
import type { Knex } from 'knex'
import type { Catalog, Operation, OperationId } from '../plugin/catalog.ts'
import { migrate, type Step } from '../stores/migrations.ts'

/** A change of one price. Amounts are atomic units; 0n is free, null not sold. */
export interface PriceChange {
  readonly operation: OperationId
  /** "GET /v1/x/gold/*". */
  readonly route: string
  readonly before: bigint | null
  readonly after: bigint | null
  readonly at: Date
  /** The catalog version that brought it. */
  readonly version: string
}

/** Former prices of an operation that are still honoured, with a catalog version that asked for each. */
export type FormerPrices = ReadonlyMap<bigint, string>

export interface Prices {
  /**
   * Writes down what differs from the last known prices. With `whole` false something of the catalog is withheld for
   * the moment, so that what is missing does not count as taken away. What another process wrote down after the catalog
   * was read, at `readAt`, is newer than what was read, and stays.
   */
  record(catalog: Catalog, whole: boolean, readAt?: Date): Promise<void>
  /** Synchronous: it is asked with every payment. */
  former(operation: Operation): FormerPrices
  /** Newest first, listed routes only; `route` is in display form. */
  history(filter: { readonly limit: number; readonly route?: string }): Promise<readonly PriceChange[]>
}

export interface PricesParts {
  readonly db: Knex
  readonly now: () => Date
  /** How long a signed old quote is honoured. */
  readonly graceSeconds: number
}

interface Row {
  readonly operation: string
  /** Counts the changes of one operation from 1. */
  readonly step: number
  readonly route: string
  readonly listed: boolean | number
  readonly before: string | null
  readonly after: string | null
  readonly at: number
  readonly version: string
}

const TABLE = 'price_changes'
const ROWS_AT_ONCE = 100

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

export async function openPrices({ db, now, graceSeconds }: PricesParts): Promise<Prices> {
  await migrate(db, 'prices', STEPS)
  let honoured = new Map<OperationId, readonly Honoured[]>()

  return {
    async record(catalog, whole, readAt = now()) {
      const known = byOperation(await db<Row>(TABLE).orderBy('step'))
      const rows = changesOf(catalog, whole, known, now().getTime()).filter(({ operation }) => {
        const last = known.get(operation)?.at(-1)
        return last === undefined || last.at <= readAt.getTime()
      })
      // Another process that found the same change first has written the same step.
      for (let at = 0; at < rows.length; at += ROWS_AT_ONCE)
        await db<Row>(TABLE)
          .insert(rows.slice(at, at + ROWS_AT_ONCE))
          .onConflict(['operation', 'step'])
          .ignore()
      for (const row of rows) known.set(row.operation, [...(known.get(row.operation) ?? []), row])
      honoured = new Map([...known].map(([operation, own]) => [operation, honouredOf(own, graceSeconds * 1000)]))
    },

    former({ id }) {
      const at = now().getTime()
      const living = (honoured.get(id) ?? []).filter(({ until }) => at < until)
      return new Map(living.map(({ amount, version }) => [amount, version]))
    },

    async history({ limit, route }) {
      const rows = await db<Row>(TABLE)
        .where({ listed: true, ...(route === undefined ? {} : { route }) })
        .whereNot((appeared) => void appeared.whereNull('before').where({ after: '0' }))
        .orderBy([{ column: 'at', order: 'desc' }, { column: 'operation' }, { column: 'step', order: 'desc' }])
        .limit(limit)
      return rows.map(changeOf)
    },
  }
}

interface Honoured {
  readonly amount: bigint
  readonly version: string
  /** Milliseconds since the epoch. */
  readonly until: number
}

/** The prices that gave way to another, each until its grace has run out. Nothing is owed for what was free. */
function honouredOf(rows: readonly Row[], graceMs: number): Honoured[] {
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

function changesOf(catalog: Catalog, whole: boolean, known: ReadonlyMap<string, readonly Row[]>, at: number): Row[] {
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
  if (!whole) return present
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
