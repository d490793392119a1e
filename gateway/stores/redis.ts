/**
 * The connection to Redis: one per process, made in the background. Nothing waits for Redis: while it is unreachable, or
 * does not answer for a second, commands fail at once.
 */
import { createRequire } from 'node:module'
import type { Logger } from 'pino'

export type RedisClient = ReturnType<typeof createClient>

export interface Redis {
  readonly client: RedisClient
  /** Returns the client to use now: while Redis does not answer, one that refuses every command. */
  usable(): Promise<RedisClient>
  /** Runs a command. Rejects if Redis is unreachable or does not answer within a second. */
  run<T>(command: (client: RedisClient) => Promise<T>): Promise<T>
  close(): Promise<void>
}

/** The first calls wait this long for Redis. After that an unreachable Redis acts like an empty cache. */
const CONNECT_MS = 2_000
const ANSWER_MS = 1_000
/** A connection on which nothing was sent and nothing came for this long is replaced. A ping keeps it busy. */
const SILENT_MS = 2_000
const PING_MS = 500

/** A client that is not connected yet. Commands fail at once while it is not. */
function createClient(url: string) {
  const redis = createRequire(import.meta.url)('@keyv/redis') as typeof import('@keyv/redis')
  return redis.createClient({
    url,
    disableOfflineQueue: true,
    pingInterval: PING_MS,
    socket: {
      socketTimeout: SILENT_MS,
      reconnectStrategy: (attempts) => Math.min(100 * 2 ** attempts, 5_000),
    },
  })
}

/** Opens the connection to a redis:// or rediss:// address. */
export function openRedis(url: string, log?: Logger): Redis {
  const client = createClient(url)
  /** Never connected. */
  const refusing = createClient(url)
  client.setMaxListeners(0)
  let isLost = false
  /** Commands that have waited too long for their answer. */
  let overdue = 0
  const lost = (err: unknown): void => {
    if (!isLost) log?.warn({ err }, 'Redis cannot be used; this process counts for itself and shares no caches')
    isLost = true
  }
  const found = (): void => {
    if (isLost) log?.info('Redis can be used again')
    isLost = false
  }
  client.on('error', lost)
  client.on('ready', found)
  // Resolves once Redis has answered, refused or timed out; from then on the client knows whether it is connected.
  const connected = new Promise<void>((resolve) => {
    client.once('ready', resolve)
    client.once('error', () => resolve())
    setTimeout(resolve, CONNECT_MS).unref()
  })
  client.connect().catch(() => {})

  function run<T>(command: (client: RedisClient) => Promise<T>): Promise<T> {
    if (overdue > 0 || !client.isReady) return Promise.reject(new Error('Redis is not connected or does not answer.'))
    const answer = command(client)
    answer.then(found, lost)
    return new Promise<T>((resolve, reject) => {
      const timer = setTimeout(() => {
        const error = new Error(`Redis did not answer within ${ANSWER_MS} ms.`)
        lost(error)
        reject(error)
        overdue += 1
        const ended = (): void => void (overdue -= 1)
        answer.then(ended, ended)
      }, ANSWER_MS).unref()
      answer.then(resolve, reject).finally(() => clearTimeout(timer))
    })
  }

  return {
    client,
    async usable() {
      await connected
      return overdue > 0 ? refusing : client
    },
    run,
    async close() {
      const isClosed = client.isReady && (await run((open) => open.close()).then(always, never))
      if (!isClosed && client.isOpen) client.destroy()
    },
  }
}

const always = (): boolean => true
const never = (): boolean => false
