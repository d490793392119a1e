/**
 * What the operator has paused: operations and whole products. A small table that every process reads four times a second,
 * so a pause holds in all of them and over a restart. Nothing is sold on a reading that is older than a second, and `pause`
 * returns a second after it has written: from then on no process sells. Answers that were bought before still go back to
 * their buyers.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Knex } from 'knex'
import type { Logger } from 'pino'
import { ServiceError } from '../errors.ts'
import type { Catalog, Operation } from '../plugin/catalog.ts'
import { frozenMap } from '../plugin/immutable.ts'
import { createReady, type Step } from '../stores/migrations.ts'

export interface PausedSale {
  /** Id of a product or an operation. */
  readonly name: string
  /** Shown to callers. Empty if the operator gave none. */
  readonly reason: string
  readonly since: Date
}

/** The fields of an operation that decide whether it is paused. */
type Sold = Pick<Operation, 'id' | 'product'>

/** Refuses what is paused, as far as this process knows. */
export interface PauseCheck {
  /** The pause of an operation or of its product; null if there is none. */
  of(operation: Sold): PausedSale | null
  /** Throws `paused`. */
  assertOpen(operation: Sold): void
  /** The catalog as documents show it: what is paused is not listed. The same object until that changes. */
  shown(catalog: Catalog): Catalog
}

export interface PausedSales extends PauseCheck {
  /** Throws `paused`, after what was written a second before this call has been read. */
  confirmOpen(operation: Sold): Promise<void>
  /** What is paused, by name. */
  list(): Promise<readonly PausedSale[]>
  /** Pauses a product or an operation, or changes the reason. Resolves when no process sells it any more. */
  pause(name: string, reason: string): Promise<void>
  /** Returns false if it was not paused. */
  resume(name: string): Promise<boolean>
  /** Reads the table now and then regularly. Rejects if the first read fails. */
  start(): Promise<void>
  /** Resolves when nothing is being read any more. */
  stop(): Promise<void>
}

const READ_MS = 250
/** A call is charged only on what was read within this time. */
const FRESH_MS = 1_000
const RETRY_SECONDS = 60

const STEPS: readonly Step[] = [
  (db) =>
    db.schema.createTable('paused_sales', (table) => {
      table.text('name').primary()
      table.text('reason').notNullable()
      table.bigInteger('at').notNullable()
    }),
]

interface Row {
  readonly name: string
  readonly reason: string
  readonly at: number | string
}

/** Creates the list of what is paused, empty until the first read. */
export function createPausedSales(db: Knex, log: Pick<Logger, 'warn'>, now: () => Date): PausedSales {
  const ready = createReady(db, 'paused-sales', STEPS)
  let paused: ReadonlyMap<string, PausedSale> = new Map()
  let shown = new WeakMap<Catalog, Catalog>()
  let reading: Promise<void> | null = null
  let next: Promise<void> | null = null
  let timer: NodeJS.Timeout | undefined
  let isStopped = false
  /** When the last reading that succeeded began. */
  let readAt = Number.NEGATIVE_INFINITY

  async function readTable(): Promise<void> {
    await ready()
    const began = performance.now()
    const rows = await db<Row>('paused_sales').orderBy('name')
    readAt = began
    const read = rows.map(({ name, reason, at }): PausedSale => ({ name, reason, since: new Date(Number(at)) }))
    if (JSON.stringify(read) === JSON.stringify([...paused.values()])) return
    paused = new Map(read.map((each) => [each.name, each]))
    shown = new WeakMap()
  }

  /** Reads the table, beginning after this call. One reading at a time; all that wait for the next one share it. */
  function read(): Promise<void> {
    if (reading === null) {
      reading = readTable().finally(() => (reading = null))
      return reading
    }
    next ??= reading
      .catch(() => {})
      .then(() => {
        next = null
        return read()
      })
    return next
  }

  const warn = (error: unknown): void => log.warn({ err: error }, 'what is paused could not be read')

  /** While the table cannot be read, what is known to be paused stays paused. */
  function scheduleRead(): void {
    if (isStopped) return
    timer = setTimeout(() => void read().catch(warn).finally(scheduleRead), READ_MS).unref()
  }

  const of = ({ id, product }: Sold): PausedSale | null =>
    paused.size === 0 ? null : (paused.get(id) ?? paused.get(product) ?? null)

  function assertOpen(operation: Sold): void {
    const pause = of(operation)
    if (pause) throw pausedError(operation, pause)
  }

  return {
    of,
    assertOpen,
    shown(catalog) {
      if (paused.size === 0) return catalog
      const known = shown.get(catalog) ?? withoutPaused(catalog, (operation) => of(operation) !== null)
      shown.set(catalog, known)
      return known
    },
    async confirmOpen(operation) {
      if (performance.now() - readAt > FRESH_MS) await read().catch(warn)
      assertOpen(operation)
    },
    async list() {
      await read()
      return [...paused.values()]
    },
    async pause(name, reason) {
      await ready()
      const row = { name, reason, at: now().getTime() }
      await db('paused_sales').insert(row).onConflict('name').merge(['reason'])
      await Promise.all([read(), sleep(FRESH_MS)])
    },
    async resume(name) {
      await ready()
      const ended = await db('paused_sales').where({ name }).delete()
      await read()
      return ended > 0
    },
    async start() {
      await read()
      scheduleRead()
    },
    async stop() {
      isStopped = true
      clearTimeout(timer)
      await Promise.allSettled([reading, next])
    },
  }
}

/** Each pause with its reason: one of the whole product is that of all its operations. */
export function reasonOfPauses(pauses: readonly PausedSale[]): string {
  return [...new Set(pauses)].map(({ name, reason }) => (reason === '' ? name : `${name}: ${reason}`)).join('; ')
}

function pausedError({ id }: Sold, { reason }: PausedSale): ServiceError {
  const why = reason === '' ? '' : ` The operator says: ${reason}`
  return new ServiceError('paused', `${id} is paused by the operator; nothing was charged.${why}`, {
    headers: { 'retry-after': String(RETRY_SECONDS) },
  })
}

/** A catalog in which operations are not listed. MCP tools stay, because they give bought answers again, and say it. */
function withoutPaused(catalog: Catalog, isPaused: (operation: Operation) => boolean): Catalog {
  const change = (operation: Operation): Operation =>
    isPaused(operation)
      ? { ...operation, listed: false, summary: `Paused by the operator. ${operation.summary}` }
      : operation
  const products = catalog.products.map((product) =>
    product.operations.some(isPaused) ? { ...product, operations: product.operations.map(change) } : product,
  )
  const operations = products.flatMap((product) => product.operations.map((each) => [each.id, each] as const))
  return Object.freeze({ ...catalog, products: Object.freeze(products), operations: frozenMap(operations) })
}
