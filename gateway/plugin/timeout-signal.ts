/** Signals that abort after some time. */

/**
 * Creates a signal that aborts with a `TimeoutError` after `milliseconds`, as `AbortSignal.timeout` does, and that can be
 * combined with others: `AbortSignal.any([signal, timeoutSignal(5_000)])`.
 *
 * `AbortSignal.any` refers to its signals weakly, and Node collects a timeout that nothing else refers to. The combined
 * signal then never aborts, so a request to a silent server never ends. A listener keeps the timeout until it is over.
 *
 * Source: https://github.com/nodejs/node/issues/57736
 */
export function timeoutSignal(milliseconds: number): AbortSignal {
  const timeout = AbortSignal.timeout(milliseconds)
  timeout.addEventListener('abort', () => {}, { once: true })
  return timeout
}
