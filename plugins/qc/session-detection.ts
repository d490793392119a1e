import { once } from 'tollgate/plugin'
import { nyseClose, nyseClosed } from '../lib/time/nyse-calendar.ts'
import { createZone, UTC, type Zone } from '../lib/time/time-zones.ts'
import { DAY } from './bar-times.ts'

export type SessionName = 'us_equity' | '24x7' | 'weekdays'

/** When the market is open, and the time zone of its clock. */
export interface Session {
  readonly name: SessionName
  readonly zone: Zone
}

const newYork = once(() => createZone('America/New_York') ?? UTC)
const OPENING = 570 // 9:30
const EXTENDED_OPENING = 240 // 4:00, when extended hours begin
/** Up to this share, bars on weekends are bad rows and do not mean that the market trades on weekends. */
const STRAY = 0.005
/** Breaks of at least this length are nights, weekends or holidays. */
export const NIGHT = 4 * 3600

/** A point in time on a wall clock. */
export interface WallClock {
  /** Days since 1970-01-01. */
  readonly day: number
  readonly minute: number
}

/** The day and the minute of the day on the wall clock of a zone. */
export function wallClock(seconds: number, zone: Zone): WallClock {
  const local = seconds + zone(seconds)
  const day = Math.floor(local / DAY)
  return { day, minute: Math.floor((local - day * DAY) / 60) }
}

/** Whether a day is a Saturday. Days count from 1970-01-01, a Thursday. */
const isSaturday = (day: number): boolean => (((day - 2) % 7) + 7) % 7 === 0

/** "YYYY-MM-DD" of a day counted from 1970-01-01. */
export function dayName(day: number): string {
  return new Date(day * DAY * 1000).toISOString().slice(0, 10)
}

/**
 * The session named in the request, or with "auto" the one that fits the times. It is "24x7" if weekends have bars like
 * other days. It is "us_equity" if there is hardly a bar on weekends and NYSE holidays and, for bars shorter than a day,
 * days begin at 9:30 or 4:00 in New York. Otherwise it is "weekdays", with an unknown calendar.
 */
export function findSession(named: string, times: Float64Array, interval: number, zone: Zone | null): Session {
  const zones = zone ? [zone] : [UTC, newYork()]
  if (named === '24x7') return { name: '24x7', zone: zone ?? UTC }
  if (interval >= DAY) {
    const label: Zone = times.every((time) => time % DAY === 0) ? UTC : (zone ?? newYork())
    const name = named === 'us_equity' || named === 'weekdays' ? named : dailyName(times, label)
    return { name, zone: label }
  }
  const openings = zones.map((candidate) => opening(times, candidate))
  const likeness = (candidate: Opening): number => candidate.share + (isNewYork(candidate) ? 0.1 : 0)
  const best = openings.reduce((a, b) => (likeness(b) > likeness(a) ? b : a))
  if (named === 'us_equity' || named === 'weekdays') return { name: named, zone: best.zone }
  if (weekendShare(times, zones[0]!) > 0.05 || isRound(times, zones[0]!)) return { name: '24x7', zone: zones[0]! }
  const isEquity = best.share > 0.6 && isNewYork(best) && weekendShare(times, best.zone) <= STRAY
  return { name: isEquity ? 'us_equity' : 'weekdays', zone: best.zone }
}

/** With a smaller share of bars in regular or in extended hours, the day is not judged by parts. */
const LEAST_SHARE = 0.05

/**
 * Which bars of US equities lie in extended hours, 1 for those; null if the bars have hardly any there or hardly any others. A
 * bar that reaches into regular hours is one of them.
 */
export function extendedHours(times: Float64Array, interval: number, { name, zone }: Session): Uint8Array | null {
  if (name !== 'us_equity' || interval >= DAY) return null
  let extended = 0
  const found = Uint8Array.from(times, (time) => {
    const { day, minute } = wallClock(time, zone)
    const isExtended = minute + interval / 60 <= OPENING || minute >= nyseClose(dayName(day))
    if (isExtended) extended += 1
    return isExtended ? 1 : 0
  })
  const share = extended / times.length
  return share >= LEAST_SHARE && share <= 1 - LEAST_SHARE ? found : null
}

/** Only Saturdays show that a market trades on weekends; others may have a bar for the Sunday evening when they open. */
function dailyName(times: Float64Array, zone: Zone): SessionName {
  let [saturdays, sundays, holidays] = [0, 0, 0]
  for (const time of times) {
    const { day } = wallClock(time, zone)
    if (isSaturday(day)) saturdays += 1
    else if (isSaturday(day - 1)) sundays += 1
    else if (nyseClosed(dayName(day)) !== null) holidays += 1
  }
  if (saturdays > 0.02 * times.length) return '24x7'
  if (sundays > 0.02 * times.length) return 'weekdays'
  // About 3.6% of weekdays are NYSE holidays. A market that ignores them has bars on them.
  return holidays <= 0.004 * times.length ? 'us_equity' : 'weekdays'
}

function weekendShare(times: Float64Array, zone: Zone): number {
  let weekend = 0
  for (const time of times) {
    const { day } = wallClock(time, zone)
    if (isSaturday(day) || isSaturday(day - 1)) weekend += 1
  }
  return weekend / Math.max(1, times.length)
}

/** Whether the times cover less than a week without a weekend and one day has bars in at least 23 hours: then it is 24x7. */
function isRound(times: Float64Array, zone: Zone): boolean {
  const [first, last] = [times[0] ?? 0, times[times.length - 1] ?? 0]
  const monday = Math.floor((first + zone(first)) / DAY - 4) % 7
  if (Math.floor((last - first) / DAY) + (((monday % 7) + 7) % 7) > 4) return false
  const hours = new Map<number, Set<number>>()
  for (const time of times) {
    const { day, minute } = wallClock(time, zone)
    hours.set(day, (hours.get(day) ?? new Set()).add(Math.floor(minute / 60)))
  }
  return [...hours.values()].some((seen) => seen.size >= 23)
}

/** The minute of the day at which most nights and weekends end in a zone, and the share of them that end there. */
interface Opening {
  readonly zone: Zone
  readonly minute: number
  readonly share: number
}

function isNewYork({ minute }: Opening): boolean {
  return minute === OPENING || minute === EXTENDED_OPENING
}

function opening(times: Float64Array, zone: Zone): Opening {
  const ends: number[] = []
  for (let i = 1; i < times.length; i += 1) if (times[i]! - times[i - 1]! >= NIGHT) ends.push(times[i]!)
  // A file of a single session contains no night. Its first bar is the end of one.
  const minutes = (ends.length > 0 ? ends : [...times.subarray(0, 1)]).map((time) => wallClock(time, zone).minute)
  const counts = new Map<number, number>()
  for (const minute of minutes) counts.set(minute, (counts.get(minute) ?? 0) + 1)
  const [minute, count] = [...counts].reduce((a, b) => (b[1] > a[1] ? b : a), [0, 0])
  return { zone, minute, share: minutes.length === 0 ? 0 : count / minutes.length }
}
