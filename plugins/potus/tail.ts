/** Following the live feed: one look at the store a second, however many follow; each reads on from its own place. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { ServerEvent } from 'tollgate/plugin'

const LOOK_MS = 1000
const PORTION = 100

export interface Follower<Row> {
  /** Rows numbered above a place, oldest first. */
  readonly read: (after: number, limit: number) => Promise<readonly Row[]>
  /** What is sent of them; null for a row that is passed over. */
  readonly show: (rows: readonly Row[]) => Promise<readonly (ServerEvent | null)[]>
}

export interface Tail {
  /** Events after a place until the reader leaves: in order, none left out and none twice. */
  follow<Row extends { readonly seq: number }>(after: number, follower: Follower<Row>): AsyncIterable<ServerEvent>
}

/** `newest` is the highest number there is; asked once a second while anybody follows. */
export function createTail(newest: () => Promise<number>): Tail {
  let looking: Promise<number> | null = null
  const look = (): Promise<number> =>
    (looking ??= sleep(LOOK_MS, undefined, { ref: false })
      .then(newest)
      .finally(() => {
        looking = null
      }))

  async function* events<Row extends { readonly seq: number }>(
    after: number,
    { read, show }: Follower<Row>,
    leaving: { left: boolean },
  ): AsyncGenerator<ServerEvent> {
    let place = after
    let highest = Infinity
    while (!leaving.left) {
      const rows = highest > place ? await read(place, PORTION) : []
      for (const event of await show(rows)) if (event) yield event
      place = rows.at(-1)?.seq ?? place
      if (rows.length < PORTION && !leaving.left) highest = await look()
    }
  }

  return {
    follow: (after, follower) => ({
      [Symbol.asyncIterator]() {
        // A generator that waits would hear of its end only with its next event.
        const leaving = { left: false }
        const running = events(after, follower, leaving)
        return {
          next: () => running.next(),
          async return() {
            leaving.left = true
            return { done: true, value: undefined }
          },
        }
      },
    }),
  }
}
