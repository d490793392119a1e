import { expect } from 'chai'
import { AnswerBody } from '../../../gateway/plugin/answer-body.ts'
import { NETWORKS } from '../../../gateway/config/networks.ts'
import { ServiceError } from '../../../gateway/errors.ts'
import { createLog } from '../../../gateway/observe/log.ts'
import { type Journal, JournalError } from '../../../gateway/payments/journal/journal.ts'
import { openJournal } from '../../../gateway/payments/journal/open-journal.ts'
import {
  createPurchase,
  type Purchase,
  type PurchaseParts,
  SettlementError,
} from '../../../gateway/payments/purchase.ts'
import { paymentIn, STEPS } from '../../contracts/journal-payments.ts'

describe('a purchase that ends without a sale', () => {
  const failure = new ServiceError('product_failed')
  let journal: Journal
  let key: string
  /** With what the work on the payment ended, and whether the amount stays held on the payer's balance. */
  let finished: unknown[]
  let hasLeft: boolean
  /** The payers that left a call unpaid. */
  let unpaid: string[]

  beforeEach(async () => {
    journal = await openJournal({ file: ':memory:' })
    key = await paymentIn(journal, 'reserved')
    finished = []
    hasLeft = false
    unpaid = []
  })
  afterEach(() => journal.close())

  async function purchase(change: Partial<Journal> = {}): Promise<Purchase> {
    const connection = {
      get hasLeft() {
        return hasLeft
      },
    }
    return createPurchase({
      payments: { journal: { ...journal, ...change }, log: createLog('silent') },
      operation: { plan: null },
      presented: { payment: { envelope: { version: 2 } }, connection },
      requirements: { network: NETWORKS['base-sepolia'] },
      record: await journal.find(key),
      work: { holdBalance() {}, finish: (...how: unknown[]) => finished.push(...how) },
      unpaidCalls: { leftUnpaid: (payer: string) => unpaid.push(payer), sold() {} },
    } as unknown as PurchaseParts)
  }
  const errorOf = (work: Promise<unknown>): Promise<unknown> =>
    work.then(
      () => null,
      (error: unknown) => error,
    )
  const stateOf = async (): Promise<string | undefined> => (await journal.find(key))?.state

  it('releases the payment, and tells those who wait for the same one why', async () => {
    expect(await errorOf((await purchase()).release(failure))).to.equal(null)
    expect(await stateOf()).to.equal('released')
    expect(finished).to.deep.equal([{ error: failure }, { keepHold: false }])
    expect(unpaid, 'the product failed, not its caller').to.deep.equal([])
  })

  for (const status of [199, 204, 205, 300, 404])
    it(`charges nothing for an answer ${status}, although it has a body`, async () => {
      const answer = { status, headers: {}, body: AnswerBody.of('{"n":1}') }
      expect(await (await purchase()).settle(answer)).to.equal(answer)
      expect(await stateOf()).to.equal('released')
    })

  it('says that the outcome is unknown, and keeps the amount held, if another process has taken the payment over', async () => {
    const taken = await purchase()
    // The write of the answer failed here after it was stored, and the other process sent the payment.
    await STEPS.submittedWithAnswer(journal, key, 1)
    const error = await errorOf(taken.release(failure))
    expect(error).to.be.instanceOf(SettlementError).and.to.include({ code: 'settlement_pending', cause: failure })
    expect(finished).to.deep.equal([{ error }, { keepHold: true }])
    expect(await stateOf()).to.equal('submitted')
  })

  it('leaves those who wait to try for themselves if its caller has left', async () => {
    hasLeft = true
    await (await purchase()).release(failure)
    expect(finished).to.deep.equal([null, { keepHold: false }])
    expect(unpaid).to.deep.equal([(await journal.find(key))?.payer])
  })

  it('leaves the payment to recovery if the journal cannot be written', async () => {
    const released = async (): Promise<boolean> => {
      throw new JournalError('the disk is full', true, undefined)
    }
    expect(await errorOf((await purchase({ released })).release(failure))).to.equal(null)
    expect(finished).to.deep.equal([{ error: failure }, { keepHold: false }])
    expect(await stateOf()).to.equal('reserved')
  })
})
