import { expect } from 'chai'
import { pino } from 'pino'
import type { Finality, Outcome } from '../../../gateway/methods/payment-method.ts'
import { createFinalityWatch } from '../../../gateway/payments/finality-watch.ts'
import { paymentIn, REFUSED, reservationOf, TRANSACTION } from '../../contracts/journal-payments.ts'
import { JOURNALS, type TestJournal } from '../../contracts/journals.ts'
import { NOTES_LIKE_MARKS } from '../../support/notes-like-marks.ts'

for (const [name, create] of Object.entries(JOURNALS))
  describe(`the note of an operator who repaid a debt, in ${name}`, () => {
    let opened: TestJournal
    before(async function () {
      const created = await create()
      if (!created) this.skip()
      opened = created
    })
    after(() => opened?.drop())

    /** Looks at every payment that is due, a minute later. */
    async function look(finality: Finality, status: Outcome): Promise<void> {
      opened.now += 60_000
      await createFinalityWatch({
        journal: opened.journal,
        settler: { finality: async (payments) => payments.map(() => finality), status: async () => status },
        lease: { hold: async () => true },
        onReversed: async () => {},
        onRestored: async () => {},
        now: () => new Date(opened.now),
        log: pino({ level: 'silent' }),
      }).run()
    }

    async function repaidDebt(note: string): Promise<string> {
      const expiresAt = BigInt(Math.floor(opened.now / 1000) + 3_600)
      const key = await paymentIn(opened.journal, 'owed', reservationOf({ expiresAt }))
      expect(await opened.journal.repaid(key, note)).to.equal(true)
      return key
    }

    for (const note of NOTES_LIKE_MARKS) {
      it(`is a repayment and changes nothing else: ${note}`, async () => {
        const { journal } = opened
        const from = opened.now
        const key = await repaidDebt(note)
        await look('shallow', { state: 'settled', transaction: TRANSACTION })
        await look('final', { state: 'settled', transaction: TRANSACTION })
        expect(await journal.find(key)).to.include({ state: 'owed', ending: 'repaid' })
        expect((await journal.debts()).map((debt) => debt.key)).not.to.include(key)
        expect((await journal.unclear()).map((one) => one.key)).not.to.include(key)
        const entries = await journal.ledgerEntries({ from, before: opened.now, limit: 10 })
        const own = entries.filter(({ payment }) => payment.key === key)
        expect(own.map(({ kind }) => kind)).to.deep.equal(['sale', 'debt', 'repayment'])
        expect(own.at(-1)?.note).to.equal(note)
      })

      it(`says that the buyer owes us the money if the chain takes the payment back: ${note}`, async () => {
        const { journal } = opened
        const key = await repaidDebt(note)
        await look('missing', REFUSED)
        expect(await journal.find(key)).to.include({ state: 'reversed', ending: 'repaid' })
        expect((await journal.reversals(0, 1_000)).map((one) => one.key)).to.include(key)
        await look('missing', { state: 'settled', transaction: TRANSACTION })
        expect(await journal.find(key)).to.include({ state: 'owed', ending: 'repaid' })
        expect((await journal.debts()).map((debt) => debt.key)).not.to.include(key)
      })
    }
  })
