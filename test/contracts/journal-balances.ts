/** What every journal says about a payer's other payments when one is reserved. The suite runs on each database. */
import { expect } from 'chai'
import type { HeldAmount, Journal, Reservation } from '../../gateway/payments/journal/journal.ts'
import { paymentIn, reservationOf } from './journal-payments.ts'
import type { TestJournal } from './journals.ts'

const PAYER = '0x00000000000000000000000000000000000000C1'
const heldBy = ({ identity, amount, expiresAt }: Reservation): HeldAmount => ({ identity, amount, expiresAt })

/** @param create opens an empty journal; null if its server does not answer */
export function balancesContract(name: string, create: () => Promise<TestJournal | null>): void {
  describe(`a reservation in ${name}`, () => {
    let opened: TestJournal
    let here: Journal
    /** The same journal, as another process has it open. */
    let there: Journal

    before(async function () {
      const created = await create()
      if (!created) this.skip()
      opened = created
      here = created.journal
      there = (await created.open?.()) ?? here
    })
    after(async () => opened?.drop())

    it('comes after the unsettled payments of its payer on its network, of every process', async () => {
      const of = (change: Partial<Reservation> = {}) => reservationOf({ payer: PAYER, ...change })
      const [reserved, answered, submitted] = [of({ amount: 1n }), of({ amount: 2n ** 200n }), of({ amount: 3n })]
      await paymentIn(here, 'reserved', reserved)
      await paymentIn(there, 'answered', answered)
      await paymentIn(here, 'submitted', submitted)
      for (const state of ['settled', 'released', 'owed'] as const) await paymentIn(there, state, of())
      await paymentIn(here, 'reserved', of({ network: 'eip155:8453' }))
      await paymentIn(here, 'reserved', reservationOf())
      const { ahead } = await there.reserve(of())
      expect(ahead).to.have.deep.members([reserved, answered, submitted].map(heldBy))
    })

    it('does not come after itself, and after nothing if it was not made', async () => {
      const payer = '0x00000000000000000000000000000000000000C2'
      const reservation = reservationOf({ payer })
      expect((await here.reserve(reservation)).ahead).to.deep.equal([])
      await here.reserve(reservationOf({ payer }))
      const again = await there.reserve(reservation)
      expect([again.reserved, again.ahead]).to.deep.equal([false, []])
      await here.released(reservation.key, 1, 'product_failed')
      expect((await there.reserve(reservation)).ahead, 'as a new attempt').to.have.length(1)
    })

    it('takes turns with the others of its payer, however many processes reserve at once', async () => {
      const payer = '0x00000000000000000000000000000000000000C3'
      const requests = Array.from({ length: 60 }, (_, at) => ({
        journal: at % 2 === 0 ? here : there,
        reservation: reservationOf({ payer }),
      }))
      const made = await Promise.all(requests.map(({ journal, reservation }) => journal.reserve(reservation)))
      const numbers = made.map(({ ahead }) => ahead.length).sort((one, other) => one - other)
      expect(numbers).to.deep.equal(requests.map((_, at) => at))
    })
  })
}
