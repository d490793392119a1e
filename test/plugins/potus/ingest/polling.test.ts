/** The poller against local servers that behave as good and bad sources do. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { brotliCompressSync, gzipSync } from 'node:zlib'
import { expect } from 'chai'
import { pino } from 'pino'
import { createFetcher, type Fetcher } from '../../../../plugins/potus/ingest/fetch.ts'
import { createHostPace } from '../../../../plugins/potus/ingest/pace-per-host.ts'
import { pollJobs } from '../../../../plugins/potus/ingest/polling.ts'
import { readSources } from '../../../../plugins/potus/sources/source.ts'
import { rssOf, type TestFeed, openTestFeed, postId, postsOf } from '../test-feed.ts'

type Behaviour = (request: IncomingMessage, response: ServerResponse) => void

const START = Date.UTC(2026, 4, 1, 12)
const MINUTE = 60_000
const xml =
  (body: string, headers: Record<string, string> = {}): Behaviour =>
  (_, response) => {
    response.writeHead(200, { 'content-type': 'application/rss+xml', ...headers }).end(body)
  }

describe('the poller', () => {
  let feed: TestFeed
  let fetcher: Fetcher
  const servers: Server[] = []
  const controller = new AbortController()
  const release = [{ key: 'r', text: 'A release about copper.', at: START - MINUTE }]

  async function serve(
    behaviour: Behaviour,
  ): Promise<{ url: string; seen: IncomingMessage[]; setBehaviour(next: Behaviour): void }> {
    const seen: IncomingMessage[] = []
    let current = behaviour
    const server = createServer((request, response) => {
      seen.push(request)
      current(request, response)
    })
    servers.push(server)
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', () => resolve()))
    const { port } = server.address() as AddressInfo
    return { url: `http://127.0.0.1:${port}/feed`, seen, setBehaviour: (next) => void (current = next) }
  }
  async function open(urls: Readonly<Record<string, string>>) {
    const settings = Object.fromEntries(
      readSources().map(({ id }) => [id, { enabled: id in urls, ...(urls[id] ? { url: urls[id] } : {}) }]),
    )
    feed = await openTestFeed({ time: START, settings })
    fetcher = createFetcher()
    const sources = [...feed.sources.values()]
    const jobs = pollJobs({
      db: feed.db,
      writer: feed,
      fetcher,
      pace: createHostPace({ now: () => feed.time }),
      sources,
      log: pino({ level: 'silent' }),
      now: () => feed.time,
    })
    const run = (id?: string) =>
      Promise.all(
        jobs
          .filter(({ name }) => id === undefined || name === `poll ${id}`)
          .map((job) => job.run({ signal: controller.signal, ask: (async () => ({})) as never })),
      )
    const healthOf = async (id: string) =>
      (await feed.ask<{ feeds: Record<string, unknown>[] }>('getPotusFeeds')).feeds.find(
        (one) => one['id'] === id,
      ) as Record<string, unknown>
    return { run, healthOf, jobs }
  }
  afterEach(async () => {
    await fetcher.close()
    await feed.close()
    for (const server of servers.splice(0)) {
      server.closeAllConnections()
      server.close()
    }
  })

  it('keeps polling the other sources when one sends a web page, one hangs, one refuses and one reports a wrong time', async function () {
    const good = await serve(xml(rssOf(release)))
    const page = await serve(
      (_, response) =>
        void response.writeHead(200, { 'content-type': 'text/html' }).end('<html>Just a moment...</html>'),
    )
    const hanging = await serve(() => {})
    const busy = await serve((_, response) => void response.writeHead(503, { 'retry-after': '120' }).end('busy'))
    const future = await serve(xml(rssOf([{ key: 'f', text: 'x', at: START + 3_600_000 }])))
    const { run, healthOf } = await open({
      'wh.news': good.url,
      'wh.actions': page.url,
      'truth.mirror': hanging.url,
      'fed.press': busy.url,
      'state.press': future.url,
    })
    await run()
    expect(await healthOf('wh.news')).to.include({ status: 'ok', consecutive_failures: 0, items_24h: 1 })
    const failures = await Promise.all(['wh.actions', 'truth.mirror', 'fed.press', 'state.press'].map(healthOf))
    expect(failures.map(({ status, consecutive_failures: count }) => [status, count])).to.deep.equal(
      Array.from({ length: 4 }, () => ['failing', 1]),
    )
    expect(failures.map(({ last_failure: why }) => why)).to.satisfy(
      ([a, b, c, d]: string[]) =>
        a?.startsWith('not_a_feed') &&
        /HEADERS_TIMEOUT|in time/.test(b ?? '') &&
        c === 'The source answered 503.' &&
        d?.startsWith('future_date'),
    )
    const { items, state } = await feed.ask<{ items: object[]; state: object }>('getPotusLive')
    expect(items).to.have.length(1)
    expect(state).to.include({ sources_ok: 1, sources_late: 4 })
    // The source that sent Retry-After is not polled before that time is over.
    feed.time += 119_000
    await run('fed.press')
    expect(busy.seen).to.have.length(1)
    feed.time += 2_000
    busy.setBehaviour(xml(rssOf(release)))
    await run('fed.press')
    expect(await healthOf('fed.press')).to.include({ status: 'ok', consecutive_failures: 0, last_failure: null })
  })

  it('sends validators, and stores nothing for a 304', async () => {
    const etag = '"site-wide"'
    const source = await serve((request, response) =>
      request.headers['if-none-match'] === etag
        ? void response.writeHead(304).end()
        : xml(rssOf(release), { etag, 'last-modified': 'Fri, 01 May 2026 11:59:00 GMT' })(request, response),
    )
    const { run, healthOf } = await open({ 'wh.news': source.url })
    for (let n = 0; n < 4; n += 1) {
      await run()
      feed.time += MINUTE
    }
    expect(source.seen.map(({ headers }) => headers['if-none-match'])).to.deep.equal([undefined, etag, etag, etag])
    expect(source.seen[1]?.headers['if-modified-since']).to.equal('Fri, 01 May 2026 11:59:00 GMT')
    expect(await healthOf('wh.news')).to.include({ http_304_share: 0.75, status: 'ok' })
  })

  it('marks the items of a source’s first poll as backfill and later ones as live', async () => {
    const source = await serve(
      xml(postsOf([{ id: postId(START - 3_600_000), text: 'Before.', at: START - 3_600_000 }])),
    )
    const { run } = await open({ 'truth.mirror': source.url })
    await run()
    feed.time += MINUTE
    const at = feed.time - 5000
    source.setBehaviour(xml(postsOf([{ id: postId(at), text: 'After.', at }])))
    await run()
    const { items } = await feed.ask<{
      items: { text: string; available_at: string; latency_ms: number | null; provenance: { ingest: string } }[]
    }>('getPotusLive')
    expect(items.map(({ text, latency_ms, provenance }) => [text, latency_ms, provenance.ingest])).to.deep.equal([
      ['After.', 5000, 'live'],
      ['Before.', null, 'backfill'],
    ])
    expect(items[1]?.available_at).to.equal('2026-05-01T11:00:00Z')
  })

  it('follows redirects on the same host only, and stops reading a body that is too long', async () => {
    const source = await serve((request, response) =>
      request.url?.startsWith('/feed')
        ? void response.writeHead(301, { location: '/moved' }).end()
        : xml(rssOf(release))(request, response),
    )
    const elsewhere = await serve(
      (_, response) => void response.writeHead(302, { location: 'http://example.invalid/feed' }).end(),
    )
    const endless = await serve((_, response) => {
      response.writeHead(200)
      const more = (): void => {
        while (!response.destroyed && response.write(Buffer.alloc(65_536, 'x')));
      }
      response.on('drain', more)
      more()
    })
    const { run, healthOf } = await open({
      'wh.news': source.url,
      'wh.actions': elsewhere.url,
      'wh.briefings': endless.url,
    })
    await run()
    expect(await healthOf('wh.news')).to.include({ status: 'ok' })
    expect((await healthOf('wh.actions'))['last_failure']).to.match(/another host/)
    expect((await healthOf('wh.briefings'))['last_failure']).to.match(/longer than/)
  })

  it('bypasses caches for sources without validators, and identifies itself', async () => {
    const source = await serve((_, response) => void response.writeHead(200).end('{"count":0,"results":[]}'))
    const state = await serve(xml(rssOf(release)))
    const { run } = await open({ 'fr.pi': source.url, 'state.press': state.url })
    await run()
    expect(source.seen[0]?.url).to.equal(`/feed?_=${START}`)
    expect(source.seen[0]?.headers['user-agent']).to.match(/^tollgate\//)
    expect(state.seen[0]?.headers['user-agent']).to.match(/^Mozilla\/5\.0 \(compatible; /)
  })

  it('sends one request per host at a time', async () => {
    let [openRequests, peak] = [0, 0]
    const source = await serve((request, response) => {
      openRequests += 1
      peak = Math.max(peak, openRequests)
      setTimeout(() => {
        openRequests -= 1
        xml(rssOf(release))(request, response)
      }, 50)
    })
    const { run } = await open({ 'wh.news': source.url, 'wh.actions': source.url, 'wh.briefings': source.url })
    await run()
    expect([source.seen.length, peak]).to.deep.equal([3, 1])
  })

  it('keeps the pace of sources that share a host', async () => {
    const source = await serve(xml(rssOf(release)))
    const { run } = await open({ 'wh.news': source.url, 'truth.mirror': source.url })
    // The clock moves while the second request waits for the first.
    source.setBehaviour((request, response) => {
      feed.time += 900
      xml(rssOf(release))(request, response)
    })
    for (let n = 0; n < 4; n += 1) {
      feed.time = START + n * MINUTE
      await run()
    }
    expect(source.seen).to.have.length(8)
  })

  it('reads compressed bodies, and refuses one that is too long once it is unpacked', async () => {
    const packed = (body: string, encoding: string): Behaviour => {
      const bytes = encoding === 'br' ? brotliCompressSync(body) : gzipSync(body)
      return (_, response) => void response.writeHead(200, { 'content-encoding': encoding }).end(bytes)
    }
    const good = await serve(packed(rssOf(release), 'gzip'))
    const other = await serve(packed(rssOf(release), 'br'))
    const bomb = await serve(packed(`<rss>${' '.repeat(9 * 1024 * 1024)}</rss>`, 'gzip'))
    const damaged = await serve(
      (_, response) => void response.writeHead(200, { 'content-encoding': 'gzip' }).end('plain'),
    )
    const strange = await serve(
      (_, response) => void response.writeHead(200, { 'content-encoding': 'zip' }).end('plain'),
    )
    const { run, healthOf } = await open({
      'wh.news': good.url,
      'wh.eo': other.url,
      'wh.actions': bomb.url,
      'wh.briefings': damaged.url,
      'wh.releases': strange.url,
    })
    await run()
    expect(good.seen[0]?.headers['accept-encoding']).to.equal('gzip')
    for (const id of ['wh.news', 'wh.eo']) expect(await healthOf(id)).to.include({ status: 'ok', items_24h: 1 })
    expect((await healthOf('wh.actions'))['last_failure']).to.match(/longer than 8388608 bytes/)
    expect((await healthOf('wh.briefings'))['last_failure']).to.match(/header check/)
    expect((await healthOf('wh.releases'))['last_failure']).to.match(/the encoding zip/)
  })
})
