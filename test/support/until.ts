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
