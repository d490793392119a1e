import { expect } from 'chai'
import * as fc from 'fast-check'
import { createNonces } from '../../../../../gateway/methods/exact-evm/chain/nonces.ts'

describe('nonces of a sending account', () => {
  it('count up from what the chain expects, and never back', () => {
    const nonces = createNonces()
    nonces.atLeast(7)
    expect([nonces.allocate(), nonces.allocate()]).to.deep.equal([7, 8])
    nonces.atLeast(8)
    expect(nonces.allocate()).to.equal(9)
    nonces.atLeast(20)
    expect(nonces.allocate()).to.equal(20)
  })

  it('hand a returned nonce to the next, lowest first', () => {
    const nonces = createNonces()
    const [first, second, third] = [nonces.allocate(), nonces.allocate(), nonces.allocate()]
    nonces.release(second)
    nonces.release(first)
    expect([nonces.allocate(), nonces.allocate(), nonces.allocate()]).to.deep.equal([first, second, third + 1])
  })

  it('know which hole holds others back', () => {
    const nonces = createNonces()
    for (let count = 0; count < 3; count++) nonces.allocate()
    expect(nonces.allocateBelow(2)).to.equal(null)
    nonces.release(1)
    expect(nonces.allocateBelow(1)).to.equal(null)
    expect(nonces.allocateBelow(2)).to.equal(1)
    expect(nonces.allocateBelow(2)).to.equal(null)
  })

  it('leave holes below a nonce that survived a restart, and forget those the chain has passed', () => {
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

  it('never give one nonce to two, and leave no hole unknown, whatever is returned', () => {
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
