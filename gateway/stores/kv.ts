/**
 * Caches by namespace: in memory, or in Redis when processes share them. What is kept here may vanish at any time, and
 * Keyv has no insert-if-absent, so money never goes through it.
 */
import { createRequire } from 'node:module'
import { Keyv } from 'keyv'
import { LRUCache } from 'lru-cache'
import type { Logger } from 'pino'

export interface KvOptions {
  /** redis:// or rediss://; null keeps everything in this process. */
  readonly url: string | null
  readonly log?: Logger
}

/** The cache of one namespace; the same one for the same name. `disconnect()` on any of them closes the store. */
export type Kv = (namespace: string) => Keyv

/** Entries per namespace in memory; the least recently used go first. */
const MAX_ENTRIES = 10_000
/** The first calls wait this long for Redis; after that an unreachable store is an empty one. */
const CONNECT_MS = 2_000

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
    // Fails at once while Redis is away: a cache must not hold up a call.
    disableOfflineQueue: true,
    socket: { reconnectStrategy: (attempts) => Math.min(100 * 2 ** attempts, 5_000) },
  })
  client.setMaxListeners(0)
  let isAway = false
  client.on('error', (error: Error) => {
    if (!isAway) log?.warn({ err: error }, 'the shared cache is unreachable; going on without it')
    isAway = true
  })
  client.on('ready', () => {
    if (isAway) log?.info('the shared cache is back')
    isAway = false
  })
  // Answered, refused, or not heard of in time: from then on the client says at once whether it can work.
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
