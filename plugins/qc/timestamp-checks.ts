import { nyseClosed } from '../lib/time/nyse-calendar.ts'
import { type Bars, PRICES } from './bar-input.ts'
import type { Zone } from '../lib/time/time-zones.ts'
import { DAY, formatBarTime } from './bar-times.ts'
import type { AddFinding, Code, Severity } from './finding-codes.ts'
import { dayName, type Session, wallClock } from './session-detection.ts'

/** With a larger share of steps back in time, the rows run from newest to oldest, as some exchanges send them. */
const BACKWARDS = 0.9

/**
 * Reports rows that are earlier than a row before them, and rows that repeat a time. Returns the other rows in order of
 * time, keeping the first row of each time. Rows that run from newest to oldest are read from the end and get a single
 * info.
 */
export function checkOrder(bars: Bars, add: AddFinding): Int32Array {
  const { time, count } = bars
  const first = new Map<number, number>()
  let latest = -Infinity
  const report = (index: number, code: Code, explanation: string, severity: Severity = 'error'): void => {
    const observed = formatBarTime(time[index]!)
    const common = { field: 'timestamp', expected: null, score: null, confidence: 1 } as const
    add({ ...common, code, severity, index, observed, explanation })
  }
  const isBackwards = runsBackwards(time)
  if (isBackwards)
    report(0, 'out_of_order_timestamp', 'the rows run from newest to oldest and were read in reverse', 'info')
  for (let place = 0; place < count; place += 1) {
    const index = isBackwards ? count - 1 - place : place
    const moment = time[index]!
    const earlier = first.get(moment)
    if (earlier !== undefined) {
      const fields = [...PRICES, 'volume' as const].filter(
        (field) => !Object.is(bars[field]?.[index], bars[field]?.[earlier]),
      )
      const difference = fields.length === 0 ? 'the same values' : `a different ${fields.join(', ')}`
      report(index, 'duplicate_timestamp', `row ${earlier} has this time with ${difference}`)
      continue
    }
    first.set(moment, index)
    if (moment >= latest) latest = moment
    else report(index, 'out_of_order_timestamp', `earlier than ${formatBarTime(latest)} in a row before it`)
  }
  const rows = Int32Array.from(first.values())
  return rows.sort((a, b) => time[a]! - time[b]!)
}

function runsBackwards(time: Float64Array): boolean {
  let back = 0
  for (let i = 1; i < time.length; i += 1) if (time[i]! < time[i - 1]!) back += 1
  return back > BACKWARDS * (time.length - 1)
}

/** A remainder that this share of bars has belongs to the grid, because clocks change and sessions start at the half hour. */
const SHARE = 0.05

/** If a smaller share of bars is on the grid, the bars have no common step, like bars of a fixed number of trades. */
const GRID_SHARE = 0.5

interface Grid {
  /** Remainders modulo the step, the most common first. */
  readonly usual: readonly number[]
  readonly isRegular: boolean
}

/** Finds the remainders modulo the step that many bars share. */
export function gridOf(times: Float64Array, interval: number): Grid {
  const counts = new Map<number, number>()
  for (const time of times) counts.set(remainder(time, interval), (counts.get(remainder(time, interval)) ?? 0) + 1)
  const sorted = [...counts].sort(([, one], [, other]) => other - one)
  const most = sorted[0]?.[1] ?? 0
  const shared = sorted.filter(([, count]) => count >= Math.max(2, Math.min(most, SHARE * times.length)))
  const total = shared.reduce((sum, [, count]) => sum + count, 0)
  return { usual: shared.map(([value]) => value), isRegular: times.length < 3 || total >= GRID_SHARE * times.length }
}

const remainder = (time: number, interval: number): number => ((time % interval) + interval) % interval

/**
 * Reports timestamps that are off the grid: their remainder modulo the step is not one that a twentieth of the bars share.
 * Daily bars may be off by an hour, because clocks change, and bars of several hours may be on the grid of the wall clock of
 * `zone`. Bars longer than a day are not checked, because weeks and months have no fixed step.
 */
export function checkGrid(
  times: Float64Array,
  rows: Int32Array,
  { interval, zone }: { readonly interval: number; readonly zone: Zone | null },
  { usual }: Grid,
  add: AddFinding,
): void {
  if (!(interval > 0) || interval > DAY) return
  const byWall = interval > 3600 ? zone : null
  const walls = byWall ? times.map((time) => time + byWall(time)) : times
  const usualWalls = byWall ? gridOf(walls, interval).usual : []
  // A bar whose time the clock skips begins at the change: the clock of the second before it says which one is meant.
  const isOnWall = (time: number): boolean =>
    byWall !== null && [time, time - 1].some((at) => usualWalls.includes(remainder(time + byWall(at), interval)))
  const mode = usual[0] ?? 0
  const slack = interval === DAY ? 3600 : 0
  for (const [i, time] of times.entries()) {
    const value = remainder(time, interval)
    if (usual.some((other) => Math.abs(value - other) <= slack)) continue
    if (isOnWall(time)) continue
    const nearest =
      time - value + mode + (value - mode > interval / 2 ? interval : value - mode < -interval / 2 ? -interval : 0)
    add({
      code: 'off_grid_timestamp',
      severity: 'warning',
      index: rows[i]!,
      field: 'timestamp',
      observed: formatBarTime(time),
      expected: formatBarTime(nearest),
      score: Math.abs(time - nearest),
      confidence: 0.99,
      explanation: `${Math.abs(time - nearest)} seconds off the grid of ${interval} seconds`,
    })
  }
}

const HOUR = 60
/** Number of consecutive days with the same displacement that count as a clock shift. */
const MIN_SHIFTED_DAYS = 2
/** The check runs only if at least this share of days begins at the same minute. */
const USUAL_SHARE = 0.6

/** For US equities, reports bars on closed days of the NYSE and runs of days that begin a whole hour early or late. */
export function checkCalendar(
  times: Float64Array,
  rows: Int32Array,
  interval: number,
  session: Session,
  add: AddFinding,
): void {
  if (session.name !== 'us_equity') return
  const first: { readonly at: number; readonly minute: number }[] = []
  let last = NaN
  let closed: string | null = null
  for (const [at, time] of times.entries()) {
    const { day, minute } = wallClock(time, session.zone)
    if (day !== last) {
      first.push({ at, minute })
      last = day
      closed = nyseClosed(dayName(day))
    }
    if (closed === null) continue
    const common = { severity: 'warning', field: 'timestamp', observed: formatBarTime(time), expected: null } as const
    const explanation = `the New York Stock Exchange was closed on ${dayName(day)}: ${closed}`
    add({ ...common, code: 'closed_session_bar', index: rows[at]!, score: null, confidence: 0.99, explanation })
  }
  if (interval < DAY) checkClock(times, rows, first, add)
}

function checkClock(
  times: Float64Array,
  rows: Int32Array,
  first: readonly { readonly at: number; readonly minute: number }[],
  add: AddFinding,
): void {
  const counts = new Map<number, number>()
  for (const { minute } of first) counts.set(minute, (counts.get(minute) ?? 0) + 1)
  const [usual, count] = [...counts].reduce((a, b) => (b[1] > a[1] ? b : a), [0, 0])
  if (count < USUAL_SHARE * first.length || first.length < 5) return
  for (let day = 0; day < first.length;) {
    const shift = first[day]!.minute - usual
    let end = day + 1
    while (end < first.length && first[end]!.minute - usual === shift) end += 1
    if (shift !== 0 && shift % HOUR === 0 && end - day >= MIN_SHIFTED_DAYS) {
      const time = times[first[day]!.at]!
      add({
        code: 'clock_shift',
        severity: 'warning',
        index: rows[first[day]!.at]!,
        field: 'timestamp',
        observed: formatBarTime(time),
        expected: formatBarTime(time - shift * 60),
        score: end - day,
        confidence: 0.95,
        explanation: `${end - day} days in a row begin ${Math.abs(shift / HOUR)} h ${shift > 0 ? 'late' : 'early'}`,
      })
    }
    day = end
  }
}
