import { areDollars, type CurrencyPair } from './currency-pairs.ts'

interface PricedFill {
  readonly symbol: number
  readonly time: number
  readonly price: number
}

/** Prices of currencies that the fills of a file give. The fills must be in the order of time; `pairs` are by symbol. */
export class CurrencyRates {
  readonly #prices = new Map<string, { readonly time: number[]; readonly price: number[] }>()

  constructor(fills: readonly PricedFill[], pairs: readonly (CurrencyPair | null)[]) {
    for (const { symbol, time, price } of fills) {
      const pair = pairs[symbol]
      if (!pair) continue
      const key = keyOf(pair.base, pair.quote)
      const series = this.#prices.get(key) ?? { time: [], price: [] }
      this.#prices.set(key, series)
      series.time.push(time)
      series.price.push(price)
    }
  }

  /** What one unit of a currency is worth in another at a time; null if the file has no price. */
  at(currency: string, quote: string, time: number): number | null {
    const direct = this.#pair(currency, quote, time)
    if (direct !== null) return direct
    const [worth, unit] = [this.#pair(currency, 'USD', time), this.#pair(quote, 'USD', time)]
    return worth === null || unit === null ? null : worth / unit
  }

  #pair(currency: string, quote: string, time: number): number | null {
    if (keyOf(currency, '') === keyOf(quote, '')) return 1
    const [there, back] = [this.#nearest(keyOf(currency, quote), time), this.#nearest(keyOf(quote, currency), time)]
    return there ?? (back === null ? null : 1 / back)
  }

  /** The price that is nearest in time. */
  #nearest(key: string, at: number): number | null {
    const series = this.#prices.get(key)
    if (!series) return null
    const { time, price } = series
    let [low, high] = [0, time.length - 1]
    while (low < high) {
      const middle = (low + high) >> 1
      if (time[middle]! < at) low = middle + 1
      else high = middle
    }
    const isBefore = low > 0 && at - time[low - 1]! <= Math.abs(time[low]! - at)
    return price[isBefore ? low - 1 : low]!
  }
}

/** Dollars and coins that stand for one are the same here. */
const keyOf = (base: string, quote: string): string => `${dollarOf(base)}/${dollarOf(quote)}`
const dollarOf = (currency: string): string => (areDollars(currency, currency) ? 'USD' : currency)
