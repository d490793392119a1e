import { expect } from 'chai'
import { openDatabase } from '../../../gateway/stores/database.ts'
import { migrate } from '../../../gateway/stores/migrations.ts'
import { BACKFILL, encodeSnapshots, LIVE, migrations, openSnapshots } from '../../../plugins/regime/snapshots.ts'
import { snapshotAt } from './snapshot.ts'

describe('stored snapshots of one origin', () => {
  it('that are back-filled include those of an earlier release, which recorded no origin', async () => {
    const db = openDatabase({ file: ':memory:' })
    await migrate(db, 'regime', migrations)
    const stored = await openSnapshots(db, 'BTC-USD', 'online')
    const rows = [
      snapshotAt(60),
      { ...snapshotAt(120), origin: BACKFILL },
      { ...snapshotAt(180), origin: LIVE },
    ] as const
    await stored.add(encodeSnapshots(rows))
    const range = { from: 0, to: 1000, asOf: 1000, limit: 10 }
    const timesOf = async (origin: typeof BACKFILL | typeof LIVE) =>
      (await stored.between(['as_of'], range, origin)).map(({ as_of }) => as_of)
    expect(await timesOf(BACKFILL)).to.deep.equal([60, 120])
    expect(await timesOf(LIVE)).to.deep.equal([180])
    await db.destroy()
  })
})
