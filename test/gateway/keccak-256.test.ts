import { expect } from 'chai'
import fc from 'fast-check'
import { keccak256 as ofViem } from 'viem'

const EMPTY = 'c5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470'
const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex')

describe('keccak256', () => {
  it('gives the hash that Ethereum gives, before and after WebAssembly is compiled', async () => {
    const { keccak256, keccakCompiled } = await import('../../gateway/keccak-256.ts')
    const first = keccak256(Buffer.alloc(0))
    await keccakCompiled
    const second = keccak256(Buffer.alloc(0))
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 500 }), (bytes) => {
        expect(`0x${hex(keccak256(bytes))}`).to.equal(ofViem(bytes))
      }),
    )
    // Each call returns bytes of its own.
    expect([first, second].map(hex)).to.deep.equal([EMPTY, EMPTY])
  })
})
