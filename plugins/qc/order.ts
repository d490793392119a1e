import type { Bars } from './bars.ts'
import { PRICES } from './bars.ts'
import type { Add, Code } from './finding.ts'
import { formatMoment } from './moment.ts'

/**
 * Reports rows that come before the latest time seen and rows whose time was there already, and answers the rows that
 * remain in order of time: the first of each time.
 */
export function checkOrder(bars: Bars, add: Add): Int32Array {
  const { time, count } = bars
  const first = new Map<number, number>()
  let latest = -Infinity
  const report = (index: number, code: Code, explanation: string): void => {
    const observed = formatMoment(time[index]!)
    const common = { severity: 'error', field: 'timestamp', expected: null, score: null, confidence: 1 } as const
    add({ ...common, code, index, observed, explanation })
  }
  for (let index = 0; index < count; index += 1) {
    const moment = time[index]!
    const twin = first.get(moment)
    if (twin !== undefined) {
      const fields = [...PRICES, 'volume' as const].filter(
        (field) => !Object.is(bars[field]?.[index], bars[field]?.[twin]),
      )
      const words = fields.length === 0 ? 'the same values' : `another ${fields.join(', ')}`
      report(index, 'duplicate_timestamp', `row ${twin} has this time with ${words}`)
      continue
    }
    first.set(moment, index)
    if (moment >= latest) latest = moment
    else report(index, 'out_of_order_timestamp', `earlier than ${formatMoment(latest)}, which came before it`)
  }
  const rows = Int32Array.from(first.values())
  return rows.sort((a, b) => time[a]! - time[b]!)
}
