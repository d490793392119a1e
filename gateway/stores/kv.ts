/**
 * Caches by namespace: in memory, or in Redis if processes share them. An entry may disappear at any time and Keyv has
 * no insert-if-absent, so nothing about payments is kept here.
 */
import { createRequire } from 'node:module'
import { Keyv } from 'keyv'
import { LRUCache } from 'lru-cache'
import type { Logger } from 'pino'

export interface KvOptions {
  /** redis:// or rediss://; null keeps the entries in this process. */
  readonly url: string | null
  readonly log?: Logger
}

/** Returns the cache of a namespace, always the same one. `disconnect()` on any of them closes the store. */
export type Kv = (namespace: string) => Keyv

/** Entries per namespace in memory; the least recently used are dropped first. */
const MAX_ENTRIES = 10_000
/** The first calls wait this long for Redis. After that an unreachable Redis acts like an empty cache. */
const CONNECT_MS = 2_000

/** Opens the caches. With Redis, the connection is made in the background. */
export function openKv({ url, log }: KvOptions): Kv {
  const create = url === null ? inMemory : inRedis(url, log)
  const opened = new Map<string, Keyv>()
  return (namespace) => {
    let kv = opened.get(namespace)
    if (!kv) opened.set(namespace, (kv = create(namespace)))
    return kv
  }
}

function inMemory(namespace: string): Keyv {
  const entries = new LRUCache<string, object>({ max: MAX_ENTRIES })
  const store = {
    get: (key: string) => entries.get(key),
    set: (key: string, value: object, ttl?: number) => entries.set(key, value, ttl === undefined ? {} : { ttl }),
    has: (key: string) => entries.has(key),
    delete: (key: string) => entries.delete(key),
    clear: () => entries.clear(),
  }
  return new Keyv({ store, namespace, useKeyPrefix: false })
}

function inRedis(url: string, log: Logger | undefined): (namespace: string) => Keyv {
  const redis = createRequire(import.meta.url)('@keyv/redis') as typeof import('@keyv/redis')
  const client = redis.createClient({
    url,
    // Commands fail at once while Redis is unreachable: a cache must not delay a call.
    disableOfflineQueue: true,
    socket: { reconnectStrategy: (attempts) => Math.min(100 * 2 ** attempts, 5_000) },
  })
  client.setMaxListeners(0)
  let isUnreachable = false
  client.on('error', (error: Error) => {
    if (!isUnreachable) log?.warn({ err: error }, 'the shared cache is unreachable; continuing without it')
    isUnreachable = true
  })
  client.on('ready', () => {
    if (isUnreachable) log?.info('the shared cache is reachable again')
    isUnreachable = false
  })
  // Resolves once Redis has answered, refused or timed out; from then on the client knows whether it is connected.
  const connected = new Promise<void>((resolve) => {
    client.once('ready', resolve)
    client.once('error', () => resolve())
    setTimeout(resolve, CONNECT_MS).unref()
  })
  client.connect().catch(() => {})
  const disconnect = async (): Promise<void> => {
    if (client.isReady) await client.close()
    else if (client.isOpen) client.destroy()
  }
  return (namespace) => {
    const store = new redis.default(client)
    store.getClient = async () => {
      await connected
      return client
    }
    store.disconnect = disconnect
    return new Keyv({ store, namespace: `tollgate:${namespace}`, useKeyPrefix: false })
  }
}
