/** A recording that is opened again: continued if it is the same, and played from the beginning if a file was added. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { pino } from 'pino'
import type { Writer } from '../../../../plugins/potus/ingest/event-writer.ts'
import { openReplay } from '../../../../plugins/potus/replay/replay-feed.ts'
import { rssOf, type TestFeed, openTestFeed } from '../test-feed.ts'

const AT = Date.UTC(2026, 9, 2, 14)
const HOUR = 3_600_000
const NOT_SHIFTED = { replay_shift: 'none', replay_shift_seconds: '0' }
const SHIFTED = { replay_shift: '+1h', replay_shift_seconds: '3600' }

describe('a recording that is opened again', () => {
  let folder: string
  let feed: TestFeed
  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), 'tollgate-reopened-'))
    mkdirSync(join(folder, 'wh.news'))
    feed = await openTestFeed({ time: AT + 10 * HOUR, dataMode: 'replay', shift: 0 })
  })
  afterEach(async () => {
    await feed.close()
    rmSync(folder, { recursive: true, force: true })
  })

  /** One poll at each of the hours, with everything released until then. */
  const record = (...hours: readonly number[]): void => {
    for (const hour of hours) {
      const items = Array.from({ length: hour + 1 }, (_, n) => ({
        key: `k${n}`,
        text: `Release ${n}.`,
        at: AT + n * HOUR,
      }))
      const stamp = new Date(AT + hour * HOUR).toISOString().replace(/[-:]|\.\d+/g, '')
      writeFileSync(join(folder, 'wh.news', `${stamp}_x.xml`), rssOf(items))
    }
  }
  const play = async (
    writer: Writer = feed,
    shift: { readonly replay_shift: string; readonly replay_shift_seconds: string } = NOT_SHIFTED,
  ): Promise<{ events: number; polls: number }> => {
    const context = {
      db: feed.db,
      deployment: { data_mode: 'replay' as const, replay_dir: folder, ...shift },
      log: pino({ level: 'silent' }),
      progress: () => ({ advance() {}, end() {} }),
    }
    const replay = await openReplay({ context, writer, sources: feed.sources, now: () => feed.time })
    await replay.step(new AbortController().signal)
    replay.assertReady()
    const [events, polls] = [await feed.db('potus_events'), await feed.db('potus_polls')]
    return { events: events.length, polls: polls.length }
  }

  it('is not played twice', async () => {
    record(0, 1, 2)
    expect(await play()).to.deep.equal({ events: 3, polls: 3 })
    expect(await play()).to.deep.equal({ events: 3, polls: 3 })
  })

  it('continues after the last stored poll if a process stopped halfway', async () => {
    record(0, 1, 2)
    let writes = 0
    const stopping: Writer = {
      write: (poll, options) => {
        writes += 1
        return writes > 2 ? Promise.reject(new Error('stopped')) : feed.write(poll, options)
      },
      add: (poll, items, options) => feed.add(poll, items, options),
      writeListing: (poll) => feed.writeListing(poll),
    }
    expect(await play(stopping).catch(({ message }: Error) => message)).to.equal('stopped')
    expect(await play()).to.deep.equal({ events: 3, polls: 3 })
  })

  it('has new events each time it is repeated', async () => {
    record(0, 1, 2)
    expect(await play(feed, SHIFTED)).to.deep.equal({ events: 3, polls: 3 })
    feed.time += 7 * 24 * HOUR
    expect(await play(feed, SHIFTED)).to.deep.equal({ events: 6, polls: 6 })
  })

  it('is played from the beginning when a file is added, whatever its time', async () => {
    record(1, 3)
    expect(await play()).to.deep.equal({ events: 4, polls: 2 })
    record(0)
    expect(await play()).to.deep.equal({ events: 4, polls: 3 })
    const kinds = (await feed.db('potus_events').orderBy('seq').pluck('ingest')) as string[]
    expect(kinds).to.deep.equal(['backfill', 'live', 'live', 'live'])
  })
})
