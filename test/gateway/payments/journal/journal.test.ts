import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { connect } from '../../../../gateway/payments/journal/sqlite.ts'
import { openJournal } from '../../../../gateway/payments/journal/open-journal.ts'
import { identifiersContract } from '../../../contracts/identifiers.ts'
import { journalContract } from '../../../contracts/journal.ts'
import { lastingContract } from '../../../contracts/lasting.ts'
import { LEDGERS } from '../../../contracts/ledgers.ts'
import { modelContract } from '../../../contracts/model.ts'
import { paymentIn, reservationOf } from '../../../contracts/payment.ts'
import { openSchema } from '../../../contracts/postgres.ts'

/** Asks again while it fails, as a buyer would: a pool may hold several dead connections. */
async function patiently<Value>(ask: () => Promise<Value>, tries = 5): Promise<Value> {
  try {
    return await ask()
  } catch (error) {
    if (tries === 0) throw error
    return patiently(ask, tries - 1)
  }
}

for (const [name, create] of Object.entries(LEDGERS)) {
  journalContract(name, create)
  if (name !== 'memory') lastingContract(name, create)
  modelContract(name, create, 60)
  identifiersContract(name, create)
}

describe('the SQLite file of the ledger', () => {
  let folder: string
  let file: string
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'ledger-'))
    file = join(folder, 'new', 'journal.sqlite')
  })
  afterEach(() => rmSync(folder, { recursive: true }))

  it('is created with its folder, and read while it is written', async () => {
    const journal = await openJournal({ file })
    const other = await connect(file, 'read')
    expect(await other.run('PRAGMA journal_mode')).to.deep.equal([{ journal_mode: 'wal' }])
    await other.close()
    await journal.close()
  })

  it('is refused where a later release has written it', async () => {
    await (await openJournal({ file })).close()
    const later = await connect(file, 'write')
    await later.exec('PRAGMA user_version = 99')
    await later.close()
    const refusal = await openJournal({ file }).catch((error: Error) => error.message)
    expect(refusal).to.contain('a later release (format 99)')
  })

  it('is created once by processes that start together', async () => {
    const journals = await Promise.all([openJournal({ file }), openJournal({ file }), openJournal({ file })])
    const reservation = reservationOf()
    const results = await Promise.all(journals.map((journal) => journal.reserve(reservation)))
    expect(results.filter(({ reserved }) => reserved)).to.have.length(1)
    for (const journal of journals) await journal.close()
  })
})

describe('the ledger in PostgreSQL', () => {
  it('is created once by processes that start together, and works on after its connections were cut', async function () {
    const schema = await openSchema()
    if (!schema) this.skip()
    const name = new URL(schema.url).searchParams.get('options')?.split('=').at(-1)
    const url = `${schema.url}&application_name=${name}`
    const journals = await Promise.all([openJournal({ url }), openJournal({ url }), openJournal({ url })])
    const [journal, other] = journals
    try {
      const key = await paymentIn(journal, 'answered')
      await schema.sql(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = '${name}'`)
      // A command that meets a dead connection fails, and has done nothing; a later one gets a new connection.
      expect(await patiently(() => journal.find(key))).to.include({ state: 'answered' })
      const reservation = reservationOf()
      expect((await patiently(() => journal.reserve(reservation))).reserved).to.equal(true)
      expect((await patiently(() => other.reserve(reservation))).reserved).to.equal(false)
    } finally {
      for (const one of journals) await one.close()
      await schema.drop()
    }
  })
})
