/** What a plugin may rely on from `context.db`, on every database. */
import { expect } from 'chai'
import type { OpenDatabase } from '../../gateway/stores/database.ts'
import { createLease } from '../../gateway/stores/lease.ts'
import { createReady, migrate, type Step } from '../../gateway/stores/migrations.ts'
import type { TestDatabase } from './databases.ts'

const readings: Step = (db) =>
  db.schema.createTable('shop_readings', (table) => {
    table.text('name').primary()
    table.bigInteger('at')
    table.double('value')
    table.text('note')
  })

const holderOf = async (db: OpenDatabase, name: string): Promise<string> =>
  (await db('leases').where({ name }).first()).holder

export function databaseContract(name: string, create: () => Promise<TestDatabase | null>): void {
  describe(`a database in ${name}`, () => {
    let database: TestDatabase
    let db: OpenDatabase

    before(async function () {
      const created = await create()
      if (!created) this.skip()
      database = created
      db = created.db
      await migrate(db, 'shop', [readings])
    })
    after(async () => database?.drop())

    it('runs its migrations once before the first use, and retries after a failure', async () => {
      let tries = 0
      const ready = createReady(db, 'ready', [
        async () => {
          tries += 1
          if (tries === 1) throw new Error('not yet')
        },
      ])
      expect(await ready().catch(String)).to.equal('Error: not yet')
      await Promise.all([ready(), ready(), ready()])
      await ready()
      expect(tries).to.equal(2)
    })

    it('returns numbers as numbers, including 64-bit integers and counts', async () => {
      const row = { name: 'now', at: 1_770_000_000_123, value: 0.1, note: null }
      await db('shop_readings').insert(row)
      expect(await db('shop_readings').where({ name: 'now' }).first()).to.deep.equal(row)
      expect(await db('shop_readings').count({ rows: '*' }).first()).to.deep.equal({ rows: 1 })
      expect(await db('shop_readings').max({ newest: 'at' }).first()).to.deep.equal({ newest: row.at })
    })

    it('inserts or updates in one statement, and returns what it wrote', async () => {
      const write = (value: number) =>
        db('shop_readings').insert({ name: 'upsert', value }).onConflict('name').merge(['value']).returning('value')
      expect(await write(1)).to.deep.equal([{ value: 1 }])
      expect(await write(2)).to.deep.equal([{ value: 2 }])
      expect(
        await db('shop_readings').insert({ name: 'upsert' }).onConflict('name').ignore().returning('name'),
      ).to.deep.equal([])
    })

    it('rolls back a transaction that fails', async () => {
      const failed = await db
        .transaction(async (transaction) => {
          await transaction('shop_readings').insert({ name: 'gone' })
          throw new Error('changed our mind')
        })
        .catch((error: Error) => error.message)
      expect(failed).to.equal('changed our mind')
      expect(await db('shop_readings').where({ name: 'gone' }).first()).to.equal(undefined)
    })

    it('serves many callers at the same time', async () => {
      await Promise.all(
        Array.from({ length: 50 }, (_, at) =>
          db.transaction(async (transaction) => {
            await transaction('shop_readings').insert({ name: `many ${at}`, value: at })
          }),
        ),
      )
      const [total] = await db('shop_readings').where('name', 'like', 'many %').sum({ value: 'value' })
      expect(total).to.deep.equal({ value: 1225 })
    })

    it('runs each migration step once and in order, and steps added later afterwards', async () => {
      const ran: string[] = []
      const step =
        (name: string): Step =>
        async (db) => {
          ran.push(name)
          await db('shop_readings').insert({ name: `step ${name}` })
        }
      await migrate(db, 'steps', [step('one')])
      await migrate(db, 'steps', [step('one'), step('two'), step('three')])
      await migrate(db, 'steps', [step('one')])
      await migrate(db, 'others', [step('else')])
      expect(ran).to.deep.equal(['one', 'two', 'three', 'else'])
    })

    it('leaves no trace of a step that fails, and runs it again', async () => {
      let works = false
      const steps: Step[] = [
        async (db) => {
          await db.schema.createTable('shop_late', (table) => table.text('name'))
          if (!works) throw new Error('not yet')
        },
      ]
      const refusal = await migrate(db, 'late', steps).catch((error: Error) => error.message)
      expect(refusal).to.equal('not yet')
      expect(await db.schema.hasTable('shop_late')).to.equal(false)
      works = true
      await migrate(db, 'late', steps)
      expect(await db.schema.hasTable('shop_late')).to.equal(true)
    })

    it('runs a step once when several processes start together', async () => {
      const open = database.open ?? (() => db)
      let ran = 0
      const steps: Step[] = [
        async (db) => {
          ran += 1
          await db.schema.createTable('shop_once', (table) => table.text('name'))
        },
        async (db) => {
          ran += 1
          await db('shop_once').insert({ name: 'first' })
        },
      ]
      await Promise.all([db, open(), open(), open()].map((connection) => migrate(connection, 'once', steps)))
      expect(ran).to.equal(2)
      expect(await db('shop_once').select()).to.have.length(1)
    })

    describe('with leases', () => {
      let seconds = 1_770_000_000
      const now = (): Date => new Date(seconds * 1000)

      it('lets one process hold a lease until it expires, and renew it before', async () => {
        const [first, second] = [createLease(db, 'first', now), createLease(db, 'second', now)]
        expect(await first.hold('classify', 60)).to.equal(true)
        expect(await second.hold('classify', 60)).to.equal(false)
        expect(await second.hold('another', 60)).to.equal(true)
        seconds += 59
        expect(await first.hold('classify', 60)).to.equal(true)
        seconds += 59
        expect(await second.hold('classify', 60)).to.equal(false)
        seconds += 1
        expect(await second.hold('classify', 60)).to.equal(true)
        expect(await first.hold('classify', 60)).to.equal(false)
        await Promise.all([first.end(), second.end()])
      })

      it('gives a lease to one of many that ask at the same time', async () => {
        const leases = [db, database.open?.() ?? db, database.open?.() ?? db].map((connection, at) =>
          createLease(connection, `process ${at}`, now),
        )
        const held = await Promise.all(leases.map((lease) => lease.hold('rush', 60)))
        expect(held.filter(Boolean)).to.have.length(1)
        await Promise.all(leases.map((lease) => lease.end()))
      })

      it('releases a lease when its process ends, and takes over the lease of a dead process', async () => {
        const [first, second] = [createLease(db, 'ending', now), createLease(db, 'starting', now)]
        expect(await first.hold('nightly', 3600)).to.equal(true)
        await first.end()
        expect(await second.hold('nightly', 3600)).to.equal(true)
        await db('leases')
          .where({ name: 'nightly' })
          .update({ holder: (await holderOf(db, 'nightly')).replace('starting', 'crashed') })
        const third = createLease(db, 'third', now)
        expect(await third.hold('nightly', 3600)).to.equal(true)
        await db('leases').where({ name: 'nightly' }).update({ holder: 'elsewhere/1/living' })
        expect(await third.hold('nightly', 3600)).to.equal(false)
        await third.end()
      })
    })
  })
}
