/** The ledger against a model of ten lines: whatever is asked for, together or in turn, both say the same. */
import { expect } from 'chai'
import * as fc from 'fast-check'
import type { Journal } from '../../gateway/payments/journal/journal.ts'
import type { PaymentState } from '../../gateway/payments/journal/payment-states.ts'
import type { Ledger } from './journal.ts'
import { reservationOf, type Step, STEPS } from './payment.ts'

interface Asked {
  readonly step: Step | 'reserve'
  readonly payment: number
  readonly attempt: number
}

const MOVES: Readonly<Record<Step, readonly [from: readonly string[], to: PaymentState]>> = {
  answered: [['reserved'], 'answered'],
  submitted: [['answered'], 'submitted'],
  settled: [['submitted'], 'settled'],
  released: [['reserved', 'answered'], 'released'],
  refused: [['answered', 'submitted'], 'released'],
  late: [['released'], 'settled'],
  owed: [['submitted', 'settled'], 'owed'],
}

type Modelled = Map<number, { state: PaymentState; attempt: number }>

/** What the ledger has to answer, and the change it makes. */
function expected(rows: Modelled, { step, payment, attempt }: Asked): boolean {
  const row = rows.get(payment)
  if (step === 'reserve') {
    if (row && row.state !== 'released') return false
    rows.set(payment, { state: 'reserved', attempt: (row?.attempt ?? 0) + 1 })
    return true
  }
  const [from, to] = MOVES[step]
  if (!row || row.attempt !== attempt || !from.includes(row.state)) return false
  row.state = to
  return true
}

/** Weighted so that payments get far: the step that comes next is asked for most often. */
const asked: fc.Arbitrary<Asked> = fc.record({
  step: fc.oneof(
    { weight: 3, arbitrary: fc.constantFrom('reserve', 'answered', 'submitted', 'settled') },
    { weight: 1, arbitrary: fc.constantFrom('released', 'refused', 'late', 'owed') },
  ),
  payment: fc.nat(2),
  attempt: fc.oneof({ weight: 4, arbitrary: fc.constant(1) }, { weight: 1, arbitrary: fc.constant(2) }),
})

export function modelContract(name: string, create: () => Promise<Ledger | null>, runs: number): void {
  describe(`the journal in ${name}, against a model`, () => {
    let ledger: Ledger

    before(async function () {
      const created = await create()
      if (!created) this.skip()
      ledger = created
    })
    after(async () => ledger?.drop())

    it('answers any sequence of commands, in groups of any size, as the model does', async () => {
      await fc.assert(
        fc.asyncProperty(
          fc.array(fc.array(asked, { minLength: 1, maxLength: 12 }), { maxLength: 6 }),
          async (groups) => {
            const { journal } = ledger
            const reservations = [reservationOf(), reservationOf(), reservationOf()]
            const rows: Modelled = new Map()
            const ask = (journal: Journal, { step, payment, attempt }: Asked): Promise<boolean> => {
              const reservation = reservations[payment] as (typeof reservations)[0]
              if (step === 'reserve') return journal.reserve(reservation).then(({ reserved }) => reserved)
              return STEPS[step](journal, reservation.key, attempt)
            }
            for (const group of groups) {
              const wanted = group.map((one) => expected(rows, one))
              expect(await Promise.all(group.map((one) => ask(journal, one)))).to.deep.equal(wanted)
            }
            for (const [payment, { key }] of reservations.entries()) {
              const row = rows.get(payment)
              const record = await journal.find(key)
              expect(record && { state: record.state, attempt: record.attempt }).to.deep.equal(row ?? null)
              if (record) expect((await journal.events(key)).at(-1)).to.include(row)
            }
          },
        ),
        { numRuns: runs },
      )
    })
  })
}
