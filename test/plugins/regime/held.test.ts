import { expect } from 'chai'
import { migrate } from '../../../gateway/stores/migrations.ts'
import { RememberedSnapshots } from '../../../plugins/regime/remembered-snapshots.ts'
import {
  CATCHUP,
  encodeSnapshots,
  HELD,
  migrations,
  openSnapshots,
  type Snapshots,
} from '../../../plugins/regime/snapshots.ts'
import { DATABASES, type TestDatabase } from '../../contracts/databases.ts'
import { snapshotAt } from './snapshot.ts'

const MINUTE = 60
const FIRST = 6000
const LAST = 12_000
const label = { symbol: 'BTC-USD', hasOrigin: true }

for (const name of ['a SQLite file', 'PostgreSQL'])
  describe(`held snapshots on ${name}`, () => {
    let store: TestDatabase | null
    beforeEach(async function () {
      this.timeout(60_000)
      store = await DATABASES[name]!()
      if (!store) this.skip()
    })
    afterEach(() => store?.drop())

    it('are sold until their minutes are classified, and stay readable as of then, in every process', async () => {
      const { db } = store!
      await migrate(db, 'regime', migrations)
      const other = store!.open!()
      const [stored, elsewhere] = [
        await openSnapshots(db, 'BTC-USD', 'online'),
        await openSnapshots(other, 'BTC-USD', 'online'),
      ]
      const minutes = Array.from({ length: (LAST - FIRST) / MINUTE + 1 }, (_, i) => FIRST + i * MINUTE)
      await stored.add(encodeSnapshots(minutes.map((at) => snapshotAt(at))))
      const readers = [
        new RememberedSnapshots({ db, stored, label, checkMs: 0 }),
        new RememberedSnapshots({ db: other, stored: elsewhere, label, checkMs: 0 }),
      ]
      const check = async (asOf: number, wanted: readonly (readonly [number, string])[]) => {
        for (const reader of readers) {
          expect((await reader.latest(asOf))?.as_of, `as of ${asOf}`).to.equal(wanted.at(-1)![0])
          const page = await reader.page({ from: LAST, to: LAST + 600, asOf, limit: 10 })
          const rows = JSON.parse(`[${Buffer.concat(page.text).toString()}]`) as { as_of: string; origin: string }[]
          expect(rows.map(({ as_of, origin }) => [Date.parse(as_of) / 1000, origin])).to.deep.equal(wanted)
        }
      }
      const past = [LAST, 'backfill'] as const
      await check(LAST + 30, [past])
      const held = [LAST + 60, LAST + 120].map((at) => ({
        ...snapshotAt(at),
        origin: HELD as typeof HELD,
        computed_at: at + 40,
        known_at: at + 40,
        rests_on: LAST,
      }))
      await stored.hold(held.slice(0, 1))
      await check(LAST + 110, [past, [LAST + 60, 'held']])
      await stored.hold(held)
      await check(LAST + 170, [past, [LAST + 60, 'held'], [LAST + 120, 'held']])
      // Both minutes are classified four minutes later.
      const now = LAST + 400
      const caughtUp = [LAST + 60, LAST + 120].map((at) => ({
        ...snapshotAt(at),
        origin: CATCHUP as typeof CATCHUP,
        computed_at: now,
        known_at: now,
      }))
      await stored.add(encodeSnapshots(caughtUp))
      await stored.supersede(LAST + 120, now)
      await check(now, [past, [LAST + 60, 'catchup'], [LAST + 120, 'catchup']])
      await check(now - 1, [past, [LAST + 60, 'held'], [LAST + 120, 'held']])
      await check(LAST + 110, [past, [LAST + 60, 'held']])
      await check(LAST + 90, [past])
      expect((await stored.held({ from: 0, to: now })).map((row) => row.superseded_at)).to.deep.equal([now, now])
      expect((await stored.extent()).count).to.equal(minutes.length + 2)
    })

    it('are kept in memory for about a day, and older ones are still found as of their time', async () => {
      const { db } = store!
      await migrate(db, 'regime', migrations)
      const stored = await openSnapshots(db, 'BTC-USD', 'online')
      const [early, day] = [FIRST + 10 * MINUTE, 86_400]
      const heldAt = (at: number) => ({
        ...snapshotAt(at),
        origin: HELD as typeof HELD,
        computed_at: at + 40,
        known_at: at + 40,
        rests_on: at - MINUTE,
      })
      // Every tenth minute of three days was held for four minutes, and the first of them for two days.
      const minutes = Array.from({ length: 3 * 1440 }, (_, i) => FIRST + i * MINUTE)
      await stored.add(
        encodeSnapshots(minutes.map((at) => ({ ...snapshotAt(at), known_at: at === early ? at + 2 * day : at }))),
      )
      for (const at of minutes.filter((_, i) => i > 0 && i % 10 === 0)) {
        await stored.hold([heldAt(at)])
        await stored.supersede(at, at === early ? at + 2 * day : at + 240)
      }
      let most = 0
      const counted: Snapshots = {
        ...stored,
        held: async (span) => {
          const rows = await stored.held(span)
          most = Math.max(most, rows.length)
          return rows
        },
      }
      const reader = new RememberedSnapshots({ db, stored: counted, label, checkMs: 0 })
      const originOf = async (at: number, asOf: number): Promise<string> => {
        const page = await reader.page({ from: at, to: at + MINUTE, asOf, limit: 1 })
        return (JSON.parse(Buffer.concat(page.text).toString()) as { origin: string }).origin
      }
      expect((await reader.latest(minutes.at(-1)!))?.as_of).to.equal(minutes.at(-1))
      expect(most).to.be.within(1, (27 * 60) / 10)
      expect(await originOf(early, early + 60)).to.equal('held')
      expect(await originOf(early, early + 2 * day - 1)).to.equal('held')
      expect(await originOf(early, early + 2 * day)).to.equal('backfill')
      expect((await reader.latest(early + 50))?.origin).to.equal(HELD)
    })
  })
