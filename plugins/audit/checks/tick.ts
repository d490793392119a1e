import { isMultiple } from '../../lib/quant/multiple.ts'
import type { Series } from '../reference/series.ts'

const CENT = 0.01
/** US exchanges quoted in fractions before. */
const DECIMAL_SINCE = Date.UTC(2001, 3, 9)
const MAX_SAMPLED = 5000

/**
 * The step that prices of a symbol come in: a cent for a US equity at or above 1 USD, unless most of its bars are off
 * the cent as adjusted prices are; else the greatest power of ten that 99.5% of the bars' prices are multiples of. Null
 * where there is none.
 */
export function createGrid(series: Series): (price: number, time: number) => number | null {
  const prices = sampled(series)
  const share = (step: number): number => prices.filter((price) => isMultiple(price, step)).length / prices.length
  const own = [1, 0.1, CENT, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8].find((step) => share(step) >= 0.995) ?? null
  const isCents = share(CENT) > 0.5
  return (price, time) => {
    if (!series.isNyse) return own
    return isCents && price >= 1 && time >= DECIMAL_SINCE ? CENT : null
  }
}

function sampled({ open, high, low, close }: Series): number[] {
  const stride = Math.max(1, Math.floor(close.length / MAX_SAMPLED))
  const prices: number[] = []
  for (let i = 0; i < close.length; i += stride) prices.push(open[i]!, high[i]!, low[i]!, close[i]!)
  return prices
}
