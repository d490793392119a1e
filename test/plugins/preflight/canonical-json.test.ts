import { expect } from 'chai'
import * as fc from 'fast-check'
import { canonicalize } from '../../../plugins/preflight/canonical-json.ts'

/** The double with these bits. */
function double(hex: string): number {
  return Buffer.from(hex, 'hex').readDoubleBE()
}

describe('canonical JSON', () => {
  it('writes the example of RFC 8785, 3.2.2', () => {
    const input = String.raw`{
      "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
      "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
      "literals": [null, true, false]
    }`
    expect(canonicalize(JSON.parse(input))).to.equal(
      String.raw`{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\u000f\nA'B\"\\\\\"/"}`,
    )
  })

  it('sorts by UTF-16 code units as in RFC 8785, 3.2.3', () => {
    const input = String.raw`{
      "\u20ac": "Euro Sign",
      "\r": "Carriage Return",
      "\ufb33": "Hebrew Letter Dalet With Dagesh",
      "1": "One",
      "\ud83d\ude00": "Emoji: Grinning Face",
      "\u0080": "Control",
      "\u00f6": "Latin Small Letter O With Diaeresis"
    }`
    const order = [...canonicalize(JSON.parse(input)).matchAll(/:"([^"]+)"/g)].map(([, name]) => name)
    expect(order).to.deep.equal([
      'Carriage Return',
      'One',
      'Control',
      'Latin Small Letter O With Diaeresis',
      'Euro Sign',
      'Emoji: Grinning Face',
      'Hebrew Letter Dalet With Dagesh',
    ])
  })

  // RFC 8785, appendix B.
  const NUMBERS: Readonly<Record<string, string>> = {
    '0000000000000000': '0',
    '8000000000000000': '0',
    '0000000000000001': '5e-324',
    '8000000000000001': '-5e-324',
    '7fefffffffffffff': '1.7976931348623157e+308',
    ffefffffffffffff: '-1.7976931348623157e+308',
    '4340000000000000': '9007199254740992',
    c340000000000000: '-9007199254740992',
    '4430000000000000': '295147905179352830000',
    '44b52d02c7e14af5': '9.999999999999997e+22',
    '44b52d02c7e14af6': '1e+23',
    '44b52d02c7e14af7': '1.0000000000000001e+23',
    '444b1ae4d6e2ef4e': '999999999999999700000',
    '444b1ae4d6e2ef4f': '999999999999999900000',
    '444b1ae4d6e2ef50': '1e+21',
    '3eb0c6f7a0b5ed8c': '9.999999999999997e-7',
    '3eb0c6f7a0b5ed8d': '0.000001',
    '41b3de4355555553': '333333333.3333332',
    '41b3de4355555554': '333333333.33333325',
    '41b3de4355555555': '333333333.3333333',
    '41b3de4355555556': '333333333.3333334',
    '41b3de4355555557': '333333333.33333343',
    becbf647612f3696: '-0.0000033333333333333333',
    '43143ff3c1cb0959': '1424953923781206.2',
  }
  for (const [bits, text] of Object.entries(NUMBERS))
    it(`writes the double ${bits} as ${text}`, () => {
      expect(canonicalize(double(bits))).to.equal(text)
    })

  it('refuses values that JSON cannot represent', () => {
    for (const value of [double('7fffffffffffffff'), Infinity, -Infinity, 10n, () => 1, Symbol('x'), undefined])
      expect(() => canonicalize([value].at(0)), String(value)).to.throw(TypeError)
    expect(() => canonicalize({ a: ['\ud800'] })).to.throw(TypeError, 'surrogate')
    expect(() => canonicalize({ '\udc00a': 1 })).to.throw(TypeError, 'surrogate')
  })

  it('skips undefined members, as JSON.stringify does', () => {
    expect(canonicalize({ b: undefined, a: 1 })).to.equal('{"a":1}')
  })

  it('is the same for every order of members, and parses to the same value', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const wire = JSON.parse(JSON.stringify(value)) as unknown
        const text = canonicalize(wire)
        expect(JSON.parse(text)).to.deep.equal(wire)
        expect(canonicalize(reversed(wire))).to.equal(text)
      }),
    )
  })
})

function reversed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(reversed)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .map(([name, member]) => [name, reversed(member)] as const)
      .reverse(),
  )
}
