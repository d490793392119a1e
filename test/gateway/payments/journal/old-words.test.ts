import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { expect } from 'chai'
import { pino } from 'pino'
import type { Outcome } from '../../../../gateway/methods/payment-method.ts'
import { createFinalityWatch } from '../../../../gateway/payments/finality-watch.ts'
import { connect } from '../../../../gateway/payments/journal/sqlite-connection.ts'
import type { Journal } from '../../../../gateway/payments/journal/journal.ts'
import { openJournal } from '../../../../gateway/payments/journal/open-journal.ts'
import { causeToBeOwed, isSettledByOthers } from '../../../../gateway/payments/debts.ts'
import { REFUSED, reservationOf, TRANSACTION } from '../../../contracts/journal-payments.ts'
import { openSchema } from '../../../contracts/postgres.ts'
import { NOTES_LIKE_MARKS } from '../../../support/notes-like-marks.ts'

const FIXTURE = resolve(import.meta.dirname, '../../../fixtures/journal-13')
const AT = 1_770_000_000_000

const LOST = 'settled without a stored answer'
const FOREIGN = 'settled by a transaction that this gateway did not send, but 0xd4'
const LATE = 'owed: settled after it was released'
const TAKEN_BACK = 'a reorganisation took the payment back'
const NOTHING_OWED = 'nothing is owed: a reorganisation removed it: the process that recorded it stopped'
const REPAID_BEFORE = 'the debt was repaid: a reorganisation removed it: insufficient_funds: Too little.'

/** A move that an earlier release wrote: the state, its reason, and what it wrote as the event's words. */
type Move = readonly [state: 'settled' | 'owed' | 'reversed', words: string | null] | readonly ['repaid', note: string]

/** Payments as an earlier release left them. */
const PAYMENTS = {
  sold: [['settled', null]],
  'sold, sent by others': [['settled', FOREIGN]],
  'about to be owed, sent by others': [['settled', `owed: ${FOREIGN}`]],
  'owed, sent by others': [
    ['settled', `owed: ${FOREIGN}`],
    ['owed', `owed: ${FOREIGN}`],
  ],
  'about to be owed, settled late': [['settled', LATE]],
  'owed, settled late': [
    ['settled', LATE],
    ['owed', LATE],
  ],
  'owed, its answer lost': [
    ['settled', null],
    ['owed', LOST],
  ],
  'the mark of the gateway or an operator': [
    ['settled', null],
    ['owed', LOST],
    ['repaid', TAKEN_BACK],
  ],
  'reversed because of that mark': [
    ['settled', null],
    ['owed', LOST],
    ['repaid', TAKEN_BACK],
    ['reversed', NOTHING_OWED],
  ],
  'owed again after that mark': [
    ['settled', null],
    ['owed', LOST],
    ['repaid', TAKEN_BACK],
    ['reversed', NOTHING_OWED],
    ['settled', `owed: ${FOREIGN}`],
    ['owed', `owed: ${FOREIGN}`],
  ],
  'repaid and reversed': [
    ['settled', null],
    ['owed', LOST],
    ['repaid', 'sent back'],
    ['reversed', REPAID_BEFORE],
  ],
  'repaid, reversed and owed again by a process that stopped': [
    ['settled', null],
    ['owed', LOST],
    ['repaid', 'sent back'],
    ['reversed', REPAID_BEFORE],
    ['settled', `owed: ${FOREIGN}`],
    ['owed', `owed: ${FOREIGN}`],
  ],
  reversed: [
    ['settled', null],
    ['reversed', 'a reorganisation removed it: insufficient_funds: Too little.'],
  ],
} as const satisfies Readonly<Record<string, readonly Move[]>>

type Name = keyof typeof PAYMENTS

/** The notes that only an operator can have written. */
const OPERATORS = NOTES_LIKE_MARKS.filter((note) => note !== TAKEN_BACK)

const quoted = (text: string | null): string => (text === null ? 'NULL' : `'${text.replaceAll("'", "''")}'`)

/** The statements with which an earlier release wrote a payment. */
function statementsOf(key: string, moves: readonly Move[]): readonly string[] {
  const { fingerprint, operation, route, network, asset, payer, payTo, amount, priceVersion } = reservationOf()
  const texts = [key, fingerprint, operation, route, network, asset, payer, payTo, String(amount), key].map(quoted)
  const insert = `INSERT INTO payments (key, fingerprint, operation, route, network, asset, payer, pay_to, amount, nonce, state,
    attempt, valid_after, valid_before, signature, version, price_version, call_id, owner, created_at, updated_at,
    transaction_hash, answer_status, detail)
    VALUES (${texts.join(', ')}, 'submitted', 1, '0', '1770003600', '0x', 2, ${quoted(priceVersion)}, ${quoted(key)}, 'gone',
    ${AT}, ${AT}, ${quoted(TRANSACTION)}, ${key.includes('about') ? 'NULL' : '200'}, 'call')`
  const updates = moves.map(([state, words]) => {
    if (state === 'repaid')
      return `UPDATE payments SET state = 'owed', repaid_at = ${AT}, updated_at = ${AT}, detail = ${quoted(`repaid: ${words}`)} WHERE key = ${quoted(key)}`
    const reason = words === null ? '' : `, reason = ${quoted(words)}`
    const detail = state === 'settled' ? TRANSACTION : words
    const repaid = state === 'owed' ? ', repaid_at = NULL' : ''
    const settled = state === 'settled' ? `, settled_at = ${AT}` : ''
    return `UPDATE payments SET state = '${state}', updated_at = ${AT}, look_at = ${AT}, detail = ${quoted(detail)}${reason}${repaid}${settled} WHERE key = ${quoted(key)}`
  })
  return [insert, ...updates]
}

interface OldJournal {
  readonly file: string | null
  sql(text: string): Promise<unknown>
  open(): Promise<Journal>
  drop(): Promise<void>
}

const ENGINES: Readonly<Record<string, () => Promise<OldJournal | null>>> = {
  async SQLite() {
    const folder = mkdtempSync(join(tmpdir(), 'journal-13-'))
    const file = join(folder, 'journal.sqlite')
    return {
      file,
      async sql(text) {
        const connection = await connect(file, 'write')
        await connection.exec(text)
        await connection.close()
      },
      open: () => openJournal({ file, now: () => new Date(AT) }),
      drop: async () => rmSync(folder, { recursive: true }),
    }
  },
  async PostgreSQL() {
    const schema = await openSchema()
    return (
      schema && {
        file: null,
        sql: schema.sql,
        open: () => openJournal({ url: schema.url, now: () => new Date(AT) }),
        drop: schema.drop,
      }
    )
  },
}

for (const [engine, create] of Object.entries(ENGINES))
  describe(`a journal of the release before typed causes, in ${engine}`, () => {
    let old: OldJournal
    let journal: Journal
    before(async function () {
      const created = await create()
      if (!created) this.skip()
      old = created
      await old.sql(readFileSync(join(FIXTURE, engine === 'SQLite' ? 'sqlite.sql' : 'postgres.sql'), 'utf8'))
      const written = Object.entries<readonly Move[]>(PAYMENTS)
      const noted = OPERATORS.map(
        (note) =>
          [
            note,
            [
              ['settled', null],
              ['owed', LOST],
              ['repaid', note],
            ],
          ] as const,
      )
      for (const [key, moves] of [...written, ...noted])
        for (const text of statementsOf(key, moves)) await old.sql(text)
      journal = await old.open()
    })
    after(async () => {
      await journal?.close()
      await old?.drop()
    })

    const recordOf = async (key: Name) => (await journal.find(key))!
    const keysOf = (records: readonly { readonly key: string }[]): string[] => records.map(({ key }) => key)

    it('knows what settled its payments and why they are owed', async () => {
      const causes = Object.fromEntries(
        await Promise.all(
          (Object.keys(PAYMENTS) as Name[]).map(async (name) => [name, (await recordOf(name)).cause] as const),
        ),
      )
      expect(causes).to.deep.equal({
        sold: null,
        'sold, sent by others': 'foreign',
        'about to be owed, sent by others': 'foreign_owed',
        'owed, sent by others': 'foreign_owed',
        'about to be owed, settled late': 'late',
        'owed, settled late': 'late',
        'owed, its answer lost': null,
        'the mark of the gateway or an operator': null,
        'reversed because of that mark': null,
        'owed again after that mark': 'foreign_owed',
        'repaid and reversed': null,
        'repaid, reversed and owed again by a process that stopped': 'foreign_owed',
        reversed: null,
      })
      expect(isSettledByOthers(await recordOf('sold, sent by others'))).to.equal(true)
      expect(causeToBeOwed(await recordOf('sold, sent by others'))).to.equal(null)
      expect(causeToBeOwed(await recordOf('about to be owed, settled late'))).to.equal('late')
    })

    it('lists what the operator has to decide on, and takes every other note as a repayment', async () => {
      expect(keysOf(await journal.unclear())).to.have.members([
        'the mark of the gateway or an operator',
        'reversed because of that mark',
        'owed again after that mark',
      ])
      for (const note of OPERATORS)
        expect(await journal.find(note), note).to.include({ state: 'owed', ending: 'repaid' })
      expect(keysOf(await journal.debts())).to.have.members([
        'owed, sent by others',
        'owed, settled late',
        'owed, its answer lost',
        'owed again after that mark',
        'repaid, reversed and owed again by a process that stopped',
      ])
      expect(keysOf(await journal.reversals(0, 10))).to.have.members(['repaid and reversed', 'reversed'])
    })

    it('has the ledger entries that it had, word for word', async () => {
      const entries = await journal.ledgerEntries({ from: 0, before: AT + 1, limit: 1_000 })
      const of = (key: string) =>
        entries.filter(({ payment }) => payment.key === key).map(({ kind, note }) => [kind, note])
      const repaid = (note: string) => [
        ['sale', null],
        ['debt', LOST],
        ['repayment', note],
      ]
      for (const note of OPERATORS) expect(of(note)).to.deep.equal(repaid(note))
      expect(of('reversed because of that mark')).to.deep.equal([...repaid(TAKEN_BACK), ['reversal', NOTHING_OWED]])
      const totals = await journal.ledgerTotals({ from: 0, before: AT + 1 }, [])
      for (const { kind, count } of totals) expect(entries.filter((entry) => entry.kind === kind)).to.have.length(count)
    })

    it('is not told by the watch how an unclear debt ended, finishes what a stopped process began, and obeys the operator', async () => {
      let now = AT
      let [missing, outcome]: [key: string, outcome: Outcome] = ['', { state: 'pending', transaction: TRANSACTION }]
      const look = async (): Promise<void> => {
        now += 300_000
        await createFinalityWatch({
          journal,
          settler: {
            finality: async (payments) => payments.map(({ key }) => (key === missing ? 'missing' : 'shallow')),
            status: async ({ key }) => (key === missing ? outcome : { state: 'pending', transaction: TRANSACTION }),
          },
          lease: { hold: async () => true },
          onReversed: async () => {},
          onRestored: async () => {},
          now: () => new Date(now),
          log: pino({ level: 'silent' }),
        }).run()
      }
      const unclear = await journal.unclear()
      await look()
      expect(await journal.unclear()).to.deep.equal(unclear)
      expect(keysOf(await journal.debts())).not.to.include('repaid, reversed and owed again by a process that stopped')
      ;[missing, outcome] = ['owed again after that mark', REFUSED]
      await look()
      expect(await recordOf(missing as Name)).to.include({ state: 'reversed', ending: 'unknown' })
      expect(keysOf(await journal.reversals(0, 10))).not.to.include(missing)
      outcome = { state: 'settled', transaction: TRANSACTION }
      await look()
      expect(await recordOf(missing as Name)).to.include({ state: 'owed', ending: 'unknown', repaidAt: null })
      missing = ''
      expect(await journal.decided('sold', 'repaid')).to.equal(false)
      expect(await journal.decided('the mark of the gateway or an operator', 'withdrawn')).to.equal(true)
      expect(await journal.decided('owed again after that mark', 'repaid')).to.equal(true)
      expect(await journal.decided('reversed because of that mark', 'repaid')).to.equal(true)
      await look()
      expect(await recordOf('the mark of the gateway or an operator')).to.include({ state: 'reversed' })
      expect(keysOf(await journal.debts())).not.to.include('owed again after that mark')
      expect(keysOf(await journal.reversals(0, 10))).to.have.members([
        'repaid and reversed',
        'reversed',
        'reversed because of that mark',
      ])
      expect(await journal.unclear()).to.deep.equal([])
    })

    it('opens again, keeps its triggers, and takes new payments', async () => {
      await journal.close()
      journal = await old.open()
      expect((await journal.reserve(reservationOf())).reserved).to.equal(true)
      const refusal = await old.sql("UPDATE payment_events SET note = ''").catch((error: Error) => error.message)
      expect(refusal).to.contain('append-only')
    })

    it('is refused by a process of the release before', async () => {
      if (old.file === null) {
        const touch = 'DELETE FROM payment_instances WHERE seen_at < 0'
        const refusal = await old.sql(touch).catch((error: Error) => error.message)
        expect(refusal).to.contain('later release')
        const write = await old
          .sql("UPDATE payments SET detail = 'x' WHERE key = 'sold'")
          .catch((e: Error) => e.message)
        expect(write).to.contain('detail')
        await old.sql('UPDATE payment_format SET format = 99')
        const later = await old.open().catch((error: Error) => error.message)
        expect(later).to.contain('a later release (format 99)')
        return
      }
      const connection = await connect(old.file, 'read')
      expect(await connection.run('PRAGMA user_version')).to.deep.equal([{ user_version: 14 }])
      await connection.close()
    })

    if (engine === 'SQLite')
      it('keeps the file as it was, for nobody else to read', async () => {
        const copy = `${old.file}.format-13`
        expect(existsSync(copy)).to.equal(true)
        expect(readdirSync(join(copy, '..')).filter((name) => name.includes('unfinished'))).to.deep.equal([])
        expect(statSync(copy).mode & 0o077).to.equal(0)
        const connection = await connect(copy, 'read')
        expect(await connection.run('PRAGMA user_version')).to.deep.equal([{ user_version: 13 }])
        const key = 'the mark of the gateway or an operator'
        expect(await connection.run('SELECT detail FROM payments WHERE key = ?', key)).to.deep.equal([
          { detail: `repaid: ${TAKEN_BACK}` },
        ])
        await connection.close()
      })
  })
