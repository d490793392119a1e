import { expect } from 'chai'
import fc from 'fast-check'
import { aprOf, apyOf, carryOf, rateOver } from '../../../plugins/funding/rate-arithmetic.ts'
import { splitPair, symbolOf } from '../../../plugins/funding/contract-names.ts'
import { decimalOf } from '../../../plugins/funding/payload-numbers.ts'
import { intervalOf } from '../../../plugins/funding/recorded-settlements.ts'

describe('funding arithmetic', () => {
  it('converts a rate to other periods', () => {
    expect(rateOver(0.000086, 8, 1)).to.equal(0.00001075)
    expect(aprOf(0.000086, 8)).to.equal(0.09417)
    expect(aprOf(0.00000625, 8)).to.equal(0.00684375)
    expect(apyOf(0.00000625, 8)).to.be.closeTo(0.0068672, 1e-7)
    expect(carryOf(0.0001, 8)).to.equal(3)
    expect(carryOf(0.0001, 1)).to.equal(24)
  })

  it('compounds to −100% when a rate takes everything', () => {
    expect(apyOf(-1, 8)).to.equal(-1)
    expect(apyOf(-2, 8)).to.equal(-1)
  })

  it('keeps APR to nine digits for any rate and interval', () => {
    const rate = fc.double({ min: -0.05, max: 0.05, noNaN: true })
    fc.assert(
      fc.property(rate, fc.constantFrom(1, 2, 4, 8), (value, hours) => {
        const exact = (value * 8760) / hours
        return Math.abs(aprOf(value, hours) - exact) <= Math.abs(exact) * 1e-9
      }),
    )
  })
})

describe('a number in the answer of a venue', () => {
  it('keeps its digits, without an exponent', () => {
    const cases: [unknown, string | null][] = [
      ['0.00000254545454545455', '0.00000254545454545455'],
      ['1.25e-05', '0.0000125'],
      [-1.380384722222e-6, '-0.000001380384722222'],
      [1.5e21, '1500000000000000000000'],
      ['.5', '0.5'],
      ['-0.0', '-0.0'],
      ['007', '7'],
      ['', null],
      [' ', null],
      ['-', null],
      ['0x10', null],
      ['1,5', null],
      ['NaN', null],
      [NaN, null],
      [Infinity, null],
      ['1e9999', null],
      [null, null],
      [true, null],
      [[1], null],
    ]
    for (const [value, decimal] of cases) expect(decimalOf(value), String(value)).to.equal(decimal)
  })

  it('keeps its value, whatever finite number it is', () => {
    fc.assert(
      fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), (value) => {
        const decimal = decimalOf(value)
        return decimal !== null && !/e/i.test(decimal) && Number(decimal) === value
      }),
    )
  })
})

describe('the interval between settlements', () => {
  const times = (hours: readonly number[], start = 1_768_233_600): number[] =>
    hours.reduce((all, gap) => [...all, all.at(-1)! + gap * 3600], [start])

  it('is the one on which the newest gaps agree, within a few milliseconds', () => {
    expect(intervalOf([0, 28_800.007, 57_600.009])).to.equal(8)
    expect(intervalOf(times([8, 8, 8, 4, 4]))).to.equal(4)
    expect(intervalOf(times([8, 8, 8, 4]))).to.equal(4)
    expect(intervalOf(times([4, 4, 8]))).to.equal(4)
    expect(intervalOf(times([4, 4, 8, 8]))).to.equal(8)
  })

  it('ignores the gap that a missing settlement leaves', () => {
    expect(intervalOf(times([4, 4, 4, 8, 4]))).to.equal(4)
    expect(intervalOf(times([1, 1, 3]))).to.equal(1)
  })

  it('is unknown with too few gaps or with gaps that are not whole hours', () => {
    expect(intervalOf([])).to.equal(null)
    expect(intervalOf(times([8]))).to.equal(null)
    expect(intervalOf(times([4, 8]))).to.equal(null)
    expect(intervalOf(times([0.5, 0.5, 0.5]))).to.equal(null)
  })

  it('is found for any interval, jitter and number of older gaps', () => {
    const jitter = fc.array(fc.double({ min: 0, max: 0.02, noNaN: true }), { minLength: 4, maxLength: 4 })
    fc.assert(
      fc.property(
        fc.constantFrom(1, 2, 4, 8),
        fc.array(fc.constantFrom(1, 4, 8), { maxLength: 5 }),
        jitter,
        (hours, old, delays) => {
          const exact = times([...old, hours, hours, hours])
          const seen = exact.map((time, i) => (i >= exact.length - 4 ? time + delays[i - exact.length + 4]! : time))
          return intervalOf(seen) === hours
        },
      ),
    )
  })
})

describe('the symbol of a contract', () => {
  it('is the same at all venues', () => {
    const cases = {
      XBT: 'BTC',
      btc: 'BTC',
      '1000PEPE': 'PEPE',
      '1000000MOG': 'MOG',
      '1MBABYDOGE': 'BABYDOGE',
      SHIB1000: 'SHIB',
      '1INCH': '1INCH',
      '10000SATS': 'SATS',
      XDG: 'DOGE',
      C98: 'C98',
    }
    for (const [base, symbol] of Object.entries(cases)) expect(symbolOf(base), base).to.equal(symbol)
  })

  it('is separated from its quote currency', () => {
    expect(splitPair('BTCUSDT')).to.deep.equal({ base: 'BTC', quote: 'USDT' })
    expect(splitPair('ETHBTC')).to.deep.equal({ base: 'ETH', quote: 'BTC' })
    expect(splitPair('USDCUSDT')).to.deep.equal({ base: 'USDC', quote: 'USDT' })
    expect(splitPair('USDT')).to.equal(null)
  })
})
