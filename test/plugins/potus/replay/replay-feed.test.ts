/** Recorded polls through the writer: they give the published figures, and the same bytes each time. */
import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { expect } from 'chai'
import { parseReplayShift } from '../../../../gateway/config/config.ts'
import { readRecordings } from '../../../../plugins/potus/replay/recordings.ts'
import { playEntries, replayShiftMs } from '../../../../plugins/potus/replay/replay-feed.ts'
import type { WriteResult } from '../../../../plugins/potus/ingest/new-events.ts'
import { LIVE, type TestFeed, openTestFeed, SHARED } from '../test-feed.ts'

const DAY = 86_400_000

describe('a recording', function () {
  this.timeout(180_000)
  let folder: string
  before(function () {
    if (!existsSync(SHARED)) {
      this.test?.parent?.tests.forEach(
        (test) => (test.title += ' (skipped: no recorded payloads in ../shared/data/potus)'),
      )
      this.skip()
    }
    folder = mkdtempSync(join(tmpdir(), 'tollgate-replay-'))
  })
  after(() => folder && rmSync(folder, { recursive: true, force: true }))

  function copyOf(name: string, ...paths: readonly string[]): string {
    const target = join(folder, name)
    for (const path of paths) {
      mkdirSync(join(target, 'data'), { recursive: true })
      cpSync(join(SHARED, path), join(target, path.includes('.') ? join('data', basename(path)) : path), {
        recursive: true,
      })
    }
    return target
  }
  async function play(
    path: string,
    until = Infinity,
  ): Promise<{ feed: TestFeed; sum: Record<string, number>; polls: Record<string, number> }> {
    const feed = await openTestFeed({ time: 0, dataMode: 'replay', shift: 0 })
    const recorded = (await readRecordings(path, feed.sources)).filter(({ at }) => at <= until)
    const sum: Record<string, number> = {}
    const polls: Record<string, number> = {}
    for (const entry of recorded) {
      const written: WriteResult = await playEntries(feed, feed.sources, [entry])
      const { outcome, ...figures } = written
      for (const [name, figure] of Object.entries(figures)) sum[name] = (sum[name] ?? 0) + figure
      if (entry.body) polls[outcome] = (polls[outcome] ?? 0) + 1
    }
    feed.time = Math.min(until, (recorded.at(-1)?.at ?? 0) + DAY)
    return { feed, sum, polls }
  }

  it('of 38 polls and 1,298 posts produces the published figures', async () => {
    const path = copyOf(
      'developer',
      'whitehouse-briefings-rss',
      'truthsocial/posts_2026-01-26_2026-03-14.jsonl',
      'truthsocial/trumpstruth_2026-02-28_2026-03-14.jsonl',
    )
    const { feed, sum, polls } = await play(path)
    expect(polls).to.deep.equal({ new: 22, unchanged: 16 })
    expect(sum).to.include({ items: 1520, fresh: 1338, revised: 13, held: 11, repeated: 158 })
    // By their second, 190 posts with text are in both recordings, and 188 of these pairs are found by their text. The
    // recorded mirror has no ids, so its 116 posts without text are not joined with those of the archive.
    const rows = (await feed.db('potus_events').groupBy('cluster').select('cluster').countDistinct('source as n')) as {
      n: number
    }[]
    expect(rows.filter(({ n }) => n > 1).length).to.equal(178)
    expect(sum['joined']).to.equal(239)
    // Pictures never share a cluster, because nothing shows that two of them are the same.
    const pictures = (await feed
      .db('potus_events as e')
      .join('potus_versions as v', 'v.seq', 'e.seq')
      .where({ 'v.version': 1, 'v.kind': 'social.media' })
      .select('e.cluster')) as { cluster: string }[]
    expect(pictures.length).to.be.greaterThan(400)
    expect(new Set(pictures.map(({ cluster }) => cluster)).size).to.equal(pictures.length)
    const states = (await feed.db('potus_versions').groupBy('status').select('status').count('* as n')) as {
      status: string
      n: number
    }[]
    expect(Object.fromEntries(states.map(({ status, n }) => [status, n]))).to.deep.equal({
      active: 1338,
      corrected: 13,
      retracted: 1,
    })
    await feed.close()
  })

  it('gives identical answers while the clock stands still', async () => {
    const path = copyOf(
      'polls',
      'whitehouse-briefings-rss',
      'whitehouse-wordpress',
      'truthsocial/trumpstruth_rss_excerpt.xml',
      'truthsocial/truth_archive_2025-10.json',
      'federalregister/documents_executive_orders_2026-10-02.json',
    )
    const answers = async (): Promise<string> => {
      const { feed } = await play(path)
      const questions = [
        'getPotus',
        'getPotusLive',
        'getPotusEvents1m',
        'getPotusEvents15m',
        'getPotusArchive',
        'getPotusEntities',
        'getPotusFeeds',
      ]
      const all = await Promise.all(
        questions.map((id) => feed.ask(id, { access: LIVE, query: id === 'getPotusArchive' ? { limit: 500 } : {} })),
      )
      const latest = await feed.ask('getPotusEvent', { params: { selector: 'latest' } })
      await feed.close()
      return JSON.stringify([...all, latest])
    }
    const first = await answers()
    expect(first).to.include('"replay":{"shift_ms":0')
    expect(await answers()).to.equal(first)
  })

  it('contains every file of the folder, and every body can be parsed', async () => {
    const feed = await openTestFeed()
    const recorded = await readRecordings(SHARED, feed.sources)
    const counts: Record<string, number> = {}
    for (const { source } of recorded) counts[source] = (counts[source] ?? 0) + 1
    expect(counts).to.deep.equal({
      'wh.briefings': 38,
      'wh.news': 1,
      'truth.archive': 984,
      'truth.mirror': 863,
      'fr.docs': 2,
      'fr.pi': 1,
    })
    for (const entry of recorded.filter(({ body }) => body !== null))
      expect(['new', 'unchanged']).to.include((await playEntries(feed, feed.sources, [entry])).outcome)
    await feed.close()
  })

  it('is shifted by whole weeks so that four fifths are in the past, or as REPLAY_SHIFT says', () => {
    const recorded = Array.from({ length: 11 }, (_, n) => ({
      source: 'wh.news',
      at: n * DAY,
      url: '',
      body: null,
      item: null,
    }))
    const now = 100 * DAY + 12_345
    const shift = replayShiftMs(recorded, parseReplayShift('auto'), now)
    expect(shift % (7 * DAY)).to.equal(0)
    expect(Math.abs(8 * DAY + shift - now)).to.be.at.most(3.5 * DAY)
    expect(replayShiftMs(recorded, parseReplayShift('frozen'), now), 'frozen only stops the clock').to.equal(shift)
    expect([
      replayShiftMs(recorded, parseReplayShift('none'), now),
      replayShiftMs(recorded, parseReplayShift('frozen:2026-01-01'), now),
      replayShiftMs(recorded, parseReplayShift('-60'), now),
    ]).to.deep.equal([0, 0, -60_000])
  })
})
