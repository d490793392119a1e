/** Waits until a condition is true; the timeout of the test ends the wait. */
export async function until(isTrue: () => boolean | Promise<boolean>, pollMs = 10): Promise<void> {
  while (!(await isTrue())) await new Promise((wake) => setTimeout(wake, pollMs))
}
