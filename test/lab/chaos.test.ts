import { execFile } from 'node:child_process'
import { resolve } from 'node:path'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { openJournal } from '../../gateway/payments/journal/open-journal.ts'
import { NETWORKS, type Hex } from '../../gateway/config/networks.ts'
import type { Journal } from '../../gateway/payments/journal/journal.ts'
import type { PaymentState } from '../../gateway/payments/journal/payment-states.ts'
import type { Purchase } from './chaos/buyers.ts'
import { hasPostgres } from './chaos/own-postgres.ts'
import { faultsOf, judge } from './chaos/verdict.ts'
import { paymentIn } from '../contracts/journal-payments.ts'
import { compiled } from '../support/compiled.ts'
import { requireBuild } from '../support/process.ts'

const root = resolve(import.meta.dirname, '../..')

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
      path: '/x',
      payment: { header: '', payer, nonce, amount: 5000n },
      body: null,
      refused: false,
      changed: 0,
      sent: 1,
      ...result,
    }
    const counts = new Map(transfersPaid > 0 ? [[`${payer}/${nonce}`, transfersPaid] as const] : [])
    const transfers = { counts, sum: 5000n * BigInt(transfersPaid) + extra }
    return faultsOf(await judge([purchase], transfers, journal, network)).join(', ')
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

  it('reports a payment in the journal that no buyer has sent', async () => {
    await paymentIn(journal, 'settled', { key: 'stray', identity: `0x${'57'.repeat(32)}` })
    expect(await faults('settled', 1, { body: 'x' })).to.equal('unknown: 1')
  })
})

describe('a chaos run', () => {
  it('finds every payment exact after two gateways on one PostgreSQL were killed', async function () {
    this.timeout(300_000)
    if (!hasPostgres()) this.skip()
    requireBuild()
    const args = [await compiled('test/lab/chaos.ts'), '--minutes', '0', '--kills', '2', '--postgres']
    const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: root })
    const figure = (name: string): number => Number(new RegExp(`^${name} +(\\d+)$`, 'm').exec(stdout)?.[1])
    expect(figure('kills'), stdout).to.be.at.least(2)
    expect(figure('delivered')).to.be.above(0)
    expect(figure('delivered')).to.equal(figure('transfers'))
  })
})
