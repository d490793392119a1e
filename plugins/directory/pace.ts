import { neighbourhood } from './inside.ts'

/** Runs work towards an address when its neighbourhood's turn has come. */
export type Pace = <Value>(address: string, signal: AbortSignal, work: () => Promise<Value>) => Promise<Value>

const AT_ONCE = 8
const APART_MS = 500

/**
 * At most `atOnce` requests in all, and one at a time to a neighbourhood (/24, or /48 of IPv6) with a pause after each,
 * so that a list of a thousand addresses at one host is no flood.
 */
export function createPace({ atOnce = AT_ONCE, apartMs = APART_MS } = {}): Pace {
  const turns = new Map<string, Promise<void>>()
  const waiting: (() => void)[] = []
  let running = 0

  async function take(): Promise<void> {
    if (running >= atOnce) await new Promise<void>((resolve) => waiting.push(resolve))
    else running += 1
  }
  function give(): void {
    const next = waiting.shift()
    if (next) next()
    else running -= 1
  }

  return async (address, signal, work) => {
    const key = neighbourhood(address)
    const before = turns.get(key) ?? Promise.resolve()
    const { promise: mine, resolve: done } = deferred()
    const turn = before.then(() => mine)
    turns.set(key, turn)
    try {
      await within(before, signal)
      await take()
      try {
        return await work()
      } finally {
        give()
      }
    } finally {
      setTimeout(() => {
        done()
        if (turns.get(key) === turn) turns.delete(key)
      }, apartMs).unref()
    }
  }
}

/** A promise that may never be kept, given up with the signal. */
export function within<Value>(work: Promise<Value>, signal: AbortSignal): Promise<Value> {
  return new Promise((resolve, reject) => {
    const leave = (): void => reject(signal.reason as Error)
    if (signal.aborted) leave()
    signal.addEventListener('abort', leave, { once: true })
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', leave))
  })
}

function deferred(): { promise: Promise<void>; resolve: () => void } {
  let resolve = (): void => undefined
  const promise = new Promise<void>((keep) => {
    resolve = keep
  })
  return { promise, resolve }
}
