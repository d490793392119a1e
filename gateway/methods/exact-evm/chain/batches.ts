/**
 * Gathers what waits while something is under way, and launches it together. With nothing under way one that comes
 * alone leaves alone and at once; a full batch never waits.
 */

/** What became of a launch: each item's own result in order, and when the next batch may follow. */
export interface Launch<Result> {
  readonly results: readonly PromiseSettledResult<Result>[]
  readonly over: Promise<unknown>
}

/** Returns `add`, which resolves with the item's own result. `launch` takes 1 to `size` items; its throw is everybody's. */
export function createBatches<Item, Result>(
  size: number,
  launch: (items: readonly Item[]) => Promise<Launch<Result>>,
): (item: Item) => Promise<Result> {
  interface Waiting {
    readonly item: Item
    readonly resolve: (result: Result) => void
    readonly reject: (error: unknown) => void
  }
  const waiting: Waiting[] = []
  let underWay = 0

  async function leave(group: readonly Waiting[]): Promise<void> {
    try {
      const { results, over } = await launch(group.map(({ item }) => item))
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
      void leave(waiting.splice(0, size)).then(() => {
        underWay -= 1
        pump()
      })
    }
  }

  return (item) =>
    new Promise((resolve, reject) => {
      waiting.push({ item, resolve, reject })
      // What comes in the same tick leaves together.
      queueMicrotask(pump)
    })
}
