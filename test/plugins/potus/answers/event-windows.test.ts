/** Closed windows of one and fifteen minutes. */
import { expect } from 'chai'
import { parseBody } from '../../../../plugins/potus/sources/parsers.ts'
import type { Source } from '../../../../plugins/potus/sources/source.ts'
import { LIVE, rssOf, type TestFeed, openTestFeed, postId, postsOf, TWO_SOURCES } from '../test-feed.ts'

const SECOND = 1000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
const NOON = Date.UTC(2026, 4, 1, 12)

interface Window {
  readonly window: { readonly start: string; readonly end: string; readonly revision: number }
  readonly count: number
  readonly clusters: number
  readonly max_relevance: number | null
  readonly by_kind: Readonly<Record<string, number>>
  readonly events?: readonly { readonly excerpt: string }[]
  readonly event_ids?: readonly string[]
}
interface Page {
  readonly windows: readonly Window[]
  readonly next_cursor: string | null
}

describe('a window of the feed', () => {
  let feed: TestFeed
  beforeEach(async () => {
    feed = await openTestFeed({ time: NOON - HOUR, settings: TWO_SOURCES })
    await feed.poll(
      'truth.mirror',
      postsOf([{ id: postId(NOON - 40 * HOUR), text: 'An old post.', at: NOON - 40 * HOUR }]),
    )
    await feed.poll('wh.news', rssOf([{ key: 'old', text: 'An old release.', at: NOON - 900 * HOUR }]))
    feed.time = NOON
  })
  afterEach(() => feed.close())

  const minutes = async (query: object = {}): Promise<readonly Window[]> =>
    (await feed.ask<Page>('getPotusEvents1m', { query: { from: NOON, to: NOON + HOUR, ...query } })).windows
  async function post(at: number, text: string, publishedAt = at): Promise<void> {
    feed.time = at
    await feed.poll('truth.mirror', postsOf([{ id: postId(publishedAt), text, at: publishedAt }]))
  }

  it('is published thirty seconds after its end, or a minute after it for fifteen minutes, and not before', async () => {
    await post(NOON + 10 * SECOND, 'Tariffs on copper.')
    const count = async (operation: string, time: number) => {
      feed.time = time
      const query = { from: NOON, to: NOON + HOUR }
      return (await feed.ask<Page>(operation, { query, access: LIVE })).windows.length
    }
    expect(await count('getPotusEvents1m', NOON + 90 * SECOND - 1)).to.equal(0)
    expect(await count('getPotusEvents1m', NOON + 90 * SECOND)).to.equal(1)
    expect(await count('getPotusEvents15m', NOON + 16 * MINUTE - 1)).to.equal(0)
    expect(await count('getPotusEvents15m', NOON + 16 * MINUTE)).to.equal(1)
  })

  it('is found by start and end, and by their old names', async () => {
    await post(NOON + 10 * SECOND, 'Tariffs on copper.')
    feed.time = NOON + HOUR + 2 * MINUTE
    const ask = (query: object) => feed.ask<Page>('getPotusEvents1m', { query })
    const page = await ask({ start: NOON, end: NOON + HOUR })
    expect(page).to.include({ start: '2026-05-01T12:00:00Z', end: '2026-05-01T13:00:00Z' })
    expect(await ask({ from: NOON, to: NOON + HOUR })).to.deep.equal(page)
    expect(await ask({ start: NOON, end: NOON + HOUR, from: 0, to: 1 })).to.deep.equal(page)
  })

  it('is not sold before one of the range has closed, and the nearest ones are named', async () => {
    await post(NOON + 10 * SECOND, 'Tariffs on copper.')
    await feed.poll('wh.news', rssOf([{ key: 'old', text: 'An old release.', at: NOON - 900 * HOUR }]))
    feed.time = NOON + HOUR + 20 * SECOND
    const refusal = async (from: number, to: number, operation = 'getPotusEvents1m') =>
      feed.ask(operation, { query: { from, to } }).then(
        () => 'sold',
        (error: { code: string; fields: { nearest: { start: string; end: string } } }) =>
          `${error.code} ${error.fields.nearest.start.slice(11, 19)} ${error.fields.nearest.end.slice(11, 19)}`,
      )
    // The minute before is not closed for another ten seconds.
    expect(await refusal(NOON + HOUR - MINUTE, NOON + HOUR)).to.equal('not_held 12:58:00 12:59:00')
    expect(await refusal(NOON + 5 * HOUR, NOON + 6 * HOUR)).to.equal('not_held 11:59:00 12:59:00')
    expect(await refusal(NOON + 30 * SECOND, NOON + 50 * SECOND)).to.equal('not_held 12:00:00 12:01:00')
    expect(await refusal(NOON + 50 * MINUTE, NOON + HOUR, 'getPotusEvents15m')).to.equal('not_held 12:30:00 12:45:00')
    // Closed and watched: that nothing happened is an answer.
    expect(await refusal(NOON + MINUTE, NOON + 3 * MINUTE)).to.equal('sold')
  })

  it('uses the time of availability, so that a back-dated item does not change past windows', async () => {
    await post(NOON + 5 * MINUTE + 3 * SECOND, 'Dated an hour ago.', NOON - HOUR)
    feed.time = NOON + HOUR
    const [window] = await minutes({ from: NOON - 2 * HOUR })
    expect(window?.window.start).to.equal('2026-05-01T12:05:00Z')
  })

  it('is omitted if it is empty, unless empty windows are requested', async () => {
    await post(NOON + 2 * MINUTE + SECOND, 'Tariffs on copper.')
    await post(NOON + 2 * MINUTE + 40 * SECOND, 'The Federal Reserve is too late.')
    await post(NOON + 9 * MINUTE, 'Crude oil is down.')
    feed.time = NOON + 12 * MINUTE
    const sparse = await minutes()
    expect(sparse.map(({ window, count }) => [window.start.slice(11, 16), count])).to.deep.equal([
      ['12:02', 2],
      ['12:09', 1],
    ])
    const dense = await minutes({ include_empty: true })
    expect(dense).to.have.length(11)
    expect(dense.filter(({ count }) => count > 0)).to.deep.equal(sparse)
    expect(dense[0]).to.deep.include({ count: 0, max_relevance: null, by_kind: {} })
  })

  it('has excerpts at one minute, and counts without texts at fifteen minutes', async () => {
    await post(NOON + SECOND, `Tariffs on copper. ${'More. '.repeat(100)}`)
    await post(NOON + 3 * MINUTE, 'https://example.org/only-a-link')
    feed.time = NOON + HOUR
    const [minute] = await minutes()
    expect(minute?.events?.[0]?.excerpt).to.have.length(280)
    const { windows } = await feed.ask<Page>('getPotusEvents15m', { query: { from: NOON, to: NOON + HOUR } })
    expect(windows[0]).to.include({ count: 2, clusters: 2 })
    expect(windows[0]?.by_kind).to.deep.equal({ 'social.post': 1, 'social.link': 1 })
    expect(windows[0]?.event_ids).to.have.length(2)
    expect(JSON.stringify(windows)).not.to.include('copper.')
  })

  it('changes only with a new version of an event, which raises its revision', async () => {
    const old = { key: 'old', text: 'An old release.', at: NOON - 900 * HOUR }
    const publish = (text: string) => feed.poll('wh.news', rssOf([{ key: 'a', text, at: NOON - MINUTE }, old]))
    await publish('Twelve plants for copper.')
    feed.time = NOON + 10 * MINUTE
    const before = await minutes()
    // The same news from another publisher raises the corroboration from now on, but not in the past window.
    await post(NOON + 20 * MINUTE, 'Twelve plants for copper.')
    expect(await minutes({ to: NOON + MINUTE })).to.deep.equal(before)
    await publish('Thirteen plants for copper.')
    const [after] = await minutes()
    expect(after?.window.revision).to.equal(1)
    expect(after?.events?.[0]?.excerpt).to.include('Thirteen')
  })

  it('has a higher revision once an item is back-filled into it after it closed', async () => {
    await post(NOON + SECOND, 'Tariffs on copper.')
    feed.time = NOON + 10 * MINUTE
    const [before] = await minutes()
    const source = feed.sources.get('wh.news') as Source
    const body = Buffer.from(rssOf([{ key: 'late', text: 'Twelve plants for copper.', at: NOON + 2 * SECOND }]))
    const { items } = await parseBody(source, body, feed.time)
    await feed.add({ source, at: feed.time, url: source.url, status: 200, headers: {}, body }, items, {
      timing: { ingest: 'backfill', isPast: true },
    })
    const [after] = await minutes()
    expect([before?.count, before?.window.revision]).to.deep.equal([1, 0])
    expect([after?.count, after?.window.revision]).to.deep.equal([2, 1])
  })

  it('cuts an excerpt between characters', async () => {
    await post(NOON + SECOND, `${'x'.repeat(278)}🇺🇸 and more.`)
    feed.time = NOON + 10 * MINUTE
    const [window] = await minutes()
    expect(window?.events?.[0]?.excerpt).to.equal(`${'x'.repeat(278)}…`)
  })

  it('begins at a whole minute, whatever position a made-up cursor has', async () => {
    await post(NOON + SECOND, 'Tariffs on copper.')
    feed.time = NOON + 10 * MINUTE
    const query = { from: NOON, to: NOON + HOUR, limit: 1, include_empty: true }
    const { next_cursor: cursor } = await feed.ask<Page>('getPotusEvents1m', { query })
    const position = JSON.parse(Buffer.from(cursor ?? '', 'base64url').toString()) as object
    const startsAfter = async (at: number) => {
      const madeUp = Buffer.from(JSON.stringify({ ...position, available_at: at })).toString('base64url')
      const { windows } = await feed.ask<Page>('getPotusEvents1m', {
        query: { ...query, cursor: madeUp },
        access: LIVE,
      })
      return windows.map(({ window }) => window.start)
    }
    expect(await startsAfter(NOON + 90_500)).to.deep.equal(['2026-05-01T12:02:00Z'])
    expect(await startsAfter(-9e15)).to.deep.equal(['1970-01-01T00:00:00Z'])
    expect(await startsAfter(9e15)).to.deep.equal([])
  })

  it('is the same on the next page and after a restart', async () => {
    for (let n = 0; n < 12; n += 1)
      await post(NOON + n * 2 * MINUTE + SECOND, `Post number ${n} about ${'copper '.repeat(n + 1)}`)
    feed.time = NOON + HOUR
    const whole = await minutes()
    expect(whole).to.have.length(12)
    for (const query of [{ limit: 5 }, { limit: 5, include_empty: true }]) {
      const found: Window[] = []
      let cursor: string | null = null
      do {
        const page: Page = await feed.ask<Page>('getPotusEvents1m', {
          query: { from: NOON, to: NOON + HOUR, ...query, ...(cursor === null ? {} : { cursor }) },
          access: LIVE,
        })
        found.push(...page.windows)
        cursor = page.next_cursor
      } while (cursor !== null)
      expect(found.filter(({ count }) => count > 0)).to.deep.equal(whole)
    }
    const reopened = await openTestFeed({ time: feed.time, db: feed.db, settings: TWO_SOURCES })
    expect(
      (await reopened.ask<Page>('getPotusEvents1m', { query: { from: NOON, to: NOON + HOUR } })).windows,
    ).to.deep.equal(whole)
  })
})
