import { expect } from 'chai'
import { BASE, type Batching, Blocks, type ChainLimits, feeGrowth, gasOf, steadyGas, Wallet } from './chain.ts'
import { Clock } from './queues.ts'

const SEND_SECONDS = 0.02

/** A wallet on a chain whose first block ends at 2 s. Recording an intent takes 5 ms. */
function open(batching: Partial<Batching> = {}, limits: Partial<ChainLimits> = {}, share = 1) {
  const clock = new Clock()
  const chain = { ...BASE, ...limits }
  const blocks = new Blocks(clock, chain, share, 1, () => 0)
  const wallet = new Wallet(
    clock,
    blocks,
    chain,
    { size: 50, policy: 'load', waitSeconds: 0.02, ...batching },
    SEND_SECONDS,
  )
  const mined: number[] = []
  const settle = (payments: number): void => {
    for (let payment = 0; payment < payments; payment++)
      wallet.settle({ record: (done) => clock.after(0.005, done), mined: () => mined.push(clock.now) })
  }
  return { clock, blocks, wallet, mined, settle }
}

/** How many were mined at each moment. */
const byMoment = (times: readonly number[]): Readonly<Record<string, number>> =>
  times.reduce<Record<string, number>>((counts, at) => ({ ...counts, [at]: (counts[at] ?? 0) + 1 }), {})

describe('the chain of the simulation', () => {
  it('knows the gas that was measured: alone, and per payment in batches', () => {
    expect(gasOf(1)).to.equal(85_740)
    expect(gasOf(5) / 5).to.be.closeTo(0.68 * 85_740, 150)
    expect(gasOf(10) / 10).to.be.closeTo(54_000, 1)
    expect(gasOf(50) / 50).to.be.closeTo(50_616, 1)
  })

  it('raises the fee as EIP-1559 does: by 4 % per full block on Base, not at all at the target', () => {
    expect(feeGrowth(BASE, BASE.elasticity)).to.be.closeTo(0.04, 1e-9)
    expect(feeGrowth(BASE, 1)).to.equal(0)
    expect(feeGrowth(BASE, 1.5)).to.be.closeTo(0.004, 1e-9)
    expect(steadyGas(BASE)).to.be.closeTo(33_333_333, 1)
  })

  it('moves what was sent in time with the next block, and what was sent too late with the one after', () => {
    const { clock, mined, settle } = open()
    settle(1)
    clock.after(1.9, () => settle(1))
    clock.run(10)
    expect(mined).to.deep.equal([2, 4])
  })

  it('sends payments alone while it is quiet', () => {
    const { clock, wallet, settle } = open()
    for (let payment = 0; payment < 5; payment++) clock.after(payment / 10, () => settle(1))
    clock.run(3)
    expect([wallet.payments, wallet.batches]).to.deep.equal([5, 5])
  })

  it('sends what comes while a batch is sent together, and none later than 20 ms', () => {
    const { clock, wallet, settle, mined } = open({}, { pendingPerWallet: 1_000 })
    for (let payment = 0; payment < 1_000; payment++) clock.after(payment / 1_000, () => settle(1))
    clock.run(3)
    expect(wallet.payments / wallet.batches).to.be.within(15, 25)
    expect(byMoment(mined)).to.deep.equal({ 2: 1_000 })
  })

  it('collects one batch per block if it is asked to, and sends full ones at once', () => {
    const { clock, wallet, mined, settle } = open({ policy: 'block' })
    settle(1)
    clock.after(0.5, () => settle(30))
    clock.run(7)
    expect([wallet.payments, wallet.batches]).to.deep.equal([31, 2])
    expect(byMoment(mined)).to.deep.equal({ 2: 1, 4: 30 })
    settle(120)
    clock.run(8)
    expect([wallet.payments, wallet.batches]).to.deep.equal([151, 5])
  })

  it('puts no more gas into a block than our part of it', () => {
    const { clock, blocks, mined, settle } = open({}, { pendingPerWallet: 1_000 }, 0.1)
    settle(1_000)
    clock.run(2)
    // 40 million gas hold 15 batches of 50.
    expect(byMoment(mined)).to.deep.equal({ 2: 750 })
    expect(blocks.gas)
      .to.equal(15 * gasOf(50))
      .and.to.be.at.most(40_000_000)
    clock.run(5)
    expect(byMoment(mined)).to.deep.equal({ 2: 750, 4: 250 })
  })

  it('keeps back what a node does not take from one wallet before the next block', () => {
    const { clock, mined, settle } = open({ size: 1 }, { pendingPerWallet: 16 })
    settle(20)
    clock.run(5)
    expect(byMoment(mined)).to.deep.equal({ 2: 16, 4: 4 })
  })
})
