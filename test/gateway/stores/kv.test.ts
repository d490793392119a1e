import { expect } from 'chai'
import { createClient } from '@keyv/redis'
import { type Kv, openKv } from '../../../gateway/stores/kv.ts'
import { openRedis, type Redis } from '../../../gateway/stores/redis.ts'
import { until } from '../../support/gateway.ts'
import { REDIS_URL } from '../../support/services.ts'

const answers = async (url: string): Promise<boolean> => {
  const client = createClient({ url, socket: { reconnectStrategy: false } })
  client.on('error', () => {})
  try {
    await client.connect()
    await client.close()
    return true
  } catch {
    return false
  }
}

for (const [name, url] of [
  ['memory', null],
  ['Redis', REDIS_URL],
] as const)
  describe(`the cache in ${name}`, () => {
    let redis: Redis | null = null
    let kv: Kv
    /** Names of this run, so that runs on one Redis do not interfere. */
    const run = `test-${process.pid}-${name}`

    before(async function () {
      if (url !== null && !(await answers(url))) this.skip()
      redis = url === null ? null : openRedis(url)
      kv = openKv(redis)
    })
    after(async () => {
      await kv?.(`${run}-one`).delete('long')
      await redis?.close()
    })

    it('separates values by namespace, and returns the same cache for the same namespace', async () => {
      expect(kv(`${run}-one`)).to.equal(kv(`${run}-one`))
      await kv(`${run}-one`).set('key', { deep: [1, 'two'] })
      expect(await kv(`${run}-one`).get('key')).to.deep.equal({ deep: [1, 'two'] })
      expect(await kv(`${run}-two`).get('key')).to.equal(undefined)
      expect(await kv(`${run}-one`).delete('key')).to.equal(true)
      expect(await kv(`${run}-one`).get('key')).to.equal(undefined)
    })

    it('drops a value when it expires', async () => {
      await kv(`${run}-one`).set('brief', 'here', { ttlSeconds: 0.005 })
      await kv(`${run}-one`).set('long', 'here', { ttlSeconds: 60 })
      await until(async () => (await kv(`${run}-one`).get('brief')) === undefined)
      expect(await kv(`${run}-one`).get('long')).to.equal('here')
    })

    it('refuses a number of milliseconds, and says what to write', async () => {
      const { set } = kv(`${run}-one`)
      const old = set('old', 1, 90_000 as never).catch((error: unknown) => error)
      expect(await old).to.have.property(
        'message',
        'kv.set takes the time to live in seconds: write { ttlSeconds: 90 } in place of 90000.',
      )
      expect(await set('none', 1, { ttlSeconds: 0 }).catch((error: unknown) => error)).to.be.instanceOf(TypeError)
      expect(await kv(`${run}-one`).get('old')).to.equal(undefined)
    })
  })

describe('the cache', () => {
  it('holds a bounded number of values in memory', async () => {
    const kv = openKv(null)('bounded')
    for (let at = 0; at < 10_001; at++) await kv.set(String(at), at)
    expect(await kv.get('0')).to.equal(undefined)
    expect(await kv.get('10000')).to.equal(10_000)
  })

  it('acts as an empty cache without delaying calls while Redis is unreachable', async () => {
    const redis = openRedis('redis://127.0.0.1:1')
    const kv = openKv(redis)
    try {
      await kv('away').set('key', 'value')
      expect(await kv('away').get('key')).to.equal(undefined)
    } finally {
      await redis.close()
    }
  })
})
