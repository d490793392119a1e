/**
 * Collects items while a batch is in progress and sends them together as the next one. While nothing is in progress, an
 * item is sent at once; a full batch never waits.
 */

/** A batch that was sent: each item's own result in order, and when the next batch may follow. */
export interface SentBatch<Result> {
  readonly results: readonly PromiseSettledResult<Result>[]
  readonly over: Promise<unknown>
}

/** Returns a function that adds an item and resolves with its own result. `sendBatch` gets 1 to `size` items; if it throws,
 * all of them fail. */
export function createBatches<Item, Result>(
  size: number,
  sendBatch: (items: readonly Item[]) => Promise<SentBatch<Result>>,
): (item: Item) => Promise<Result> {
  interface Waiting {
    readonly item: Item
    readonly resolve: (result: Result) => void
    readonly reject: (error: unknown) => void
  }
  const waiting: Waiting[] = []
  let underWay = 0

  async function run(group: readonly Waiting[]): Promise<void> {
    try {
      const { results, over } = await sendBatch(group.map(({ item }) => item))
      for (const [at, { resolve, reject }] of group.entries()) {
        const result = results[at]
        if (result?.status === 'fulfilled') resolve(result.value)
        else reject(result?.reason)
      }
      await over
    } catch (error) {
      for (const { reject } of group) reject(error)
    }
  }

  function pump(): void {
    while (waiting.length >= size || (waiting.length > 0 && underWay === 0)) {
      underWay += 1
      void run(waiting.splice(0, size)).then(() => {
        underWay -= 1
        pump()
      })
    }
  }

  return (item) =>
    new Promise((resolve, reject) => {
      waiting.push({ item, resolve, reject })
      // Items of the same tick share a batch.
      queueMicrotask(pump)
    })
}
