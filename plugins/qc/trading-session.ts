import { nyseClosed } from '../lib/time/nyse-calendar.ts'
import { DAY, createZone, UTC, type Zone } from './bar-times.ts'

export type SessionName = 'us_equity' | '24x7' | 'weekdays'

/** When the market is open, and the wall clock it keeps. */
export interface Session {
  readonly name: SessionName
  readonly zone: Zone
}

const NEW_YORK = createZone('America/New_York') ?? UTC
const OPENING = 570 // 9:30
const EARLY = 240 // 4:00, where extended hours begin
/** Bars on weekends up to this share are mistakes of rows and say nothing of the market. */
const STRAY = 0.005
/** Holes this long are nights, weekends or holidays. */
export const NIGHT = 4 * 3600

/** A moment on a wall clock. */
export interface WallClock {
  /** Days since 1970-01-01. */
  readonly day: number
  readonly minute: number
}

/** The day and the minute of the day on a zone's wall clock. */
export function wallClock(seconds: number, zone: Zone): WallClock {
  const local = seconds + zone(seconds)
  const day = Math.floor(local / DAY)
  return { day, minute: Math.floor((local - day * DAY) / 60) }
}

/** Whether a day since 1970-01-01, a Thursday, is a Saturday. */
export const isSaturday = (day: number): boolean => (((day - 2) % 7) + 7) % 7 === 0

/** "YYYY-MM-DD" of a day since 1970-01-01. */
export function dayName(day: number): string {
  return new Date(day * DAY * 1000).toISOString().slice(0, 10)
}

/**
 * The session named, or the one the times speak for: round the clock where weekends have their share of bars; US
 * equities where there is hardly one on a weekend or a holiday of the NYSE and, on bars shorter than a day, the days begin at
 * 9:30 or 4:00 in New York; otherwise weekdays of a calendar we do not know.
 */
export function findSession(named: string, times: Float64Array, interval: number, zone: Zone | null): Session {
  const zones = zone ? [zone] : [UTC, NEW_YORK]
  if (named === '24x7') return { name: '24x7', zone: zone ?? UTC }
  if (interval >= DAY) {
    const label: Zone = times.every((time) => time % DAY === 0) ? UTC : (zone ?? NEW_YORK)
    const name = named === 'us_equity' ? named : dailyName(times, label)
    return { name, zone: label }
  }
  const openings = zones.map((candidate) => opening(times, candidate))
  const likeness = (candidate: Opening): number => candidate.share + (isNewYork(candidate) ? 0.1 : 0)
  const best = openings.reduce((a, b) => (likeness(b) > likeness(a) ? b : a))
  if (named === 'us_equity') return { name: named, zone: best.zone }
  if (weekendShare(times, zones[0]!) > 0.05 || isRound(times, zones[0]!)) return { name: '24x7', zone: zones[0]! }
  const isEquity = best.share > 0.6 && isNewYork(best) && weekendShare(times, best.zone) <= STRAY
  return { name: isEquity ? 'us_equity' : 'weekdays', zone: best.zone }
}

/** A Saturday tells: markets that rest at weekends may have a bar for the Sunday evening on which they open. */
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
  // About 3.6% of weekdays are holidays: a market that ignored them would have bars on them.
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

/** Less than a week that has no weekend in it, with a day of bars in 23 hours or more: taken for round the clock. */
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

/** The minute at which most nights and weekends end on a wall clock, and the share of those that end there. */
interface Opening {
  readonly zone: Zone
  readonly minute: number
  readonly share: number
}

function isNewYork({ minute }: Opening): boolean {
  return minute === OPENING || minute === EARLY
}

function opening(times: Float64Array, zone: Zone): Opening {
  const ends: number[] = []
  for (let i = 1; i < times.length; i += 1) if (times[i]! - times[i - 1]! >= NIGHT) ends.push(times[i]!)
  // A file of one session shows none: it begins where the night ended.
  const minutes = (ends.length > 0 ? ends : [...times.subarray(0, 1)]).map((time) => wallClock(time, zone).minute)
  const counts = new Map<number, number>()
  for (const minute of minutes) counts.set(minute, (counts.get(minute) ?? 0) + 1)
  const [minute, count] = [...counts].reduce((a, b) => (b[1] > a[1] ? b : a), [0, 0])
  return { zone, minute, share: minutes.length === 0 ? 0 : count / minutes.length }
}
