/** Several processes that start on one database at once: they agree on the past and store nothing twice. */
import { cpSync, existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'chai'
import type { OpenDatabase } from '../../../../gateway/stores/database.ts'
import { pino } from 'pino'
import { createLease } from '../../../../gateway/stores/lease.ts'
import { migrate } from '../../../../gateway/stores/migrations.ts'
import { createWriter, type Writer } from '../../../../plugins/potus/ingest/event-writer.ts'
import type { WriteResult } from '../../../../plugins/potus/ingest/new-events.ts'
import { openReplay, type Replay } from '../../../../plugins/potus/replay/replay-feed.ts'
import { createSample } from '../../../../plugins/potus/sample/sample-feed.ts'
import { readSources, type Source } from '../../../../plugins/potus/sources/source.ts'
import { createReader } from '../../../../plugins/potus/store/event-reader.ts'
import { migrations } from '../../../../plugins/potus/store/tables.ts'
import { DATABASES, type TestDatabase } from '../../../contracts/databases.ts'
import { rssOf, openTestFeed, postId, postsOf, SHARED } from '../test-feed.ts'

const MINUTE = 60_000
const TIME = Date.UTC(2026, 6, 7, 15)
const sources = new Map(readSources().map((source) => [source.id, source]))

/**
 * Checks that every key and every version exists once and that the records of a source form one chain. Returns the ids
 * of the events.
 */
async function consistentIds(db: OpenDatabase): Promise<string[]> {
  const events = (await db('potus_events').orderBy('seq').select('seq', 'id', 'source', 'source_key')) as {
    seq: number
    id: string
    source: string
    source_key: string
  }[]
  expect(new Set(events.map(({ source, source_key: key }) => `${source} ${key}`)).size).to.equal(events.length)
  const versions = (await db('potus_versions').orderBy('id').select('source', 'prev', 'record_hash')) as {
    source: string
    prev: string | null
    record_hash: string
  }[]
  expect(versions.length).to.be.at.least(events.length)
  for (const source of new Set(versions.map((row) => row.source))) {
    const predecessors = versions.filter((row) => row.source === source).map(({ prev }) => prev)
    const hashes = new Set(predecessors.filter((prev) => prev !== null))
    expect(hashes.size, `records of ${source} follow each other`).to.equal(
      predecessors.filter((prev) => prev !== null).length,
    )
  }
  return events.map(({ id }) => id).sort()
}

interface VersionRow {
  readonly seq: number
  readonly available_at: number
  readonly known_at: number
  readonly superseded_at: number | null
}

/** A process that writes the items of a feed. */
interface WritingProcess {
  readonly db: OpenDatabase
  write(...items: Parameters<typeof rssOf>[0]): Promise<WriteResult>
}

function fetched(source: Source, body: string): Parameters<Writer['write']>[0] {
  return { source, at: TIME, url: source.url, status: 200, headers: {}, body: Buffer.from(body) }
}

/** Waits until a replay is ready. A process that does not play reads this from the database, when it is asked. */
async function untilReady(replay: Replay): Promise<void> {
  for (;;)
    try {
      return replay.assertReady()
    } catch {
      await sleep(20)
    }
}

for (const name of ['a SQLite file', 'PostgreSQL'])
  describe(`the feed of several processes on ${name}`, function () {
    this.timeout(180_000)
    let store: TestDatabase | null
    let folder: string
    before(async function () {
      folder = mkdtempSync(join(tmpdir(), 'tollgate-together-'))
      const probe = await DATABASES[name]!()
      if (probe) return probe.drop()
      this.test?.parent?.tests.forEach((test) => (test.title += ' (skipped: no server on the loopback)'))
      this.skip()
    })
    after(() => rmSync(folder, { recursive: true, force: true }))
    beforeEach(async () => {
      store = await DATABASES[name]!()
      await migrate(store!.db, 'potus', migrations)
    })
    afterEach(() => store?.drop())

    const openProcess = (now = (): number => TIME): { db: OpenDatabase; writer: Writer } => {
      const db = store!.open!()
      return {
        db,
        writer: createWriter(db, now, (source) => sources.get(source)?.publisher ?? source),
      }
    }

    it('inserts each item once when two processes poll a source at the same moment', async () => {
      const body = rssOf(
        Array.from({ length: 30 }, (_, n) => ({
          key: `k${n}`,
          text: `Release ${n} on copper.`,
          at: TIME - n * MINUTE,
        })),
      )
      const source = sources.get('wh.news')!
      await Promise.all([1, 2, 3].map(() => openProcess().writer.write(fetched(source, body))))
      expect(await consistentIds(store!.db)).to.have.length(30)
    })

    it('numbers events consecutively when processes write different sources at the same time', async () => {
      const [a, b] = [openProcess(), openProcess()]
      const write = ({ writer }: typeof a, id: string, body: string, at: number) =>
        writer.write({ ...fetched(sources.get(id)!, body), at })
      for (let n = 0; n < 8; n += 1) {
        const at = TIME + n * MINUTE
        const text = `Release number ${n} about copper and steel.`
        const post = { id: postId(at - MINUTE, n), text: `Post number ${n} about oil and gas.`, at: at - MINUTE }
        await Promise.all([
          write(a, 'wh.news', rssOf([{ key: `r${n}`, text, at: at - MINUTE }]), at),
          write(b, 'truth.mirror', postsOf([post]), at),
        ])
      }
      expect(await consistentIds(store!.db)).to.have.length(16)
      const numbers = (await store!.db('potus_events').orderBy('seq').select('seq')) as { seq: number }[]
      expect(numbers.map(({ seq }) => seq)).to.deep.equal(numbers.map((_, at) => at + 1))
    })

    it('keeps numbers and times rising together when clocks differ, so that a follower misses nothing', async () => {
      let time = TIME
      const source = sources.get('wh.news')!
      const [ahead, behind] = [90_000, 0].map((offset) => {
        const { db, writer } = openProcess(() => time + offset)
        const write = (...items: Parameters<typeof rssOf>[0]) =>
          writer.write({ ...fetched(source, rssOf(items)), at: time + offset })
        return { db, write }
      }) as [WritingProcess, WritingProcess]
      const item = (n: number, metal = 'copper') => ({
        key: `k${n}`,
        text: `Release ${n} on ${metal}.`,
        at: TIME - MINUTE,
      })
      await ahead.write(item(0))
      for (let n = 1; n <= 8; n += 1, time += 5_000)
        expect(await (n % 2 ? ahead : behind).write(item(n), item(n - 1))).to.include({ fresh: 1, repeated: 1 })
      const rows = (await behind.db('potus_events').where({ ingest: 'live' }).orderBy('seq')) as VersionRow[]
      const times = rows.map(({ available_at: at }) => at)
      expect(times).to.deep.equal(times.toSorted((a, b) => a - b))
      const followed: number[] = []
      for (let moment = TIME; followed.length < rows.length; moment += 1_000)
        followed.push(...(await createReader(behind.db).since(followed.at(-1) ?? 0, moment, 100)).map(({ seq }) => seq))
      expect(followed).to.deep.equal(rows.map(({ seq }) => seq))
      // A revision by the process whose clock is behind is not known before the version it replaces.
      expect(await behind.write(item(8), item(7, 'steel'))).to.include({ revised: 1 })
      const [first, second] = (await behind
        .db('potus_versions')
        .where({ seq: followed[6] })
        .orderBy('version')) as VersionRow[]
      expect(second?.known_at).to.equal(first?.superseded_at)
      expect(second?.known_at).to.be.at.least(first?.known_at ?? Infinity)
    })

    it('opens the sample together and writes what one process alone would write', async () => {
      const singleProcess = await openTestFeed({ time: TIME, dataMode: 'sample' })
      await createSample(singleProcess.db, singleProcess, singleProcess.sources, () => TIME).open()
      const expected = await consistentIds(singleProcess.db)
      await singleProcess.close()
      const samples = [1, 2, 3].map(() => {
        const { db, writer } = openProcess()
        return createSample(db, writer, sources, () => TIME)
      })
      await Promise.all(samples.map((sample) => sample.open()))
      expect(await consistentIds(store!.db)).to.deep.equal(expected)
      const polls = (await store!.db('potus_polls').where({ outcome: 'not_modified' })) as object[]
      expect(polls).to.have.length(3)
    })

    it('opens a recording together: one process plays it, and all become ready', async function () {
      if (!existsSync(SHARED)) {
        this.test!.title += ' (skipped: no recorded payloads in ../shared/data/potus)'
        this.skip()
      }
      cpSync(join(SHARED, 'whitehouse-briefings-rss'), join(folder, 'whitehouse-briefings-rss'), { recursive: true })
      const time = Date.UTC(2026, 2, 2, 12)
      const { signal } = new AbortController()
      const replays = await Promise.all(
        [1, 2, 3].map(async (n): Promise<{ replay: Replay; hold: () => Promise<boolean> }> => {
          const { db, writer } = openProcess()
          const context = {
            db,
            deployment: {
              data_mode: 'replay' as const,
              replay_dir: folder,
              replay_shift: 'none',
              replay_shift_seconds: '0',
            },
            log: pino({ level: 'silent' }),
            progress: () => ({ advance() {}, end() {} }),
          }
          const replay = await openReplay({ context, writer, sources, now: () => time })
          const lease = createLease(db, `process-${n}`, () => new Date(time))
          return { replay, hold: () => lease.hold('potus/replay', 60) }
        }),
      )
      for (const { replay } of replays) expect(() => replay.assertReady()).to.throw()
      const outcomes = await Promise.all(
        replays.map(async ({ replay, hold }) => ((await hold()) ? (await replay.step(signal), 1) : 0)),
      )
      expect(outcomes.filter((n) => n === 1)).to.have.length(1)
      const polls = (await store!.db('potus_polls').select('outcome')) as { outcome: string }[]
      const before = await consistentIds(store!.db)
      expect(before).to.have.length(38)
      for (const { replay } of replays) await untilReady(replay)
      // Another process may continue, but polls that were played are not played again.
      for (const { replay } of replays) await replay.step(signal)
      expect(await store!.db('potus_polls').select('outcome')).to.have.length(polls.length)
      expect(await consistentIds(store!.db)).to.deep.equal(before)
    })
  })
