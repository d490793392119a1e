/** The log of polls is a recording: exported by one service, it gives another service the same past. */
import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { openDatabase } from '../../../../gateway/stores/database.ts'
import { logLines } from '../../../../plugins/potus/replay/poll-log.ts'
import { readRecordings } from '../../../../plugins/potus/replay/recordings.ts'
import { playEntries } from '../../../../plugins/potus/replay/replay-feed.ts'
import { rssOf, type TestFeed, openTestFeed, postId, postsOf, root } from '../test-feed.ts'

const MINUTE = 60_000
const START = Date.UTC(2026, 4, 1, 12)
const LONG = 'The delegations met and agreed on the schedule for the next round of talks. '.repeat(12).trim()
const TABLES = ['events', 'versions', 'mentions', 'polls', 'feeds', 'held', 'missing']

/** Ten polls of two sources: news, an edit, a stub that two polls confirm, errors, a web page, a 304. */
async function pollTenTimes(feed: TestFeed): Promise<void> {
  const old = { key: 'old', text: 'An old release.', at: START - 30 * 24 * 60 * MINUTE }
  const rssWith = (text: string) => rssOf([{ key: 'new', text, at: START + MINUTE }, old])
  const stub = rssWith('A stub.')
  const post = postsOf([{ id: postId(START), text: 'Tariffs on copper start Monday.', at: START }])
  const headers = { etag: '"1"', 'content-type': 'application/rss+xml' }
  for (const [source, body, more] of [
    ['wh.news', rssOf([old]), { headers }],
    ['truth.mirror', post, {}],
    ['wh.news', rssWith(LONG), { headers }],
    ['wh.news', rssWith(`${LONG} And more.`), {}],
    ['wh.news', '<html>Not found</html>', {}],
    ['wh.news', null, { status: 503, headers: { 'retry-after': '30' } }],
    ['wh.news', null, { status: null, failure: 'It did not answer in time.' }],
    ['wh.news', stub, {}],
    ['wh.news', null, { status: 304 }],
    ['wh.news', stub, {}],
  ] as const) {
    await feed.poll(source, body, more)
    feed.time += MINUTE
  }
}

async function rowsOf({ db }: TestFeed): Promise<Record<string, object[]>> {
  const tables = TABLES.map(async (name) => [name, await db(`potus_${name}`)] as const)
  return Object.fromEntries(await Promise.all(tables))
}

describe('the log of polls', () => {
  let folder: string
  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'tollgate-log-'))
  })
  after(() => rmSync(folder, { recursive: true, force: true }))

  it('can be replayed as a recording, which produces the same rows in every table', async () => {
    const feed = await openTestFeed({ time: START })
    await pollTenTimes(feed)
    const lines: string[] = []
    for await (const line of logLines(feed.db)) lines.push(line)
    writeFileSync(join(folder, 'news.jsonl'), `${lines.join('\n')}\n`)
    const replayed = await openTestFeed({ time: START, dataMode: 'replay', shift: 0 })
    const recorded = await readRecordings(folder, replayed.sources)
    expect(recorded).to.have.length(10)
    for (const entry of recorded) await playEntries(replayed, replayed.sources, [entry], { shift: 0 })
    const before = await rowsOf(feed)
    expect(before['versions']).to.have.length(5)
    expect(await rowsOf(replayed)).to.deep.equal(before)
    await feed.close()
    await replayed.close()
  })

  it('is exported from the database of the service by a command', async () => {
    const feed = await openTestFeed({
      time: START,
      db: openDatabase({ file: join(folder, 'sandbox-online/products.sqlite') }),
    })
    await pollTenTimes(feed)
    await feed.db.destroy()
    const { stdout } = await promisify(execFile)('node', ['--import', 'tsx/esm', 'test/lab/main.ts', 'polls'], {
      cwd: root,
      env: { ...process.env, DATA_DIR: folder, DATA_MODE: 'online' },
    })
    expect(stdout.split('\n')).to.have.length(11)
    expect(JSON.parse(stdout.split('\n')[5] ?? '')).to.deep.equal({
      source: 'wh.news',
      fetched_at: '2026-05-01T12:05:00.000Z',
      url: 'https://www.whitehouse.gov/news/feed/',
      status: 503,
      headers: { 'retry-after': '30' },
      sha256: null,
      failure: 'The source answered 503.',
    })
  })

  it('skips polls that repeat a body from before the log began', async () => {
    const [first, ...rest] = ['a', 'a', 'b'].map((sha256, at) =>
      JSON.stringify({
        source: 'wh.news',
        fetched_at: new Date(START + at * MINUTE).toISOString(),
        url: 'https://example.org',
        status: 200,
        headers: {},
        sha256,
        ...(at === 1 ? {} : { body: 'H4sIAAAAAAAAAwMAAAAAAAAAAAA=' }),
      }),
    )
    writeFileSync(join(folder, 'news.jsonl'), rest.join('\n'))
    const feed = await openTestFeed()
    expect(await readRecordings(folder, feed.sources)).to.have.length(1)
    writeFileSync(join(folder, 'news.jsonl'), [first, ...rest].join('\n'))
    expect(await readRecordings(folder, feed.sources)).to.have.length(3)
    await feed.close()
  })
})
