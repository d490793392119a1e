import { expect } from 'chai'
import { createLargeBodyLimit } from '../../../gateway/payments/payments.ts'
import { type Peers, PeersInMemory } from '../../../gateway/stores/peers.ts'
import type { SharedLimit } from '../../../gateway/stores/shared-limit.ts'
import { openRedis, type Redis } from '../../../gateway/stores/redis.ts'
import { createRedisPeers } from '../../../gateway/stores/redis-peers.ts'
import { hasRedisServer, type OwnRedis, startRedis } from '../../support/redis.ts'
import { until } from '../../support/until.ts'

/** How many of these bodies are read. */
async function admitted(limits: readonly SharedLimit[], payer: string, bodies: number): Promise<number> {
  let count = 0
  for (let nth = 0; nth < bodies; nth++)
    await (limits[nth % limits.length] as SharedLimit).count(payer).then(
      () => (count += 1),
      (error: Error) => expect(error.message).to.contain('More than 20 large requests of this payer were not paid'),
    )
  return count
}

for (const name of ['a primary', 'Redis'] as const)
  describe(`the limit of large bodies that two processes share through ${name}`, () => {
    let own: OwnRedis | null = null
    const opened: Redis[] = []
    let limits: readonly SharedLimit[]

    before(async function () {
      const peers: Peers[] = []
      if (name === 'a primary') {
        const primary = new PeersInMemory()
        peers.push(primary, primary)
      } else {
        if (!hasRedisServer()) this.skip()
        own = await startRedis()
        for (let nth = 0; nth < 2; nth++) {
          const redis = openRedis(own.url)
          opened.push(redis)
          await until(() => redis.client.isReady)
          peers.push(createRedisPeers(redis, 'https://one.example'))
        }
      }
      limits = peers.map((each) => createLargeBodyLimit(each))
    })
    after(async () => {
      await Promise.all(opened.map((redis) => redis.close()))
      await own?.kill()
    })

    it('holds for both together, and for each payer alone', async () => {
      expect(await admitted(limits, '0xone', 30)).to.equal(20)
      expect(await admitted(limits, '0xother', 5)).to.equal(5)
    })

    it('leaves out what was paid, whichever process sold it', async () => {
      const sold = await Promise.all(limits.map((limit) => limit.count('0xpaying')))
      expect(await admitted(limits, '0xpaying', 18)).to.equal(18)
      for (const body of sold) await body.takeBack()
      expect(await admitted(limits, '0xpaying', 6)).to.equal(2)
    })
  })

describe('the limit of large bodies of a process whose peers cannot be reached', () => {
  it('holds for this process', async () => {
    const limit = createLargeBodyLimit({ addCalls: () => Promise.reject(new Error('gone')) })
    expect(await admitted([limit], '0xone', 30)).to.equal(20)
  })
})

describe('the limit of large bodies of a process', () => {
  const realNow = Date.now
  let passed = 0
  before(() => {
    Date.now = () => realNow() + passed
  })
  after(() => {
    Date.now = realNow
  })

  for (const peers of [null, new PeersInMemory(() => Date.now())])
    it(`admits no more bodies in a minute because one of the minute before was paid, ${peers ? 'with' : 'without'} others`, async () => {
      const limit = createLargeBodyLimit(peers)
      const bodies = [await limit.count('0xslow'), await limit.count('0xslow')]
      passed += 61_000
      await bodies[0]?.takeBack()
      expect(await admitted([limit], '0xslow', 10)).to.equal(10)
      await bodies[1]?.takeBack()
      expect(await admitted([limit], '0xslow', 30)).to.equal(10)
    })
})
