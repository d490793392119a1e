/** Wall clocks without a zone, as points in time. */
import type { Zone } from './time-zones.ts'

/** A change of clocks is at most this far, and no two are nearer than this. Seconds. */
const DAY = 86_400

/** The two points in time at which a clock shows a time, when it is set back in between; null if there is one. Seconds. */
function bothShowings(wall: number, zone: Zone): { readonly first: number; readonly second: number } | null {
  const [before, after] = [zone(wall - DAY), zone(wall + DAY)]
  const [first, second] = [wall - before, wall - after]
  return before > after && zone(first) === before && zone(second) === after ? { first, second } : null
}

/**
 * The point in time of a wall clock, epoch seconds; the first one if the clock shows the time twice.
 *
 * @param wall the clock as if it were UTC, seconds
 * @example utcOf(Date.UTC(2024, 9, 27, 2) / 1000, createZone('Europe/Berlin')!) // 1729987200, 00:00 UTC
 */
export function utcOf(wall: number, zone: Zone): number {
  const before = zone(wall - DAY)
  if (before === zone(wall + DAY)) return wall - before
  // The first guess at the offset can be wrong by an hour near a change of clocks; the second is right.
  return bothShowings(wall, zone)?.first ?? wall - zone(wall - zone(wall))
}

/**
 * Reads the hour that a clock shows twice when it is set back by the order of the rows: a time that would not be later than the
 * row before is the second showing. Rows may run from newest to oldest. Changes `times` in place.
 *
 * @param times epoch seconds that `utcOf` read, in the order of the rows
 * @param isWall which of them were written without a zone
 */
export function separateRepeatedHour(times: Float64Array, isWall: (row: number) => boolean, zone: Zone): void {
  const { length } = times
  let [back, forth] = [0, 0]
  for (let row = 1; row < length; row += 1) {
    if (times[row]! < times[row - 1]!) back += 1
    else if (times[row]! > times[row - 1]!) forth += 1
  }
  const rowAt = (place: number): number => (back > forth ? length - 1 - place : place)
  /** How much later the clock shows the time of a row again; 0 if it does not. */
  const repeatAt = (row: number): number => {
    if (!isWall(row)) return 0
    const both = bothShowings(times[row]! + zone(times[row]!), zone)
    return both ? both.second - times[row]! : 0
  }
  // A file that begins between the two showings begins in the second one, which leaves no hole after it.
  let start = 0
  while (start < length && repeatAt(rowAt(start)) > 0) start += 1
  const isOnce = start < length && isAscending(times, rowAt, start)
  if (isOnce) for (let place = 0; place < start; place += 1) times[rowAt(place)]! += repeatAt(rowAt(place))
  for (let place = Math.max(1, isOnce ? start : 0); place < length; place += 1) {
    const row = rowAt(place)
    if (times[row]! > times[rowAt(place - 1)]!) continue
    times[row]! += repeatAt(row)
  }
}

function isAscending(times: Float64Array, rowAt: (place: number) => number, end: number): boolean {
  for (let place = 1; place < end; place += 1) if (times[rowAt(place)]! <= times[rowAt(place - 1)]!) return false
  return end > 0
}
