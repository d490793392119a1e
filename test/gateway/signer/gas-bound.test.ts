/** Tests of the bound on the gas that the signer signs for. */
import { expect } from 'chai'
import fc from 'fast-check'
import { GasBound } from '../../../gateway/signer/gas-bound.ts'

const HOUR = 3_600_000

describe('the gas that the signer signs for', () => {
  let now: number
  let bound: GasBound
  beforeEach(() => {
    now = 0
    bound = new GasBound(1_000n, () => now)
  })

  it('is bounded within an hour, and free again an hour later', () => {
    expect(bound.admit('a', 1, 600n)).to.equal(true)
    now = HOUR / 2
    expect(bound.admit('a', 2, 401n)).to.equal(false)
    expect(bound.admit('a', 2, 400n)).to.equal(true)
    now = HOUR - 1
    expect(bound.admit('a', 3, 1n)).to.equal(false)
    now = HOUR
    expect(bound.admit('a', 3, 600n)).to.equal(true)
    expect(bound.admit('a', 4, 1n)).to.equal(false)
  })

  it('counts a transaction that is signed again once, with the most gas it had', () => {
    expect(bound.admit('a', 1, 600n)).to.equal(true)
    for (let again = 0; again < 10; again++) expect(bound.admit('a', 1, 600n)).to.equal(true)
    expect(bound.admit('a', 1, 1_000n)).to.equal(true)
    expect(bound.admit('a', 1, 1_001n)).to.equal(false)
    expect(bound.admit('a', 2, 1n)).to.equal(false)
  })

  it('counts more gas for the same nonce from when that was signed', () => {
    expect(bound.admit('a', 1, 1n)).to.equal(true)
    now = HOUR - 1
    expect(bound.admit('a', 1, 1_000n)).to.equal(true)
    now = HOUR
    expect(bound.admit('a', 2, 1n)).to.equal(false)
    now = 2 * HOUR - 1
    expect(bound.admit('a', 2, 1_000n)).to.equal(true)
  })

  it('is shared by the keys of a network, whose nonces are their own', () => {
    expect(bound.admit('a', 1, 600n)).to.equal(true)
    expect(bound.admit('b', 1, 600n)).to.equal(false)
    expect(bound.admit('b', 1, 400n)).to.equal(true)
  })

  it('never exceeds the bound in any hour, whatever is asked', () => {
    const step = fc.record({ wait: fc.nat(HOUR), nonce: fc.nat(1_000), gas: fc.bigInt({ min: 0n, max: 1_200n }) })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        let time = 0
        const each = new GasBound(1_000n, () => time)
        const admitted: { at: number; gas: bigint }[] = []
        for (const [at, { wait, gas }] of steps.entries()) {
          time += wait
          if (each.admit('a', at, gas)) admitted.push({ at: time, gas })
          const recent = admitted.filter(({ at: then }) => then > time - HOUR)
          expect(recent.reduce((sum, { gas: used }) => sum + used, 0n) <= 1_000n).to.equal(true)
        }
      }),
    )
  })
})
