import { expect } from 'chai'
import { venueBits, venuesOfBits } from '../../../../plugins/lib/feeds/venue-bits.ts'

const NAMES = ['coinbase', 'binance', 'kraken']

describe('the venues behind a bar as one number', () => {
  it('are those that agreed in the low bits, and those that did not from bit 16 on', () => {
    expect(venueBits([0, 2], [1])).to.equal(0b101 + 0b10 * 65_536)
    expect(venueBits([], [])).to.equal(0)
  })

  it('are read back by their names', () => {
    const found = venuesOfBits(venueBits([0, 2], [1]), NAMES)
    expect(found).to.deep.equal({ agreed: ['coinbase', 'kraken'], dissenting: ['binance'] })
    expect(venuesOfBits(0, NAMES)).to.deep.equal({ agreed: [], dissenting: [] })
  })
})
