/** Work that may never end, such as the start of foreign code: waited for once, and not again while it still hangs. */

/** It took too long, or still hangs from an earlier time; the message goes on from the name of what hangs. */
export class TooLong extends Error {}

/**
 * Runs `work` and waits for it `seconds` long, then throws TooLong. While work of the same key still hangs, it is not
 * begun again: TooLong is thrown at once, so that one that hangs holds nothing up twice.
 */
export type Patience = <Value>(key: string, seconds: number, what: string, work: () => Promise<Value>) => Promise<Value>

export function createPatience(): Patience {
  const hanging = new Set<string>()
  return async (key, seconds, what, work) => {
    const late = (): TooLong => new TooLong(`${what} within ${seconds} seconds. Let it come to an end.`)
    if (hanging.has(key)) throw late()
    const worked = work()
    let timer: NodeJS.Timeout | undefined
    const over = new Promise<never>((_, reject) => {
      timer = setTimeout(() => {
        hanging.add(key)
        const end = (): void => void hanging.delete(key)
        worked.then(end, end)
        reject(late())
      }, seconds * 1000)
    })
    try {
      return await Promise.race([worked, over])
    } finally {
      clearTimeout(timer)
    }
  }
}
