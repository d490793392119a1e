import { expect } from 'chai'
import { type ChargedCalls, createChargedCalls } from '../../../gateway/payments/charged-calls.ts'
import type { PaymentState } from '../../../gateway/payments/journal/payment-states.ts'
import { paymentIn, reservationOf, STEPS } from '../../contracts/journal-payments.ts'
import { JOURNALS, type TestJournal } from '../../contracts/journals.ts'

/** In seconds. A block may lag a minute behind the clock. */
const [EXPIRY, GONE] = [1_770_000_300, 1_770_000_361]

for (const [name, open] of Object.entries(JOURNALS))
  describe(`the calls that were charged, in ${name}`, () => {
    let opened: TestJournal
    let seconds: number
    let charged: ChargedCalls
    before(async function () {
      const created = await open()
      if (!created) return this.skip()
      opened = created
      charged = createChargedCalls({ journal: opened.journal, now: () => new Date(seconds * 1000) })
    })
    beforeEach(() => {
      seconds = EXPIRY - 300
    })
    after(() => opened?.drop())

    let calls = 0
    const newCall = (): string => `call ${(calls += 1)}`
    const outcomeOf = async (callId: string): Promise<boolean | undefined> => (await charged([callId])).get(callId)

    const outcomes: Readonly<Record<PaymentState, readonly [now: boolean | undefined, later: boolean | undefined]>> = {
      reserved: [undefined, undefined],
      answered: [undefined, undefined],
      submitted: [undefined, undefined],
      settled: [true, true],
      released: [undefined, false],
      owed: [true, true],
      reversed: [undefined, undefined],
    }
    for (const [state, [now, later]] of Object.entries(outcomes))
      it(`are ${now}, and ${later} when the payment has expired, if it is ${state}`, async () => {
        const callId = newCall()
        await paymentIn(opened.journal, state as PaymentState, { callId, expiresAt: BigInt(EXPIRY) })
        expect(await outcomeOf(callId)).to.equal(now)
        seconds = GONE - 1
        expect(await outcomeOf(callId)).to.equal(now)
        seconds = GONE
        expect(await outcomeOf(callId)).to.equal(later)
      })

    it('are those that have the payment, whichever call had it before', async () => {
      const [first, second] = [newCall(), newCall()]
      const reservation = reservationOf({ callId: first })
      await paymentIn(opened.journal, 'released', reservation)
      await opened.journal.reserve({ ...reservation, callId: second })
      expect([await outcomeOf(first), await outcomeOf(second)]).to.deep.equal([false, undefined])
      await STEPS.submittedWithAnswer(opened.journal, reservation.key, 2)
      await STEPS.settled(opened.journal, reservation.key, 2)
      expect([await outcomeOf(first), await outcomeOf(second)]).to.deep.equal([false, true])
    })

    it('are found among many, each by itself, and never those without a payment', async () => {
      const settled = Array.from({ length: 40 }, newCall)
      await Promise.all(settled.map((callId) => paymentIn(opened.journal, 'settled', { callId })))
      const open = newCall()
      await paymentIn(opened.journal, 'submitted', { callId: open })
      const asked = [...settled, open, "' OR 1=1 --", 'free']
      expect(await charged(asked)).to.deep.equal(
        new Map([...settled.map((callId) => [callId, true] as const), ["' OR 1=1 --", false], ['free', false]]),
      )
      expect(await charged([])).to.deep.equal(new Map())
    })
  })
