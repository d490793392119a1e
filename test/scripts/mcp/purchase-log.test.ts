import { appendFileSync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import fc from 'fast-check'
import type { Payment } from '../../../gateway/client/payment.ts'
import { NETWORKS } from '../../../gateway/config/networks.ts'
import { PurchaseLog, type ToolCall } from '../../../scripts/mcp/purchase-log.ts'

const START = Date.parse('2026-06-01T12:00:00Z')
const HOUR = 3_600_000
const URL_OF = { one: new URL('https://one.example/mcp'), two: new URL('https://two.example/mcp') }

describe('the purchases of the bridge', () => {
  let folder: string
  let now: number
  let log: PurchaseLog
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'purchases-'))
    now = START
    log = new PurchaseLog(folder, () => now)
  })
  afterEach(() => rmSync(folder, { recursive: true, force: true }))

  const callOf = (word: string, url = URL_OF.one): ToolCall => ({ url, tool: 'get_echo', arguments: { word } })
  const reserve = (word: string, amount = 5_000n, url = URL_OF.one): string =>
    log.reserve(callOf(word, url), { amount, network: NETWORKS['base-sepolia'] })
  const paymentFor = (seconds: number): Payment =>
    ({ nonce: '0x1', validBefore: Math.floor(now / 1000) + seconds }) as unknown as Payment

  it('count what was signed or settled today, and no more what was refused once its payment has ended', () => {
    type Outcome = 'reserved' | 'signed' | 'settled' | 'refused' | 'released'
    const purchases = fc.array(
      fc.record({
        amount: fc.bigInt(1n, 10_000_000n),
        site: fc.constantFrom('one' as const, 'two' as const),
        outcome: fc.constantFrom<Outcome>('reserved', 'signed', 'settled', 'refused', 'released'),
        afterMinutes: fc.integer({ min: 0, max: 20 }),
      }),
      { maxLength: 12 },
    )
    fc.assert(
      fc.property(purchases, fc.integer({ min: 0, max: 30 * 60 }), (made, laterMinutes) => {
        rmSync(folder, { recursive: true, force: true })
        now = START
        const times: number[] = []
        for (const { amount, site, outcome, afterMinutes } of made) {
          now += afterMinutes * 60_000
          times.push(now)
          const id = reserve('hello', amount, URL_OF[site])
          if (outcome === 'reserved') continue
          if (outcome !== 'released') log.signed(id, paymentFor(300))
          if (outcome === 'settled') log.settled(id, '0xab')
          else if (outcome !== 'signed') log[outcome](id)
        }
        now += laterMinutes * 60_000
        const counts = made.filter(({ outcome }, at) => {
          const age = now - (times[at] as number)
          const isToday = new Date(times[at] as number).getUTCDate() === new Date(now).getUTCDate()
          if (outcome === 'reserved') return isToday && age <= 900_000
          if (outcome === 'refused') return isToday && age <= 330_000
          return isToday && outcome !== 'released'
        })
        const found = new PurchaseLog(folder, () => now).countedBefore('none')
        expect(found.map(({ amount, host }) => [amount, host])).to.deep.equal(
          counts.map(({ amount, site }) => [amount, URL_OF[site].host]),
        )
      }),
    )
  })

  it('count for a purchase only what was reserved before it, by whatever process', () => {
    const first = reserve('a', 1n)
    const other = new PurchaseLog(folder, () => now)
    const second = other.reserve(callOf('b'), { amount: 2n, network: NETWORKS['base-sepolia'] })
    expect(log.countedBefore(first)).to.deep.equal([])
    expect(other.countedBefore(second).map(({ amount }) => amount)).to.deep.equal([1n])
  })

  it('are found again by the same call while their payment may be settled, also after midnight', () => {
    now = Date.parse('2026-06-01T23:59:00Z')
    const id = reserve('hello')
    expect(log.openFor(callOf('hello'))).to.equal(null)
    const payment = paymentFor(300)
    log.signed(id, payment)
    now += 120_000
    expect(log.openFor(callOf('hello'))).to.deep.equal({ id, payment })
    expect(log.openFor(callOf('other'))).to.equal(null)
    expect(log.openFor(callOf('hello', URL_OF.two))).to.equal(null)
    log.refused(id)
    expect(log.openFor(callOf('hello'))).to.deep.equal({ id, payment })
    now += 300_000
    expect(log.openFor(callOf('hello'))).to.equal(null)
  })

  it('are not found again once they are settled or released', () => {
    for (const end of ['settled', 'released'] as const) {
      const id = reserve(end)
      log.signed(id, paymentFor(300))
      log[end](id)
      expect(log.openFor(callOf(end))).to.equal(null)
    }
  })

  it('survive a line that a crash has cut short', () => {
    log.settled(reserve('a', 3n))
    const [day = ''] = readdirSync(folder)
    appendFileSync(join(folder, day), '\n{"event":"reserv')
    now += HOUR
    log.settled(reserve('b', 4n))
    expect(log.spentToday()).to.equal(7n)
  })

  it('can be read by their owner alone', () => {
    folder = join(folder, 'deeper')
    log = new PurchaseLog(folder, () => now)
    reserve('a')
    const modes = [folder, join(folder, '2026-06-01.jsonl')].map((path) => statSync(path).mode & 0o777)
    expect(modes).to.deep.equal([0o700, 0o600])
  })
})
