/** The feed gives the same bytes for the same polls on SQLite and on PostgreSQL. */
import { expect } from 'chai'
import { insertMadeUpEvents } from '../made-up-events.ts'
import { DATABASES, type TestDatabase } from '../../../contracts/databases.ts'
import { type AskOptions, rssOf, LIVE, type TestFeed, openTestFeed, postId, postsOf } from '../test-feed.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR
const START = Date.UTC(2026, 4, 1, 12)
const LONG = 'The delegations of Japan and Mexico met in Washington, D.C., and agreed on copper and steel. '
  .repeat(9)
  .trim()

describe('the feed on PostgreSQL', function () {
  this.timeout(300_000)
  let store: TestDatabase | null = null
  before(async function () {
    store = await DATABASES['PostgreSQL']!()
    if (store) return
    this.test?.parent?.tests.forEach((test) => (test.title += ' (skipped: no server on the loopback)'))
    this.skip()
  })
  after(() => store?.drop())

  /** Two days of polls: new items, a silent edit, a stub, a retraction, one post in two places, pages that are not feeds. */
  async function fill(feed: TestFeed): Promise<void> {
    await insertMadeUpEvents(feed.db, 900, START - 3 * DAY)
    feed.time = START - 2 * DAY
    const old = { key: 'old', text: 'An old release.', at: START - 30 * DAY }
    await feed.poll('wh.news', rssOf([old]))
    await feed.poll('truth.mirror', postsOf([{ id: postId(START - 40 * DAY), text: 'Old.', at: START - 40 * DAY }]))
    for (let n = 0; n < 14; n += 1) {
      feed.time = START - 2 * DAY + n * 170 * MINUTE
      const at = feed.time - 3 * MINUTE
      const item = (k: number) => ({
        key: `k${k}`,
        text: `${LONG} Number ${k}.`,
        at: START - 2 * DAY + k * 170 * MINUTE - MINUTE,
      })
      const shown = [n, n - 1, n - 2].filter((k) => k >= 0 && k !== 7).map(item)
      const edited = shown.map((one) =>
        one.key === 'k3' && n === 5 ? { ...one, text: `${one.text} Corrected.` } : one,
      )
      await feed.poll('wh.news', rssOf([...edited.map((one) => (n === 11 ? { ...one, text: 'A stub.' } : one)), old]))
      const id = postId(at, n)
      await feed.poll('truth.mirror', postsOf([{ id, text: `Tariffs of ${n} percent on Canada!`, at }]))
      const row = {
        id,
        created_at: new Date(at).toISOString(),
        content: `<p>Tariffs of ${n} percent on Canada!</p>`,
        media: [],
      }
      await feed.poll(
        'truth.archive',
        JSON.stringify([{ ...row, replies_count: n, reblogs_count: 2 ** 40, favourites_count: 3 }]),
      )
      if (n % 6 === 0) await feed.poll('wh.actions', '<html>Just a moment...</html>')
    }
    feed.time = START + HOUR
  }

  const questions: readonly (readonly [string, AskOptions])[] = [
    ['getPotus', {}],
    ['getPotusLive', { query: { limit: 100 } }],
    ['getPotusLive', { query: { since_seq: 910, limit: 7, kinds: 'social', topics: 'trade' } }],
    ['getPotusEvents1m', { query: { limit: 1440 } }],
    ['getPotusEvents15m', { query: { limit: 672 } }],
    ['getPotusArchive', { access: LIVE, query: { limit: 500 } }],
    ['getPotusArchive', { access: LIVE, query: { limit: 300, order: 'desc' } }],
    ['getPotusArchive', { query: { limit: 100, from: START - 3 * DAY, entity: 'place:CA' } }],
    ['getPotusArchive', { query: { limit: 100, from: START - 3 * DAY, q: 'corrected', source: 'wh.news' } }],
    ['getPotusEntities', { query: { from: START - 9 * DAY, to: START } }],
    ['getPotusFeeds', {}],
    ['getPotusEvent', { params: { selector: 'latest' } }],
    ['getPotusEvent', { params: { selector: 'seq:908' } }],
  ]

  it('gives the same answers as SQLite, byte for byte, now and as of yesterday', async () => {
    const feeds = [await openTestFeed({ time: START }), await openTestFeed({ time: START, db: store!.db })] as const
    for (const feed of feeds) await fill(feed)
    for (const [operation, options] of questions)
      for (const asOf of [undefined, START - DAY]) {
        const answerOf = (feed: TestFeed) =>
          feed.ask(operation, { ...options, ...(asOf === undefined ? {} : { asOf }) })
        const [expected, found] = [JSON.stringify(await answerOf(feeds[0])), JSON.stringify(await answerOf(feeds[1]))]
        expect(found, `${operation} ${JSON.stringify(options.query)} ${asOf}`).to.equal(expected)
        expect(expected.length).to.be.greaterThan(200)
      }
    const held = await feeds[1].db('potus_versions').where({ status: 'corrected' })
    expect(held.length).to.be.greaterThan(0)
    await feeds[0].close()
  })
})
