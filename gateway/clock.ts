/**
 * Two clocks: payments and tokens use wall time, products use the clock of the data. Both are the same unless a replay
 * freezes the clock of the data, so that a recording gives the same answers each time.
 */
export interface Clock {
  readonly wall: () => Date
  readonly data: () => Date
}

/**
 * Creates the clocks.
 *
 * @param frozenAt Where the clock of the data stands still: at a time, or at the time of this call (`start`). Null lets
 * it run.
 * @param data The clock of the data, if it runs and is not the wall clock. A test moves it without a chain.
 */
export function createClock(
  frozenAt: Date | 'start' | null,
  wall: () => Date = () => new Date(),
  data: () => Date = wall,
): Clock {
  if (frozenAt === null) return { wall, data }
  const time = (frozenAt === 'start' ? wall() : frozenAt).getTime()
  return { wall, data: () => new Date(time) }
}
