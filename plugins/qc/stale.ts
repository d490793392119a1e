import { chanceLength } from './runs.ts'
import type { Add } from './finding.ts'
import { formatMoment } from './moment.ts'
import type { Series } from './series.ts'

const SHORTEST = 5
/** Runs looked for are longer than this; those expected less than 0.001 times in the file are reported. */
const CHANCE = { short: 8, chance: 0.001 }

interface Run {
  readonly start: number
  readonly length: number
}

/** Runs of flat bars at one price that are longer than chance allows at the file's own rate of such runs. */
export interface StaleRuns {
  readonly runs: readonly Run[]
  /** The length from which a run is one of them. */
  readonly least: number
}

export function staleRuns({ count, open, high, low, close }: Series): StaleRuns {
  const isFlat = (i: number): boolean => high[i] === low[i] && open[i] === close[i] && open[i] === high[i]
  const runs: Run[] = []
  for (let i = 0; i < count; i += 1) {
    if (!isFlat(i)) continue
    const start = i
    while (i + 1 < count && isFlat(i + 1) && close[i + 1] === close[start]) i += 1
    runs.push({ start, length: i - start + 1 })
  }
  const lengths = runs.map(({ length }) => length)
  const least = Math.max(SHORTEST, chanceLength(lengths, CHANCE))
  return { runs: runs.filter(({ length }) => length >= least), least }
}

/** Reports stale runs, each at its first bar. Answers the length from which a run is reported. */
export function checkStale(series: Series, add: Add): number {
  const { rows, time, close, factor } = series
  const { runs, least } = staleRuns(series)
  for (const { start, length } of runs) {
    const until = formatMoment(time[start + length - 1]!)
    add({
      code: 'stale_run',
      severity: 'warning',
      index: rows[start]!,
      field: 'bar',
      observed: length,
      expected: least - 1,
      score: length / least,
      confidence: 0.999,
      explanation: `${length} flat bars at ${close[start]! * factor[start]!} until ${until}; chance allows ${least - 1} in this file`,
    })
  }
  return least
}
