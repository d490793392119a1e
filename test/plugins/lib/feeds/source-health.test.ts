import { expect } from 'chai'
import { quarantineSeconds, SourceHealth, type SourceRecord } from '../../../../plugins/lib/feeds/source-health.ts'

const failure = (status: number, retryAfterSeconds: number | null = null) => ({
  status,
  retryAfterSeconds,
  message: `answered ${status}`,
})
const pauses = (status: number): number[] => [1, 2, 3, 4, 5, 9].map((nth) => quarantineSeconds(failure(status), nth))

describe('the health of sources', () => {
  it('makes pauses grow: up to two minutes after an error, an hour after a limit, a day after a refusal', () => {
    expect(pauses(503)).to.deep.equal([10, 20, 40, 80, 120, 120])
    expect(pauses(0)).to.deep.equal(pauses(200))
    expect(pauses(429)).to.deep.equal([30, 60, 120, 240, 480, 3600])
    expect(pauses(451)).to.deep.equal([600, 2400, 9600, 38_400, 86_400, 86_400])
  })

  it('obeys Retry-After for up to a day', () => {
    expect(quarantineSeconds(failure(503, 300), 1)).to.equal(300)
    expect(quarantineSeconds(failure(429, 1e9), 1)).to.equal(86_400)
  })

  it('counts a refusal for one symbol, and a limit for all', async () => {
    const saved: SourceRecord[] = []
    let now = 1000
    const health = new SourceHealth({ now: () => now, save: async (record) => void saved.push(record) })
    await health.failed('venue', 'DOGE', failure(404))
    expect([health.isUsable('venue', 'DOGE'), health.isUsable('venue', 'BTC')]).to.deep.equal([false, true])
    await health.failed('venue', 'BTC', failure(429))
    expect(health.isUsable('venue', 'BTC')).to.equal(false)
    now += 30
    expect([health.isUsable('venue', 'DOGE'), health.isUsable('venue', 'BTC')]).to.deep.equal([false, true])
    await health.answered('venue', 'BTC')
    expect(health.failing().map(({ item }) => item)).to.deep.equal(['DOGE'])
    expect(saved.at(-1)).to.include({ source: 'venue', item: '', failures: 0 })
  })

  it('ends no pause by an answer to a request that was under way when the pause began', async () => {
    let now = 1000
    const health = new SourceHealth({ now: () => now, save: async () => undefined })
    await health.failed('venue', 'BTC', failure(429, 600))
    now += 1
    await health.answered('venue', 'ETH')
    expect(health.isUsable('venue', 'SOL')).to.equal(false)
    now += 599
    expect(health.isUsable('venue', 'SOL')).to.equal(true)
    await health.answered('venue', 'ETH')
    expect(health.failing()).to.deep.equal([])
  })

  it('counts requests that fail together as one failure, and pauses for as long as the strictest of them asks', async () => {
    let now = 1000
    const health = new SourceHealth({ now: () => now, save: async () => undefined })
    expect(await health.failed('venue', 'BTC', failure(429, 300))).to.equal(300)
    now += 1
    for (const symbol of ['ETH', 'SOL', 'XRP', 'DOGE'])
      expect(await health.failed('venue', symbol, failure(429))).to.equal(299)
    expect(health.failing()).to.have.length(1)
    expect(health.failing()[0]).to.include({ failures: 1, since: 1000, until: 1300 })
    now += 299
    expect(await health.failed('venue', 'BTC', failure(429))).to.equal(60)
  })

  it('goes on from what another process has stored', async () => {
    let now = 1000
    const health = new SourceHealth({ now: () => now, save: async () => undefined })
    const stored = { source: 'venue', item: 'BTC', failures: 2, status: 403, reason: 'no', since: 900, until: 2000 }
    health.load([stored])
    expect(health.isUsable('venue', 'BTC')).to.equal(false)
    now = 2000
    expect(await health.failed('venue', 'BTC', failure(403))).to.equal(9600)
    expect(health.failing()[0]!.since).to.equal(900)
  })
})
