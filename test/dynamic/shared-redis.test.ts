/** Two gateways that share a Redis: limits and circuit breakers hold for both, and nothing depends on Redis. */
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { Agent, type IncomingMessage, request } from 'node:http'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { expect } from 'chai'
import { SERVICE } from '../support/catalog.ts'
import { freePort } from '../support/gateway.ts'
import { environmentIn, startGateway, type Started } from '../support/process.ts'
import { hasRedisServer, type OwnRedis, startRedis } from '../support/redis.ts'
import { msUntil, until } from '../support/until.ts'
import { wordProduct } from './live-gateway.ts'

/** Fails in the process whose number is in the query, and otherwise says its number. */
const MOODY = `import { definePlugin } from 'tollgate/plugin'
export default definePlugin({ name: 'moody', setup: ({ settings: { port } }) => ({ handlers: { getWord: ({ input }) => {
  if (input.query.fails === port) throw new Error('moody')
  return { word: port }
} } }), settings: { type: 'object', properties: { port: { type: 'string' } } } })
`
const CATALOG = wordProduct(
  'moody',
  { query: { type: 'object', properties: { fails: { type: 'string' } } } },
  { settings: { port: 'env:PORT' } },
)
/** As docs/operations.md says. */
const LIMIT = 600
/**
 * What a caller gets beyond it is a tenth and what arrives during two round trips to Redis, which may take long on a busy
 * machine. Gateways that do not share would give as much again as the limit. test/gateway/http/rate-limit.test.ts is exact.
 */
const BEYOND = LIMIT / 2

describe('two gateways that share a Redis', function () {
  this.timeout(120_000)
  let folder: string
  let redis: OwnRedis
  const running: Started[] = []
  const ports: number[] = []
  const agent = new Agent({ keepAlive: true, maxSockets: 8 })
  let callers = 0

  /** An address that has not called before. */
  const newCaller = (): string => {
    callers += 1
    return `198.51.${Math.floor(callers / 250)}.${1 + (callers % 250)}`
  }

  before(async function () {
    if (!hasRedisServer()) this.skip()
    redis = await startRedis()
    folder = mkdtempSync(join(tmpdir(), 'tollgate-redis-'))
    const write = (file: string, content: string): void => {
      mkdirSync(dirname(join(folder, file)), { recursive: true })
      writeFileSync(join(folder, file), content)
    }
    write('catalog/service.json', JSON.stringify(SERVICE))
    write('catalog/moody.json', JSON.stringify(CATALOG))
    write('plugins/moody/index.ts', MOODY)
    ports.push(await freePort(), await freePort())
    for (const port of ports)
      running.push(
        await startGateway(/is open at/, {
          ...environmentIn(folder, port),
          DATA_DIR: join(folder, String(port)),
          BASE_URL: 'https://gate.test',
          TRUSTED_PROXIES: '127.0.0.1',
          KEYV_URL: redis.url,
          LOG_LEVEL: 'info',
        }),
      )
  })
  after(async () => {
    agent.destroy()
    await Promise.all(running.map((gateway) => gateway.stop()))
    await redis?.kill()
    if (folder) rmSync(folder, { recursive: true, force: true })
  })

  /** `peer` is the address of this machine that the connection comes from. */
  async function call(nth: number, caller: string, query = '', peer = '127.0.0.1'): Promise<number> {
    const url = `http://127.0.0.1:${ports[nth]}/v1/moody${query}`
    const sent = request(url, { agent, localAddress: peer, headers: { 'x-forwarded-for': caller } })
    sent.end()
    const [answer] = (await once(sent, 'response')) as [IncomingMessage]
    answer.resume()
    await once(answer, 'end')
    return answer.statusCode ?? 0
  }

  /** Sends calls, 8 at a time, each to the gateway that `to` says. Returns how many were admitted. */
  async function admitted(
    calls: number,
    caller: string | (() => string),
    to: (call: number) => number,
    peer?: string,
  ): Promise<number> {
    let sent = 0
    const statuses = new Map<number, number>()
    const send = async (): Promise<void> => {
      while (sent < calls) {
        const status = await call(to(sent++), typeof caller === 'string' ? caller : caller(), '', peer)
        statuses.set(status, (statuses.get(status) ?? 0) + 1)
      }
    }
    await Promise.all(Array.from({ length: 8 }, send))
    expect([...statuses.keys()].filter((status) => status !== 200 && status !== 429)).to.deep.equal([])
    return statuses.get(200) ?? 0
  }

  /** Expects that a caller who calls both in turn gets no more from both than it should from one. */
  async function expectShared(): Promise<void> {
    expect(await admitted(2 * LIMIT, newCaller(), (at) => at % 2)).to.be.within(LIMIT, LIMIT + BEYOND)
  }

  /** Expects that each holds a caller to the limit, without knowing of the other. */
  async function expectAlone(): Promise<void> {
    const caller = newCaller()
    expect(await admitted(LIMIT + 20, caller, () => 0)).to.equal(LIMIT)
    expect(await admitted(LIMIT + 20, caller, () => 1)).to.equal(LIMIT)
  }

  const linesOf = (nth: number, text: string): number => (running[nth]?.output().split(text).length ?? 1) - 1
  const LOST = 'Redis cannot be used'
  const FOUND = 'Redis can be used again'

  it('hold a caller to one limit, however it spreads its calls', async () => {
    await expectShared()
    const caller = newCaller()
    expect(await admitted(LIMIT, caller, () => 0)).to.equal(LIMIT)
    expect(await admitted(LIMIT, caller, () => 1)).to.be.at.most(BEYOND)
  })

  it('count a private peer that nobody named as one caller, whatever its X-Forwarded-For says', async () => {
    // Every address of 127.0.0.0/8 is this machine's; the gateways were told of one.
    const alone = await admitted(LIMIT + 200, newCaller, () => 0, '127.0.0.2')
    expect(alone).to.equal(LIMIT)
    expect(await admitted(2 * LIMIT, newCaller, (at) => at % 2, '127.0.0.3')).to.be.at.most(BEYOND)
  })

  it('keep on while Redis hangs, each with a limit of its own, and share again when it answers', async () => {
    await expectShared()
    redis.pause()
    try {
      await expectAlone()
      await until(() => linesOf(0, LOST) > 0 && linesOf(1, LOST) > 0)
      await expectAlone()
    } finally {
      redis.resume()
    }
    await until(() => linesOf(0, FOUND) > 0 && linesOf(1, FOUND) > 0)
    await expectShared()
  })

  it('keep on when Redis is killed, say so once, and share again when it is back', async () => {
    const [said, other] = [linesOf(0, LOST), linesOf(1, LOST)]
    await redis.kill()
    await expectAlone()
    await until(() => linesOf(0, LOST) > said && linesOf(1, LOST) > other)
    await expectAlone()
    await new Promise((wake) => setTimeout(wake, 2_000))
    expect([linesOf(0, LOST) - said, linesOf(1, LOST) - other]).to.deep.equal([1, 1])
    await redis.start()
    await until(async () => {
      const caller = newCaller()
      await admitted(LIMIT, caller, () => 0)
      return (await admitted(LIMIT, caller, () => 1)) < LIMIT
    }, 500)
    await expectShared()
  })

  it('pause an operation together, within a second', async () => {
    const caller = newCaller()
    const [first, second] = ports
    for (let failure = 0; failure < 4; failure++) expect(await call(0, caller, `?fails=${first}`)).to.equal(502)
    expect([await call(0, caller), await call(1, caller)]).to.deep.equal([200, 200])
    for (let failure = 0; failure < 5; failure++) expect(await call(1, caller, `?fails=${second}`)).to.equal(502)
    expect(await call(1, caller)).to.equal(503)
    const ms = await msUntil(async () => (await call(0, caller)) === 503)
    expect(ms, 'milliseconds until the other pauses it').to.be.lessThan(1_500)
  })
})
