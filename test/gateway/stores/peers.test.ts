/** What processes tell each other, in memory and in Redis, and a Redis that stops answering. */
import { expect } from 'chai'
import { createLog } from '../../../gateway/observe/log.ts'
import { openKv } from '../../../gateway/stores/kv.ts'
import { type Peers, PeersInMemory } from '../../../gateway/stores/peers.ts'
import { openRedis, type Redis } from '../../../gateway/stores/redis.ts'
import { createRedisPeers } from '../../../gateway/stores/redis-peers.ts'
import { hasRedisServer, type OwnRedis, startRedis } from '../../support/redis.ts'
import { startStopwatch } from '../../support/stopwatch.ts'
import { until } from '../../support/until.ts'

/** Longer than two calls take, also on a busy machine. */
const WINDOW_MS = 1_000

const pause = (ms: number): Promise<void> => new Promise((wake) => setTimeout(wake, ms))

/** Resolves once Redis answers: the connection is made in the background. */
const isConnected = (redis: Redis): Promise<void> => until(() => redis.client.isReady)

/** Counts the keys that never expire. */
const COUNT_LASTING = `
local lasting = 0
for _, key in ipairs(redis.call('KEYS', '*')) do
  if redis.call('PTTL', key) < 0 then lasting = lasting + 1 end
end
return lasting`

for (const name of ['memory', 'Redis'] as const)
  describe(`what processes tell each other in ${name}`, () => {
    let own: OwnRedis | null = null
    const opened: Redis[] = []
    /** Two processes. */
    let here: Peers
    let there: Peers

    async function connected(gateway: string): Promise<Peers> {
      const redis = openRedis((own as OwnRedis).url)
      opened.push(redis)
      await isConnected(redis)
      return createRedisPeers(redis, gateway)
    }

    before(async function () {
      if (name === 'memory') here = there = new PeersInMemory()
      else {
        if (!hasRedisServer()) this.skip()
        own = await startRedis()
        here = await connected('https://one.example')
        there = await connected('https://one.example')
      }
    })
    after(async () => {
      await Promise.all(opened.map((redis) => redis.close()))
      await own?.kill()
    })

    it('adds calls up, and begins anew when the window has ended', async () => {
      expect(await here.addCalls([])).to.deep.equal([])
      const [first] = await here.addCalls([{ caller: 'a', calls: 3, msLeft: WINDOW_MS }])
      expect(first?.calls).to.equal(3)
      const [second, other] = await there.addCalls([
        { caller: 'a', calls: 4, msLeft: 60_000 },
        { caller: 'b', calls: 1, msLeft: 60_000 },
      ])
      expect([second?.calls, other?.calls]).to.deep.equal([7, 1])
      expect(second?.msLeft).to.be.within(0, WINDOW_MS)
      expect(other?.msLeft).to.be.within(59_000, 60_000)
      await pause(WINDOW_MS + 50)
      expect((await here.addCalls([{ caller: 'a', calls: 1, msLeft: WINDOW_MS }]))[0]?.calls).to.equal(1)
    })

    it('adds up the calls of many callers at once', async () => {
      const callers = Array.from({ length: 1_234 }, (_, nth) => ({
        caller: `many ${nth}`,
        calls: nth + 1,
        msLeft: 5_000,
      }))
      const [one, other] = await Promise.all([here.addCalls(callers), there.addCalls(callers)])
      expect(one.map(({ calls }, nth) => calls + (other[nth]?.calls ?? 0))).to.deep.equal(
        callers.map(({ calls }) => 3 * calls),
      )
    })

    it('passes on which operations are paused, for how long, and that a pause was ended', async () => {
      const stateOf = async (peers: Peers) =>
        (await peers.exchangePauses([])).find(({ operation }) => operation === 'getA')
      await here.exchangePauses([{ operation: 'getA', msLeft: 60_000, version: null }])
      const paused = await stateOf(there)
      expect(paused?.msLeft).to.be.within(59_000, 60_000)
      await there.exchangePauses([{ operation: 'getA', msLeft: null, version: paused?.version ?? null }])
      const ended = await stateOf(here)
      expect(ended?.msLeft).to.equal(null)
      expect(ended?.version).not.to.equal(paused?.version)
    })

    it('does not end a pause that is a later one', async () => {
      const stateOf = async () => (await here.exchangePauses([])).find(({ operation }) => operation === 'getB')
      await here.exchangePauses([{ operation: 'getB', msLeft: 30_000, version: null }])
      const first = await stateOf()
      await pause(5)
      await there.exchangePauses([{ operation: 'getB', msLeft: 60_000, version: first?.version ?? null }])
      await here.exchangePauses([{ operation: 'getB', msLeft: null, version: first?.version ?? null }])
      expect((await stateOf())?.msLeft).to.be.within(59_000, 60_000)
      await here.exchangePauses([{ operation: 'getNothing', msLeft: null, version: null }])
      expect((await here.exchangePauses([])).map(({ operation }) => operation)).not.to.include('getNothing')
    })

    if (name === 'Redis')
      it('shares nothing with other gateways, and every key expires', async () => {
        const stranger = await connected('https://two.example')
        await here.addCalls([{ caller: 'same', calls: 5, msLeft: 5_000 }])
        expect((await stranger.addCalls([{ caller: 'same', calls: 1, msLeft: 5_000 }]))[0]?.calls).to.equal(1)
        expect(await stranger.exchangePauses([])).to.deep.equal([])
        await stranger.exchangePauses([{ operation: 'getA', msLeft: 60_000, version: null }])
        const keys = own?.ask('KEYS', '*').split('\n') ?? []
        expect(keys.length).to.be.greaterThan(3)
        for (const key of keys) expect(key).to.match(/^tollgate:https:\/\/(one|two)\.example:(calls:.+|pauses)$/)
        expect(own?.ask('EVAL', COUNT_LASTING, '0')).to.equal('0')
      })
  })

describe('what processes tell each other', () => {
  it('never lasts longer than it was said to, whatever the clock shows', async () => {
    for (let nth = 0; nth < 1_000; nth += 1) {
      const peers = new PeersInMemory(() => 100_000 + nth * 1.1)
      const [total] = await peers.addCalls([{ caller: 'a', calls: 1, msLeft: 60_000 }])
      const [paused] = await peers.exchangePauses([{ operation: 'getA', msLeft: 60_000, version: null }])
      for (const { msLeft } of [total, paused] as { msLeft: number }[]) expect(msLeft).to.be.within(59_999.9, 60_000)
    }
  })
})

describe('a Redis that is lost', function () {
  this.timeout(30_000)
  let own: OwnRedis
  let redis: Redis
  let peers: Peers
  const lines: string[] = []

  before(async function () {
    if (!hasRedisServer()) this.skip()
    own = await startRedis()
    const log = createLog('silent')
    const note = (_: unknown, text?: string): void => void lines.push(text ?? String(_))
    redis = openRedis(own.url, Object.assign(Object.create(log), { warn: note, info: note }))
    peers = createRedisPeers(redis, 'https://lost.example')
    await isConnected(redis)
  })
  after(async () => {
    await redis?.close()
    await own?.kill()
  })
  beforeEach(() => lines.splice(0))

  const add = (): Promise<unknown> => peers.addCalls([{ caller: 'a', calls: 1, msLeft: 60_000 }])
  const fails = async (work: () => Promise<unknown>): Promise<boolean> =>
    work().then(
      () => false,
      () => true,
    )
  /** How long something takes, in milliseconds, without the time for which a busy machine makes this thread wait. */
  async function timed(work: () => Promise<unknown>): Promise<number> {
    const elapsed = startStopwatch()
    await work().catch(() => {})
    return elapsed()
  }
  const LOST = 'Redis cannot be used; this process counts for itself and shares no caches'
  const FOUND = 'Redis can be used again'

  it('is an error at once while it is down, is logged once, and is used again when it is back', async () => {
    await own.kill()
    await until(() => lines.length > 0)
    for (let attempt = 0; attempt < 20; attempt++) expect(await timed(add)).to.be.lessThan(500)
    expect(await fails(add)).to.equal(true)
    await own.start()
    await until(async () => !(await fails(add)))
    expect(lines).to.deep.equal([LOST, FOUND])
  })

  it('is an error while it refuses to write, and is logged once', async () => {
    own.ask('CONFIG', 'SET', 'min-replicas-to-write', '1')
    expect([await fails(add), await fails(add)]).to.deep.equal([true, true])
    own.ask('CONFIG', 'SET', 'min-replicas-to-write', '0')
    expect(await fails(add)).to.equal(false)
    expect(lines).to.deep.equal([LOST, FOUND])
  })

  it('is an error after a second while it hangs, and then at once, for caches too', async () => {
    const cache = openKv(redis)('hanging')
    await cache.set('key', 'value')
    own.pause()
    const begun = timed(() => cache.get('key'))
    const began = performance.now()
    expect(await timed(add)).to.be.at.most(2_500)
    expect(performance.now() - began).to.be.at.least(900)
    for (let attempt = 0; attempt < 20; attempt++) expect(await timed(add)).to.be.lessThan(500)
    expect(await timed(() => cache.get('key'))).to.be.lessThan(500)
    expect(await cache.get('key')).to.equal(undefined)
    // Longer than a connection may be silent: it is made anew, which hangs too.
    await pause(4_000)
    expect(await begun).to.be.lessThan(5_000)
    expect(await fails(add)).to.equal(true)
    own.resume()
    await until(async () => !(await fails(add)))
    expect(await cache.get('key')).to.equal('value')
    expect(lines).to.deep.equal([LOST, FOUND])
  })

  it('does not delay the end of the process while it hangs', async () => {
    own.pause()
    expect(await timed(() => redis.close())).to.be.lessThan(2_500)
    own.resume()
  })
})
