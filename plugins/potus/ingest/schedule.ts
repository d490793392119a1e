/** When a source is asked: at its pace, quicker around the hours at which its news come, slower at night. */
import { Cron } from 'croner'
import type { Source } from '../sources/source.ts'

const ZONE = 'America/New_York'
/** Around a slot a source is asked every two minutes: from two minutes before to twenty after. */
const SLOT_SECONDS = 120
const BEFORE_MS = 120_000
const AFTER_MS = 20 * 60_000
/** Hours at which an office may publish. */
const OPENS = 7
const CLOSES = 20

const slots = new Map<string, Cron>()
const hours = new Intl.DateTimeFormat('en-US', { timeZone: ZONE, hour: 'numeric', hour12: false, weekday: 'short' })

/** Seconds from one look at a source to the next, at a moment. */
export function paceOf({ slots: times, pollSeconds, nightSeconds }: Source, at: number): number {
  if (times.some((time) => isNear(time, at))) return Math.min(SLOT_SECONDS, pollSeconds)
  return nightSeconds > 0 && isNight(at) ? Math.max(nightSeconds, pollSeconds) : pollSeconds
}

/** The shortest pace a source is ever asked at: how often to look whether it is due. */
export function shortestPace({ slots: times, pollSeconds }: Source): number {
  return times.length > 0 ? Math.min(SLOT_SECONDS, pollSeconds) : pollSeconds
}

/** Slots are clock times of weekdays in New York, whatever the season. */
function isNear(time: string, at: number): boolean {
  const [hour, minute] = time.split(':').map(Number)
  const pattern = `${minute} ${hour} * * 1-5`
  const cron = slots.get(pattern) ?? new Cron(pattern, { timezone: ZONE, paused: true })
  slots.set(pattern, cron)
  const next = cron.nextRun(new Date(at - AFTER_MS - 1000))
  return next !== null && next.getTime() <= at + BEFORE_MS
}

function isNight(at: number): boolean {
  const parts = hours.formatToParts(new Date(at))
  const weekday = parts.find(({ type }) => type === 'weekday')?.value ?? ''
  const hour = Number(parts.find(({ type }) => type === 'hour')?.value) % 24
  return ['Sat', 'Sun'].includes(weekday) || hour < OPENS || hour >= CLOSES
}
