/** What the feed reports about its sources. */
import { expect } from 'chai'
import { rssOf, type TestFeed, openTestFeed } from '../test-feed.ts'

const DAY = 86_400_000
const START = Date.UTC(2026, 4, 1, 12)

describe('the health of the sources', () => {
  let feed: TestFeed
  beforeEach(async () => {
    feed = await openTestFeed({ time: START, dataMode: 'replay' })
    await feed.poll('wh.news', rssOf([{ key: 'a', text: 'A release.', at: START }]))
    feed.time += 60_000
    await feed.poll('wh.news', '<html></html>')
  })
  afterEach(() => feed.close())
  const health = async (asOf?: number): Promise<Record<string, unknown> | undefined> =>
    (await feed.ask<{ feeds: { id: string }[] }>('getPotusFeeds', asOf === undefined ? {} : { asOf })).feeds.find(
      ({ id }) => id === 'wh.news',
    )

  it('shows when a source was last polled, last succeeded and last changed, however long ago', async () => {
    const expected = {
      last_attempt: '2026-05-01T12:01:00Z',
      last_success: '2026-05-01T12:00:00Z',
      last_change: '2026-05-01T12:00:00Z',
      last_item_at: '2026-05-01T12:00:00Z',
      consecutive_failures: 1,
      status: 'failing',
    }
    expect(await health()).to.include({ ...expected, items_24h: 1 })
    feed.time += 30 * DAY
    expect(await health()).to.include({ ...expected, items_24h: 0, http_304_share: null })
  })

  it('shows nothing from before the first poll', async () => {
    expect(await health(START - 1)).to.include({ last_attempt: null, last_success: null, consecutive_failures: 0 })
    expect(await health(START)).to.include({ last_attempt: '2026-05-01T12:00:00Z', consecutive_failures: 0 })
  })
})
