import { expect } from 'chai'
import { openJournal } from '../../../gateway/payments/journal/open-journal.ts'
import { recordLateSettlement, mayStillSettle } from '../../../gateway/payments/late-settlement.ts'
import type { Journal } from '../../../gateway/payments/journal/journal.ts'
import { paymentIn, reservationOf, STEPS, TRANSACTION } from '../../contracts/journal-payments.ts'

describe('money that comes after a payment was given back', () => {
  let journal: Journal
  beforeEach(async () => (journal = await openJournal({ file: ':memory:' })))
  afterEach(() => journal.close())

  /** Sent, refused by the chain, and given back. */
  async function refused(reservation = reservationOf()) {
    await paymentIn(journal, 'submitted', reservation)
    await STEPS.refused(journal, reservation.key, 1)
    return reservation
  }

  it('is a debt where the payment had been sent, and only there', async () => {
    const { key } = await refused()
    const record = await journal.find(key)
    if (!mayStillSettle(record)) throw new Error('it is not looked for')
    expect(await recordLateSettlement(journal, record, TRANSACTION)).to.equal(true)
    expect(await recordLateSettlement(journal, record, TRANSACTION), 'twice').to.equal(false)
    expect((await journal.debts()).map((debt) => debt.key)).to.deep.equal([key])
    const unsent = await paymentIn(journal, 'released')
    expect(mayStillSettle(await journal.find(unsent))).to.equal(false)
    expect(mayStillSettle(null)).to.equal(false)
  })

  it('is a debt also where a second attempt, never sent, came between', async () => {
    const reservation = await refused()
    expect((await journal.reserve(reservation)).reserved).to.equal(true)
    expect(mayStillSettle(await journal.find(reservation.key)), 'while it is worked on').to.equal(false)
    await journal.released(reservation.key, 2, 'product_failed')
    const record = await journal.find(reservation.key)
    if (!mayStillSettle(record)) throw new Error('it is not looked for any more')
    expect(await recordLateSettlement(journal, record, TRANSACTION)).to.equal(true)
    expect(await journal.find(reservation.key)).to.include({ state: 'owed', attempt: 2, transaction: TRANSACTION })
  })
})
