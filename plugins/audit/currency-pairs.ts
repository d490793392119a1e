/** Takes the names of instruments apart: the coin that is traded, and the currency of its price. */

export interface CurrencyPair {
  /** What is bought and sold, such as "BTC". */
  readonly base: string
  /** What prices and profits are counted in, such as "USDT". */
  readonly quote: string
}

/** Currencies that follow the base without a separator, the longer ones first. */
const QUOTES =
  'FDUSD USDT USDC BUSD USDP USDD USDE USD EUR GBP JPY CHF AUD CAD NZD TRY BRL KRW RUB UAH PLN ZAR MXN INR IDR NGN ARS COP CZK SEK NOK DKK HUF SGD HKD CNH THB VND DAI BTC XBT ETH BNB'.split(
    ' ',
  )
/** Coins that end in B, so that "ARBUSD" is ARB in USD and not AR in BUSD. */
const ENDING_IN_B = /(?:ARB|BNB|SHIB|CKB|TRB|GLMB|UMB|BB)USD$/
const KNOWN = new Set([
  ...QUOTES,
  'TUSD',
  'SOL',
  'XRP',
  'TRX',
  'DOGE',
  'USDS',
  'PYUSD',
  'USDG',
  'UST',
  'GUSD',
  'PAX',
  'ILS',
])
const FIAT = new Set(
  'USD EUR GBP JPY CHF AUD CAD NZD SEK NOK DKK PLN CZK HUF TRY ZAR MXN SGD HKD CNH THB ILS XAU XAG XPT XPD'.split(' '),
)
/** Dollars and coins that stand for a dollar. */
const DOLLARS = new Set(['USD', 'USDT', 'USDC', 'BUSD', 'FDUSD', 'TUSD', 'USDP', 'DAI', 'USDE', 'PYUSD'])
/** Other names of a coin. */
const SAME: Readonly<Record<string, string>> = { XBT: 'BTC', XDG: 'DOGE', USDTETH: 'USDT' }

/** What venues add to the pair: "BINANCE:", ":USDT" of a settlement, ".P", "-PERP", "-SWAP", "_UMCBL". */
const VENUE = /^[A-Z]+:(?=[A-Z0-9]{5})/
const CONTRACT = /(?::[A-Z]+(?:-\d{6})?|\.P|[-_./ ]?PERP(?:ETUAL)?|[-_]SWAP|_[SUDC]{1,2}MCBL|[-_]SPBL|\.[FR])$/
/** Kraken marks coins with X and currencies with Z: "XXBTZUSD". */
const KRAKEN = /^X([A-Z]{3,4})(?:Z([A-Z]{3})|X(XBT|ETH))$/

/** The common name of a currency: "BTC" for "xbt". */
export const currencyCode = (text: string): string => {
  const code = text.trim().toUpperCase()
  return SAME[code] ?? code
}

/** Whether both are dollars, or coins that stand for one. */
export const areDollars = (one: string, other: string): boolean => DOLLARS.has(one) && DOLLARS.has(other)

/** Whether a text is the code of a money that prices are often counted in. */
export const isKnownQuote = (code: string): boolean => KNOWN.has(code)

/**
 * The pair that a symbol names, in any venue's spelling; null if it names none, as "AAPL" and "BRK-B".
 *
 * @example pairOf('BTC/USDT:USDT') // { base: 'BTC', quote: 'USDT' }
 */
export function pairOf(symbol: string): CurrencyPair | null {
  const name = symbol.trim().toUpperCase().replace(VENUE, '').replace(CONTRACT, '')
  const kraken = KRAKEN.exec(name)
  if (kraken) return pair(kraken[1] ?? '', kraken[2] ?? kraken[3] ?? '')
  const [base = '', quote = '', ...rest] = name.split(/[-/_. ]/)
  if (quote !== '') return rest.length === 0 && /^[A-Z0-9]+$/.test(base) && KNOWN.has(quote) ? pair(base, quote) : null
  if (!/^[A-Z0-9]{5,}$/.test(name)) return null
  const found = ENDING_IN_B.test(name)
    ? 'USD'
    : QUOTES.find((known) => name.endsWith(known) && name.length >= known.length + 2)
  return found === undefined ? null : pair(name.slice(0, -found.length), found)
}

const pair = (base: string, quote: string): CurrencyPair => ({ base: currencyCode(base), quote: currencyCode(quote) })

/** What brokers add to a pair of currencies: "EURUSD.r", "EURUSDm", "EURUSD_i". */
const BROKER = /^([A-Z]{3})[/. _-]?([A-Z]{3})(?:[.\-_#][A-Za-z]{0,5}|[a-z]{0,4}|\+)$/

/** The pair of two state currencies, or of a metal and one, that a symbol names; null if it names none. */
export function forexPairOf(symbol: string): CurrencyPair | null {
  const [, base = '', quote = ''] = BROKER.exec(symbol.trim()) ?? []
  return FIAT.has(base) && FIAT.has(quote) && base !== quote ? { base, quote } : null
}

/**
 * Whether a currency is the coin of a pair: "PEPE" is the coin of "1000PEPE" and "kPEPE". Returns how many units of the
 * base one coin is: 0.001 for these; null if it is another coin.
 */
export function unitsOfBase(currency: string, { base }: CurrencyPair): number | null {
  if (currency === base) return 1
  const [, many = ''] = /^(K|1000+|1M)(?=[A-Z]{3})/.exec(base) ?? []
  if (many === '' || base.slice(many.length) !== currency) return null
  return many === 'K' ? 1e-3 : many === '1M' ? 1e-6 : 1 / Number(many)
}

/** The coin that a symbol trades; null if it names no pair, or one of two state currencies or of a metal. */
export function coinOf(symbol: string): string | null {
  const base = pairOf(symbol)?.base
  return base === undefined || FIAT.has(base) ? null : base
}
