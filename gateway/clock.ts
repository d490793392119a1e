/**
 * Two clocks: payments and tokens use wall time, products use the clock of the data. Both are the same unless a replay
 * freezes the clock of the data, so that a recording gives the same answers each time.
 */
export interface Clock {
  readonly wall: () => Date
  readonly data: () => Date
}

/**
 * Creates the clocks. `frozen:2025-01-01T00:00:00Z` freezes the clock of the data at that time, `frozen` at the start;
 * with any other value it runs. Throws RangeError if the time is not valid.
 */
export function createClock(replayShift: string | null, wall: () => Date = () => new Date()): Clock {
  if (replayShift === null || !replayShift.startsWith('frozen')) return { wall, data: wall }
  const text = replayShift.slice('frozen:'.length)
  const moment = text === '' ? wall() : new Date(text)
  if (Number.isNaN(moment.getTime())) throw new RangeError(`REPLAY_SHIFT: ${text} is not an ISO 8601 time`)
  return { wall, data: () => new Date(moment) }
}
