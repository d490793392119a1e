/** Instruments that people trade, with the decimals of their prices and quantities. */

export type Kind = 'stock' | 'crypto' | 'fx' | 'futures'

export interface Market {
  /** As most files name it. */
  readonly symbol: string
  /** Other names for the same thing. */
  readonly isin: string
  readonly conid: string
  readonly description: string
  /** The traded thing, and the currency of its price. */
  readonly base: string
  readonly quote: string
  /** Money for a move of 1 in the price of one unit of quantity. */
  readonly size: number
  /** A typical price. */
  readonly price: number
  readonly tick: number
  readonly priceDecimals: number
  readonly qtyDecimals: number
  /** The smallest and the largest quantity, in units of the last decimal. */
  readonly units: readonly [number, number]
  readonly feeDecimals: number
  /** A usual commission for one unit of quantity. */
  readonly feePerUnit: number
}

const stock = (symbol: string, isin: string, description: string, quote: string, price: number): Market => ({
  symbol,
  isin,
  conid: String(100_000 + Buffer.from(isin).reduce((sum, byte) => (sum * 31 + byte) % 899_999, 7)),
  description,
  base: symbol,
  quote,
  size: 1,
  price,
  tick: 0.01,
  priceDecimals: 2,
  qtyDecimals: 0,
  units: [1, 500],
  feeDecimals: 2,
  feePerUnit: 0.05,
})

/** `digits` are the decimals of the price and of the quantity, `most` is the largest quantity. */
const coin = (base: string, quote: string, price: number, digits: readonly [number, number], most: number): Market => {
  const [priceDecimals, qtyDecimals] = digits
  const units = Math.round(most * 10 ** qtyDecimals)
  return {
    ...stock(`${base}${quote}`, `${base}-${quote}`, `${base}/${quote}`, quote, price),
    conid: `${base}${quote}`,
    base,
    tick: 10 ** -priceDecimals,
    priceDecimals,
    qtyDecimals,
    units: [Math.max(1, Math.round(units / 50)), units],
    feeDecimals: 8,
    feePerUnit: quote === 'BTC' ? 0.000_01 : 0.05,
  }
}

const pair = (base: string, quote: string, price: number): Market => ({
  ...stock(`${base}${quote}`, `${base}.${quote}`, `${base} against ${quote}`, quote, price),
  base,
  size: 100_000,
  tick: 0.000_01,
  priceDecimals: 5,
  qtyDecimals: 2,
  units: [1, 500],
  feePerUnit: 0.35,
})

const future = (symbol: string, size: number, price: number, tick: number, priceDecimals: number): Market => ({
  ...stock(symbol, `${symbol}-F`, `${symbol} future`, 'USD', price),
  size,
  tick,
  priceDecimals,
  units: [1, 12],
  feePerUnit: 0.5,
})

export const MARKETS: Readonly<Record<Kind, readonly Market[]>> = {
  stock: [
    stock('AAA', 'US0000000018', 'ALPHA ASSOCIATES', 'USD', 52.4),
    stock('QRSX', 'US0000000026', 'QUARTZ RESEARCH INC', 'USD', 187.13),
    stock('BRK B', 'US0000000034', 'BROOK HOLDINGS CL B', 'USD', 412.5),
    stock('F', 'US0000000042', 'FERRY MOTOR', 'USD', 11.97),
    stock('SAPX', 'DE0000000051', 'SAPHIR SE', 'EUR', 131.2),
    stock('ASM1', 'NL0000000063', 'ASMERA NV', 'EUR', 705.9),
    stock('OR', 'FR0000000074', 'ORLEANS SA', 'EUR', 389.15),
    stock('GOOX', 'US0000000059', 'GOOSE CLASS C', 'USD', 1418.07),
  ],
  crypto: [
    coin('BTC', 'USDT', 43_210.55, [2, 5], 0.75),
    coin('ETH', 'USDT', 2_345.67, [2, 4], 12),
    coin('PEPE', 'USDT', 0.000_012_34, [8, 0], 90_000_000),
    coin('SOL', 'USDT', 98.76, [2, 3], 150),
    coin('DOGE', 'USDT', 0.082_31, [5, 0], 60_000),
    coin('1000SHIB', 'USDT', 0.023_45, [6, 0], 200_000),
    coin('1INCH', 'USDT', 0.4123, [4, 1], 9_000),
    coin('ETH', 'BTC', 0.054_321, [6, 4], 20),
    coin('ADA', 'EUR', 0.5211, [4, 1], 8_000),
    coin('XRP', 'EUR', 0.6012, [4, 0], 9_500),
  ],
  fx: [pair('EUR', 'USD', 1.085), pair('GBP', 'USD', 1.2712), pair('AUD', 'USD', 0.6543), pair('NZD', 'USD', 0.6121)],
  futures: [
    future('MNQ', 2, 18_000, 0.25, 2),
    future('ES', 50, 4_900, 0.25, 2),
    future('CL', 1_000, 76.42, 0.01, 2),
    future('GC', 100, 2_031.4, 0.1, 1),
    future('M2K', 5, 2_010.3, 0.1, 1),
  ],
}
