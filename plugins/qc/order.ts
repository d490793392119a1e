import type { Bars } from './bars.ts'
import { PRICES } from './bars.ts'
import type { Add, Code, Severity } from './finding.ts'
import { formatMoment } from './moment.ts'

/** Steps back in time beyond this share: the rows run from newest to oldest, as some exchanges send them. */
const BACKWARDS = 0.9

/**
 * Reports rows that come before the latest time seen and rows whose time was there already, and answers the rows that
 * remain in order of time: the first of each time. Rows that run from newest to oldest are read from their end, and only
 * said to.
 */
export function checkOrder(bars: Bars, add: Add): Int32Array {
  const { time, count } = bars
  const first = new Map<number, number>()
  let latest = -Infinity
  const report = (index: number, code: Code, explanation: string, severity: Severity = 'error'): void => {
    const observed = formatMoment(time[index]!)
    const common = { field: 'timestamp', expected: null, score: null, confidence: 1 } as const
    add({ ...common, code, severity, index, observed, explanation })
  }
  const isBackwards = runsBackwards(time)
  if (isBackwards) report(0, 'out_of_order_timestamp', 'the rows run from newest to oldest and were read so', 'info')
  for (let place = 0; place < count; place += 1) {
    const index = isBackwards ? count - 1 - place : place
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

function runsBackwards(time: Float64Array): boolean {
  let back = 0
  for (let i = 1; i < time.length; i += 1) if (time[i]! < time[i - 1]!) back += 1
  return back > BACKWARDS * (time.length - 1)
}
