/** Compares the journal with a model of ten lines: for any sequence of commands, both return the same results. */
import { expect } from 'chai'
import * as fc from 'fast-check'
import type { Journal } from '../../gateway/payments/journal/journal.ts'
import type { PaymentState } from '../../gateway/payments/journal/payment-states.ts'
import type { TestJournal } from './journals.ts'
import { reservationOf, type Step, STEPS } from './journal-payments.ts'

interface Command {
  readonly step: Step | 'reserve'
  readonly payment: number
  readonly attempt: number
}

const MOVES: Readonly<Record<Step, readonly [from: readonly string[], to: PaymentState]>> = {
  answered: [['reserved'], 'answered'],
  submitted: [['answered'], 'submitted'],
  submittedWithAnswer: [['reserved'], 'submitted'],
  settled: [['submitted'], 'settled'],
  released: [['reserved', 'answered'], 'released'],
  refused: [['reserved', 'answered', 'submitted'], 'released'],
  settledLate: [['released'], 'settled'],
  owed: [['submitted', 'settled'], 'owed'],
  reversed: [['settled', 'owed'], 'reversed'],
  settledByOthers: [['submitted', 'reversed'], 'settled'],
  settledAgain: [['reversed'], 'settled'],
}

type Model = Map<number, { state: PaymentState; attempt: number }>

/** The result the journal has to return. Applies the change to the model. */
function expected(rows: Model, { step, payment, attempt }: Command): boolean {
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

/** Weighted towards the next step, so that payments get far. */
const command: fc.Arbitrary<Command> = fc.record({
  step: fc.oneof(
    { weight: 3, arbitrary: fc.constantFrom('reserve', 'answered', 'submitted', 'submittedWithAnswer', 'settled') },
    {
      weight: 1,
      arbitrary: fc.constantFrom(
        'released',
        'refused',
        'settledLate',
        'owed',
        'reversed',
        'settledAgain',
        'settledByOthers',
      ),
    },
  ),
  payment: fc.nat(2),
  attempt: fc.oneof({ weight: 4, arbitrary: fc.constant(1) }, { weight: 1, arbitrary: fc.constant(2) }),
})

export function modelContract(name: string, create: () => Promise<TestJournal | null>, runs: number): void {
  describe(`the journal in ${name}, compared with a model`, () => {
    let opened: TestJournal

    before(async function () {
      const created = await create()
      if (!created) this.skip()
      opened = created
    })
    after(async () => opened?.drop())

    it('returns the same results and counts as the model for any sequence of commands, in groups of any size', async () => {
      await fc.assert(
        fc.asyncProperty(
          fc.array(fc.array(command, { minLength: 1, maxLength: 12 }), { maxLength: 6 }),
          async (groups) => {
            const { journal } = opened
            const reservations = [reservationOf(), reservationOf(), reservationOf()]
            const rows: Model = new Map()
            const execute = (journal: Journal, { step, payment, attempt }: Command): Promise<boolean> => {
              const reservation = reservations[payment] as (typeof reservations)[0]
              if (step === 'reserve') return journal.reserve(reservation).then(({ reserved }) => reserved)
              return STEPS[step](journal, reservation.key, attempt)
            }
            for (const group of groups) {
              const results = group.map((command) => expected(rows, command))
              expect(await Promise.all(group.map((command) => execute(journal, command)))).to.deep.equal(results)
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
      const { journal } = opened
      for (const [state, count] of Object.entries(await journal.counts())) {
        const listed = await journal.list({ states: [state as PaymentState], withoutAnswers: true, limit: 1_000_000 })
        expect(listed, state).to.have.length(count)
      }
    })
  })
}
