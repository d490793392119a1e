/** What every journal says about a payer's other payments when one is reserved. The suite runs on each database. */
import { expect } from 'chai'
import type { HeldAmount, Journal, PayerLimited, Reservation } from '../../gateway/payments/journal/journal.ts'
import { paymentIn, REFUSED, reservationOf, STEPS, TRANSACTION } from './journal-payments.ts'
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

    it('is one of two that a stranger may have unsettled at our expense, whichever processes it asks at once', async () => {
      const of = () => reservationOf({ payer: '0x00000000000000000000000000000000000000C4', paysGas: true })
      const made = await Promise.allSettled(
        Array.from({ length: 20 }, (_, at) => (at % 2 === 0 ? here : there).reserve(of())),
      )
      const reserved = made.flatMap((one) => (one.status === 'fulfilled' ? [one.value.record.key] : []))
      expect(reserved).to.have.length(2)
      const [first, second] = reserved as [string, string]
      const limitOf = (reservation: Reservation): Promise<unknown> =>
        there.reserve(reservation).then(
          () => null,
          (error: PayerLimited) => error.limit,
        )
      expect(await limitOf(of())).to.deep.equal({ reason: 'waiting' })
      await STEPS.submittedWithAnswer(here, first, 1)
      await STEPS.settled(here, first, 1)
      const [third, fourth] = [of(), of()]
      expect([await limitOf(third), await limitOf(fourth), await limitOf(of())]).to.deep.equal([
        null,
        null,
        { reason: 'waiting' },
      ])
      await STEPS.submittedWithAnswer(here, third.key, 1)
      await here.refused(third.key, 1, { ...REFUSED, burnt: 10n ** 20n })
      expect(await limitOf(third), 'the same payment').to.deep.equal({ reason: 'reverted' })
      expect(await limitOf(of()), 'another payment').to.include({ reason: 'cooling' })
      expect((await there.find(third.key))?.revertedAt, 'when it failed').to.be.a('number')
      const burnt = await opened.sql?.(`SELECT burnt FROM payments WHERE key = '${third.key}'`)
      if (burnt) expect(burnt, 'the gas that it cost').to.deep.equal([{ burnt: '100000000000000000000' }])
      expect(second).to.not.equal(first)
    })

    it('of a payer with code waits after settlements that used much gas, though they succeeded, but not for long', async () => {
      const payer = '0x00000000000000000000000000000000000000C5'
      const payerCode = `0x${'c057'.repeat(16)}` as const
      const of = () => reservationOf({ payer, payerCode, paysGas: true })
      const waitMs = async (): Promise<number | null> => {
        const limit = await there.reserve(of()).then(
          ({ record }) => there.released(record.key, 1, 'not needed').then(() => null),
          (error: PayerLimited) => error.limit,
        )
        return limit === null ? null : limit.reason === 'cooling' ? limit.until - opened.now : Number.NaN
      }
      const settle = async (gasUsed: bigint): Promise<void> => {
        // From another wallet, so that no wait keeps it from being recorded.
        const reservation = reservationOf({ payer, payerCode })
        await paymentIn(here, 'submitted', reservation)
        await here.settled(reservation.key, 1, TRANSACTION, opened.now, { gasUsed })
      }
      await settle(200_000n)
      await settle(1_199_999n)
      expect(await waitMs(), 'a million less one').to.equal(null)
      await settle(200_001n)
      expect(await waitMs()).to.equal(30_000)
      for (let times = 0; times < 30; times++) await settle(1_200_000n)
      expect(await waitMs(), 'it has paid after all').to.equal(600_000)
      opened.now += 600_001
      expect(await waitMs()).to.equal(null)
    })

    it('of a payer with a new wallet waits after others with the same code have failed three times, unless it has paid before', async () => {
      const payerCode = `0x${'c0de'.repeat(16)}` as const
      const of = (payer: number) =>
        reservationOf({ payer: `0x${String(payer).padStart(40, '0')}`, payerCode, paysGas: true })
      const regular = of(9)
      await paymentIn(here, 'settled', regular)
      for (const payer of [1, 2, 3]) {
        const failing = of(payer)
        await paymentIn(here, 'submitted', failing)
        await here.refused(failing.key, 1, { ...REFUSED, burnt: 1n })
      }
      const refused = await there.reserve(of(4)).catch((error: PayerLimited) => error.limit)
      expect(refused).to.include({ reason: 'cooling' })
      expect((await there.reserve(of(9))).reserved).to.equal(true)
    })
  })
}
