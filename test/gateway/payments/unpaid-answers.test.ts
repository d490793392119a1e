import { expect } from 'chai'
import type { Hex } from '../../../gateway/config/networks.ts'
import { keepAnswer, MAX_KEPT } from '../../../gateway/payments/unpaid-answers.ts'
import { answerOf, paymentIn } from '../../contracts/journal-payments.ts'
import { JOURNALS } from '../../contracts/journals.ts'

const payer = (nth: number): Hex => `0x${String(nth).padStart(40, '0')}`

for (const [name, create] of Object.entries(JOURNALS))
  describe(`the answers kept for callers who left, in the journal in ${name}`, () => {
    let opened: NonNullable<Awaited<ReturnType<NonNullable<typeof create>>>>
    beforeEach(async function () {
      const created = await create?.()
      if (!created) return this.skip()
      opened = created
    })
    afterEach(() => opened?.drop())

    /** Produces an answer for a new payment, whose caller leaves. Returns the state that the payment is left in. */
    async function leave(from: Hex, bytes: number): Promise<string | undefined> {
      const { journal } = opened
      const key = await paymentIn(journal, 'reserved', { payer: from })
      // All bytes differ, so that no two payments share a stored answer.
      const body = answerOf(key.repeat(Math.ceil(bytes / key.length)).slice(0, bytes))
      expect(await keepAnswer(journal, { key, attempt: 1, payer: from }, body)).to.equal(true)
      return (await journal.find(key))?.state
    }
    const count = (states: readonly (string | undefined)[], state: string): number =>
      states.filter((each) => each === state).length

    it('stop growing at a number for each payer, who is not charged and may pay again', async () => {
      const left = await Promise.all(Array.from({ length: MAX_KEPT.ofPayer.answers + 15 }, () => leave(payer(1), 100)))
      expect(count(left, 'answered')).to.equal(MAX_KEPT.ofPayer.answers)
      expect(count(left, 'released')).to.equal(15)
      expect(await leave(payer(2), 100), 'another payer').to.equal('answered')
      const { ofPayer, all } = await opened.journal.keptAnswers(payer(1))
      expect(ofPayer).to.deep.equal({ answers: MAX_KEPT.ofPayer.answers, bytes: 100 * MAX_KEPT.ofPayer.answers })
      expect(all).to.deep.equal({ answers: ofPayer.answers + 1, bytes: ofPayer.bytes + 100 })
    })

    it('stop growing at a number of bytes for each payer', async () => {
      const bytes = MAX_KEPT.ofPayer.bytes / 4
      const left = await Promise.all(Array.from({ length: 6 }, () => leave(payer(3), bytes)))
      expect(count(left, 'answered')).to.equal(4)
      expect((await opened.journal.keptAnswers(payer(3))).ofPayer).to.deep.equal({ answers: 4, bytes: 4 * bytes })
    })
  })

describe('the answers kept for callers who left', () => {
  it('stop growing at a number of bytes for all payers together', async () => {
    const kept = { ofPayer: { answers: 0, bytes: 0 }, all: { answers: 100, bytes: MAX_KEPT.all.bytes - 10 } }
    const moves: string[] = []
    const journal = {
      keptAnswers: async () => kept,
      answered: async () => moves.push('answered') > 0,
      released: async () => moves.push('released') > 0,
    }
    await keepAnswer(journal, { key: 'a', attempt: 1, payer: payer(1) }, answerOf('0123456789'))
    await keepAnswer(journal, { key: 'b', attempt: 1, payer: payer(2) }, answerOf('0123456789a'))
    expect(moves).to.deep.equal(['answered', 'released'])
  })
})
