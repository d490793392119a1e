import { expect } from 'chai'
import * as fc from 'fast-check'
import { createSymbolIndex, pairName } from '../../../plugins/lib/symbol-names.ts'
import { underlyingOf } from '../../../plugins/funding/contract-names.ts'

/** "AAAFD" in dollars is spelt like "AAA" in FDUSD. */
const TWO_READINGS = /(?:USD|USD1|BTC|ETH|EUR|PERP|SWAP|B|FD)$/
/** Kraken's names: XBT is BTC, XDG is DOGE, and XAAAZUSD is AAA in dollars. */
const KRAKEN = /^(?:XBT|XDG|X[A-Z]{3}Z)$/
const coin = fc.stringMatching(/^[A-Z]{3,6}$/).filter((name) => !TWO_READINGS.test(name) && !KRAKEN.test(name))

describe('the spellings of a symbol', () => {
  const spellings: Readonly<Record<string, (base: string, quote: string) => string>> = {
    plain: (base, quote) => `${base}${quote}`,
    ccxt: (base, quote) => `${base}/${quote}:${quote}`,
    'ccxt, spot': (base, quote) => `${base}/${quote}`,
    tradingview: (base, quote) => `${base}${quote}.P`,
    'tradingview, with its exchange': (base, quote) => `BYBIT:${base}${quote}.P`,
    'tradingview, spot': (base, quote) => `COINBASE:${base}${quote}`,
    kucoin: (base, quote) => `${base}${quote}M`,
    deribit: (base, quote) => `${base}_${quote}-PERPETUAL`,
    bitfinex: (base, quote) => `t${base}${quote}`,
    'bitfinex, long names': (base, quote) => `t${base}:${quote}`,
    'kraken futures': (base, quote) => `PF_${base}${quote}`,
    okx: (base, quote) => `${base}-${quote}-SWAP`,
    binance: (base, quote) => `${base}${quote}_PERP`,
    'in small letters': (base, quote) => `${base}_${quote}`.toLowerCase(),
  }
  for (const [platform, spell] of Object.entries(spellings))
    it(`of ${platform} finds the symbol, and in funding its underlying`, () => {
      fc.assert(
        fc.property(coin, fc.constantFrom('USD', 'USDT', 'USDC'), (base, quote) => {
          const symbol = `${base}-USD`
          const index = createSymbolIndex([{ symbol, aliases: [] }])
          expect(index.resolve(spell(base, quote))).to.equal(symbol)
          expect(underlyingOf(spell(base, quote))).to.equal(base)
        }),
      )
    })

  it('names a thousand coins with a small k, and in capitals a coin', () => {
    expect(['kPEPE', 'kPEPE/USDC:USDC', 'KSM', 'KAVA', 'kava'].map(underlyingOf)).to.deep.equal([
      'PEPE',
      'PEPE',
      'KSM',
      'KAVA',
      'KAVA',
    ])
  })

  it('finds what Kraken calls XXBTZUSD, and shares with or without their exchange', () => {
    const index = createSymbolIndex([
      { symbol: 'BTC-USD', aliases: ['XBTUSD'] },
      { symbol: 'BRK.B', aliases: [] },
    ])
    expect(['XXBTZUSD', 'PI_XBTUSD', 'XBT/USDT', 'XBTUSDTM'].map((name) => index.resolve(name))).to.deep.equal(
      Array(4).fill('BTC-USD'),
    )
    for (const name of ['BRK.B', 'brk-b', 'NYSE:BRK.B', 'BRK B']) expect(index.resolve(name)).to.equal('BRK.B')
  })

  it('does not cut names that only look like a contract', () => {
    for (const name of ['BRK.P', 'BRK.B', 'USDM', 'PERP', 'SWAP', 'PYUSD', 'WBTC', 'STETH', 'USDT']) {
      expect(pairName(name)).to.equal(name)
      expect(underlyingOf(name)).to.equal(name)
    }
  })
})
