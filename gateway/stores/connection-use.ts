/**
 * Measures how long the queries of a product have waited for database connections that others held. A product whose
 * queries wait behind those of others is not slow; one whose own queries hold the connections is.
 */
import type { Knex } from 'knex'

/** The part of a Knex client that hands out connections. */
interface Client {
  acquireConnection(): Promise<unknown>
  releaseConnection(connection: unknown): Promise<unknown>
  destroy(callback?: () => void): Promise<void>
}

/** The connections of one database. A user is a product, or the gateway itself. */
class ConnectionUse {
  readonly #users = new Map<unknown, string>()
  #waiting = 0
  #since = 0
  /** Milliseconds in which any query waited, and the part in which each user had the connections. */
  #waitedMs = 0
  readonly #ownMs = new Map<string, number>()

  async acquire(user: string, acquire: () => Promise<unknown>): Promise<unknown> {
    this.#count()
    this.#waiting += 1
    try {
      const connection = await acquire()
      this.#count()
      this.#users.set(connection, user)
      return connection
    } finally {
      this.#waiting -= 1
    }
  }

  released(connection: unknown): void {
    this.#count()
    this.#users.delete(connection)
  }

  waitedForOthersMs(user: string): number {
    this.#count()
    return this.#waitedMs - (this.#ownMs.get(user) ?? 0)
  }

  /** Counts the time since the last change. With several connections, it is shared among their users. */
  #count(): void {
    const now = performance.now()
    const ms = now - this.#since
    this.#since = now
    if (this.#waiting === 0 || this.#users.size === 0) return
    this.#waitedMs += ms
    const share = ms / this.#users.size
    for (const user of this.#users.values()) this.#ownMs.set(user, (this.#ownMs.get(user) ?? 0) + share)
  }
}

const GATEWAY = 'the gateway'
const uses = new WeakMap<object, ConnectionUse>()
const waits = new WeakMap<object, () => number>()

/**
 * Counts who uses the connections of a database, and refuses a query that comes after `destroy`. The pool would keep that
 * until its timeout, and the process open with it: a pool that is being destroyed hands out nothing, and does not refuse
 * either.
 */
export function watchConnections(db: Knex): void {
  const client = db.client as Client
  const acquire = client.acquireConnection.bind(client)
  const release = client.releaseConnection.bind(client)
  const destroy = client.destroy.bind(client)
  const use = new ConnectionUse()
  let isClosing = false
  uses.set(client, use)
  client.acquireConnection = function (this: Client & { readonly user?: string }) {
    return isClosing ? Promise.reject(new Error('the database is closed')) : use.acquire(this.user ?? GATEWAY, acquire)
  }
  client.releaseConnection = (connection) => {
    use.released(connection)
    return release(connection)
  }
  client.destroy = (callback) => {
    isClosing = true
    return destroy(callback)
  }
}

/** Returns the same database, whose connections count as used by `user`. */
export function databaseOf<Database extends Knex>(db: Database, user: string): Database {
  const use = uses.get(db.client as object)
  // A copy of the functions. It shares the connections, because its client inherits everything.
  const own = db.withUserParams({}) as Database
  own.client = Object.assign(Object.create(db.client as object), { user })
  waits.set(own, () => use?.waitedForOthersMs(user) ?? 0)
  return own
}

/**
 * Milliseconds in which queries have waited for connections that others than the user of this database had. Only the
 * difference of two readings means something.
 */
export function waitedForOthersMs(db: object): number {
  return waits.get(db)?.() ?? 0
}
