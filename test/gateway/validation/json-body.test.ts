import { expect } from 'chai'
import * as fc from 'fast-check'
import { InvalidInput } from '../../../gateway/errors.ts'
import { parseJson } from '../../../gateway/validation/json-body.ts'
import { findSyntaxError } from '../../../gateway/validation/json.ts'

function refusal(text: string | Buffer): { loc: readonly unknown[]; type: string } {
  try {
    parseJson(Buffer.from(text))
  } catch (error) {
    if (error instanceof InvalidInput && error.detail[0]) return error.detail[0]
    throw error
  }
  throw new Error(`accepted: ${text.toString()}`)
}

describe('a JSON body', () => {
  it('has the value that JSON.parse returns', () => {
    fc.assert(
      fc.property(fc.json({ maxDepth: 5 }), (text) => {
        expect(parseJson(Buffer.from(text))).to.deep.equal(JSON.parse(text))
      }),
    )
    expect(parseJson(Buffer.from('\uFEFF{"a": "é"}'))).to.deep.equal({ a: 'é' })
  })

  it('is refused with the position of the first invalid character', () => {
    const invalid: [string, number][] = [
      ['{"a": 1,}', 8],
      ['[1 2]', 3],
      ['{"a" 1}', 5],
      ['{a: 1}', 1],
      ['[1, NaN]', 4],
      ['[01]', 1],
      ['{} x', 3],
      ['[1}', 2],
      ['["a\nb"]', 1],
      ["{'a': 1}", 1],
      ['[1, 2', 5],
      ['{"a":', 5],
      ['  ', 2],
    ]
    for (const [text, position] of invalid) {
      expect(refusal(text), text).to.deep.include({ loc: ['body', position], type: 'json_invalid' })
    }
  })

  it('is refused exactly if JSON.parse refuses it', () => {
    const text = fc.oneof(
      fc.json(),
      fc.string({ unit: fc.constantFrom(...Array.from('{}[],:"0-1.eE+ \\untrfalse\n')), maxLength: 12 }),
    )
    fc.assert(
      fc.property(text, (candidate) => {
        let valid = true
        try {
          JSON.parse(candidate)
        } catch {
          valid = false
        }
        if (valid) expect(findSyntaxError(candidate)).to.equal(null)
        else expect(findSyntaxError(candidate)?.offset).to.be.within(0, candidate.length)
        if (valid) parseJson(Buffer.from(candidate))
        else refusal(candidate)
      }),
      { numRuns: 2000 },
    )
  })

  it('is refused with the path of a number that is not finite', () => {
    expect(refusal('{"bars": [{"open": 1}, {"open": 1e400}]}')).to.deep.include({
      loc: ['body', 'bars', 1, 'open'],
      type: 'finite_number',
    })
    expect(refusal('-1e999')).to.deep.include({ loc: ['body'], type: 'finite_number' })
  })

  it('is refused if it is nested too deeply', () => {
    expect(refusal('['.repeat(65) + ']'.repeat(65)).type).to.equal('too_deep')
    expect(refusal('['.repeat(200_000) + ']'.repeat(200_000)).type).to.equal('too_deep')
    parseJson(Buffer.from('['.repeat(64) + ']'.repeat(64)))
  })

  it('is refused if it is not UTF-8', () => {
    expect(refusal(Buffer.from([0x22, 0xff, 0x22])).type).to.equal('encoding')
  })

  it('treats a hostile key as an ordinary key', () => {
    const value = parseJson(Buffer.from('{"__proto__": {"a": 1}}')) as { a?: number }
    expect(value.a).to.equal(undefined)
    expect(Object.keys(value)).to.deep.equal(['__proto__'])
  })
})
