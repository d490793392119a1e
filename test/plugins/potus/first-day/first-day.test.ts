/** The first day of a service: what its sources published before is loaded, marked, and sold. */
import { expect } from 'chai'
import { pino } from 'pino'
import { createFetcher, type Fetcher } from '../../../../plugins/potus/ingest/fetch.ts'
import { historyJobs } from '../../../../plugins/potus/ingest/history-loads.ts'
import { createHostPace } from '../../../../plugins/potus/ingest/pace-per-host.ts'
import { pollJobs } from '../../../../plugins/potus/ingest/polling.ts'
import { LIVE, openTestFeed, postId, postsOf, type TestFeed } from '../test-feed.ts'
import { openScriptedSources, type ScriptedSources, type ScriptOptions } from './scripted-sources.ts'

const NOW = Date.UTC(2026, 4, 1, 12)
const MINUTE = 60_000
const DAY = 86_400_000

interface Record {
  readonly source: string
  readonly source_key: string
  readonly origin: string
  readonly status: string
  readonly available_at: string
  readonly cluster: { readonly role: string; readonly size: number; readonly sources: readonly string[] }
}

describe('a first day of the feed', function () {
  this.timeout(120_000)
  let feed: TestFeed
  let scripts: ScriptedSources
  let fetcher: Fetcher
  const signal = new AbortController().signal

  async function open(options: Partial<ScriptOptions> = {}) {
    scripts = await openScriptedSources({ now: NOW, posts: 260, releases: 95, documents: 60, ...options })
    feed = await openTestFeed({ time: NOW, settings: scripts.settings })
    fetcher = createFetcher()
    const sources = [...feed.sources.values()].map((source) => ({
      ...source,
      history: source.history === null ? null : { ...source.history, pauseSeconds: 0 },
    }))
    const log = pino({ level: 'silent' })
    const parts = {
      db: feed.db,
      writer: feed,
      fetcher,
      pace: createHostPace({ now: () => feed.time, pauseMs: 0 }),
      sources,
      log,
      now: () => feed.time,
    }
    const jobs = [...pollJobs(parts), ...historyJobs(parts)]
    const run = async (name: RegExp): Promise<void> => {
      const wanted = jobs.filter((job) => name.test(job.name))
      await Promise.all(wanted.map((job) => job.run({ signal, ask: (async () => ({})) as never })))
    }
    return { run }
  }
  afterEach(async () => {
    await fetcher.close()
    await scripts.close()
    await feed.close()
  })

  /** Every record of the archive, page by page. */
  async function archive(query: object = {}): Promise<Record[]> {
    const found: Record[] = []
    for (let cursor: string | null | undefined; cursor !== null;) {
      const page: { items: Record[]; next_cursor: string | null } = await feed.ask('getPotusArchive', {
        query: { limit: 500, ...query, ...(cursor ? { cursor } : {}) },
        unchecked: true,
      })
      found.push(...page.items)
      cursor = page.next_cursor
    }
    return found
  }
  const histories = async () =>
    (await feed.db('potus_histories').orderBy('source')) as { source: string; state: string }[]

  it('opens the archive with everything that the sources hold, says which was back-filled, and reports the progress', async () => {
    const { run } = await open()
    await run(/^poll/)
    for (let n = 0; n < 4; n += 1) await run(/^history/)
    const all = await archive()
    const old = (source: string) => all.filter((record) => record.source === source)
    // A post younger than a day is not in the archive yet.
    expect(old('truth.archive')).to.have.length(260 - 20)
    expect(old('wh.news')).to.have.length(95 - 3)
    expect(old('fr.docs')).to.have.length(60)
    expect(new Set(all.map(({ origin }) => origin))).to.deep.equal(new Set(['backfill']))
    expect(new Set(all.map(({ source, source_key: key }) => `${source} ${key}`)).size).to.equal(all.length)
    // The posts that the mirror lists, too, are in one cluster with those of the archive.
    const [copy] = all.filter(({ source }) => source === 'truth.mirror')
    expect(copy?.cluster).to.include({ size: 2 })
    expect(await archive({ unique: true, kinds: 'social' })).to.have.length(260 - 20)
    expect((await histories()).map(({ source, state }) => [source, state])).to.deep.equal([
      ['fr.docs', 'done'],
      ['truth.archive', 'done'],
      ['wh.news', 'done'],
    ])
    const index = await feed.ask<{ histories: object[]; counts: object }>('getPotus', { asOf: NOW - DAY })
    expect(index.histories).to.have.length(3)
    expect(index.histories.find((row) => (row as { source: string }).source === 'wh.news')).to.include({
      state: 'done',
      stored: 95,
    })
    expect(index.counts).to.include({ events: all.length, backfilled: all.length })
  })

  it('refuses a time that the load has not reached with 503 and its progress, and one outside of what is held with 404', async () => {
    let isDown = true
    const { run } = await open({
      intercept: (request, response) => {
        if (!isDown || !request.url?.startsWith('/news?paged=3')) return false
        response.writeHead(503, { 'retry-after': '1' }).end()
        return true
      },
    })
    interface Refusal extends Error {
      readonly code: string
      readonly fields: { readonly progress?: number; readonly nearest?: { start: string; end: string } }
    }
    const refusal = (from: number, to: number): Promise<Refusal> =>
      feed.ask('getPotusArchive', { query: { from, to }, unchecked: true }).then(
        () => expect.fail('answered'),
        (error: Refusal) => error,
      )
    const old = [NOW - 26 * DAY, NOW - 24 * DAY] as const
    await run(/^history wh.news/)
    // Two of four pages are stored: the releases of the last twenty days.
    const waiting = await refusal(...old)
    expect(waiting).to.include({ code: 'product_suspended' })
    expect(waiting.message).to.match(/wh\.news has reached 2026-04-11.*Nothing was charged/)
    expect(waiting.fields.progress).to.be.within(0.7, 0.8)
    const future = await refusal(NOW + DAY, NOW + 2 * DAY)
    expect(future).to.include({ code: 'not_held' })
    const [newest] = await archive({ order: 'desc' })
    expect(Date.parse(future.fields.nearest?.end ?? '')).to.equal(Date.parse(newest?.available_at ?? '') + 1)
    isDown = false
    for (let n = 0; n < 4; n += 1) {
      feed.time += MINUTE
      await run(/^history wh.news/)
    }
    expect(await archive({ from: old[0], to: old[1] })).to.have.length(6)
    const before = await refusal(NOW - 900 * DAY, NOW - 899 * DAY)
    expect(before).to.include({ code: 'not_held' })
    const [first] = await archive()
    expect(before.fields.nearest).to.deep.equal({
      start: new Date(first?.available_at ?? '').toISOString(),
      end: new Date(Date.parse(first?.available_at ?? '') + DAY).toISOString(),
    })
  })

  it('names the nearest time that holds something, not all that is held', async () => {
    await open()
    const post = (at: number) => ({ id: postId(at), text: `A post of ${new Date(at).toISOString()}.`, at })
    const days = [NOW - 20 * DAY, NOW - 10 * DAY, NOW - 9 * DAY]
    await feed.poll('truth.mirror', postsOf(days.map(post)))
    const nearest = (from: number, to: number): Promise<object> =>
      feed.ask('getPotusArchive', { query: { from, to } }).then(
        () => expect.fail('answered'),
        ({ fields }: { fields: { nearest: object } }) => fields.nearest,
      )
    const at = (time: number) => new Date(time).toISOString()
    const hour = 60 * MINUTE
    expect(await nearest(NOW - 18 * DAY, NOW - 18 * DAY + hour)).to.deep.equal({
      start: at(NOW - 20 * DAY),
      end: at(NOW - 20 * DAY + 1),
    })
    expect(await nearest(NOW - 11 * DAY, NOW - 11 * DAY + hour)).to.deep.equal({
      start: at(NOW - 10 * DAY),
      end: at(NOW - 10 * DAY + hour),
    })
  })

  it('asks for compressed bodies, and for the list of posts only if it has changed', async () => {
    const { run } = await open()
    await run(/^poll truth.archive/)
    feed.time += 121 * MINUTE
    await run(/^poll truth.archive/)
    const [first, second] = scripts.requests
    expect(first?.headers['accept-encoding']).to.equal('gzip')
    expect(second?.headers['if-none-match']).to.equal('"0-0"')
    const polls = (await feed.db('potus_polls').orderBy('id').pluck('outcome')) as string[]
    expect(polls).to.deep.equal(['new', 'not_modified'])
  })

  it('stores only what is new in the next list, as live', async () => {
    const { run } = await open()
    await run(/^poll truth.archive/)
    scripts.added = 3
    feed.time += 5 * 3_600_000
    await run(/^poll truth.archive/)
    const rows = (await feed.db('potus_events').where({ ingest: 'live' }).pluck('latency_ms')) as number[]
    expect(rows).to.have.length(3)
    expect(rows.every((latency) => latency > 0)).to.equal(true)
    expect(await feed.db('potus_events')).to.have.length(263)
    // Anybody may see how long that took, a day later.
    const { latencies } = await feed.ask<{ latencies: object[] }>('getPotus', { asOf: feed.time })
    const [latency] = latencies as { source: string; samples: number; p50_s: number; p99_s: number }[]
    expect(latency).to.include({ source: 'truth.archive', samples: 3 })
    expect(latency!.p50_s).to.equal(Math.round(rows.toSorted((a, b) => a - b)[1]! / 100) / 10)
  })

  it('retracts a post that three lists in a row lack, and no post if a list lacks a tenth of all', async () => {
    const { run } = await open()
    await run(/^poll truth.archive/)
    scripts.deleted.archive.add(50)
    const retracted = async () =>
      (await feed
        .db('potus_versions')
        .where({ status: 'retracted' })
        .whereNull('superseded_at')
        .pluck('seq')) as number[]
    const counts: number[] = []
    for (const deleted of [0, 0, 0, 60]) {
      for (let n = 0; n < deleted; n += 1) scripts.deleted.archive.add(100 + n)
      scripts.added += 1
      feed.time += 121 * MINUTE
      await run(/^poll truth.archive/)
      counts.push((await retracted()).length)
    }
    expect(counts).to.deep.equal([0, 0, 1, 1])
  })

  it('retracts a post that the mirror no longer lists', async () => {
    const { run } = await open()
    await run(/^poll truth.mirror/)
    scripts.deleted.mirror.add(7)
    for (let n = 0; n < 3; n += 1) {
      feed.time += MINUTE
      await run(/^poll truth.mirror/)
    }
    const gone = (await feed.db('potus_versions').where({ status: 'retracted' })) as { text: string }[]
    expect(gone.map(({ text }) => text.slice(0, 9))).to.deep.equal(['Number 7:'])
  })

  it('shows a post that the mirror no longer lists as deleted to readers of unique items, although the archive lists it', async () => {
    const { run } = await open()
    await run(/^poll truth.archive/)
    await run(/^poll truth.mirror/)
    const records = async (query: object = {}): Promise<string[]> => {
      const { items } = await feed.ask<{ items: (Record & { text: string })[] }>('getPotusArchive', {
        query: { limit: 500, unique: true, ...query },
        access: LIVE,
        unchecked: true,
      })
      return items
        .filter(({ text }) => text.startsWith('Number 7:'))
        .map(({ source, status, cluster }) => `${source} ${status} ${cluster.role}`)
    }
    expect(await records()).to.deep.equal(['truth.archive active lead'])
    scripts.deleted.mirror.add(7)
    const mirror = async (): Promise<void> => {
      for (let n = 0; n < 3; n += 1) {
        feed.time += MINUTE
        await run(/^poll truth.mirror/)
      }
    }
    await mirror()
    const both = ['truth.archive active lead', 'truth.mirror retracted member']
    expect(await records()).to.deep.equal(both)
    expect(await records({ order: 'desc' })).to.deep.equal(both.toReversed())
    // Once the archive lacks it, too, one record says so.
    scripts.deleted.archive.add(7)
    for (let n = 0; n < 3; n += 1) {
      scripts.added += 1
      feed.time += 121 * MINUTE
      await run(/^poll truth.archive/)
    }
    expect(await records()).to.deep.equal(['truth.archive retracted lead'])
    // It is active again where the mirror lists it again.
    scripts.deleted.mirror.delete(7)
    await mirror()
    expect(await records()).to.deep.equal(['truth.archive retracted lead'])
  })

  it('goes on with the next page after a failure, and does not take an outage for the end', async () => {
    let failures = 0
    const { run } = await open({
      intercept: (request, response) => {
        if (!request.url?.startsWith('/news?paged=3') || failures >= 2) return false
        failures += 1
        // First an outage, then a page that seems to be absent.
        response.writeHead(failures === 1 ? 503 : 404, { 'retry-after': '1' }).end()
        return true
      },
    })
    for (let n = 0; n < 6; n += 1) {
      await run(/^history wh.news/)
      feed.time += MINUTE
    }
    expect(failures).to.equal(2)
    expect(await histories()).to.have.length(1)
    expect((await histories())[0]).to.include({ state: 'done', fresh: 95, detail: null })
  })

  it('stops where a page repeats the one before it, as a failure, and goes on once the pages differ again', async () => {
    let isStuck = true
    let requests = 0
    const { run } = await open({
      intercept: (request) => {
        if (request.url?.startsWith('/news')) requests += 1
        // A cache that ignores the number of the page.
        if (isStuck && request.url?.startsWith('/news?paged=')) request.url = '/news?paged=1'
        return requests > 20
      },
    })
    await run(/^history wh.news/)
    expect(requests).to.equal(2)
    expect((await histories())[0]).to.include({
      state: 'loading',
      pages: 1,
      fresh: 30,
      detail: 'The page repeats the one before it.',
    })
    isStuck = false
    for (let n = 0; n < 4; n += 1) {
      feed.time += MINUTE
      await run(/^history wh.news/)
    }
    expect((await histories())[0]).to.include({ state: 'done', fresh: 95, detail: null })
  })
})
