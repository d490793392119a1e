/** Waits until a condition is true; the timeout of the test ends the wait. */
export async function until(isTrue: () => boolean | Promise<boolean>, pollMs = 10): Promise<void> {
  while (!(await isTrue())) await new Promise((wake) => setTimeout(wake, pollMs))
}

/** Waits until there is a value, and returns it. */
export async function untilFound<Value>(find: () => Promise<Value | undefined>, pollMs = 10): Promise<Value> {
  for (;;) {
    const value = await find()
    if (value !== undefined) return value
    await new Promise((wake) => setTimeout(wake, pollMs))
  }
}

/**
 * Waits until a figure stays as it is while other work is done by the same process. A writer that does not wait for its
 * reader is never still before its end, because it writes during that work too. Returns the figure.
 */
export async function untilStill(figure: () => number, work: () => Promise<unknown>): Promise<number> {
  for (let before = -1; ;) {
    const now = figure()
    if (now === before) return now
    before = now
    for (let nth = 0; nth < 10; nth += 1) await work()
  }
}

/**
 * Waits until a condition is true. Returns how many milliseconds after the call the last look began that found it false:
 * how long a look takes says more about the machine than about what is waited for.
 */
export async function msUntil(isTrue: () => boolean | Promise<boolean>, pollMs = 10): Promise<number> {
  const began = performance.now()
  let last = 0
  await until(async () => {
    const at = performance.now() - began
    if (await isTrue()) return true
    last = at
    return false
  }, pollMs)
  return last
}
