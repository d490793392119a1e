/** When a text that vanished, or shrank, counts as taken back. */
import { gzipSync } from 'node:zlib'
import { expect } from 'chai'
import type { Source } from '../../../../plugins/potus/sources/source.ts'
import { LIVE, OLD_RELEASE, openPolledTestFeed, openTestFeed, postId, rssOf, type TestFeed } from '../test-feed.ts'

const MINUTE = 60_000
/** An entry that cannot be read, because it has neither a key nor a date. */
const UNREADABLE = '<item><title>Broken</title></item></channel>'

interface Shown {
  readonly id: string
  readonly source_key: string
  readonly status: string
  readonly text: string
  readonly revision: number
}

describe('an item that its feed lacks', () => {
  let feed: TestFeed
  const release = (key: string, minute: number, text = `Release ${key}, about something else.`) => ({
    key,
    text,
    at: Date.UTC(2026, 4, 1, 12, 30 + minute),
  })
  const [a, b] = [release('a', 0), release('b', 1)]

  beforeEach(async () => {
    feed = await openPolledTestFeed()
  })
  afterEach(() => feed.close())

  async function poll(...bodies: readonly string[]): Promise<void> {
    for (const body of bodies) {
      feed.time += MINUTE
      await feed.poll('wh.news', body)
    }
  }
  async function shown(key: string): Promise<Shown | undefined> {
    const { items } = await feed.ask<{ items: Shown[] }>('getPotusLive', { query: { limit: 100 } })
    return items.find((item) => item.source_key.endsWith(`=${key}`))
  }

  it('is not retracted by lists that could not be read as a whole, however often they are repeated', async () => {
    const whole = rssOf([a, OLD_RELEASE])
    const partial = rssOf([b, a, OLD_RELEASE]).replace('</channel>', UNREADABLE)
    await poll(rssOf([b, a, OLD_RELEASE]), whole, partial, partial, partial)
    expect(await shown('b')).to.include({ status: 'active' })
    await poll(whole, whole, whole)
    expect(await shown('b')).to.include({ status: 'retracted' })
  })

  it('is not cut to a stub that only one list showed', async () => {
    const full = 'All of the text of a long release. '.repeat(20)
    const long = release('long', 2, full)
    const without = rssOf([b, a, OLD_RELEASE])
    await poll(rssOf([long, b, a]), rssOf([release('long', 2, 'Read more.'), b, a]), without, without, without)
    expect(await shown('long')).to.deep.include({ text: full.trim(), revision: 1 })
  })

  it('is corrected, in one version, when it returns with another text', async () => {
    const without = rssOf([a, OLD_RELEASE])
    await poll(rssOf([b, a, OLD_RELEASE]), without, without, without)
    expect(await shown('b')).to.include({ status: 'retracted' })
    await poll(rssOf([release('b', 1, 'Release b, with a new ending.'), a, OLD_RELEASE]))
    expect(await shown('b')).to.include({ status: 'corrected', revision: 2, text: 'Release b, with a new ending.' })
    const { revisions } = await feed.ask<{ revisions: { status: string }[] }>('getPotusEvent', {
      params: { selector: (await shown('b'))?.id },
    })
    expect(revisions.map(({ status }) => status)).to.deep.equal(['active', 'retracted', 'corrected'])
  })

  it('is not retracted if the list lacks a tenth of what is stored, as one with a very old entry does', async () => {
    const releases = Array.from({ length: 30 }, (_, n) => release(`r${n}`, n - 30))
    await poll(rssOf(releases))
    const old = { key: 'pinned', text: 'A speech from long ago.', at: Date.UTC(2025, 0, 1) }
    const newest = [...releases.slice(-5), old]
    for (let n = 0; n < 4; n += 1) await poll(rssOf(newest))
    expect(await shown('r3')).to.include({ status: 'active' })
  })
})

describe('the list of everything that a source published', () => {
  it('is not believed if it lacks a tenth, and its repeats confirm nothing', async () => {
    const feed = await openTestFeed({ time: Date.UTC(2026, 4, 1, 12) })
    const source = feed.sources.get('truth.archive') as Source
    const posts = Array.from({ length: 20 }, (_, n) => {
      const at = feed.time - (n + 1) * 3_600_000
      return { id: postId(at), created_at: new Date(at).toISOString(), content: `Post number ${n}.`, media: [] }
    })
    const list = async (rows: readonly object[]): Promise<void> => {
      feed.time += 2 * 3_600_000
      const body = gzipSync(JSON.stringify(rows))
      await feed.writeListing({ source, at: feed.time, url: source.url, status: 200, headers: {}, body })
    }
    await list(posts)
    await list(posts.slice(1))
    const half = posts.slice(0, 10)
    for (let n = 0; n < 4; n += 1) await list(half)
    const { items } = await feed.ask<{ items: Shown[] }>('getPotusArchive', { query: { limit: 100 }, access: LIVE })
    expect(items.map(({ status }) => status)).to.deep.equal(posts.map(() => 'active'))
    await feed.close()
  })

  it('has new posts from when they are stored, not from when the list began', async () => {
    const feed = await openTestFeed({ time: Date.UTC(2026, 4, 1, 12) })
    const source = feed.sources.get('truth.archive') as Source
    const postAt = (at: number) => ({
      id: postId(at),
      created_at: new Date(at).toISOString(),
      content: `A post of ${new Date(at).toISOString()}.`,
      media: [],
    })
    const old = Array.from({ length: 450 }, (_, n) => postAt(feed.time - (n + 2) * 3_600_000))
    const list = async (rows: readonly object[]): Promise<void> => {
      const body = gzipSync(JSON.stringify(rows))
      await feed.writeListing({ source, at: feed.time, url: source.url, status: 200, headers: {}, body })
    }
    await list(old)
    feed.time += 2 * 3_600_000
    const begun = feed.time
    // Each of the three parts of the list takes half a minute.
    feed.db.on('query', ({ sql }: { sql: string }) => {
      if (sql.includes('as `superseded`')) feed.time += 30_000
    })
    await list([...old, postAt(begun - MINUTE)])
    const row = (await feed.db('potus_events').where({ ingest: 'live' }).first('available_at', 'first_seen_at')) as {
      available_at: number
      first_seen_at: number
    }
    expect([row.first_seen_at - begun, row.available_at - begun]).to.deep.equal([0, 90_000])
    await feed.close()
  })
})
