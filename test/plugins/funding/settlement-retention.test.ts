import { expect } from 'chai'
import { openTestProduct } from 'tollgate/testing'
import { migrate } from '../../../gateway/stores/migrations.ts'
import { answerFundingHistory } from '../../../plugins/funding/history-answer.ts'
import { migrations } from '../../../plugins/funding/rate-store.ts'
import {
  createSettlementSource,
  type HeldContract,
  pruneSettlements,
  storeSettlements,
} from '../../../plugins/funding/settlement-store.ts'
import funding from '../../../plugins/funding/index.ts'
import { DATABASES, type TestDatabase } from '../../contracts/databases.ts'

const HOUR = 3600
const SIGNAL = new AbortController().signal
const HOURS = 700
const FROM = Date.UTC(2026, 0, 1) / 1000
const TO = FROM + HOURS * HOUR

for (const [name, open] of Object.entries(DATABASES))
  describe(`settled funding rates that are no longer kept in ${name}`, () => {
    let store: TestDatabase
    beforeEach(async function () {
      const opened = await open()
      if (!opened) this.skip()
      store = opened
      await migrate(store.db, 'funding', migrations)
      for (const venue of ['hyperliquid', 'dydx'] as const) await fill(venue, TO)
    })
    afterEach(() => store?.drop())

    const fill = (venue: HeldContract['venue'], to: number): Promise<void> => {
      const contract = { venue, instrument: 'BTC', symbol: 'BTC' }
      const rows = Array.from({ length: (to - FROM) / HOUR }, (_, n) => ({
        ...contract,
        time: FROM + n * HOUR,
        rate: '0.00001',
      }))
      return storeSettlements(store.db, rows, {
        ...contract,
        held_from: FROM,
        reached: to,
        updated_at: to,
        error: null,
      })
    }
    const held = () => createSettlementSource(store.db)
    const times = async (): Promise<number[]> => {
      const range = { symbols: ['BTC'], venues: ['dydx'], from: 0, to: 1e12, after: null, limit: 10_000 }
      return (await held().read(range)).map(({ time }) => time)
    }
    const answer = (start: number, end: number) =>
      answerFundingHistory(
        { settled: held(), current: { at: async () => [] }, dataMode: 'online' },
        { symbol: 'BTC', venue: 'dydx', start, end, limit: 1 },
        new Date(TO * 1000),
      )

    it('are exactly those from before the time, of every contract', async () => {
      const before = FROM + 450 * HOUR
      expect(await pruneSettlements(store.db, before, SIGNAL)).to.equal(2 * 450)
      expect(await times()).to.deep.equal(Array.from({ length: HOURS - 450 }, (_, n) => before + n * HOUR))
      expect(await pruneSettlements(store.db, before, SIGNAL)).to.equal(0)
    })

    it('are not said to be held by any answer', async () => {
      const before = FROM + 450 * HOUR
      const whole = await answer(FROM, TO)
      expect(whole.contracts[0]).to.include({ complete: true, held_from: new Date(FROM * 1000).toISOString().replace('.000', '') }) // prettier-ignore
      await pruneSettlements(store.db, before, SIGNAL)
      const [contract] = (await answer(FROM, TO)).contracts
      expect(contract).to.include({ complete: false, held_from: new Date(before * 1000).toISOString().replace('.000', '') }) // prettier-ignore
      expect((await answer(before, TO)).contracts[0]!.complete).to.equal(true)
    })

    it('go in small steps, each of which leaves the answers true', async () => {
      const stop = new AbortController()
      const deletes: number[] = []
      store.db.on('query-response', (count: unknown, { method }: { method?: string }) => {
        if (method === 'del') deletes.push(Number(count))
        if (deletes.length === 1) stop.abort()
      })
      await pruneSettlements(store.db, FROM + 450 * HOUR, stop.signal)
      store.db.removeAllListeners('query-response')
      expect(deletes).to.deep.equal([200])
      for (const { venue, held_from } of await held().contracts(['BTC'])) {
        const range = { symbols: ['BTC'], venues: [venue], from: held_from, to: TO, after: null, limit: 10_000 }
        const from = Math.ceil((held_from - FROM) / HOUR)
        expect((await held().read(range)).length).to.equal(HOURS - from)
      }
    })

    it('take a contract with them of which nothing is left', async () => {
      await fill('gate', FROM + 10 * HOUR)
      await pruneSettlements(store.db, FROM + 450 * HOUR, SIGNAL)
      expect((await held().contracts(['BTC'])).map(({ venue }) => venue)).to.deep.equal(['dydx', 'hyperliquid'])
    })
  })

describe('the settings of settled funding rates', () => {
  it('are refused if what is fetched would be deleted', async () => {
    const product = await openTestProduct(funding, { settings: { history_days: 90, keep_settled_days: 30 } })
    expect(product.issues[0]?.message).to.include('keep_settled_days (30) is less than history_days (90)')
    await product.close()
  })
})
