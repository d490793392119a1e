import { nyseClosed } from '../lib/quant/nyse.ts'
import type { Add } from './finding.ts'
import { DAY } from './interval.ts'
import { formatMoment } from './moment.ts'
import { dayName, type Session, wallClock } from './session.ts'

const HOUR = 60
/** Days of one displacement in a row that make a run. */
const RUN = 2
/** The first bar must usually come at one minute before its absence means anything. */
const REGULAR = 0.6

/** For US equities: bars on a weekend or holiday of the NYSE, and runs of days that begin a whole hour early or late. */
export function checkCalendar(
  times: Float64Array,
  rows: Int32Array,
  interval: number,
  session: Session,
  add: Add,
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
    const common = { severity: 'warning', field: 'timestamp', observed: formatMoment(time), expected: null } as const
    const explanation = `${dayName(day)} was no trading day in New York: ${closed}`
    add({ ...common, code: 'closed_session_bar', index: rows[at]!, score: null, confidence: 0.99, explanation })
  }
  if (interval < DAY) checkClock(times, rows, first, add)
}

function checkClock(
  times: Float64Array,
  rows: Int32Array,
  first: readonly { readonly at: number; readonly minute: number }[],
  add: Add,
): void {
  const counts = new Map<number, number>()
  for (const { minute } of first) counts.set(minute, (counts.get(minute) ?? 0) + 1)
  const [usual, count] = [...counts].reduce((a, b) => (b[1] > a[1] ? b : a), [0, 0])
  if (count < REGULAR * first.length || first.length < 5) return
  for (let day = 0; day < first.length;) {
    const shift = first[day]!.minute - usual
    let end = day + 1
    while (end < first.length && first[end]!.minute - usual === shift) end += 1
    if (shift !== 0 && shift % HOUR === 0 && end - day >= RUN) {
      const time = times[first[day]!.at]!
      add({
        code: 'clock_shift',
        severity: 'warning',
        index: rows[first[day]!.at]!,
        field: 'timestamp',
        observed: formatMoment(time),
        expected: formatMoment(time - shift * 60),
        score: end - day,
        confidence: 0.95,
        explanation: `${end - day} days in a row begin ${Math.abs(shift / HOUR)} h ${shift > 0 ? 'late' : 'early'}`,
      })
    }
    day = end
  }
}
