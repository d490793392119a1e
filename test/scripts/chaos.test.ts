import { expect } from 'chai'
import { openJournal } from '../../gateway/payments/journal/open-journal.ts'
import { NETWORKS, type Hex } from '../../gateway/config/networks.ts'
import type { Journal } from '../../gateway/payments/journal/journal.ts'
import type { PaymentState } from '../../gateway/payments/journal/payment-states.ts'
import type { Purchase } from '../../scripts/chaos/buyers.ts'
import { faultsOf, judge } from '../../scripts/chaos/verdict.ts'
import { paymentIn } from '../contracts/journal-payments.ts'

const network = NETWORKS['base-sepolia']
const payer: Hex = `0x${'b1'.repeat(20)}`

describe('the verdict of a chaos run', () => {
  let journal: Journal
  beforeEach(async () => (journal = await openJournal({ file: ':memory:' })))
  afterEach(() => journal.close())

  /** The faults found for a payment with this journal state, number of transfers and result for the buyer. */
  async function faults(
    state: PaymentState,
    transfersPaid: number,
    result: Partial<Purchase>,
    extra = 0n,
  ): Promise<string> {
    const nonce: Hex = `0x${'0e'.repeat(32)}`
    const key = `${network.caip2}/${network.asset}/${payer}/${nonce}`.toLowerCase()
    await paymentIn(journal, state, { key, identity: nonce })
    const purchase: Purchase = {
      url: 'http://127.0.0.1/x',
      payment: { header: '', payer, nonce },
      body: null,
      refused: false,
      changed: 0,
      sent: 1,
      ...result,
    }
    const counts = new Map(transfersPaid > 0 ? [[`${payer}/${nonce}`, transfersPaid] as const] : [])
    const transfers = { counts, sum: 5000n * BigInt(transfersPaid) + extra }
    return faultsOf(await judge([purchase], transfers, journal, { network, price: 5000n })).join(', ')
  }

  const cases: readonly [string, Parameters<typeof faults>, string][] = [
    ['a delivered payment', ['settled', 1, { body: 'x' }], ''],
    ['a refused payment that moved nothing', ['released', 0, { refused: true }], ''],
    ['a payment that settled without an answer and is recorded as a debt', ['owed', 1, {}], ''],
    ['two transfers for one payment', ['settled', 2, { body: 'x' }], 'doubleCharges: 1'],
    ['a transfer after a refusal', ['settled', 1, { refused: true }], 'doubleCharges: 1, lost: 1'],
    ['a payment that moved money and bought nothing', ['settled', 1, {}], 'lost: 1'],
    ['an answer that nobody paid for', ['released', 0, { body: 'x' }], 'unpaid: 1'],
    ['a second delivery with another answer', ['settled', 1, { body: 'x', changed: 1 }], 'changed: 1'],
    ['a transfer that the journal does not record as settled', ['submitted', 1, { body: 'x' }], 'ledgerDiffers: 1'],
    ['money of unknown origin', ['settled', 1, { body: 'x' }, 7n], 'unexplained: 7'],
  ]
  for (const [name, outcome, expected] of cases)
    it(`${expected === '' ? 'accepts' : 'reports'} ${name}`, async () => {
      expect(await faults(...outcome)).to.equal(expected)
    })
})
