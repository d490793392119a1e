/**
 * Caches by namespace: in memory, or in Redis if processes share them. An entry may disappear at any time and Keyv has
 * no insert-if-absent, so nothing about payments is kept here.
 */
import { createRequire } from 'node:module'
import { Keyv } from 'keyv'
import { LRUCache } from 'lru-cache'
import type { KeyValueStore } from '../plugin/plugin.ts'
import type { Redis } from './redis.ts'

/** Returns the cache of a namespace, always the same one. */
export type Kv = (namespace: string) => KeyValueStore

/** Entries per namespace in memory; the least recently used are dropped first. */
const MAX_ENTRIES = 10_000

/** Opens the caches: in Redis, or in this process if it is null. */
export function openKv(redis: Redis | null): Kv {
  const create = (namespace: string): KeyValueStore =>
    inSeconds(redis === null ? inMemory(namespace) : inRedis(redis, namespace))
  const opened = new Map<string, KeyValueStore>()
  return (namespace) => {
    let kv = opened.get(namespace)
    if (!kv) opened.set(namespace, (kv = create(namespace)))
    return kv
  }
}

/** Keyv counts in milliseconds, plugins in seconds. */
function inSeconds(keyv: Keyv): KeyValueStore {
  return {
    get: async (key) => keyv.get(key),
    async set(key, value, options) {
      if (options && !(options.ttlSeconds > 0)) throw new TypeError(wrongTtl(options))
      await keyv.set(key, value, options && options.ttlSeconds * 1000)
    },
    delete: async (key) => keyv.delete(key),
  }
}

/** Until 0.2 a plugin passed a number of milliseconds. */
function wrongTtl(options: unknown): string {
  const isNumber = typeof options === 'number'
  return isNumber
    ? `kv.set takes the time to live in seconds: write { ttlSeconds: ${options / 1000} } in place of ${options}.`
    : 'kv.set takes the time to live in seconds, and more than 0: { ttlSeconds: 60 }.'
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

function inRedis(redis: Redis, namespace: string): Keyv {
  const { default: KeyvRedis } = createRequire(import.meta.url)('@keyv/redis') as typeof import('@keyv/redis')
  const store = new KeyvRedis(redis.client)
  store.getClient = () => redis.usable()
  return new Keyv({ store, namespace: `tollgate:${namespace}`, useKeyPrefix: false })
}
