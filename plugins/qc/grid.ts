import type { Add } from './finding.ts'
import { DAY } from './interval.ts'
import { formatMoment } from './moment.ts'

/** A remainder this many bars share is part of the grid: clocks change, sessions start at the half hour. */
const SHARE = 0.05

/**
 * Timestamps off the grid: the remainder modulo the step differs from the commonest and from every other that a twentieth
 * of the bars share. On daily bars an hour more or less is a change of clocks; longer intervals have no fixed step.
 */
export function checkGrid(times: Float64Array, rows: Int32Array, interval: number, add: Add): void {
  if (!(interval > 0) || interval > DAY) return
  const remainder = (time: number): number => ((time % interval) + interval) % interval
  const counts = new Map<number, number>()
  for (const time of times) counts.set(remainder(time), (counts.get(remainder(time)) ?? 0) + 1)
  const most = Math.max(...counts.values())
  const least = Math.max(2, Math.min(most, SHARE * times.length))
  const usual = [...counts].filter(([, count]) => count >= least).map(([value]) => value)
  const mode = [...counts].reduce((a, b) => (b[1] > a[1] ? b : a), [0, 0])[0]
  const slack = interval === DAY ? 3600 : 0
  for (const [i, time] of times.entries()) {
    const value = remainder(time)
    if (usual.some((other) => Math.abs(value - other) <= slack)) continue
    const nearest =
      time - value + mode + (value - mode > interval / 2 ? interval : value - mode < -interval / 2 ? -interval : 0)
    add({
      code: 'off_grid_timestamp',
      severity: 'warning',
      index: rows[i]!,
      field: 'timestamp',
      observed: formatMoment(time),
      expected: formatMoment(nearest),
      score: Math.abs(time - nearest),
      confidence: 0.99,
      explanation: `${Math.abs(time - nearest)} seconds from the grid of ${interval} seconds`,
    })
  }
}
