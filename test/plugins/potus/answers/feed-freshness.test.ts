/** How fresh the feed says it is, on which the gateway decides whether it sells. */
import { expect } from 'chai'
import { missingOf } from '../../../../gateway/products/freshness.ts'
import { feedFreshness } from '../../../../plugins/potus/answers/feed-freshness.ts'
import { createStoredFigures } from '../../../../plugins/potus/answers/feed-figures.ts'
import { catalog, openTestFeed, postId, postsOf, rssOf, type TestFeed } from '../test-feed.ts'

const START = Date.UTC(2026, 4, 1, 12)
const MINUTE = 60_000
const DAY = 86_400_000

describe('the freshness of the feed', () => {
  let feed: TestFeed
  beforeEach(async () => {
    feed = await openTestFeed({ time: START })
  })
  afterEach(() => feed.close())

  const freshness = (asOf = feed.time) =>
    feedFreshness(createStoredFigures(feed.db), [...feed.sources.values()], new Date(asOf), feed.time)
  const poll = async (): Promise<void> => {
    await feed.poll('wh.news', rssOf([{ key: 'a', text: 'A release.', at: START - MINUTE }]))
    await feed.poll('truth.mirror', postsOf([{ id: postId(START), text: 'A post.', at: START }]))
  }

  it('is unknown before the first poll', async () => {
    expect(await freshness()).to.deep.equal({ newest: null, sources: 0, coverage: 0 })
  })

  it('is that of the last successful poll, whether or not it found anything, and counts the sources that answer', async () => {
    await poll()
    const enabled = [...feed.sources.values()].filter((source) => source.enabled).length
    expect(await freshness()).to.deep.equal({ newest: new Date(START), sources: 2, coverage: 2 / enabled })
    feed.time += 30 * MINUTE
    await feed.poll('wh.news', rssOf([{ key: 'a', text: 'A release.', at: START - MINUTE }]))
    expect(await freshness()).to.include({ sources: 1 })
    expect((await freshness()).newest).to.deep.equal(new Date(feed.time))
  })

  it('does not grow with failures, and ends with the sources', async () => {
    await poll()
    feed.time += 3 * 3_600_000
    await feed.poll('wh.news', null, { status: 500 })
    expect(await freshness()).to.deep.equal({ newest: new Date(START), sources: 0, coverage: 0 })
    const { fresh } = catalog.operations.get('getPotusLive')!
    expect(fresh).to.deep.include({ newestSeconds: 900, sources: 2 })
  })

  it('counts a source no longer once its last poll failed or had entries that cannot be read, until the next good one', async () => {
    await poll()
    feed.time += MINUTE
    await feed.poll('wh.news', '<rss><channel></channel></rss>')
    expect((await freshness()).sources).to.equal(1)
    const post = { id: postId(START), text: 'A post.', at: START }
    await feed.poll('truth.mirror', postsOf([post]).replace('<item>', '<item></item><item>'))
    expect((await freshness()).sources).to.equal(0)
    feed.time += MINUTE
    await feed.poll('truth.mirror', postsOf([post, { ...post, id: postId(START + 1), text: 'Another.' }]))
    await feed.poll('wh.news', rssOf([{ key: 'a', text: 'A release.', at: START - MINUTE }]))
    expect((await freshness()).sources).to.equal(2)
  })

  it('is too little for every plan while some of the sources fail', async () => {
    await poll()
    const found = await freshness()
    for (const { plan, fresh } of catalog.plans.plans) {
      expect(fresh, plan).to.include({ coverage: 0.9 })
      expect(missingOf(fresh!, found, new Date(feed.time)), plan).to.deep.equal(['coverage'])
    }
    feed.time += MINUTE
    await feed.poll('wh.news', null, { status: 500 })
    const archive = catalog.plans.plans.find(({ plan }) => plan === 'archive-30d')!
    expect(missingOf(archive.fresh!, await freshness(), new Date(feed.time))).to.deep.equal(['sources', 'coverage'])
  })

  it('is never later than the caller may see', async () => {
    await poll()
    expect((await freshness(START - DAY)).newest).to.deep.equal(new Date(START - DAY))
  })

  it('does not let an empty range of the archive be sold: 404 with the range that is held', async () => {
    const ask = (query: object): Promise<Error & { fields?: { nearest: unknown } }> =>
      feed.ask('getPotusArchive', { query }).then(
        () => expect.fail('answered'),
        (error: Error) => error,
      )
    expect(await ask({})).to.include({ code: 'not_held' })
    await feed.poll('wh.news', rssOf([{ key: 'old', text: 'An old release.', at: START - 10 * DAY }]))
    const early = await ask({ to: START - 20 * DAY })
    expect(early).to.include({ code: 'not_held' })
    expect(early.message).to.match(/holds events from 2026-04-21/)
    for (const filter of [{ q: 'nowhere' }, { kinds: 'social' }, { source: 'wh.news' }, { topics: 'trade' }])
      expect(await ask({ to: START - 20 * DAY, ...filter }), JSON.stringify(filter)).to.include({ code: 'not_held' })
    expect(await feed.ask('getPotusArchive', { query: { q: 'nowhere' } })).to.include({ count: 0 })
  })
})
