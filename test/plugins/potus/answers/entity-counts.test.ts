/** How often the feed names somebody, compared with the time before. */
import { expect } from 'chai'
import { openTestFeed, postId, postsOf, type TestFeed } from '../test-feed.ts'

const HOUR = 3_600_000
const NOON = Date.UTC(2026, 4, 1, 12)

interface Entities {
  readonly items: readonly {
    readonly id: string
    readonly count: number
    readonly count_before: number
    readonly change: number
  }[]
}

describe('the entities of the feed', () => {
  let feed: TestFeed
  beforeEach(async () => {
    feed = await openTestFeed({ time: NOON - 9 * HOUR })
    const old = NOON - 40 * HOUR
    await feed.poll('truth.mirror', postsOf([{ id: postId(old), text: 'An old post.', at: old }]))
    for (const at of [NOON - 5 * HOUR, NOON + HOUR]) {
      feed.time = at
      await feed.poll('truth.mirror', postsOf([{ id: postId(at), text: `Tariffs on Canada since ${at}.`, at }]))
    }
    feed.time = NOON + 2 * HOUR
  })
  afterEach(() => feed.close())

  const canada = async (from: number, to: number) => {
    const { items } = await feed.ask<Entities>('getPotusEntities', { query: { from, to } })
    const found = items.find(({ id }) => id === 'place:CA')
    return found && [found.count, found.count_before, found.change]
  }

  it('are compared with the range before, which is of the same length', async () => {
    expect(await canada(NOON - 2 * HOUR, NOON + 2 * HOUR)).to.deep.equal([1, 1, 0])
    expect(await canada(NOON, NOON + 2 * HOUR)).to.deep.equal([1, 0, 1])
  })

  it('are compared with no more than has passed of a range that goes on', async () => {
    expect(await canada(NOON, NOON + 10 * HOUR)).to.deep.equal([1, 0, 1])
  })
})
