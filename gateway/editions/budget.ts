/** A time budget for work that may not end by itself. */
import { ServiceError } from '../errors.ts'

/**
 * Runs the work with a signal that aborts when the time is spent or the outer signal aborts. Then the promise is
 * abandoned and ServiceError product_timeout is thrown at once.
 */
export async function withinBudget<Value>(
  seconds: number,
  outer: AbortSignal,
  work: (signal: AbortSignal) => Value | Promise<Value>,
): Promise<Value> {
  const budget = new AbortController()
  const { signal } = budget
  const ended = new Promise<never>((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason as ServiceError), { once: true })
  })
  const stop = (message: string): void => budget.abort(new ServiceError('product_timeout', message))
  const leave = (): void => stop('The caller left before the answer; nothing was charged.')
  const timer = setTimeout(
    () => stop(`The product took longer than ${seconds} second${seconds === 1 ? '' : 's'}; nothing was charged.`),
    seconds * 1000,
  )
  if (outer.aborted) leave()
  else outer.addEventListener('abort', leave, { once: true })
  try {
    return await Promise.race([ended, signal.aborted ? ended : (async () => work(signal))()])
  } finally {
    clearTimeout(timer)
    outer.removeEventListener('abort', leave)
  }
}
