import { expect } from 'chai'
import * as fc from 'fast-check'
import { createNonces } from '../../../../../gateway/methods/exact-evm/chain/nonces.ts'

describe('the nonces of an account', () => {
  it('count up from the nonce that the chain expects, and never go back', () => {
    const nonces = createNonces()
    nonces.atLeast(7)
    expect([nonces.allocate(), nonces.allocate()]).to.deep.equal([7, 8])
    nonces.atLeast(8)
    expect(nonces.allocate()).to.equal(9)
    nonces.atLeast(20)
    expect(nonces.allocate()).to.equal(20)
  })

  it('use returned nonces first, the lowest one before the others', () => {
    const nonces = createNonces()
    const [first, second, third] = [nonces.allocate(), nonces.allocate(), nonces.allocate()]
    nonces.release(second)
    nonces.release(first)
    expect([nonces.allocate(), nonces.allocate(), nonces.allocate()]).to.deep.equal([first, second, third + 1])
  })

  it('find the gap that blocks a given nonce', () => {
    const nonces = createNonces()
    for (let count = 0; count < 3; count++) nonces.allocate()
    expect(nonces.allocateBelow(2)).to.equal(null)
    nonces.release(1)
    expect(nonces.allocateBelow(1)).to.equal(null)
    expect(nonces.allocateBelow(2)).to.equal(1)
    expect(nonces.allocateBelow(2)).to.equal(null)
  })

  it('remember the gaps below a nonce from before a restart, until the chain has passed them', () => {
    const nonces = createNonces()
    nonces.atLeast(3)
    nonces.adopt(5)
    expect(nonces.allocate()).to.equal(3)
    nonces.adopt(4)
    expect(nonces.allocate()).to.equal(6)
    nonces.adopt(9)
    nonces.atLeast(8)
    expect([nonces.allocate(), nonces.allocate()]).to.deep.equal([8, 10])
  })

  it('never give out a nonce twice and never lose a gap, in any order of returns', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(9)), (steps) => {
        const nonces = createNonces()
        const used = new Set<number>()
        for (const step of steps) {
          const released = [...used][step]
          if (released === undefined) {
            const nonce = nonces.allocate()
            expect(used.has(nonce)).to.equal(false)
            used.add(nonce)
          } else {
            used.delete(released)
            nonces.release(released)
          }
        }
        const size = used.size
        const gaps = Math.max(-1, ...used) + 1 - size
        for (let gap = 0; gap < gaps; gap++) used.add(nonces.allocate())
        expect([...used].sort((a, b) => a - b)).to.deep.equal([...Array(size + gaps).keys()])
      }),
    )
  })
})
