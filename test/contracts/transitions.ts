/** The state machine of a payment, step by step, as its picture in the architecture has it. */
import { expect } from 'chai'
import type { PaymentState } from '../../gateway/payments/journal/payment-states.ts'
import type { Ledger } from './journal.ts'
import { answerOf, PATHS, paymentIn, reservationOf, type Step, STEPS } from './payment.ts'

/** Steps that each state allows; all others are refused. */
const ALLOWED: Readonly<Record<PaymentState, readonly Step[]>> = {
  reserved: ['answered', 'released'],
  answered: ['submitted', 'released', 'refused'],
  submitted: ['settled', 'refused', 'owed'],
  settled: ['owed'],
  released: ['late'],
  owed: [],
}
const LEADS_TO = { refused: 'released', late: 'settled' } as Readonly<Partial<Record<Step, PaymentState>>>

/** Declares the tests; `current` gives the ledger once they run. */
export function transitions(current: () => Ledger): void {
  for (const state of Object.keys(PATHS) as PaymentState[])
    for (const step of Object.keys(STEPS) as Step[])
      it(`${ALLOWED[state].includes(step) ? 'allows' : 'refuses'} ${step} on a payment that is ${state}`, async () => {
        const ledger = current()
        const { journal } = ledger
        const key = await paymentIn(journal, state)
        const before = await journal.find(key)
        const events = (await journal.events(key)).length
        ledger.now += 10
        const moved = await STEPS[step](journal, key, 1)
        expect(moved).to.equal(ALLOWED[state].includes(step))
        const after = await journal.find(key)
        if (!moved) expect(after).to.deep.equal(before)
        else expect(after).to.include({ state: LEADS_TO[step] ?? step, updatedAt: ledger.now })
        expect(await journal.events(key)).to.have.length(moved ? events + 1 : events)
      })

  it('refuses every step of an attempt that is over, and of a payment it does not know', async () => {
    const ledger = current()
    const { journal } = ledger
    const key = await paymentIn(journal, 'released')
    await journal.reserve(reservationOf({ key }))
    for (const step of Object.values(STEPS)) {
      expect(await step(journal, key, 1)).to.equal(false)
      expect(await step(journal, 'eip155:84532/none', 1)).to.equal(false)
    }
    expect(await journal.answered(key, 2, answerOf('{}'))).to.equal(true)
  })
}
