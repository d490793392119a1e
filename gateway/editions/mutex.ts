/** Work that must not overlap itself, asked for more often than it can be done. */

/**
 * Runs `work` one at a time. Whoever asks while it runs waits for one more run, begun after that and shared by all who
 * asked meanwhile: each caller's run starts after its call.
 */
export function oneAtATime<Result>(work: () => Promise<Result>): () => Promise<Result> {
  let running: Promise<Result> | null = null
  let next: Promise<Result> | null = null

  function run(): Promise<Result> {
    const current = work().finally(() => {
      running = null
    })
    running = current
    return current
  }

  return () => {
    if (running === null) return run()
    next ??= running
      .catch(() => {})
      .then(() => {
        next = null
        return run()
      })
    return next
  }
}
