/** What a follower of the live feed learns about the sources: that they turn late, and that they recover. */
import { expect } from 'chai'
import type { PotusWatched } from '../../../../schemas/types.d.ts'
import { LIVE, OLD_RELEASE, openTestFeed, postId, postsOf, rssOf, type TestFeed, TWO_SOURCES } from '../test-feed.ts'

const MINUTE = 60_000
const NOON = Date.UTC(2026, 4, 1, 12)

describe('the stream of the live feed', () => {
  let feed: TestFeed
  beforeEach(async () => {
    feed = await openTestFeed({ time: NOON, settings: TWO_SOURCES })
  })
  afterEach(() => feed.close())

  const post = (at: number) => ({ id: postId(at), text: `A post of ${new Date(at).toISOString()}.`, at })
  const releases = () => feed.poll('wh.news', rssOf([OLD_RELEASE]))
  const posts = (...times: readonly number[]) => feed.poll('truth.mirror', postsOf(times.map(post)))

  it('says when sources turn late and when they recover, without an id, and nothing while nothing changes', async () => {
    await releases()
    await posts(NOON - MINUTE)
    const events = (await feed.follow({ since_seq: 0 }, LIVE))[Symbol.asyncIterator]()
    const next = async () => (await events.next()).value
    feed.time += MINUTE
    await posts(feed.time, NOON - MINUTE)
    expect(await next()).to.include({ id: '3' })
    // An outage of the mirror, at which a reader would see only silence.
    await feed.poll('truth.mirror', null, { status: 503 })
    const late = await next()
    const watched = late?.data as PotusWatched
    expect(late).to.include({ event: 'state' }).and.not.to.have.property('id')
    expect(late?.data).to.deep.include({
      sources: 2,
      sources_late: 1,
      newest_poll: '2026-05-01T12:01:00Z',
      late: [{ id: 'truth.mirror', status: 'failing', last_success: '2026-05-01T12:01:00Z' }],
    })
    expect(watched.coverage).to.be.within(0, 0.01)
    feed.time += MINUTE
    await posts(feed.time, NOON + MINUTE, NOON - MINUTE)
    const rest = [await next(), await next()]
    expect(rest.map((event) => event?.id ?? event?.event)).to.deep.equal(['4', 'state'])
    expect(rest[1]?.data).to.deep.include({ sources_late: 0, late: [] })
    // A reader that comes back while sources are late learns it at once.
    await feed.poll('wh.news', null, { status: 503 })
    const again = (await feed.follow({ since_seq: 4 }, LIVE))[Symbol.asyncIterator]()
    expect((await again.next()).value).to.include({ event: 'state' })
    await events.return?.()
    await again.return?.()
  })
})
