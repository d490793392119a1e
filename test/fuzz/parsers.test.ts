/**
 * Every parser against inputs that nobody sent: those that `npm run lab -- fuzz` kept, random ones, and changed valid ones. A
 * parser accepts an input or refuses it with an error of the table; what it accepts keeps the promises that its target
 * asserts.
 */
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import * as fc from 'fast-check'
import { MAX_KEPT_BYTES, readCorpus } from './corpus.ts'
import { collectGarbage } from '../lab/fuzz/loop.ts'
import { mutate } from './mutations.ts'
import { Random } from './random.ts'
import type { FuzzTarget } from './target.ts'
import { TARGETS } from './targets.ts'

const corpus = join(import.meta.dirname, 'corpus')
const RUNS = 150
/** How often the kept inputs are read while the heap is watched. */
const ROUNDS = 5
const MAX_GROWTH_BYTES = 32_000_000

const SURROGATES = 0x800
/** Any character: a code point that is no half of a surrogate pair. */
const characters = fc.nat(0x10ffff - SURROGATES).map((at) => String.fromCodePoint(at < 0xd800 ? at : at + SURROGATES))
/**
 * Text of any characters, or of ASCII with strings such as `__proto__` that fast-check knows to be dangerous. For those in
 * text of any characters it would keep a table of a million, which every garbage collection has to walk.
 */
const texts = fc
  .oneof(
    fc.array(characters, { maxLength: 300 }).map((text) => text.join('')),
    fc.string({ unit: 'binary-ascii', maxLength: 300 }),
  )
  .map((text) => Buffer.from(text))

/** Bytes, text, JSON, and changed seeds. */
function inputs({ seeds, words, maxBytes }: FuzzTarget): fc.Arbitrary<Buffer> {
  const changed = fc
    .tuple(fc.nat(seeds.length - 1), fc.nat(), fc.integer({ min: 1, max: 12 }))
    .map(([at, seed, times]) => {
      const random = new Random(seed)
      let input = Buffer.from(seeds[at] as string)
      for (let left = times; left > 0; left -= 1)
        input = Buffer.from(mutate(input, { random, words, maxBytes, other: Buffer.from(random.oneOf(seeds)) }))
      return input
    })
  return fc.oneof(
    { weight: 4, arbitrary: changed },
    { weight: 1, arbitrary: fc.json().map((text) => Buffer.from(text)) },
    { weight: 1, arbitrary: texts },
    { weight: 1, arbitrary: fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes)) },
  )
}

describe('the parsers of what callers and operators send', function () {
  this.timeout(600_000)

  for (const target of TARGETS)
    describe(target.name, () => {
      const kept = readCorpus(corpus, target.name)

      it('reads its own examples', async () => {
        for (const seed of target.seeds) await target.read(Buffer.from(seed))
      })

      it('accepts or refuses every input that the fuzzer kept', async () => {
        expect(kept.size, 'run npm run lab -- fuzz').to.be.above(0)
        for (const [name, input] of kept)
          try {
            await target.read(Buffer.from(input))
          } catch (error) {
            throw new Error(`${target.name}/${name}: ${(error as Error).message}`, { cause: error })
          }
      })

      it('accepts or refuses random inputs and changed examples', () =>
        fc.assert(
          fc.asyncProperty(inputs(target), async (input) => {
            await target.read(Buffer.from(input))
          }),
          { numRuns: RUNS, examples: [[Buffer.alloc(0)], [Buffer.from('null')], [Buffer.from('\uFEFF')]] },
        ))
    })

  it('keep nothing of what they have read', async () => {
    const all = TARGETS.map((target) => [target, [...readCorpus(corpus, target.name).values()]] as const)
    const readAll = async (): Promise<number> => {
      for (const [target, kept] of all) for (const input of kept) await target.read(Buffer.from(input))
      collectGarbage()
      const { heapUsed, external } = process.memoryUsage()
      return heapUsed + external
    }
    // The first round fills caches and compiles.
    await readAll()
    const before = await readAll()
    let after = before
    for (let round = 0; round < ROUNDS; round += 1) after = await readAll()
    expect(after - before).to.be.below(MAX_GROWTH_BYTES)
  })

  it('have a folder each, of small inputs', () => {
    const folders = readdirSync(corpus, { withFileTypes: true }).filter((entry) => entry.isDirectory())
    expect(folders.map(({ name }) => name).sort()).to.deep.equal(TARGETS.map(({ name }) => name).sort())
    for (const { name } of TARGETS)
      for (const [file, input] of readCorpus(corpus, name))
        if (!file.startsWith('finding-')) expect(input.length, `${name}/${file}`).to.be.at.most(MAX_KEPT_BYTES)
  })
})
