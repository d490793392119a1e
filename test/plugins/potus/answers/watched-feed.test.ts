/** What an answer says about who watched: so that "nothing happened" can be told from "nobody looked". */
import { expect } from 'chai'
import type { PotusWatched } from '../../../../schemas/types.d.ts'
import { LIVE, OLD_RELEASE, openTestFeed, postId, postsOf, rssOf, type TestFeed } from '../test-feed.ts'

const MINUTE = 60_000
const NOON = Date.UTC(2026, 4, 1, 12)
const TWO = { 'wh.news': {}, 'truth.mirror': {} }

interface Page {
  readonly watched: PotusWatched
  readonly count: number
  readonly windows: readonly { readonly coverage: number; readonly count: number }[]
}

/** Only the White House and the mirror are on. */
async function openFeed(): Promise<TestFeed> {
  const others = ['fr.pi', 'fr.docs', 'truth.archive', 'fed.press', 'fed.speeches', 'state.press']
  const settings = { ...TWO, ...Object.fromEntries(others.map((id) => [id, { enabled: false }])) }
  return openTestFeed({ time: NOON, settings })
}

describe('what was watched', () => {
  let feed: TestFeed
  beforeEach(async () => {
    feed = await openFeed()
  })
  afterEach(() => feed.close())

  const post = { id: postId(NOON - MINUTE), text: 'A post.', at: NOON - MINUTE }
  const polls = {
    release: () => feed.poll('wh.news', rssOf([OLD_RELEASE])),
    post: () => feed.poll('truth.mirror', postsOf([post])),
    failure: () => feed.poll('truth.mirror', null, { status: 500 }),
  }
  /** Polls both sources every minute, the mirror with this. */
  const watch = async (minutes: number, mirror: () => Promise<unknown> = polls.post): Promise<void> => {
    for (let i = 0; i < minutes; i += 1) {
      feed.time += MINUTE
      await polls.release()
      await mirror()
    }
  }
  const begin = async (): Promise<void> => {
    await polls.release()
    await polls.post()
  }
  const minutes = (from: number, to: number, query: object = {}): Promise<Page> =>
    feed.ask<Page>('getPotusEvents1m', { query: { from, to, ...query } })

  it('makes an empty window an answer that says so', async () => {
    await begin()
    await watch(12)
    const page = await minutes(NOON + 2 * MINUTE, NOON + 10 * MINUTE, { include_empty: true })
    expect(page.windows.map(({ coverage, count }) => [coverage, count])).to.deep.equal(
      Array.from({ length: 8 }, () => [1, 0]),
    )
    expect(page.watched).to.deep.equal({
      sources: 2,
      sources_late: 0,
      coverage: 1,
      newest_poll: '2026-05-01T12:12:00Z',
      late: [],
    })
    const quarter = await feed.ask<Page>('getPotusEvents15m', {
      query: { from: NOON, to: NOON + 15 * MINUTE },
      access: LIVE,
    })
    expect([quarter.count, quarter.watched.sources]).to.deep.equal([0, 2])
  })

  it('ends with a failed poll and begins again with the next good one', async () => {
    await begin()
    await watch(5)
    await watch(5, polls.failure)
    const failing = await minutes(NOON, NOON + 8 * MINUTE, { include_empty: true })
    expect(failing.windows.map(({ coverage }) => coverage)).to.deep.equal([1, 1, 1, 1, 1, 1, 0.5, 0.5])
    expect(failing.watched).to.deep.include({
      sources_late: 1,
      late: [{ id: 'truth.mirror', status: 'failing', last_success: '2026-05-01T12:05:00Z' }],
    })
    await watch(5)
    const after = await minutes(NOON, NOON + 14 * MINUTE, { include_empty: true })
    expect(after.windows.map(({ coverage }) => coverage)).to.deep.equal([
      1, 1, 1, 1, 1, 1, 0.5, 0.5, 0.5, 0.5, 0.5, 1, 1, 1,
    ])
    expect(after.watched).to.deep.include({ sources_late: 0, late: [] })
    // A closed window stays as it was.
    expect(after.windows.slice(0, 8)).to.deep.equal(failing.windows)
  })

  it('ends when the source has not been polled for as long as it may be late', async () => {
    await begin()
    feed.time += 60 * MINUTE
    await begin()
    feed.time += 2 * MINUTE
    const page = await minutes(NOON, NOON + 60 * MINUTE)
    expect(page.watched.coverage).to.equal(0.25)
  })

  it('lists a source whose entries cannot be read, until its next body can be', async () => {
    await begin()
    const broken = postsOf([post]).replace('<item>', '<item></item><item>')
    await watch(2, () => feed.poll('truth.mirror', broken))
    expect((await minutes(NOON, NOON + 2 * MINUTE)).watched.late).to.deep.equal([
      { id: 'truth.mirror', status: 'degraded', last_success: '2026-05-01T12:02:00Z' },
    ])
    const releases = rssOf([OLD_RELEASE])
    expect(await feed.poll('wh.news', releases.replace('<item>', '<item/><item>'))).to.include({ fresh: 0 })
    expect((await minutes(NOON, NOON + 2 * MINUTE)).watched.late.map(({ id }) => id)).to.deep.equal([
      'wh.news',
      'truth.mirror',
    ])
    const live = await feed.ask<{ state: { sources_late: number } }>('getPotusLive')
    expect(live.state.sources_late).to.equal(2)
    await watch(1, () => feed.poll('truth.mirror', postsOf([post, { ...post, id: postId(NOON), text: 'Another.' }])))
    expect((await minutes(NOON, NOON + 2 * MINUTE)).watched.late).to.deep.equal([])
  })

  it('is empty before the first poll, and a range without events of that time is not sold', async () => {
    await begin()
    await watch(3)
    const refused = await minutes(NOON - 60 * MINUTE, NOON - 30 * MINUTE).then(
      () => expect.fail('answered'),
      (error: Error) => error,
    )
    expect(refused).to.include({ code: 'not_held' })
    const entities = await feed
      .ask('getPotusEntities', { query: { from: NOON - 60 * MINUTE, to: NOON - 30 * MINUTE } })
      .then(
        () => expect.fail('answered'),
        (error: Error) => error,
      )
    expect(entities).to.include({ code: 'not_held' })
  })

  it('is told with entities and with a single event, since when it is known', async () => {
    await begin()
    await watch(9)
    await watch(3, polls.failure)
    const { watched } = await feed.ask<{ watched: PotusWatched }>('getPotusEvent', { params: { selector: 'latest' } })
    expect(watched).to.deep.include({ sources: 2, sources_late: 1, newest_poll: '2026-05-01T12:12:00Z' })
    const entities = await feed.ask<{ watched: PotusWatched }>('getPotusEntities', { query: { from: NOON } })
    expect(entities.watched.coverage).to.be.within(0.9, 0.95)
    expect(entities.watched.late.map(({ id }) => id)).to.deep.equal(['truth.mirror'])
  })
})
