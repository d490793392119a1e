import { expect } from 'chai'
import fc from 'fast-check'
import { RateLimited } from '../../../gateway/errors.ts'
import {
  CALLS_OF_ADDRESS,
  CALLS_OF_BUYER,
  CALLS_OF_STRANGERS,
  NodeCallBudget,
} from '../../../gateway/payments/node-call-budget.ts'
import { PeersInMemory } from '../../../gateway/stores/peers.ts'
import type { Counted } from '../../../gateway/stores/shared-limit.ts'

const BUYERS = ['0xb0', '0xb1']
/** A journal in which the buyers have settled payments. */
const journal = {
  list: async ({ payer = '' }) => (BUYERS.includes(payer) ? [{}] : []) as never,
}

interface Spending {
  readonly wallet: string
  readonly place: string | null
  readonly isProven: boolean
  readonly calls: number
  readonly isSold: boolean
}

const SPENDING: fc.Arbitrary<Spending> = fc.record({
  wallet: fc.oneof(fc.constantFrom(...BUYERS), fc.nat(1_000_000).map(String)),
  place: fc.oneof(
    { arbitrary: fc.constant(null), weight: 1 },
    { arbitrary: fc.nat(3).map((place) => `192.0.2.${place}`), weight: 2 },
    { arbitrary: fc.nat(200).map((place) => `198.51.100.${place}`), weight: 6 },
  ),
  isProven: fc.boolean(),
  calls: fc.integer({ min: 1, max: 40 }),
  isSold: fc.nat(4).map((nth) => nth === 0),
})

/** Spends calls. Returns whether they may be made. */
async function spend(budget: NodeCallBudget, { wallet, place, calls, isProven, isSold }: Spending): Promise<boolean> {
  const counted: Counted[] = []
  const account = budget.account(wallet, place, counted)
  try {
    await account.spend(calls, isProven)
  } catch (error) {
    expect(error).to.be.instanceOf(RateLimited)
    expect((error as RateLimited).message).to.contain('Nothing was charged.')
    return false
  }
  if (isSold) await Promise.all(counted.map((each) => each.takeBack()))
  return true
}

const sum = (spendings: readonly Spending[]): number => spendings.reduce((total, { calls }) => total + calls, 0)

for (const processes of [1, 3])
  describe(`the budget of node calls of ${processes === 1 ? 'one process' : 'three processes'}`, () => {
    it('admits no more within a minute than the share of each address, of each buyer, and of all strangers', async () => {
      let reachedAll = 0
      await fc.assert(
        fc.asyncProperty(fc.array(SPENDING, { minLength: 20, maxLength: 600, size: 'max' }), async (spendings) => {
          const peers = processes === 1 ? null : new PeersInMemory()
          const budgets = Array.from({ length: processes }, () => new NodeCallBudget({ journal, peers }))
          const made: Spending[] = []
          for (const [nth, spending] of spendings.entries()) {
            const budget = budgets[nth % processes] as NodeCallBudget
            if (await spend(budget, spending)) made.push(spending)
            else expect(spending.place, 'callers on this machine are not limited').to.not.equal(null)
          }
          const unsold = made.filter(({ place, isSold }) => place !== null && !isSold)
          const isStranger = ({ wallet }: Spending): boolean => !BUYERS.includes(wallet)
          const counted = unsold.filter((spending) => isStranger(spending) || !spending.isProven)
          for (const place of new Set(counted.map((spending) => spending.place)))
            expect(sum(counted.filter((spending) => spending.place === place))).to.be.at.most(CALLS_OF_ADDRESS)
          expect(sum(unsold.filter(isStranger))).to.be.at.most(CALLS_OF_STRANGERS)
          for (const buyer of BUYERS)
            expect(sum(unsold.filter(({ wallet }) => wallet === buyer))).to.be.at.most(CALLS_OF_BUYER * processes)
          if (sum(unsold.filter(isStranger)) > CALLS_OF_STRANGERS - 200) reachedAll += 1
        }),
        { numRuns: 60 },
      )
      expect(reachedAll, 'runs in which strangers used up their share').to.be.greaterThan(0)
    })

    it('refuses no buyer who has signed, whatever strangers have spent at the same address', async () => {
      await fc.assert(
        fc.asyncProperty(fc.array(SPENDING, { maxLength: 200 }), async (spendings) => {
          const budget = new NodeCallBudget({ journal, peers: processes === 1 ? null : new PeersInMemory() })
          for (const spending of spendings) await spend(budget, { ...spending, wallet: `stranger ${spending.wallet}` })
          for (const { place } of spendings)
            expect(await spend(budget, { wallet: '0xb0', place, isProven: true, calls: 2, isSold: true })).to.equal(
              true,
            )
        }),
        { numRuns: 30 },
      )
    })
  })

describe('the budget of node calls while the journal cannot be read', () => {
  it('counts every wallet as a stranger', async () => {
    const broken = { list: () => Promise.reject(new Error('the disk is gone')) }
    const account = new NodeCallBudget({ journal: broken }).account('0xb0', '192.0.2.1')
    for (let calls = 0; calls < CALLS_OF_ADDRESS; calls++) await account.spend(1, true)
    await account.spend(1, true).then(
      () => expect.fail('it was admitted'),
      (error: Error) => expect(error).to.be.instanceOf(RateLimited),
    )
  })
})
