import { expect } from 'chai'
import { JOURNALS } from '../contracts/journals.ts'
import type { TestJournal } from '../contracts/journals.ts'
import { paymentIn, reservationOf, TRANSACTION } from '../contracts/journal-payments.ts'
import type { Settlement } from '../../gateway/payments/journal/journal.ts'

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

    it('names the wallets that paid most for each operation', async () => {
      const { journal } = opened
      const other = '0x00000000000000000000000000000000000000b2'
      const [first, ...rest] = await journal.topBuyers(20_000 * DAY, 2)
      expect(first).to.include({ operation: 'buyPlan', payments: 1, amount: 750_000_000n, buyers: 1 })
      expect(rest.map(({ operation, amount, buyers }) => ({ operation, amount, buyers }))).to.deep.equal([
        { operation: 'getEcho', amount: 5001n, buyers: 3 },
        { operation: 'getEcho', amount: 5000n, buyers: 3 },
      ])
      expect(rest[0]?.payer).to.equal(other)
      expect(await journal.topBuyers(20_001 * DAY, 2)).to.have.length(1)
    })

    it('lists payments with or without their stored answers', async () => {
      const { journal } = opened
      const settled = { states: ['settled'], limit: 10 } as const
      const withoutAnswers = await journal.list({ ...settled, withoutAnswers: true })
      expect(withoutAnswers.map(({ amount }) => amount)).to.deep.equal([750_000_000n, 7n, 5001n, 5000n])
      expect(withoutAnswers.every(({ answer }) => answer === null)).to.equal(true)
      expect((await journal.list(settled)).every(({ answer }) => answer !== null)).to.equal(true)
    })

    it('lists settlements from a moment on, page after page, also within one millisecond', async () => {
      const { journal } = opened
      const amounts: bigint[] = []
      for (let from: number | Settlement = 20_000 * DAY + 5; ;) {
        const [settlement, ...others]: readonly Settlement[] = await journal.settlements({ from, limit: 1 })
        if (!settlement) break
        expect(others).to.deep.equal([])
        expect(settlement).to.include({ network: 'eip155:84532', transaction: TRANSACTION })
        amounts.push(settlement.amount)
        from = settlement
      }
      expect(amounts).to.deep.equal([5000n, 5001n, 7n, 750_000_000n])
      expect(await journal.settlements({ from: 20_000 * DAY + 6, limit: 10 })).to.have.length(1)
    })
  })
