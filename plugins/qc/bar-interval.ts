import { InvalidInput } from 'tollgate/plugin'
import { DAY } from './bar-times.ts'

const UNITS: Readonly<Record<string, number>> = { s: 1, m: 60, min: 60, h: 3600, d: DAY, w: 7 * DAY, mo: 30 * DAY }

/**
 * The length of an interval in seconds. Takes a number of seconds or text such as "1m", "15min", "4h", "1d", "1w" or "1mo".
 * "1M" is a month of 30 days. Throws InvalidInput for anything else.
 *
 * @example parseInterval('15m') // 900
 */
export function parseInterval(value: string | number): number {
  if (typeof value === 'number' && value > 0) return value
  const text = String(value).trim()
  if (text === '1M') return 30 * DAY
  // A form has only texts.
  if (/^\d+(?:\.\d+)?$/.test(text) && Number(text) > 0) return Number(text)
  const [, count, unit = ''] = /^(\d{1,4})\s*([a-z]+)$/.exec(text.toLowerCase()) ?? []
  const seconds = Number(count) * (UNITS[unit] ?? NaN)
  if (seconds > 0) return seconds
  throw new InvalidInput(`Is ${JSON.stringify(value)}; write seconds, or 1m, 15m, 1h, 1d, 1w.`, ['body', 'interval'])
}

/**
 * The step between most bars: the most common difference of ascending times, or the shorter of two that are equally
 * common. Months count as 30 days.
 */
export function inferInterval(ascending: ArrayLike<number>): number {
  const counts = new Map<number, number>()
  for (let i = 1; i < ascending.length; i += 1) {
    const step = ascending[i]! - ascending[i - 1]!
    counts.set(step, (counts.get(step) ?? 0) + 1)
  }
  let best = 0
  for (const [step, count] of counts) {
    const most = counts.get(best) ?? 0
    if (count > most || (count === most && step < best)) best = step
  }
  return best >= 28 * DAY && best <= 31 * DAY ? 30 * DAY : best
}

/**
 * Seconds between two bars above which the market was not merely closed, so that their prices belong to different times: 15
 * days, and for longer bars more than one missing bar.
 */
export const longBreak = (interval: number): number => Math.max(15 * DAY, 1.99 * interval)
