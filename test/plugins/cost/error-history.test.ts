import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { expect } from 'chai'
import type { Ask } from 'tollgate/plugin'
import { createErrorHistory } from '../../../plugins/cost/error-history.ts'
import market from '../../../plugins/market/index.ts'
import { openPluginHost, type PluginHost } from '../plugin-host.ts'

const NOW = Date.UTC(2026, 10, 17, 15) / 1000
const DAY = 86_400
const BTC = { symbol: 'BTC-USD', venue: 'sample' }

describe('the errors that are learnt from kept books', () => {
  let host: PluginHost
  let now: number
  let asked: number
  const askAt =
    (at: number): Ask =>
    (id, ...[input]) => {
      asked += 1
      return host.call(id as never, (input as { query: object }).query, { asOf: new Date(at * 1000) })
    }

  beforeEach(async () => {
    now = NOW
    asked = 0
    const path = resolve(import.meta.dirname, '../../../catalog/market.json')
    const { settings } = JSON.parse(readFileSync(path, 'utf8')) as { settings: Record<string, unknown> }
    host = await openPluginHost([{ plugin: market, settings }], { now: () => new Date(now * 1000) })
  })
  afterEach(() => host.stop())

  it('grow with the pairs that come, which are looked for once a minute', async () => {
    const history = createErrorHistory(() => now)
    const of = async () => (await history(askAt(now), BTC, now)).at('buy', 1e6)!
    const first = await of()
    expect(first).to.include({ to: NOW })
    const before = asked
    now += 59
    expect(await of()).to.deep.equal(first)
    expect(asked).to.equal(before)
    now += 61
    expect(await of()).to.include({ to: NOW + 120, cases: first.cases + 2, judged: first.judged + 2 })
  })

  it('are for a delayed answer those that were known then', async () => {
    const history = createErrorHistory(() => now)
    const of = async (at: number) => (await history(askAt(at), BTC, at)).at('buy', 1e6)!
    expect(await of(now)).to.include({ to: NOW })
    expect(await of(now - DAY)).to.include({ to: NOW - DAY })
    now += 120
    expect(await of(now)).to.include({ to: NOW + 120 })
    expect(await of(now - DAY)).to.include({ to: NOW + 120 - DAY })
    expect(await of(now - 60), 'a minute ago').to.include({ to: NOW + 60 })
  })

  it('are learnt once for callers at the same time', async () => {
    const history = createErrorHistory(() => now)
    const found = await Promise.all(Array.from({ length: 5 }, () => history(askAt(now), BTC, now)))
    expect(new Set(found).size).to.equal(1)
    expect(found[0]!.at('sell', 1e6)).to.include({ cases: 180 })
    expect((await history(askAt(now), { ...BTC, venue: 'another' }, now)).at('buy', 1e6)).to.equal(null)
  })

  it('go on where a caller gave up', async () => {
    const history = createErrorHistory(() => now)
    const ask = askAt(now)
    const givingUp: Ask = (id, ...[input]) =>
      asked < 1 ? ask(id, ...([input] as never)) : Promise.reject(new Error('gave up'))
    const failure = await history(givingUp, BTC, now).catch((error: unknown) => error)
    expect((failure as Error).message).to.equal('gave up')
    expect((await history(ask, BTC, now)).at('sell', 1e6)).to.include({ cases: 180 })
    expect(asked).to.equal(2)
  })
})
