import { expect } from 'chai'
import * as fc from 'fast-check'
import type { InvalidInput } from '../../../gateway/errors.ts'
import { parseJson } from '../../../gateway/validation/json-body.ts'
import { JSON_LIMITS, type JsonLimits, JsonMeter } from '../../../gateway/validation/json-meter.ts'

const WIDE: JsonLimits = { depth: 1_000, values: 1e9, keys: 1e9 }

function measure(text: string | Buffer, limits: JsonLimits = WIDE, size = 65_536): JsonMeter {
  const [meter, bytes] = [new JsonMeter(limits), Buffer.from(text)]
  for (let at = 0; at < bytes.length; at += size) meter.take(bytes.subarray(at, at + size))
  return meter
}

function refusal(work: () => unknown): string {
  try {
    work()
  } catch (error) {
    return (error as InvalidInput).detail[0]?.type ?? ''
  }
  return 'accepted'
}

const children = (value: unknown): unknown[] =>
  typeof value === 'object' && value !== null ? Object.values(value) : []
const sizeOf = (value: unknown): number => children(value).reduce((sum: number, each) => sum + sizeOf(each), 1)
const depthOf = (value: unknown): number =>
  typeof value === 'object' && value !== null ? 1 + Math.max(0, ...children(value).map(depthOf)) : 0
const isEmpty = (value: unknown): boolean => typeof value === 'object' && value !== null && children(value).length === 0
const emptiesOf = (value: unknown): number =>
  (isEmpty(value) ? 1 : 0) + children(value).reduce((sum: number, each) => sum + emptiesOf(each), 0)

describe('the measure of a JSON text', () => {
  it('counts every value, whatever the strings hold and wherever the text is split', () => {
    const tricky = fc.oneof(
      fc.constantFrom('"', '\\', '\\"', '[,]', '{":"}', '\\\\', '\\'.repeat(33), `${'x'.repeat(31)}"`),
      fc.string(),
      fc.string({ minLength: 28, maxLength: 80 }),
    )
    const { json } = fc.letrec((tie) => ({
      json: fc.oneof(
        { maxDepth: 4 },
        fc.constantFrom(null, true, 1.5e-7),
        tricky,
        fc.array(tie('json'), { maxLength: 4 }),
        fc.dictionary(tricky, tie('json'), { maxKeys: 4 }),
      ),
    }))
    fc.assert(
      fc.property(json, fc.integer({ min: 1, max: 60 }), fc.boolean(), (value, size, isSpaced) => {
        const text = JSON.stringify(value, null, isSpaced ? 2 : 0)
        // An empty list counts as one with an item.
        expect(measure(text, WIDE, size).values).to.equal(sizeOf(value) + emptiesOf(value))
        const depth = depthOf(value)
        expect(refusal(() => measure(text, { ...WIDE, depth }, size))).to.equal('accepted')
        if (depth > 0) expect(refusal(() => measure(text, { ...WIDE, depth: depth - 1 }, size))).to.equal('too_deep')
      }),
      { numRuns: 1_000 },
    )
  })

  it('refuses an object with too many keys, also if it repeats one or is not the first', () => {
    const limits = { ...WIDE, keys: 3 }
    expect(refusal(() => measure('[{"a":1,"b":2,"c":3},{"a":":","b":{"a":1},"c":3}]', limits))).to.equal('accepted')
    for (const text of [
      '{"a":1,"b":2,"c":3,"d":4}',
      '[{"a":1},{"a":1,"a":1,"a":1,"a":1}]',
      '{"x":{"a":1},"b":1,"c":1,"d":1}',
    ])
      expect(
        refusal(() => measure(text, limits)),
        text,
      ).to.equal('too_many_keys')
  })

  it('refuses a list with too many items, but not lists within it', () => {
    const limits = { ...WIDE, items: 3 }
    for (const text of ['[1,2,3]', '[[1,2,3,4]]', '{"a":[1,2,3,4]}'])
      expect(
        refusal(() => measure(text, limits)),
        text,
      ).to.equal('accepted')
    expect(refusal(() => measure('[[],[],[],[]]', limits))).to.equal('too_long')
  })

  it('refuses a text before it has arrived as a whole', () => {
    const meter = new JsonMeter()
    const piece = Buffer.from('[],'.repeat(20_000))
    meter.take(Buffer.from('['))
    let taken = 0
    const type = refusal(() => {
      for (; taken < 1_000; taken += 1) meter.take(piece)
    })
    expect(type).to.equal('too_many_values')
    expect(taken * 40_000).to.be.within(JSON_LIMITS.values - 80_000, JSON_LIMITS.values)
  })

  it('holds for every body that is parsed', () => {
    const keys = Array.from({ length: JSON_LIMITS.keys + 1 }, (_, at) => `"k${at}":1`).join(',')
    expect(refusal(() => parseJson(Buffer.from(`{${keys}}`)))).to.equal('too_many_keys')
    expect(refusal(() => parseJson(Buffer.from(`[${'[],'.repeat(JSON_LIMITS.values / 2)}1]`)))).to.equal(
      'too_many_values',
    )
  })
})
