import { EventEmitter, once } from 'node:events'
import { expect } from 'chai'
import type { ServerEvent } from 'tollgate/plugin'
import { createTail } from '../../../../plugins/potus/answers/live-feed.ts'

interface Row {
  readonly seq: number
}

describe('the tail of the live feed', () => {
  it('checks the store once for a hundred followers, and reads only when there is something new', async () => {
    const rows: Row[] = [{ seq: 1 }]
    let [checkCount, readCount] = [0, 0]
    const checks = new EventEmitter()
    const tail = createTail(async () => {
      checkCount += 1
      checks.emit('check')
      return rows.at(-1)?.seq ?? 0
    }, 10)
    const follower = {
      async read(after: number, limit: number) {
        readCount += 1
        return rows.filter(({ seq }) => seq > after).slice(0, limit)
      },
      show: async (shown: readonly Row[]) => shown.map(({ seq }): ServerEvent => ({ id: String(seq), data: seq })),
    }
    const receivedIds = Array.from({ length: 100 }, (): string[] => [])
    const ended = receivedIds.map(async (ids) => {
      for await (const { id } of tail.follow<Row>(0, follower)) {
        ids.push(String(id))
        if (id === '5') return
      }
    })
    while (checkCount < 3) await once(checks, 'check')
    // Three checks without anything new: each follower has read once, and not again.
    expect(readCount).to.equal(100)
    rows.push({ seq: 2 }, { seq: 3 }, { seq: 4 }, { seq: 5 })
    await Promise.all(ended)
    expect(new Set(receivedIds.map((ids) => ids.join(' ')))).to.deep.equal(new Set(['1 2 3 4 5']))
    expect(readCount).to.equal(200)
    expect(checkCount).to.be.below(20)
  })

  it('reads in batches until it has caught up, and skips rows that are not shown', async () => {
    const rows = Array.from({ length: 250 }, (_, at): Row => ({ seq: at + 1 }))
    const batchSizes: number[] = []
    const tail = createTail(async () => 250)
    const follower = {
      async read(after: number, limit: number) {
        const batch = rows.filter(({ seq }) => seq > after).slice(0, limit)
        batchSizes.push(batch.length)
        return batch
      },
      show: async (shown: readonly Row[]) =>
        shown.map(({ seq }): ServerEvent | null => (seq % 50 === 0 ? { id: String(seq), data: seq } : null)),
    }
    const ids: string[] = []
    for await (const { id } of tail.follow<Row>(0, follower)) {
      ids.push(String(id))
      if (id === '250') break
    }
    expect(ids).to.deep.equal(['50', '100', '150', '200', '250'])
    expect(batchSizes).to.deep.equal([100, 100, 50])
  })

  it('ends with the error when the store cannot be read', async () => {
    const tail = createTail(async () => {
      throw new Error('no store')
    })
    const silent = { read: async (): Promise<Row[]> => [], show: async () => [] }
    const events = tail.follow<Row>(0, silent)[Symbol.asyncIterator]()
    const error: unknown = await events.next().catch((thrown: unknown) => thrown)
    expect((error as Error).message).to.equal('no store')
  })
})
