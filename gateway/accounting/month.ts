/** A calendar month in UTC, the piece of the ledger that is handed over. */
import { InvalidInput } from '../errors.ts'

export interface Month {
  /** "2026-11". */
  readonly name: string
  /** Milliseconds since the epoch. */
  readonly from: number
  /** The first moment after it. */
  readonly before: number
}

/** What was booked in a month's last moment may reach the disk a little later. */
const LATE_MS = 3_600_000

/**
 * The month of that name. Throws InvalidInput where it is none.
 * @example monthOf('2026-11').before → Date.UTC(2026, 11, 1)
 */
export function monthOf(name: string): Month {
  const [, year = '', month = ''] = /^(\d{4})-(\d{2})$/.exec(name) ?? []
  const [y, m] = [Number(year), Number(month)]
  if (y < 1970 || m < 1 || m > 12) throw new InvalidInput('is no month; write it like 2026-11', ['query', 'month'])
  return { name, from: Date.UTC(y, m - 1, 1), before: Date.UTC(y, m, 1) }
}

/** The name of the month a moment lies in. */
export function monthAt(at: Date): string {
  return at.toISOString().slice(0, 7)
}

/** The name of the month before. */
export function monthBefore(name: string): string {
  return monthAt(new Date(monthOf(name).from - 1))
}

/** Whether nothing can be added to it any more. */
export function isOver({ before }: Month, now: Date): boolean {
  return now.getTime() >= before + LATE_MS
}
