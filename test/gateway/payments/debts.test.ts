import { expect } from 'chai'
import { openJournal } from '../../../gateway/payments/journal/open-journal.ts'
import { recordLateSettlement, mayStillSettle } from '../../../gateway/payments/debts.ts'
import type { Journal } from '../../../gateway/payments/journal/journal.ts'
import { paymentIn, reservationOf, STEPS, TRANSACTION } from '../../contracts/journal-payments.ts'

describe('a payment that settles after it was released', () => {
  let journal: Journal
  beforeEach(async () => (journal = await openJournal({ file: ':memory:' })))
  afterEach(() => journal.close())

  /** A payment that was sent, failed on the chain and was released. */
  async function refused(reservation = reservationOf()) {
    await paymentIn(journal, 'submitted', reservation)
    await STEPS.refused(journal, reservation.key, 1)
    return reservation
  }

  it('becomes a debt to the buyer, once, and only if it had been sent', async () => {
    const { key } = await refused()
    const record = await journal.find(key)
    if (!mayStillSettle(record)) throw new Error('the payment cannot settle late')
    expect(await recordLateSettlement(journal, record, TRANSACTION)).to.equal(true)
    expect(await recordLateSettlement(journal, record, TRANSACTION), 'twice').to.equal(false)
    expect((await journal.debts()).map((debt) => debt.key)).to.deep.equal([key])
    const unsent = await paymentIn(journal, 'released')
    expect(mayStillSettle(await journal.find(unsent))).to.equal(false)
    expect(mayStillSettle(null)).to.equal(false)
  })

  it('becomes a debt also if a second attempt that was never sent came in between', async () => {
    const reservation = await refused()
    expect((await journal.reserve(reservation)).reserved).to.equal(true)
    expect(mayStillSettle(await journal.find(reservation.key)), 'while the second attempt is in progress').to.equal(
      false,
    )
    await journal.released(reservation.key, 2, 'product_failed')
    const record = await journal.find(reservation.key)
    if (!mayStillSettle(record)) throw new Error('the payment can no longer settle late')
    expect(await recordLateSettlement(journal, record, TRANSACTION)).to.equal(true)
    expect(await journal.find(reservation.key)).to.include({ state: 'owed', attempt: 2, transaction: TRANSACTION })
  })
})
