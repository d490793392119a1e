/** What an answer says about who watched: so that "nothing happened" can be told from "nobody looked". */
import { expect } from 'chai'
import type { PotusWatched } from '../../../../schemas/types.d.ts'
import {
  type AskOptions,
  catalog,
  LIVE,
  OLD_RELEASE,
  openTestFeed,
  postId,
  postsOf,
  rssOf,
  type TestFeed,
  TWO_SOURCES,
} from '../test-feed.ts'

const MINUTE = 60_000
const NOON = Date.UTC(2026, 4, 1, 12)

interface Page {
  readonly watched: PotusWatched
  readonly count: number
  readonly windows: readonly { readonly coverage: number; readonly count: number }[]
}

describe('what was watched', () => {
  let feed: TestFeed
  beforeEach(async () => {
    feed = await openTestFeed({ time: NOON, settings: TWO_SOURCES })
  })
  afterEach(() => feed.close())

  const post = { id: postId(NOON - MINUTE), text: 'A post.', at: NOON - MINUTE }
  const polls = {
    release: () => feed.poll('wh.news', rssOf([OLD_RELEASE])),
    post: () => feed.poll('truth.mirror', postsOf([post])),
    failure: () => feed.poll('truth.mirror', null, { status: 500 }),
  }
  /** Polls both sources every minute, the mirror with this. */
  const watch = async (times: number, mirror: () => Promise<unknown> = polls.post, every = MINUTE): Promise<void> => {
    for (let i = 0; i < times; i += 1) {
      feed.time += every
      await polls.release()
      await mirror()
    }
  }
  const begin = async (): Promise<void> => {
    await polls.release()
    await polls.post()
  }
  const minutes = (from: number, to: number, query: object = {}, options: AskOptions = {}): Promise<Page> =>
    feed.ask<Page>('getPotusEvents1m', { query: { from, to, ...query }, ...options })
  const subscribed = { access: LIVE }

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
    const failing = await minutes(NOON, NOON + 8 * MINUTE, { include_empty: true }, subscribed)
    expect(failing.windows.map(({ coverage }) => coverage)).to.deep.equal([1, 1, 1, 1, 1, 1, 0.5, 0.5])
    expect(failing.watched).to.deep.include({
      sources_late: 1,
      late: [{ id: 'truth.mirror', status: 'failing', last_success: '2026-05-01T12:05:00Z' }],
    })
    await watch(5)
    const after = await minutes(NOON, NOON + 14 * MINUTE, { include_empty: true }, subscribed)
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
    const page = await minutes(NOON, NOON + 60 * MINUTE, {}, subscribed)
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

  describe('too little for an answer without events', () => {
    interface Refusal extends Error {
      readonly code: string
      readonly fields: { readonly nearest: { readonly start: string; readonly end: string } | null }
    }
    const refusal = (operation: string, query: object): Promise<Refusal> =>
      feed.ask(operation, { query }).then(
        () => expect.fail('answered'),
        (error: Refusal) => error,
      )
    const EVENING = NOON + 10 * 60 * MINUTE
    const hours = { from: NOON + 20 * MINUTE, to: EVENING }
    /** Both sources are watched for 27 minutes from noon, and again from ten in the evening on. */
    beforeEach(async () => {
      await begin()
      await watch(12)
      feed.time = EVENING
      await begin()
      await watch(7)
    })

    it('is not sold, and the nearest time that was watched well enough is, by itself', async () => {
      for (const operation of ['getPotusEvents1m', 'getPotusEvents15m', 'getPotusEntities']) {
        const { code, message, fields } = await refusal(operation, hours)
        expect([code, message.slice(0, 22)], operation).to.deep.equal(['not_held', 'Only 1.2 % of the time'])
        expect(fields.nearest?.start, operation).to.equal('2026-05-01T12:00:00.000Z')
      }
      const { nearest } = (await refusal('getPotusEvents1m', { ...hours, from: NOON + 8 * 60 * MINUTE })).fields
      expect(nearest).to.deep.equal({ start: '2026-05-01T22:00:00.000Z', end: '2026-05-01T22:06:00.000Z' })
      const page = await feed.ask<Page>('getPotusEvents1m', { query: { from: nearest?.start, to: nearest?.end } })
      expect([page.count, page.watched.coverage]).to.deep.equal([0, 1])
      // Long before anybody watched, the nearest time is the first.
      const before = await refusal('getPotusEvents1m', { from: NOON - 90 * 60 * MINUTE, to: NOON - 80 * 60 * MINUTE })
      expect(before.fields.nearest).to.deep.equal({
        start: '2026-05-01T12:00:00.000Z',
        end: '2026-05-01T12:27:00.000Z',
      })
    })

    it('is judged page by page, by the windows that a page shows', async () => {
      const query = { from: NOON, to: EVENING, include_empty: true, limit: 15 }
      const first = await feed.ask<Page & { next_cursor: string }>('getPotusEvents1m', { query })
      expect(first.count).to.equal(15)
      const second = await refusal('getPotusEvents1m', { ...query, cursor: first.next_cursor })
      expect(second).to.include({ code: 'not_held' })
    })

    it('is what a subscriber gets, with the coverage', async () => {
      const page = await feed.ask<Page>('getPotusEvents1m', { query: hours, access: LIVE })
      expect([page.count, page.watched.coverage]).to.deep.equal([0, 0.012])
    })

    it('is no reason to refuse events that were found', async () => {
      feed.time = NOON + 5 * 60 * MINUTE
      const late = { id: postId(feed.time), text: 'Another post about Canada.', at: feed.time }
      await feed.poll('truth.mirror', postsOf([late, post]))
      feed.time = EVENING + 10 * MINUTE
      const page = await feed.ask<Page>('getPotusEvents1m', { query: hours })
      expect(page.count).to.equal(1)
      expect(page.watched.coverage).to.be.below(0.1)
    })

    it('is what the settings say', async () => {
      const lenient = await openTestFeed({ time: feed.time, db: feed.db, settings: TWO_SOURCES, emptyCoverage: 0.01 })
      expect(await lenient.ask<Page>('getPotusEvents1m', { query: hours })).to.include({ count: 0 })
    })
  })

  describe('by the live feed', () => {
    interface Live {
      readonly count: number
      readonly next_since_seq: number
      readonly watched: PotusWatched
    }
    const live = (query: object = {}, options: AskOptions = {}): Promise<Live> =>
      feed.ask<Live>('getPotusLive', { query, ...options })
    const orders = { kinds: 'action' }

    it('is part of every page: over the last 24 hours, or since the item that a client continues from', async () => {
      await begin()
      feed.time = NOON + 24 * 60 * MINUTE
      await begin()
      await polls.release()
      feed.time += MINUTE
      const latest = { id: postId(feed.time), text: 'The newest post.', at: feed.time }
      await feed.poll('truth.mirror', postsOf([latest, post]))
      await watch(10, () => feed.poll('truth.mirror', postsOf([latest, post])))
      const page = await live()
      expect(page.watched).to.deep.equal({
        sources: 2,
        sources_late: 0,
        coverage: 0.0104,
        newest_poll: '2026-05-02T12:11:00Z',
        late: [],
      })
      expect((await live({ since_seq: page.next_since_seq })).watched).to.include({ coverage: 1 })
    })

    it('makes a page without items an answer that is sold, as long as the catalog says so', async () => {
      await begin()
      await watch(25 * 6, polls.post, 10 * MINUTE)
      expect(await live(orders)).to.deep.include({ count: 0 })
      expect((await live(orders)).watched).to.deep.include({ coverage: 1, newest_poll: '2026-05-02T13:00:00Z' })
      expect(catalog.operations.get('getPotusLive')?.sellEmpty).to.equal(true)
    })

    it('does not sell a page without items if it was hardly watched', async () => {
      await begin()
      await watch(12)
      await watch(10 * 6, polls.failure, 10 * MINUTE)
      const refused = await live(orders).then(
        () => expect.fail('answered'),
        (error: Error & { fields?: object }) => error,
      )
      expect(refused).to.include({ code: 'not_held' })
      expect(refused.fields).to.deep.equal({
        nearest: { start: '2026-05-01T12:00:00.000Z', end: '2026-05-01T12:22:00.000Z' },
      })
      const subscribers = await live(orders, subscribed)
      expect(subscribers.count).to.equal(0)
      expect(subscribers.watched).to.deep.include({
        sources_late: 1,
        late: [{ id: 'truth.mirror', status: 'failing', last_success: '2026-05-01T12:12:00Z' }],
      })
      expect((await live()).count).to.equal(2)
    })
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
