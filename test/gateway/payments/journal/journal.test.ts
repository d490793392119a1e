import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { AnswerBody } from '../../../../gateway/plugin/answer-body.ts'
import { connect } from '../../../../gateway/payments/journal/sqlite-connection.ts'
import type { Journal } from '../../../../gateway/payments/journal/journal.ts'
import { openJournal } from '../../../../gateway/payments/journal/open-journal.ts'
import { balancesContract } from '../../../contracts/journal-balances.ts'
import { identifiersContract } from '../../../contracts/journal-identifiers.ts'
import { journalContract } from '../../../contracts/journal-contract.ts'
import { durabilityContract } from '../../../contracts/journal-durability.ts'
import { JOURNALS } from '../../../contracts/journals.ts'
import { modelContract } from '../../../contracts/journal-model.ts'
import { answerOf, INTENT, paymentIn, reservationOf, TRANSACTION } from '../../../contracts/journal-payments.ts'
import { openSchema } from '../../../contracts/postgres.ts'
import { until } from '../../../support/until.ts'
import { lockNewFile } from '../../stores/lock-new-file.ts'

/** Retries while it fails, as a buyer would: a pool may hold several dead connections. */
async function withRetries<Value>(ask: () => Promise<Value>, tries = 5): Promise<Value> {
  try {
    return await ask()
  } catch (error) {
    if (tries === 0) throw error
    return withRetries(ask, tries - 1)
  }
}

for (const [name, create] of Object.entries(JOURNALS)) {
  journalContract(name, create)
  if (name !== 'memory') durabilityContract(name, create)
  modelContract(name, create, 60)
  identifiersContract(name, create)
  balancesContract(name, create)
}

describe('the SQLite file of the journal', () => {
  let folder: string
  let file: string
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'journal-'))
    file = join(folder, 'new', 'journal.sqlite')
  })
  afterEach(() => rmSync(folder, { recursive: true }))

  it('is created with its folder, and can be read while it is written', async () => {
    const journal = await openJournal({ file })
    const other = await connect(file, 'read')
    expect(await other.run('PRAGMA journal_mode')).to.deep.equal([{ journal_mode: 'wal' }])
    await other.close()
    await journal.close()
  })

  it('is refused if a later release wrote it', async () => {
    await (await openJournal({ file })).close()
    const later = await connect(file, 'write')
    await later.exec('PRAGMA user_version = 99')
    await later.close()
    const refusal = await openJournal({ file }).catch((error: Error) => error.message)
    expect(refusal).to.contain('a later release (format 99)')
  })

  it('opens a new file while another process is writing to it', async () => {
    const unlock = await lockNewFile(file)
    const opened = openJournal({ file })
    await unlock()
    const journal = await opened
    expect((await journal.reserve(reservationOf())).reserved).to.equal(true)
    await journal.close()
  })

  it('stores the bytes of a long answer once, however many payments bought them', async () => {
    const journal = await openJournal({ file })
    const sql = await connect(file, 'read')
    const stored = async (): Promise<unknown> =>
      (await sql.run('SELECT count(*) AS bodies, sum(length(body)) AS bytes FROM answer_bodies'))[0]
    const answer = answerOf('z'.repeat(50_000))
    for (let bought = 0; bought < 3; bought += 1) {
      const key = await paymentIn(journal, 'reserved')
      await journal.submitted(key, 1, INTENT, { answer })
      await journal.settled(key, 1, TRANSACTION)
    }
    const { bodies, bytes } = (await stored()) as { bodies: number; bytes: number }
    expect(bodies).to.equal(1)
    expect(bytes, 'deflated').to.be.below(500)
    while ((await journal.forgetAnswers(Date.now() + 1_000)) > 0);
    expect(await stored()).to.deep.equal({ bodies: 0, bytes: null })
    // The process remembers to have stored these bytes, and finds that they are gone.
    const key = await paymentIn(journal, 'reserved')
    expect(await journal.submitted(key, 1, INTENT, { answer })).to.equal(true)
    expect((await journal.find(key))?.answer?.body.bytes.equals(answer.body.bytes)).to.equal(true)
    await sql.close()
    await journal.close()
  })

  it('gives back the bytes of long answers, deflated or not', async () => {
    const journal = await openJournal({ file })
    const rows = Array.from({ length: 10_000 }, (_, row) => ({ as_of: row * 60, price: (row * 7919) % 1000 }))
    const bodies = [
      Buffer.from(JSON.stringify(rows.slice(0, 1_000))),
      Buffer.from(JSON.stringify(rows)),
      randomBytes(50_000),
    ]
    expect(bodies[1]!.length, 'long enough to be deflated off the event loop').to.be.above(256 * 1024)
    for (const body of bodies) {
      const key = await paymentIn(journal, 'reserved')
      await journal.submitted(key, 1, INTENT, { answer: { ...answerOf(''), body: AnswerBody.of(body) } })
      expect((await journal.find(key))?.answer?.body.bytes.equals(body)).to.equal(true)
    }
    const sql = await connect(file, 'read')
    const lengths = await sql.run('SELECT length(body) AS stored, length FROM answer_bodies ORDER BY rowid')
    expect(lengths.map(({ length }) => length)).to.deep.equal([bodies[0]!.length, bodies[1]!.length, null])
    for (const { stored, length } of lengths.slice(0, 2)) expect(Number(stored)).to.be.below(Number(length) / 3)
    await sql.close()
    await journal.close()
  })

  it('stores the long answers of calls that end together, each once', async () => {
    const journal = await openJournal({ file })
    const keys = await Promise.all(Array.from({ length: 12 }, () => paymentIn(journal, 'reserved')))
    const bodyOf = (nth: number): string => `${nth % 3} `.repeat(5_000)
    const submitted = await Promise.all(
      keys.map((key, nth) => journal.submitted(key, 1, INTENT, { answer: answerOf(bodyOf(nth)) })),
    )
    expect(submitted).to.deep.equal(keys.map(() => true))
    for (const [nth, key] of keys.entries())
      expect((await journal.find(key))?.answer?.body.toString()).to.equal(bodyOf(nth))
    const sql = await connect(file, 'read')
    expect(await sql.run('SELECT count(*) AS bodies FROM answer_bodies')).to.deep.equal([{ bodies: 3 }])
    await sql.close()
    await journal.close()
  })

  it('submits no payment whose long answer is not stored', async () => {
    const journal = await openJournal({ file })
    const sql = await connect(file, 'write')
    await sql.exec('CREATE TRIGGER lose AFTER INSERT ON answer_bodies BEGIN DELETE FROM answer_bodies; END')
    const key = await paymentIn(journal, 'reserved')
    expect(await journal.submitted(key, 1, INTENT, { answer: answerOf('z'.repeat(50_000)) })).to.equal(false)
    expect(await journal.find(key)).to.include({ state: 'reserved', answer: null })
    await sql.exec('DROP TRIGGER lose')
    expect(await journal.submitted(key, 1, INTENT, { answer: answerOf('z'.repeat(50_000)) })).to.equal(true)
    await sql.close()
    await journal.close()
  })

  it('is read while another process holds its write lock, however many writes wait for that', async () => {
    const journal = await openJournal({ file })
    const keys = await Promise.all(Array.from({ length: 8 }, () => paymentIn(journal, 'submitted')))
    const other = await connect(file, 'write')
    await other.exec('BEGIN IMMEDIATE')
    const writes = [
      journal.reserve(reservationOf()),
      ...keys.map((key) => journal.submitted(key, 1, INTENT, { answer: answerOf(`${key}${'z'.repeat(5_000)}`) })),
      ...keys.map((key) => journal.claim(key, 1)),
      ...keys.map((key) => journal.lookAgain([{ key, at: 1 }])),
    ]
    const firstWrite = Promise.any(
      writes.map((write) =>
        write.then(
          () => 'write',
          () => 'write',
        ),
      ),
    )
    // Writes have begun to wait once the event loop has turned.
    await new Promise((turn) => setImmediate(turn))
    const read = journal.find(keys[0] as string).then((record) => record?.state)
    expect(await Promise.race([read, firstWrite])).to.equal('submitted')
    await other.exec('ROLLBACK')
    await Promise.allSettled(writes)
    await other.close()
    await journal.close()
  })

  it('commits what follows a write that was refused because another process held the lock', async () => {
    const journals = await Promise.all(Array.from({ length: 3 }, () => openJournal({ file })))
    const [forReserve, forMove, forAnswer] = journals as [Journal, Journal, Journal]
    const key = await paymentIn(forMove, 'reserved')
    const other = await connect(file, 'write')
    await other.exec('BEGIN IMMEDIATE')
    const refused = await Promise.allSettled([
      forReserve.reserve(reservationOf()),
      forMove.released(key, 1, 'not wanted'),
      forAnswer.submitted(key, 1, INTENT, { answer: answerOf('y'.repeat(50_000)) }),
    ])
    for (const each of refused)
      expect(String('reason' in each && each.reason)).to.contain('another process has locked the file')
    await other.exec('ROLLBACK')
    const committed = async (payment: string): Promise<unknown> => {
      // Whoever else writes can, so no lock is left.
      await other.exec('BEGIN IMMEDIATE; ROLLBACK')
      return (await other.run('SELECT state FROM payments WHERE key = ?', payment))[0]?.['state']
    }
    for (const journal of journals)
      for (const body of ['z'.repeat(50_000), 'short']) {
        const reservation = reservationOf()
        expect((await journal.reserve(reservation)).reserved).to.equal(true)
        expect(await committed(reservation.key)).to.equal('reserved')
        expect(await journal.submitted(reservation.key, 1, INTENT, { answer: answerOf(body) })).to.equal(true)
        expect(await committed(reservation.key)).to.equal('submitted')
      }
    await other.close()
    for (const journal of journals) await journal.close()
  })

  it('is created once when several processes start together', async () => {
    const journals = await Promise.all([openJournal({ file }), openJournal({ file }), openJournal({ file })])
    const reservation = reservationOf()
    const results = await Promise.all(journals.map((journal) => journal.reserve(reservation)))
    expect(results.filter(({ reserved }) => reserved)).to.have.length(1)
    for (const journal of journals) await journal.close()
  })
})

describe('the journal in PostgreSQL and its connections', () => {
  it('is created once when several processes start together, and keeps working after its connections were cut', async function () {
    const schema = await openSchema()
    if (!schema) this.skip()
    const name = new URL(schema.url).searchParams.get('options')?.split('=').at(-1)
    const url = `${schema.url}&application_name=${name}`
    const journals = await Promise.all([openJournal({ url }), openJournal({ url }), openJournal({ url })])
    const [journal, other] = journals
    try {
      const key = await paymentIn(journal, 'answered')
      await schema.sql(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = '${name}'`)
      // A command on a dead connection fails and changes nothing. A later one gets a new connection.
      expect(await withRetries(() => journal.find(key))).to.include({ state: 'answered' })
      const reservation = reservationOf()
      expect((await withRetries(() => journal.reserve(reservation))).reserved).to.equal(true)
      expect((await withRetries(() => other.reserve(reservation))).reserved).to.equal(false)
    } finally {
      for (const process of journals) await process.close()
      await schema.drop()
    }
  })

  it('is opened while payments of another process are under way', async function () {
    const schema = await openSchema()
    if (!schema) this.skip()
    const { url } = schema
    const journal = await openJournal({ url })
    try {
      await schema.sql('BEGIN; LOCK TABLE payments, payment_events, payment_counts IN ROW EXCLUSIVE MODE')
      await (await openJournal({ url })).close()
    } finally {
      await schema.sql('ROLLBACK')
      await journal.close()
      await schema.drop()
    }
  })

  it('is changed by a later release while payments of another process are under way', async function () {
    const schema = await openSchema()
    if (!schema) this.skip()
    const { url } = schema
    const journal = await openJournal({ url })
    try {
      await schema.sql('DROP INDEX payments_by_call; DROP INDEX payment_events_in_ledger')
      await schema.sql('BEGIN; LOCK TABLE payments IN ROW EXCLUSIVE MODE')
      const opened = openJournal({ url })
      const waiting = 'SELECT FROM pg_locks WHERE NOT granted AND pg_blocking_pids(pid) @> ARRAY[pg_backend_pid()]'
      await until(async () => (await schema.sql(waiting)).length === 1)
      // A payment writes its row, and then the event of its move.
      await schema.sql('LOCK TABLE payment_events IN ROW EXCLUSIVE MODE')
      await schema.sql('COMMIT')
      await (await opened).close()
      const indexes = "SELECT FROM pg_indexes WHERE indexname IN ('payments_by_call', 'payment_events_in_ledger')"
      expect(await schema.sql(`${indexes} AND schemaname = current_schema()`)).to.have.length(2)
    } finally {
      await schema.sql('ROLLBACK')
      await journal.close()
      await schema.drop()
    }
  })
})
