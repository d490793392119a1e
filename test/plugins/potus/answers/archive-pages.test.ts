/** Reads lists page by page, while the store grows. */
import { expect } from 'chai'
import { insertMadeUpEvents } from '../made-up-events.ts'
import { LIVE, type TestFeed, openTestFeed, postId, postsOf } from '../test-feed.ts'

const HOUR = 3_600_000
const DAY = 24 * HOUR
const START = Date.UTC(2026, 4, 1, 12)

interface Page {
  readonly items: readonly { readonly seq: number; readonly id: string; readonly available_at: string }[]
  readonly next_cursor: string | null
}

describe('the pages of the feed', () => {
  let feed: TestFeed
  beforeEach(async () => {
    feed = await openTestFeed({ time: START })
  })
  afterEach(() => feed.close())

  async function readAllPages(
    query: object,
    afterPage: (page: number) => Promise<void> = async () => {},
  ): Promise<number[]> {
    const seqs: number[] = []
    let cursor: string | null = null
    for (let page = 0; page === 0 || cursor !== null; page += 1) {
      const found: Page = await feed.ask<Page>('getPotusArchive', {
        access: LIVE,
        unchecked: true,
        query: { ...query, ...(cursor === null ? {} : { cursor }) },
      })
      seqs.push(...found.items.map(({ seq }) => seq))
      cursor = found.next_cursor
      await afterPage(page)
    }
    return seqs
  }

  it('list the same 30,000 events as one query, while rows are being inserted', async () => {
    const count = 30_000
    await insertMadeUpEvents(feed.db, count, START)
    let inserted = 0
    // The inserted events are newer than the requested range.
    const seqs = await readAllPages({ limit: 500, to: START + 1 }, async (page) => {
      if (page % 8 !== 0) return
      inserted += 1
      await insertMadeUpEvents(feed.db, 3, START + inserted * HOUR, count + inserted * 10)
    })
    const rows = (await feed
      .db('potus_events')
      .where('available_at', '<=', START)
      .orderBy(['available_at', 'seq'])
      .select('seq')) as { seq: number }[]
    expect(inserted).to.be.greaterThan(5)
    expect(seqs).to.deep.equal(rows.map(({ seq }) => seq))
  })

  it('list every event once when many share one timestamp', async () => {
    await insertMadeUpEvents(feed.db, 40, START)
    await feed.db('potus_events').update({ available_at: START })
    await feed.db('potus_versions').where({ version: 1 }).update({ known_at: START })
    for (const order of ['asc', 'desc']) {
      const seqs = await readAllPages({ limit: 7, order })
      expect(seqs.toSorted((a, b) => a - b)).to.deep.equal(Array.from({ length: 40 }, (_, at) => at + 1))
    }
  })

  it('lose no event with a filter that rarely matches, however short a page is', async () => {
    await insertMadeUpEvents(feed.db, 9000, START)
    await feed.db('potus_versions').whereIn('seq', [10, 4500, 8990]).update({ text: 'The needle in the hay.' })
    expect(await readAllPages({ q: 'needle', limit: 2 })).to.deep.equal([10, 4500, 8990])
  })

  it('refuse a cursor of another list or order, and a malformed one', async () => {
    await insertMadeUpEvents(feed.db, 30, START)
    const { next_cursor: cursor } = await feed.ask<Page>('getPotusArchive', {
      access: LIVE,
      query: { limit: 5, kinds: 'social' },
    })
    const invalidQueries = [
      { limit: 5, cursor },
      { limit: 5, kinds: 'social', order: 'desc', cursor },
      { limit: 5, kinds: 'social', from: 0, cursor },
      { limit: 5, kinds: 'social', cursor: 'abc' },
      { limit: 5, kinds: 'social', cursor: Buffer.from('{"v":1}').toString('base64url') },
      { limit: 5, kinds: 'social', cursor: Buffer.from('null').toString('base64url') },
    ]
    for (const query of invalidQueries) {
      const error = await feed.ask('getPotusArchive', { access: LIVE, query }).catch((thrown: unknown) => thrown)
      expect(error, JSON.stringify(query)).to.include({ code: 'validation_failed' })
    }
    const minutes = await feed.ask('getPotusEvents1m', { query: { cursor } }).catch((thrown: unknown) => thrown)
    expect(minutes).to.include({ code: 'validation_failed' })
    // A cursor allows another page size.
    const next = await feed.ask<Page>('getPotusArchive', { access: LIVE, query: { limit: 9, kinds: 'social', cursor } })
    expect(next.items[0]?.seq).to.equal(6)
  })

  it('refuse unknown parameters, kinds, topics and sources, and ranges that are too long or reversed', async () => {
    const invalidQueries: [string, object][] = [
      ['getPotusLive', { plan: 'live-24h' }],
      ['getPotusLive', { kinds: 'action,nonsense' }],
      ['getPotusLive', { topics: 'weather' }],
      ['getPotusLive', { limit: 101 }],
      ['getPotusArchive', { source: 'wh.nothing' }],
      ['getPotusArchive', { from: 'yesterday' }],
      ['getPotusEvents1m', { from: START - DAY - 1000, to: START }],
      ['getPotusEvents15m', { from: START - 7 * DAY - 1000, to: START }],
      ['getPotusEntities', { from: START - 32 * DAY, to: START }],
      ['getPotusArchive', { from: START, to: START - 1 }],
      ['getPotusEvents1m', { limit: 1441 }],
      ['getPotusFeeds', { status: 'fine' }],
    ]
    for (const [id, query] of invalidQueries) {
      const error = await feed.ask(id, { query }).catch((thrown: unknown) => thrown)
      expect(error, `${id} ${JSON.stringify(query)}`).to.include({ code: 'validation_failed' })
      expect((error as { detail: { loc: string[] }[] }).detail[0]?.loc[0]).to.equal('query')
    }
  })

  it('find by sequence number what rarely matches in few queries, a part of the feed at a time', async () => {
    await insertMadeUpEvents(feed.db, 9000, START)
    await feed.db('potus_events').update({ ingest: 'live' })
    await feed.db('potus_versions').whereIn('seq', [10, 4500, 8990]).update({ kind: 'bill_signed' })
    let queries = 0
    feed.db.on('query', () => void (queries += 1))
    const seqs: number[] = []
    let since = 0
    for (let calls = 0; since < 9000 && calls < 10; calls += 1) {
      const query = { since_seq: since, limit: 2, kinds: 'bill_signed' }
      const page = await feed.ask<Page & { next_since_seq: number }>('getPotusLive', { query, unchecked: true })
      seqs.push(...page.items.map(({ seq }) => seq).reverse())
      since = page.next_since_seq
    }
    expect(seqs).to.deep.equal([10, 4500, 8990])
    expect(since).to.equal(9000)
    expect(queries).to.be.below(300)
  })

  it('give a client that polls by sequence number every live event once, and no backfill', async () => {
    await feed.poll('truth.mirror', postsOf([{ id: postId(START - DAY), text: 'Before we looked.', at: START - DAY }]))
    const texts: string[] = []
    let since = 0
    const post = (n: number) => ({
      id: postId(START + n * 1000),
      text: `Post number ${n} of the day about ${'x'.repeat(n)}.`,
      at: START + n * 1000,
    })
    for (let round = 0; round < 4; round += 1) {
      feed.time += 60_000
      await feed.poll('truth.mirror', postsOf(Array.from({ length: 7 }, (_, n) => post(round * 7 + n))))
      for (let hasMore = true; hasMore;) {
        const page = await feed.ask<{ items: { text: string }[]; next_since_seq: number }>('getPotusLive', {
          query: { since_seq: since, limit: 3 },
        })
        texts.push(...page.items.map(({ text }) => text).reverse())
        hasMore = page.next_since_seq !== since
        since = page.next_since_seq
      }
    }
    expect(texts).to.deep.equal(Array.from({ length: 28 }, (_, n) => post(n).text))
    const filtered = await feed.ask<{ items: object[]; next_since_seq: number }>('getPotusLive', {
      query: { since_seq: 0, kinds: 'action', limit: 5 },
      access: LIVE,
    })
    expect(filtered).to.deep.include({ items: [], next_since_seq: since })
  })
})
