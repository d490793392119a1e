/** Opens and closes parts together, so that a failure of one leaves none open. */
/**
 * Runs steps one after the other. A step that fails keeps none of the later ones from running: the first error is thrown
 * in the end.
 */
export async function runAll(steps: readonly (() => unknown)[]): Promise<void> {
  const errors: unknown[] = []
  for (const step of steps)
    try {
      await step()
    } catch (error) {
      errors.push(error)
    }
  if (errors.length > 0) throw errors[0]
}

/** Opens two parts at the same time. If one of them fails, the other is closed, and the error is thrown. */
export async function openBoth<One extends Closable, Other extends Closable>(
  openOne: () => Promise<One>,
  openOther: () => Promise<Other>,
): Promise<[One, Other]> {
  const [one, other] = await Promise.allSettled([openOne(), openOther()])
  if (one.status === 'fulfilled' && other.status === 'fulfilled') return [one.value, other.value]
  for (const each of [one, other]) if (each.status === 'fulfilled') await each.value.close()
  throw one.status === 'rejected' ? one.reason : (other as PromiseRejectedResult).reason
}

interface Closable {
  close(): Promise<void>
}

/** Waits for work, but not for long: it goes on, and fails later with `onError`. */
export async function atMost(ms: number, work: Promise<unknown>, onError: (error: unknown) => void): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const over = new Promise<boolean>((resolve) => {
    timer = setTimeout(resolve, ms, true)
  })
  try {
    if (await Promise.race([work.then(() => false), over])) work.catch(onError)
  } finally {
    clearTimeout(timer)
  }
}
