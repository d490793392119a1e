import { expect } from 'chai'
import { mutate } from './mutations.ts'
import { Random } from './random.ts'

describe('mutations', () => {
  const SEEDS = 300
  const maxBytes = 60_000

  it('changes JSON that is nested deeper than the stack is', () => {
    const depth = 9_000
    const input = Buffer.from('['.repeat(depth) + ']'.repeat(depth))
    for (let seed = 0; seed < SEEDS; seed += 1)
      expect(mutate(input, { random: new Random(seed), words: [], other: input, maxBytes })).to.be.instanceOf(Buffer)
  })

  it('stays below the most bytes and repeats what a seed made', () => {
    const input = Buffer.from(JSON.stringify({ a: [1, 'text', null], b: { c: true } }))
    for (let seed = 0; seed < SEEDS; seed += 1) {
      const [first, second] = [0, 1].map(() =>
        mutate(input, { random: new Random(seed), words: ['w'], other: input, maxBytes: 40 }),
      ) as [Buffer, Buffer]
      expect(first.length).to.be.at.most(40)
      expect(first).to.deep.equal(second)
    }
  })
})
