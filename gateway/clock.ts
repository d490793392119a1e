/**
 * Two clocks. Money and tokens live on wall time. The data's clock is the same, but for a replay it can stand still,
 * so that a recording gives the same answers twice.
 */
export interface Clock {
  readonly wall: () => Date
  readonly data: () => Date
}

/**
 * `frozen:2025-01-01T00:00:00Z` stands still at that time, `frozen` at the moment of the start; everything else runs.
 * Throws RangeError where the time cannot be read.
 */
export function createClock(replayShift: string | null, wall: () => Date = () => new Date()): Clock {
  if (replayShift === null || !replayShift.startsWith('frozen')) return { wall, data: wall }
  const text = replayShift.slice('frozen:'.length)
  const moment = text === '' ? wall() : new Date(text)
  if (Number.isNaN(moment.getTime())) throw new RangeError(`REPLAY_SHIFT: ${text} is not an ISO 8601 time`)
  return { wall, data: () => new Date(moment) }
}
