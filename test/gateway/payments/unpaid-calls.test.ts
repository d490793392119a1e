import { expect } from 'chai'
import fc from 'fast-check'
import { RateLimited } from '../../../gateway/errors.ts'
import {
  isOfPayer,
  MAX_UNPAID_CALLS,
  onlySales,
  SECONDS_PER_CALL,
  UnpaidCalls,
} from '../../../gateway/payments/unpaid-calls.ts'
import { type Peers, PeersInMemory } from '../../../gateway/stores/peers.ts'

type Step = { readonly seconds: number; readonly process: number; readonly ends: 'unpaid' | 'sold' }

const STEPS: fc.Arbitrary<readonly Step[]> = fc.array(
  fc.record({
    seconds: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 150 })),
    process: fc.nat(2),
    ends: fc.constantFrom('unpaid', 'unpaid', 'unpaid', 'sold'),
  }),
  { minLength: 40, maxLength: 120, size: 'max' },
)

/** One payer, on processes that share a clock, and peers unless there is one process. */
class World {
  nowMs = 1_770_000_000_000
  readonly processes: readonly UnpaidCalls[]
  unpaid = 0
  sold = 0

  constructor(count: number, peers: Pick<Peers, 'addCalls'> | null = new PeersInMemory(() => this.nowMs)) {
    const parts = { now: () => new Date(this.nowMs), peers: count === 1 ? null : peers }
    this.processes = Array.from({ length: count }, () => new UnpaidCalls(parts))
  }

  /** Makes a call if it may be made. Returns whether it was. */
  async call({ seconds, process, ends }: Step, payer = '0xPayer'): Promise<boolean> {
    this.nowMs += seconds * 1000
    const calls = this.processes[process % this.processes.length] as UnpaidCalls
    await calls.hear(payer)
    if (calls.roomOf(payer) < 1) return false
    this[ends] += 1
    if (ends === 'sold') calls.sold(payer)
    else calls.leftUnpaid(payer)
    // The others are told in the background.
    await new Promise(setImmediate)
    return true
  }
}

const REFILLS = (seconds: number): number => Math.floor(seconds / SECONDS_PER_CALL)

describe('the unpaid calls of a wallet', function () {
  this.timeout(60_000)
  it('are ten, one more every two minutes, and one more with each payment that settles', async () => {
    let refused = 0
    await fc.assert(
      fc.asyncProperty(STEPS, async (steps) => {
        const world = new World(1)
        let seconds = 0
        for (const step of steps) {
          seconds += step.seconds
          if (await world.call(step)) {
            const allowed = MAX_UNPAID_CALLS + REFILLS(seconds) + world.sold
            expect(world.unpaid).to.be.at.most(allowed)
            continue
          }
          refused += 1
          const [calls] = world.processes as [UnpaidCalls]
          const error = calls.refusal('0xPAYER')
          expect(error).to.be.instanceOf(RateLimited)
          const wait = Number(error.headers['retry-after'])
          expect(wait).to.be.within(1, SECONDS_PER_CALL)
          world.nowMs += wait * 1000
          seconds += wait
          expect(calls.roomOf('0xpayer'), 'it may come back then').to.equal(1)
        }
      }),
      { numRuns: 60 },
    )
    expect(refused).to.be.greaterThan(60)
  })

  it('are at most twice as many at three processes that tell each other, and two more every twenty minutes', async () => {
    await fc.assert(
      fc.asyncProperty(STEPS, async (steps) => {
        const world = new World(3)
        let seconds = 0
        for (const step of steps) {
          seconds += step.seconds
          await world.call(step)
          const alone = MAX_UNPAID_CALLS + seconds / SECONDS_PER_CALL + world.sold
          const windows = 1 + seconds / (MAX_UNPAID_CALLS * SECONDS_PER_CALL)
          expect(world.unpaid).to.be.at.most(2 * alone + 2 * windows)
        }
      }),
      { numRuns: 60 },
    )
  })

  it('at one process keep it from calling others after the first one there', async () => {
    const world = new World(3)
    const leave = (process: number): Promise<boolean> => world.call({ seconds: 0, process, ends: 'unpaid' })
    for (let nth = 0; nth < MAX_UNPAID_CALLS; nth++) expect(await leave(0)).to.equal(true)
    expect([await leave(1), await leave(2)], 'the first').to.deep.equal([true, true])
    expect([await leave(0), await leave(1), await leave(2)]).to.deep.equal([false, false, false])
    // The next one is for whichever process it comes to.
    expect(await world.call({ seconds: SECONDS_PER_CALL, process: 1, ends: 'unpaid' })).to.equal(true)
    expect([await leave(0), await leave(2)]).to.deep.equal([false, false])
  })

  it('hold at each process alone while the others cannot be reached', async () => {
    const world = new World(2, { addCalls: () => Promise.reject(new Error('gone')) })
    for (let nth = 0; nth < 2 * MAX_UNPAID_CALLS; nth++)
      expect(await world.call({ seconds: 0, process: nth, ends: 'unpaid' })).to.equal(true)
    for (const process of [0, 1]) expect(await world.call({ seconds: 0, process, ends: 'unpaid' })).to.equal(false)
  })

  it('are none of those of another, and nothing bounds who has none', async () => {
    const world = new World(1)
    for (let nth = 0; nth < MAX_UNPAID_CALLS; nth++) await world.call({ seconds: 0, process: 0, ends: 'unpaid' })
    const [calls] = world.processes as [UnpaidCalls]
    expect(calls.roomOf('0xother')).to.equal(Number.POSITIVE_INFINITY)
    world.nowMs += MAX_UNPAID_CALLS * SECONDS_PER_CALL * 1000
    expect(calls.roomOf('0xPayer')).to.equal(Number.POSITIVE_INFINITY)
  })

  it('grow with no answer that was made before, and shrink when it is sold', () => {
    const [calls] = new World(1).processes as [UnpaidCalls]
    calls.leftUnpaid('0xa')
    const again = onlySales(calls)
    again.leftUnpaid('0xa')
    expect(calls.roomOf('0xa')).to.equal(MAX_UNPAID_CALLS - 1)
    again.sold('0xa')
    expect(calls.roomOf('0xa')).to.equal(Number.POSITIVE_INFINITY)
  })
})

describe('a settlement that was refused', () => {
  const method = { expiredReason: 'it_expired' }
  const refused = { state: 'refused', message: '' } as const
  for (const [name, outcome, expected] of [
    ['for lack of money', { reason: 'insufficient_funds' }, true],
    ['for lack of money, by a facilitator', { reason: 'insufficient_funds', unsent: true as const }, true],
    ['for its nonce', { reason: 'invalid_transaction_state', burnt: 1n }, true],
    ['because it expired before it could be sent', { reason: 'it_expired', unsent: true as const }, true],
    ['because it failed in a block after its time', { reason: 'it_expired', burnt: 1n }, true],
    ['because it got into no block in time', { reason: 'it_expired' }, false],
    ['because it could not be sent', { reason: 'unexpected_settle_error', unsent: true as const }, false],
    ['by a facilitator that failed', { reason: 'unexpected_settle_error' }, false],
  ] as const)
    it(`${name} is ${expected ? '' : 'not '}the doing of its payer`, () => {
      expect(isOfPayer({ ...refused, ...outcome }, method)).to.equal(expected)
    })
})
