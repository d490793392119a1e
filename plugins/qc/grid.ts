import type { Add } from './finding.ts'
import { DAY } from './interval.ts'
import { formatMoment } from './moment.ts'

/** A remainder this many bars share is part of the grid: clocks change, sessions start at the half hour. */
const SHARE = 0.05

/** Bars that share the grid with others, at least: fewer keep no step, as bars of a number of trades do. */
const REGULAR = 0.5

export interface Grid {
  /** Remainders modulo the step, the commonest first. */
  readonly usual: readonly number[]
  readonly isRegular: boolean
}

/** The remainders modulo the step that bars share. */
export function gridOf(times: Float64Array, interval: number): Grid {
  const counts = new Map<number, number>()
  for (const time of times) counts.set(remainder(time, interval), (counts.get(remainder(time, interval)) ?? 0) + 1)
  const sorted = [...counts].sort(([, one], [, other]) => other - one)
  const most = sorted[0]?.[1] ?? 0
  const shared = sorted.filter(([, count]) => count >= Math.max(2, Math.min(most, SHARE * times.length)))
  const total = shared.reduce((sum, [, count]) => sum + count, 0)
  return { usual: shared.map(([value]) => value), isRegular: times.length < 3 || total >= REGULAR * times.length }
}

const remainder = (time: number, interval: number): number => ((time % interval) + interval) % interval

/**
 * Timestamps off the grid: the remainder modulo the step differs from the commonest and from every other that a twentieth
 * of the bars share. On daily bars an hour more or less is a change of clocks; longer intervals have no fixed step.
 */
export function checkGrid(times: Float64Array, rows: Int32Array, interval: number, { usual }: Grid, add: Add): void {
  if (!(interval > 0) || interval > DAY) return
  const mode = usual[0] ?? 0
  const slack = interval === DAY ? 3600 : 0
  for (const [i, time] of times.entries()) {
    const value = remainder(time, interval)
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
