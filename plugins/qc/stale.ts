import { chanceLength } from './runs.ts'
import type { Add } from './finding.ts'
import { formatMoment } from './moment.ts'
import type { Series } from './series.ts'

const SHORTEST = 5
/** Runs looked for are longer than this; those expected less than 0.001 times in the file are reported. */
const CHANCE = { short: 8, chance: 0.001 }

/**
 * Runs of flat bars at one price, longer than chance allows at the file's own rate of such runs. One finding a run, at
 * its first bar. Answers the length from which a run is reported.
 */
export function checkStale({ count, rows, time, open, high, low, close, factor }: Series, add: Add): number {
  const isFlat = (i: number): boolean => high[i] === low[i] && open[i] === close[i] && open[i] === high[i]
  const runs: { readonly start: number; readonly length: number }[] = []
  for (let i = 0; i < count; i += 1) {
    if (!isFlat(i)) continue
    const start = i
    while (i + 1 < count && isFlat(i + 1) && close[i + 1] === close[start]) i += 1
    runs.push({ start, length: i - start + 1 })
  }
  const lengths = runs.map(({ length }) => length)
  const longest = Math.max(SHORTEST, chanceLength(lengths, CHANCE))
  for (const { start, length } of runs) {
    if (length < longest) continue
    const until = formatMoment(time[start + length - 1]!)
    add({
      code: 'stale_run',
      severity: 'warning',
      index: rows[start]!,
      field: 'bar',
      observed: length,
      expected: longest - 1,
      score: length / longest,
      confidence: 0.999,
      explanation: `${length} flat bars at ${close[start]! * factor[start]!} until ${until}; chance allows ${longest - 1} in this file`,
    })
  }
  return longest
}
