import type { Bars } from './bars.ts'
import { PRICES } from './bars.ts'
import type { Add } from './finding.ts'
import { formatMoment } from './moment.ts'

/**
 * Reports rows that come before the latest time seen and rows whose time was there already, and answers the rows that
 * remain in order of time: the first of each time.
 */
export function checkOrder(bars: Bars, add: Add): Int32Array {
  const { time, count } = bars
  const first = new Map<number, number>()
  let latest = -Infinity
  for (let index = 0; index < count; index += 1) {
    const moment = time[index]!
    const twin = first.get(moment)
    const observed = formatMoment(moment)
    const common = { severity: 'error', index, field: 'timestamp', observed, score: null, confidence: 1 } as const
    if (twin !== undefined) {
      const differs = [...PRICES, 'volume' as const].filter(
        (field) => !Object.is(bars[field]?.[index], bars[field]?.[twin]),
      )
      const words = differs.length === 0 ? 'the same values' : `another ${differs.join(', ')}`
      add({
        ...common,
        code: 'duplicate_timestamp',
        expected: null,
        explanation: `row ${twin} has this time with ${words}`,
      })
      continue
    }
    first.set(moment, index)
    if (moment >= latest) {
      latest = moment
      continue
    }
    const explanation = `earlier than ${formatMoment(latest)}, which came before it`
    add({ ...common, code: 'out_of_order_timestamp', expected: null, explanation })
  }
  const rows = Int32Array.from(first.values())
  return rows.sort((a, b) => time[a]! - time[b]!)
}
