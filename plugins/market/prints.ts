import { createPrintFilter, filterPrint, type FilteredBar } from '../lib/quant/bad-prints.ts'
import type { Columns } from './bars.ts'

export interface BadPrint {
  /** Index of the bar that spiked. */
  readonly index: number
  /** Close before it, which is what a corrected bar is flat at. */
  readonly price: number
  /** Index of the bar that proved it wrong. */
  readonly provedBy: number
}

/**
 * The bars that left the price by more than 8 local scales and came back at once: misprints, not moves. Causal: bars
 * after `provedBy` change nothing. The first 30 bars set the scale and are taken as they are.
 */
export function badPrints(bars: Columns): BadPrint[] {
  const found: BadPrint[] = []
  const filter = createPrintFilter()
  const out: FilteredBar = { open: 0, high: 0, low: 0, close: 0, verdict: 'good' }
  let waiting: { index: number; price: number }[] = []
  for (let i = 0; i < bars.count; i += 1) {
    const price = filter.close
    filterPrint(filter, out, bars.open[i]!, bars.high[i]!, bars.low[i]!, bars.close[i]!)
    if (out.verdict === 'held') {
      waiting.push({ index: i, price })
      continue
    }
    if (out.verdict === 'reverted') found.push(...waiting.map((bar) => ({ ...bar, provedBy: i })))
    waiting = []
  }
  return found
}
