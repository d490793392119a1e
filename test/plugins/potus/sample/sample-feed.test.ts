/** The sample news. The tests open it a few days after its first day, so that there is little history to write. */
import { setImmediate } from 'node:timers/promises'
import { expect } from 'chai'
import { createWriter } from '../../../../plugins/potus/ingest/event-writer.ts'
import { sampleDay } from '../../../../plugins/potus/sample/sample-day.ts'
import { createSample, SAMPLE_START } from '../../../../plugins/potus/sample/sample-feed.ts'
import { LIVE, openTestFeed } from '../test-feed.ts'

const DAY = 86_400_000
const HOUR = 3_600_000

describe('the sample of the feed', () => {
  async function open(time: number) {
    const feed = await openTestFeed({ time, dataMode: 'sample' })
    const writer = createWriter(
      feed.db,
      () => feed.time,
      (source) => feed.sources.get(source)?.publisher ?? source,
    )
    return { room: feed, sample: createSample(feed.db, writer, feed.sources, () => feed.time) }
  }
  const week = (feed: Awaited<ReturnType<typeof open>>['room'], from: number, to: number) =>
    feed.ask<{ items: { text: string; seq: number; data_mode: string; url: string }[] }>('getPotusArchive', {
      access: LIVE,
      query: { from, to, limit: 500 },
    })

  it('depends on the day alone and is identical in every process', () => {
    const midnight = Date.UTC(2026, 6, 7)
    expect(sampleDay(midnight)).to.deep.equal(sampleDay(midnight))
    expect(sampleDay(midnight)).not.to.deep.equal(sampleDay(midnight + DAY))
    expect(sampleDay(midnight).every(({ at }) => at >= midnight && at < midnight + DAY)).to.equal(true)
  })

  it('is available at once, marks every text, and has the same past whenever it is opened', async () => {
    const time = SAMPLE_START + 6 * DAY + 15 * HOUR
    const [early, late] = [await open(time), await open(time + 7 * HOUR)]
    await early.sample.open()
    const { items } = await week(early.room, 0, time)
    expect(items.length).to.be.greaterThan(30)
    expect(
      items.every(
        ({ text, data_mode: mode, url }) =>
          mode === 'sample' &&
          url.startsWith('https://sample.invalid/') &&
          (text.startsWith('SAMPLE, made up:') || /^Signed \d/.test(text)),
      ),
    ).to.equal(true)
    // Opened at another hour, and filled backwards: every record is the same, number and hash included.
    await late.sample.open()
    await late.sample.step()
    await early.sample.step()
    const range = [time - 3 * DAY, time] as const
    expect(await week(late.room, ...range)).to.deep.include({ items: (await week(early.room, ...range)).items })
    await early.room.close()
    await late.room.close()
  })

  it('continues in real time, and reaches back to its first day and no further', async () => {
    const { room: feed, sample } = await open(SAMPLE_START + 4 * DAY)
    await sample.open()
    const seq = async () => (await feed.ask<{ next_since_seq: number }>('getPotusLive')).next_since_seq
    const before = await seq()
    feed.time += 20 * HOUR
    await sample.step()
    expect(await seq()).to.be.greaterThan(before)
    for (let n = 0; n < 4; n += 1) await sample.step()
    const row = (await feed.db('potus_events').min('available_at as first').first()) as { first: number }
    expect(row.first).to.be.within(SAMPLE_START, SAMPLE_START + DAY)
    await feed.close()
  })

  it('stops between two items when aborted, and continues from there', async () => {
    const time = SAMPLE_START + 4 * DAY
    const [stopped, whole] = [await open(time), await open(time)]
    const stopping = new AbortController()
    const step = stopped.sample.step(stopping.signal)
    while ((await stopped.room.db('potus_events').first('seq')) === undefined) await setImmediate()
    stopping.abort()
    expect(await step.catch((thrown: Error) => thrown.name)).to.equal('AbortError')
    await stopped.sample.step()
    await whole.sample.step()
    const range = [0, time] as const
    expect(await week(stopped.room, ...range)).to.deep.equal(await week(whole.room, ...range))
    await stopped.room.close()
    await whole.room.close()
  })

  for (const isNewProcess of [false, true])
    it(`numbers new items above all earlier ones after the clock jumps four days${isNewProcess ? ', in a new process' : ''}`, async () => {
      const { room: feed, sample } = await open(SAMPLE_START + 5 * DAY + 9 * HOUR)
      await sample.step()
      const live = async (since?: number) =>
        feed.ask<{ items: { seq: number }[]; next_since_seq: number }>('getPotusLive', {
          access: LIVE,
          query: since === undefined ? {} : { since_seq: since, limit: 100 },
        })
      const before = (await live()).next_since_seq
      feed.time += 93 * HOUR
      const writer = createWriter(feed.db, () => feed.time, String)
      const next = isNewProcess ? createSample(feed.db, writer, feed.sources, () => feed.time) : sample
      const stopping = new AbortController()
      const step = next.step(stopping.signal).catch(() => undefined)
      while ((await live(before)).items.length === 0) await setImmediate()
      stopping.abort()
      await step
      const firstItems = (await live(before)).items.map(({ seq }) => seq).toReversed()
      await next.step()
      const all = (await live(before)).items.map(({ seq }) => seq).toReversed()
      expect(all.length).to.be.greaterThan(firstItems.length)
      expect(all.slice(0, firstItems.length)).to.deep.equal(firstItems)
      await feed.close()
    })

  it('continues after a restart without storing anything twice', async () => {
    const time = Date.UTC(2026, 6, 7, 15)
    const { room: feed, sample } = await open(time)
    await sample.open()
    const count = async () => ((await feed.db('potus_events').count('* as n').first()) as { n: number }).n
    const before = await count()
    const writer = createWriter(
      feed.db,
      () => feed.time,
      (source) => feed.sources.get(source)?.publisher ?? source,
    )
    const reopened = createSample(feed.db, writer, feed.sources, () => feed.time)
    await reopened.open()
    expect(await count()).to.equal(before)
    // If the note of a finished day is lost, the day is written again and stays the same.
    await feed.db('potus_notes').where('name', 'like', 'sample:%').delete()
    await createSample(feed.db, writer, feed.sources, () => feed.time).open()
    expect(await count()).to.equal(before)
    await feed.close()
  })
})
