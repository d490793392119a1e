/** The trading calendar of the New York Stock Exchange from 1971 on, computed by rule. Days are "YYYY-MM-DD" in New York. */

const DAY = 86_400_000

/** Closings that no rule predicts: mourning, attacks, storms, a blackout. */
const EXCEPTIONAL_CLOSINGS: Readonly<Record<string, string>> = {
  '1972-12-28': 'mourning for Harry Truman',
  '1973-01-25': 'mourning for Lyndon Johnson',
  '1977-07-14': 'blackout in New York',
  '1985-09-27': 'Hurricane Gloria',
  '1994-04-27': 'mourning for Richard Nixon',
  '2001-09-11': 'attack on the World Trade Center',
  '2001-09-12': 'attack on the World Trade Center',
  '2001-09-13': 'attack on the World Trade Center',
  '2001-09-14': 'attack on the World Trade Center',
  '2004-06-11': 'mourning for Ronald Reagan',
  '2007-01-02': 'mourning for Gerald Ford',
  '2012-10-29': 'Hurricane Sandy',
  '2012-10-30': 'Hurricane Sandy',
  '2018-12-05': 'mourning for George H. W. Bush',
  '2025-01-09': 'mourning for Jimmy Carter',
}

/**
 * Why the exchange is closed on a day: "weekend", the name of the holiday, or the cause of an exceptional closing. Null on
 * a trading day.
 *
 * @example nyseClosed('2024-03-29') // 'Good Friday'
 */
export function nyseClosed(day: string): string | null {
  const weekday = weekdayOf(day)
  if (weekday === 0 || weekday === 6) return 'weekend'
  return holidaysOf(Number(day.slice(0, 4))).get(day) ?? EXCEPTIONAL_CLOSINGS[day] ?? null
}

/**
 * Minutes after midnight in New York at which the regular session ends: 960 (4 pm), or 780 (1 pm) on days with an early
 * close before or after a holiday.
 *
 * @example nyseClose('2024-11-29') // 780, the day after Thanksgiving
 */
export function nyseClose(day: string): number {
  const monthDay = day.slice(5)
  const weekday = weekdayOf(day)
  const isEve = (monthDay === '12-24' && weekday >= 1 && weekday <= 5) || (monthDay === '07-03' && weekday <= 4)
  const afterThanksgiving = nyseClosed(shift(day, -1)) === 'Thanksgiving Day'
  return (isEve || afterThanksgiving) && nyseClosed(day) === null ? 780 : 960
}

const years = new Map<number, ReadonlyMap<string, string>>()

/**
 * The holidays of a year, by day. A holiday on a fixed date moves from Sunday to Monday and from Saturday to Friday. Only
 * New Year's Day does not move to the Friday before, because that is the last day of the accounting year.
 *
 * Source: NYSE Rule 7.2. The exchange added Martin Luther King Jr. Day in 1998 and Juneteenth in 2022.
 *
 * @example holidaysOf(2024).get('2024-03-29') // 'Good Friday'
 */
export function holidaysOf(year: number): ReadonlyMap<string, string> {
  const known = years.get(year)
  if (known) return known
  const entries: [string | null, string][] = [
    [observed(`${year}-01-01`, false), "New Year's Day"],
    [nth(year, 2, 1, 3), "Washington's Birthday"],
    [shift(easter(year), -2), 'Good Friday'],
    [last(year, 5, 1), 'Memorial Day'],
    [observed(`${year}-07-04`), 'Independence Day'],
    [nth(year, 9, 1, 1), 'Labor Day'],
    [nth(year, 11, 4, 4), 'Thanksgiving Day'],
    [observed(`${year}-12-25`), 'Christmas Day'],
  ]
  if (year >= 1998) entries.push([nth(year, 1, 1, 3), 'Martin Luther King Jr. Day'])
  if (year >= 2022) entries.push([observed(`${year}-06-19`), 'Juneteenth'])
  const holidays = new Map(entries.filter((entry): entry is [string, string] => entry[0] !== null))
  years.set(year, holidays)
  return holidays
}

/**
 * The date of Easter Sunday in the Gregorian calendar.
 *
 * Source: Anonymous, Nature 13 (1876) 487, as given by Meeus, "Astronomical Algorithms", chapter 8.
 *
 * @example easter(2024) // '2024-03-31'
 */
export function easter(year: number): string {
  const golden = year % 19
  const century = Math.floor(year / 100)
  const rest = year % 100
  const skipped = Math.floor((century - Math.floor((century + 8) / 25) + 1) / 3)
  const moon = (19 * golden + century - Math.floor(century / 4) - skipped + 15) % 30
  const sunday = (32 + 2 * (century % 4) + 2 * Math.floor(rest / 4) - moon - (rest % 4)) % 7
  const late = Math.floor((golden + 11 * moon + 22 * sunday) / 451)
  const count = moon + sunday - 7 * late + 114
  return format(Date.UTC(year, Math.floor(count / 31) - 1, (count % 31) + 1))
}

/** 0 is Sunday. */
function weekdayOf(day: string): number {
  return new Date(`${day}T00:00:00Z`).getUTCDay()
}

function format(time: number): string {
  return new Date(time).toISOString().slice(0, 10)
}

function shift(day: string, days: number): string {
  return format(Date.parse(`${day}T00:00:00Z`) + days * DAY)
}

/** The day on which a fixed-date holiday is observed; null if it falls on a Saturday and does not move. */
function observed(day: string, onFriday = true): string | null {
  const weekday = weekdayOf(day)
  if (weekday === 0) return shift(day, 1)
  if (weekday === 6) return onFriday ? shift(day, -1) : null
  return day
}

/** The n-th given weekday of a month (1 is January). */
function nth(year: number, month: number, weekday: number, n: number): string {
  const first = new Date(Date.UTC(year, month - 1, 1)).getUTCDay()
  return format(Date.UTC(year, month - 1, 1 + ((weekday - first + 7) % 7) + 7 * (n - 1)))
}

function last(year: number, month: number, weekday: number): string {
  const end = new Date(Date.UTC(year, month, 0))
  return format(end.getTime() - ((end.getUTCDay() - weekday + 7) % 7) * DAY)
}
