/** What a source may send instead of its feed. */
import { expect } from 'chai'
import { rssOf, type TestFeed, OLD_RELEASE, openPolledTestFeed } from '../test-feed.ts'

const MINUTE = 60_000

describe('the intake of source bodies', () => {
  let feed: TestFeed
  beforeEach(async () => {
    feed = await openPolledTestFeed()
  })
  afterEach(() => feed.close())
  const items = async (query: object = {}): Promise<{ title: string | null; text: string; available_at: string }[]> =>
    (
      await feed.ask<{ items: { title: string | null; text: string; available_at: string }[] }>('getPotusLive', {
        query: { limit: 100, ...query },
      })
    ).items

  const bad: Readonly<Record<string, readonly [string, string]>> = {
    'a page with status 200': ['<!doctype html><html><body>File Not Found</body></html>', 'not_a_feed'],
    'an error message of 65 bytes': ['The resource you are looking for is temporarily unavailable now..', 'not_a_feed'],
    'an empty body': ['', 'empty'],
    'a body of spaces': [' \n', 'empty'],
    'JSON instead of XML': ['{"items":[]}', 'not_a_feed'],
    'a truncated feed': [rssOf([OLD_RELEASE]).slice(0, 300), 'truncated'],
    'a feed without items': [rssOf([]), 'too_few_items'],
    'a feed from the future': [rssOf([{ key: 'f', text: 'x', at: Date.UTC(2026, 4, 3, 12) }]), 'future_date'],
    'a feed without dates': [rssOf([OLD_RELEASE]).replace(/<pubDate>.*?<\/pubDate>/, ''), 'bad_date'],
  }
  for (const [name, [body, reason]] of Object.entries(bad))
    it(`quarantines ${name} and publishes nothing`, async () => {
      const before = await items()
      expect(await feed.poll('wh.news', body)).to.include({ outcome: 'quarantined', fresh: 0 })
      const row = (await feed.db('potus_polls').where({ outcome: 'quarantined' }).first()) as {
        detail: string
        body: Buffer
      }
      expect(row.detail).to.match(new RegExp(`^${reason}: `))
      expect(row.body.length).to.be.greaterThan(0)
      const { feeds } = await feed.ask<{
        feeds: { id: string; status: string; consecutive_failures: number; last_failure: string }[]
      }>('getPotusFeeds')
      expect(feeds.find(({ id }) => id === 'wh.news')).to.include({
        status: 'failing',
        consecutive_failures: 1,
        last_failure: row.detail,
      })
      expect(await items()).to.deep.equal(before)
    })

  it('reads a byte-order mark and unescaped ampersands', async () => {
    const body = `\uFEFF${rssOf([{ key: 'bom', title: 'Trade & Tariffs', text: 'Beef & soybeans.', at: feed.time - MINUTE }, OLD_RELEASE])}`
    expect(await feed.poll('wh.news', body)).to.include({ outcome: 'new', fresh: 1 })
    expect((await items())[0]).to.include({ title: 'Trade & Tariffs', text: 'Beef & soybeans.' })
  })

  it('postpones an item that is dated slightly ahead until its time comes', async () => {
    const soon = { key: 'soon', text: 'Embargoed by two minutes.', at: feed.time + 2 * MINUTE }
    const body = rssOf([soon, OLD_RELEASE])
    expect(await feed.poll('wh.news', body)).to.include({ fresh: 0 })
    feed.time += 3 * MINUTE
    expect(await feed.poll('wh.news', body)).to.include({ outcome: 'new', fresh: 1 })
    expect((await items())[0]?.available_at).to.equal(new Date(feed.time).toISOString().replace('.000Z', 'Z'))
  })
})
