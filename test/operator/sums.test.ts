import { expect } from 'chai'
import { JOURNALS } from '../contracts/journals.ts'
import type { TestJournal } from '../contracts/journals.ts'
import { paymentIn, reservationOf } from '../contracts/journal-payments.ts'

const OWN = '0x00000000000000000000000000000000000000C1'
const DAY = 86_400_000

for (const [name, create] of Object.entries(JOURNALS))
  describe(`the journal in ${name}`, () => {
    let opened: TestJournal

    before(async function () {
      const created = await create()
      if (!created) this.skip()
      opened = created
    })
    after(async () => opened?.drop())

    it('sums revenue by day, operation and state to the atomic unit, with own wallets apart', async () => {
      const { journal } = opened
      opened.now = 20_000 * DAY + 5
      await paymentIn(journal, 'settled', reservationOf({ amount: 5000n }))
      await paymentIn(
        journal,
        'settled',
        reservationOf({ amount: 5001n, payer: '0x00000000000000000000000000000000000000B2' }),
      )
      await paymentIn(journal, 'settled', reservationOf({ amount: 7n, payer: OWN }))
      await paymentIn(journal, 'submitted', reservationOf({ amount: 11n }))
      await paymentIn(journal, 'released', reservationOf({ amount: 13n }))
      opened.now += DAY
      await paymentIn(journal, 'settled', reservationOf({ amount: 750_000_000n, operation: 'buyPlan' }))

      const sums = await journal.dailySums(20_000 * DAY, [OWN.toLowerCase()])
      const settled = { network: 'eip155:84532', state: 'settled' as const }
      expect(sums).to.have.deep.members([
        { day: 20_000, operation: 'getEcho', ...settled, isOwn: false, count: 2, payers: 2, amount: 10_001n },
        { day: 20_000, operation: 'getEcho', ...settled, isOwn: true, count: 1, payers: 1, amount: 7n },
        { day: 20_001, operation: 'buyPlan', ...settled, isOwn: false, count: 1, payers: 1, amount: 750_000_000n },
      ])
      expect(await journal.dailySums(20_001 * DAY, [])).to.have.length(1)
    })

    it('lists the payments settled in a period, with or without the stored answers', async () => {
      const { journal } = opened
      const window = { settledSince: 20_000 * DAY, settledBefore: 20_001 * DAY, limit: 10 }
      const withoutAnswers = await journal.list({ ...window, withoutAnswers: true })
      expect(withoutAnswers.map(({ amount }) => amount)).to.deep.equal([7n, 5001n, 5000n])
      expect(withoutAnswers.every(({ answer }) => answer === null)).to.equal(true)
      expect((await journal.list(window)).every(({ answer }) => answer !== null)).to.equal(true)
    })
  })
