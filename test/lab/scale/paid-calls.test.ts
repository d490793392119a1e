import { expect } from 'chai'
import { BASE } from './chain.ts'
import {
  BLOCK_GAS,
  capacityOf,
  DATABASE_CORES,
  EVENT_LOOPS,
  type ExactSettling,
  GATEWAY_CORES,
  JOURNAL_WRITER,
  type Outcome,
  type Setup,
  simulate,
  STEADY_GAS,
} from './paid-calls.ts'
import { PLANS } from './plans.ts'

const EXACT: ExactSettling = {
  scheme: 'exact',
  networks: 1,
  chain: { ...BASE, pendingPerWallet: 100_000 },
  share: 1,
  batching: { size: 50, policy: 'load', waitSeconds: 0.02 },
  pollSeconds: 0.25,
}

/** A process with a millisecond of event loop per call, half a millisecond of other threads, and a journal in SQLite. */
const SETUP: Setup = {
  paidPerSecond: 100,
  unpaidPerPaid: 0,
  burst: 0,
  cells: 1,
  machines: 1,
  coresPerMachine: 2,
  processesPerMachine: 1,
  paid: { loop: 0.001, others: 0.0006 },
  unpaid: { loop: 0.0001, others: 0 },
  nodeSeconds: 0.02,
  journal: { engine: 'sqlite', syncSeconds: 0.001 },
  settling: { scheme: 'vouchers' },
  seconds: 20,
  seed: 1,
}

const POSTGRESQL: Setup['journal'] = {
  engine: 'postgresql',
  syncSeconds: 0.001,
  networkSeconds: 0.0005,
  cores: 2,
  statementSeconds: 0.0001,
  changeSeconds: 0.00005,
}

function useOf({ resources }: Pick<Outcome, 'resources'>, name: string): number {
  const found = resources.find((resource) => resource.name === name)
  if (!found) throw new Error(`No part is called ${name}.`)
  return found.use
}

describe('the simulation of paid calls', () => {
  it('gives the same outcome for the same seed, and another course for another', () => {
    const one = simulate(SETUP)
    expect(simulate(SETUP)).to.deep.equal(one)
    expect(simulate({ ...SETUP, seed: 2 }).paid.mean).not.to.equal(one.paid.mean)
  })

  it('takes a lone call through its steps: the event loop, the node and two commits', () => {
    const { paid } = simulate({ ...SETUP, paidPerSecond: 0.5, seconds: 100 })
    // Each commit syncs once and takes a third of the other threads' work.
    expect(paid.p50).to.be.closeTo(0.001 + 0.02 + 2 * (0.001 + 0.0002), 1e-9)
  })

  it('makes a lone call of the exact scheme wait for its block', () => {
    const { paid, settling } = simulate({ ...SETUP, paidPerSecond: 2, seconds: 300, settling: EXACT })
    // Half a block, a Flashblock and half of the time between two looks.
    expect(paid.mean).to.be.closeTo(1 + 0.2 + 0.125 + 0.05, 0.08)
    expect(paid.p99).to.be.at.most(2 + 0.2 + 0.25 + 0.1)
    expect(settling?.paymentsPerTransaction).to.be.closeTo(1, 0.01)
    expect(settling?.gasPerPayment).to.be.closeTo(85_740, 500)
  })

  it('uses each part as the rate times its cost says', () => {
    const outcome = simulate({ ...SETUP, paidPerSecond: 400, unpaidPerPaid: 2 })
    expect(outcome.answeredPerSecond).to.be.closeTo(400, 12)
    expect(useOf(outcome, EVENT_LOOPS)).to.be.closeTo(400 * (0.001 + 2 * 0.0001), 0.02)
    expect(useOf(outcome, GATEWAY_CORES)).to.be.closeTo((400 * (0.0016 + 0.0002)) / 2, 0.02)
    expect(useOf(outcome, JOURNAL_WRITER)).to.be.closeTo(400 * 3 * (0.0002 + 0.001 / 256), 0.02)
  })

  it('answers one call per millisecond of the event loop and process while there are too many', () => {
    const setup = { ...SETUP, paidPerSecond: 1, burst: 5_000, coresPerMachine: 8, paid: { loop: 0.001, others: 0 } }
    expect(simulate(setup).burstSeconds).to.be.within(5, 5.15)
    // Calls go to processes at random, so one of them has a little more than half.
    expect(simulate({ ...setup, processesPerMachine: 2 }).burstSeconds).to.be.within(2.5, 2.75)
    expect(simulate({ ...setup, burst: 0 }).burstSeconds).to.equal(null)
  })

  it('is quiet again after a burst', () => {
    const setup = { ...SETUP, unpaidPerPaid: 1 }
    const [calm, burst] = [simulate(setup), simulate({ ...setup, burst: 1_000 })]
    expect(burst.burstSeconds).to.be.within(1, 1.5)
    expect(burst.paid.p99).to.be.above(10 * calm.paid.p99)
    expect(burst.unpaid.p50).to.be.closeTo(calm.unpaid.p50, 1e-4)
  })

  it('commits many changes at once under load, and one at a time when it is quiet', () => {
    const quiet = simulate({ ...SETUP, paidPerSecond: 1, seconds: 100 })
    const busy = simulate({ ...SETUP, paidPerSecond: 900 })
    expect(quiet.changesPerCommit).to.be.closeTo(1, 0.05)
    expect(busy.changesPerCommit).to.be.above(2)
    expect(busy.commitsPerSecond).to.be.below(0.5 * busy.answeredPerSecond * 3)
  })

  it('gives PostgreSQL the work of the journal', () => {
    const outcome = simulate({ ...SETUP, paidPerSecond: 400, journal: POSTGRESQL })
    expect(useOf(outcome, GATEWAY_CORES)).to.be.closeTo((400 * 0.001) / 2, 0.01)
    const work = outcome.commitsPerSecond * 0.0001 + 400 * 3 * 0.00005
    expect(useOf(outcome, DATABASE_CORES)).to.be.closeTo(work / 2, 0.01)
  })

  it('splits payments over the networks and cells, whose gas adds up', () => {
    const setup = { ...SETUP, paidPerSecond: 400, settling: EXACT, seconds: 10 }
    const one = simulate(setup)
    const four = simulate({ ...setup, settling: { ...EXACT, networks: 4 } })
    const cells = simulate({ ...setup, cells: 4 })
    const gas = ({ settling }: Outcome): number => (settling?.gasPerPayment ?? 0) * 400
    expect(useOf(one, STEADY_GAS)).to.be.closeTo(gas(one) / 33_333_333, 0.06)
    expect(useOf(four, STEADY_GAS)).to.be.closeTo(gas(four) / 4 / 33_333_333, 0.06)
    expect(useOf(cells, STEADY_GAS)).to.be.closeTo(gas(cells) / 33_333_333, 0.06)
    expect(useOf(cells, EVENT_LOOPS)).to.be.closeTo(0.1, 0.01)
  })

  it('says that the fee rises when payments need more gas than the target of the chain', () => {
    const setup = { ...SETUP, coresPerMachine: 8, processesPerMachine: 4, settling: EXACT, seconds: 6 }
    expect(simulate({ ...setup, paidPerSecond: 300 }).settling?.feeGrowthPerBlock).to.equal(0)
    const outcome = simulate({ ...setup, paidPerSecond: 1_000 })
    expect(useOf(outcome, STEADY_GAS)).to.be.above(1.4)
    expect(useOf(outcome, BLOCK_GAS)).to.be.below(0.4)
    expect(outcome.settling?.feeGrowthPerBlock).to.be.above(0.003)
  })

  it('finds the rate at which the first part is 80 % full', () => {
    const found = capacityOf({ ...SETUP, unpaidPerPaid: 1 })
    expect(found.paidPerSecond).to.be.closeTo(0.8 / 0.0011, 20)
    expect(found.resources[0]?.name).to.equal(EVENT_LOOPS)
    const writer = capacityOf({ ...SETUP, coresPerMachine: 16, processesPerMachine: 8 })
    expect(writer.paidPerSecond).to.be.closeTo(0.8 / (3 * (0.0002 + 0.001 / 256)), 40)
    expect(writer.resources[0]?.name).to.equal(JOURNAL_WRITER)
  })

  it('says of every plan of the document that no part of it is full', () => {
    for (const [name, plan] of Object.entries(PLANS)) {
      const costs = { paid: { loop: 0.00133, others: 0.00089 }, unpaid: { loop: 0.00013, others: 0 } }
      const outcome = simulate({ ...plan, ...costs, burst: 0, seconds: 4 })
      for (const { name: part, use } of outcome.resources) expect(use, `${name}: ${part}`).to.be.within(0, 0.8)
    }
  })
})
