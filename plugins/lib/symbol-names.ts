/** Finds symbols by any of their spellings. */
import { NotFound } from 'tollgate/plugin'

export interface NamedSymbol {
  readonly symbol: string
  /** Other spellings. Case, punctuation, and what platforms add are ignored. */
  readonly aliases: readonly string[]
}

export interface SymbolIndex {
  /** Returns the symbol with this spelling. Throws NotFound with some of the covered symbols. */
  resolve(name: string): string
}

/** Bitfinex: tBTCUSD, tDOGE:USD. In capitals it could be a coin of that name. */
const BITFINEX = /^t([A-Z0-9]+):?([A-Z0-9]{3,})$/

/** What platforms add to the name of a symbol or of its perpetual contract, and the part to keep. */
const FORMS: readonly (readonly [RegExp, string])[] = [
  // ccxt and freqtrade: BTC/USDT:USDT, a future that settles in USDT
  [/^(.+\/.+):[A-Z0-9]+$/, '$1'],
  // TradingView: BINANCE:BTCUSDT, NASDAQ:AAPL, BYBIT:BTCUSDT.P
  [/^[A-Z_]+:(.+)$/, '$1'],
  [/^(.*USD[TC]?)\.P$/, '$1'],
  // OKX: BTC-USDT-SWAP; Binance: BTCUSD_PERP; Deribit: BTC_USDC-PERPETUAL; KuCoin: XBTUSDTM
  [/^(.+)[-_](?:SWAP|PERP|PERPETUAL)$/, '$1'],
  [/^(.{2,}USD[TC]?)M$/, '$1'],
  // Kraken: PF_XBTUSD, XXBTZUSD
  [/^P[FI]_(.+)$/, '$1'],
  [/^X([A-Z]{3})Z([A-Z]{3})$/, '$1$2'],
]

/**
 * The name of a symbol or of its perpetual contract without what platforms add to the pair, in capitals. Other names only get
 * capitals.
 *
 * @example pairName('BTC/USDT:USDT') // 'BTC/USDT'
 */
export function pairName(name: string): string {
  const capitals = name.trim().replace(BITFINEX, '$1$2').toUpperCase()
  return FORMS.reduce((left, [form, kept]) => left.replace(form, kept), capitals)
}

const normalised = (name: string): string => pairName(name).replaceAll(/[-/_.\s]/g, '')
/** Tether and USD Coin count as the dollar. */
const inDollars = (spelling: string): string => spelling.replace(/USD[TC]$/, 'USD')
/** The most symbols that a message lists. */
const NAMED = 12

/**
 * Indexes symbols by their names and aliases.
 *
 * @example createSymbolIndex([{ symbol: 'BTC-USD', aliases: ['XBTUSD'] }]).resolve('xbt/usd') // 'BTC-USD'
 */
export function createSymbolIndex(symbols: readonly NamedSymbol[]): SymbolIndex {
  const bySpelling = new Map<string, string>()
  for (const { symbol, aliases } of symbols) {
    for (const name of aliases) bySpelling.set(normalised(name), symbol)
    bySpelling.set(normalised(symbol), symbol)
  }
  return {
    resolve(name) {
      const spelling = normalised(name)
      const symbol = bySpelling.get(spelling) ?? bySpelling.get(inDollars(spelling))
      if (symbol !== undefined) return symbol
      const covered = symbols.map((entry) => entry.symbol)
      const some =
        covered.length > NAMED
          ? `${covered.slice(0, NAMED).join(', ')} and ${covered.length - NAMED} more`
          : covered.join(', ')
      throw new NotFound(`symbol: ${name} is not covered. Covered are ${some}.`)
    },
  }
}
