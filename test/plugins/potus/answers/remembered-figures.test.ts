/** What a process remembers of the feed is what the database would answer, at every moment and for every delay. */
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'chai'
import type { Database } from 'tollgate/plugin'
import { noteRemoval } from '../../../../plugins/potus/store/change-counters.ts'
import { DATABASES, type TestDatabase } from '../../../contracts/databases.ts'
import { type AskOptions, LIVE, openTestFeed, postId, postsOf, rssOf, type TestFeed } from '../test-feed.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR
const START = Date.UTC(2026, 4, 1, 12)

/** Numbers in [0, 1) that are the same in every run (mulberry32). */
function randomFrom(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

const QUESTIONS: readonly (readonly [string, object])[] = [
  ['getPotus', {}],
  ['getPotusFeeds', {}],
  ['getPotusLive', {}],
  ['getPotusLive', { limit: 3, topics: 'trade' }],
  ['getPotusLive', { since_seq: 4, limit: 5 }],
]

for (const name of ['a SQLite file', 'PostgreSQL'])
  describe(`the remembered figures of the feed on ${name}`, function () {
    this.timeout(120_000)
    let store: TestDatabase | null
    beforeEach(async function () {
      store = await DATABASES[name]!()
      if (!store) this.skip()
    })
    afterEach(() => store?.drop())

    /** Writes something that the sources might show next. */
    async function write(feed: TestFeed, random: () => number): Promise<void> {
      const number = Math.floor(random() * 12)
      const pick = random()
      const items = Array.from({ length: 1 + Math.floor(random() * 4) }, (_, n) => ({
        key: `k${number + n}`,
        text: `Release ${number + n} about copper and steel${random() < 0.2 ? ', corrected' : ''}.`,
        at: START - 3 * DAY + (number + n) * 2 * HOUR,
      }))
      const at = feed.time - Math.floor(random() * 5) * MINUTE
      if (pick < 0.35) await feed.poll('wh.news', rssOf(items))
      else if (pick < 0.6)
        await feed.poll(
          'truth.mirror',
          postsOf([{ id: postId(at, number), text: `Tariffs of ${number} percent!`, at }]),
        )
      else if (pick < 0.7) await feed.poll('wh.news', null, { status: 304 })
      else if (pick < 0.8) await feed.poll('wh.actions', '<html>Just a moment...</html>')
      else if (pick < 0.9)
        await feed.poll('wh.actions', null, { status: 503, failure: `The source answered ${number}.` })
      else await feed.poll('wh.actions', rssOf(items.map((item) => ({ ...item, key: `a${item.key}` }))))
    }

    for (const seed of [1, 2, 3])
      it(`equal what the database answers, whoever writes and whenever it is asked (${seed})`, async () => {
        const random = randomFrom(seed)
        const time = START - 2 * DAY
        const first = await openTestFeed({ time, db: store!.db })
        const second = await openTestFeed({ time, db: store!.open!() })
        const stored = await openTestFeed({ time, db: store!.db, remembersNothing: true })
        for (let step = 0; step < 30; step += 1) {
          const later = Math.floor(random() * (step % 10 === 9 ? 20 * HOUR : 20 * MINUTE))
          for (const feed of [first, second, stored]) feed.time += later
          await write(random() < 0.5 ? first : second, random)
          if (step === 20)
            await (store!.db as Database).transaction(async (tx) => {
              await noteRemoval(tx)
              await tx('potus_polls')
                .where('at', '<', first.time - DAY)
                .delete()
            })
          const delays = [0, 30_000, Math.floor(random() * DAY), DAY, 5 * DAY, -MINUTE, 0]
          const [operation, query] = QUESTIONS[step % QUESTIONS.length]!
          /** What the database answers. Nobody writes between these questions, so it is asked once for each moment. */
          const wantedOf = new Map<number, string>()
          for (const delay of delays) {
            const options: AskOptions = { query, access: LIVE, asOf: first.time - delay }
            const known = wantedOf.get(delay)
            // An answer that equals one of the database is as valid as that.
            const [wanted, ...found] = await Promise.all([
              known ?? stored.askText(operation, options),
              ...[first, second].map((feed) => feed.askText(operation, { ...options, unchecked: true })),
            ])
            wantedOf.set(delay, wanted)
            for (const answer of found) expect(answer, `step ${step}, ${delay} ms ago`).to.equal(wanted)
            // Parts of these answers are written at different times, but as one value would be.
            if (known === undefined) expect(wanted).to.equal(JSON.stringify(JSON.parse(wanted)))
          }
        }
      })

    it('change at exactly the moments at which the answers of the database do', async () => {
      const random = randomFrom(4)
      // Nobody writes once the questions begin, so it need not look for changes again.
      const remembering = await openTestFeed({ time: START - 2 * DAY, db: store!.db, checkMs: HOUR })
      const stored = await openTestFeed({ time: START - 2 * DAY, db: store!.db, remembersNothing: true })
      for (let step = 0; step < 30; step += 1) {
        remembering.time += Math.floor(random() * 20 * MINUTE)
        await write(remembering, random)
      }
      const polls = (await store!.db('potus_polls').select('source', 'at')) as { source: string; at: number }[]
      const lateAfter = ({ source }: { source: string }): number => remembering.sources.get(source)!.lateSeconds * 1000
      // What was polled or published enters an answer, and leaves its last hour or day, or what counts as recent. A source
      // becomes late. Each happens from one millisecond to the next; the others are moments in between.
      const moments = polls.flatMap((poll) =>
        [0, lateAfter(poll), HOUR, DAY, 8 * DAY, Math.floor(random() * 9 * DAY)].flatMap((after) =>
          [-1, 0, 1].map((edge) => poll.at + after + edge),
        ),
      )
      for (let asked = 0; asked < 80; asked += 1) {
        const around = Math.floor(random() * (moments.length / 3)) * 3
        // In any order, so that what is kept was computed before the edge as often as after it.
        for (const edge of [0, 1, 2].toSorted(() => random() - 0.5)) {
          const asOf = moments[around + edge]!
          for (const [operation, query] of [QUESTIONS[1]!, QUESTIONS[2]!]) {
            const options: AskOptions = { query, access: LIVE, asOf, unchecked: true }
            const wanted = await stored.askText(operation, options)
            expect(await remembering.askText(operation, options), new Date(asOf).toISOString()).to.equal(wanted)
          }
        }
      }
    })

    it('keep the rows of a status apart', async () => {
      const feed = await openTestFeed({ time: START, db: store!.db, settings: { 'wh.actions': { enabled: true } } })
      await feed.poll('wh.news', rssOf([{ key: 'k', text: 'A release.', at: START - HOUR }]))
      await feed.poll('wh.actions', null, { status: 503, failure: 'The source answered 503.' })
      const { feeds: all } = await feed.ask<{ feeds: { id: string; status: string }[] }>('getPotusFeeds', {
        access: LIVE,
      })
      for (const status of ['late', 'ok', 'failing', 'disabled', 'replay', 'ok']) {
        const answer = await feed.ask<{ count: number; feeds: { id: string }[] }>('getPotusFeeds', {
          query: { status },
        })
        expect(answer.feeds, status).to.deep.equal(all.filter((row) => row.status === status))
        expect(answer.count).to.equal(answer.feeds.length)
      }
      expect(all.filter(({ status }) => status === 'failing').map(({ id }) => id)).to.deep.equal(['wh.actions'])
    })

    it('show what another process wrote once the feed looks for changes again', async () => {
      const [reading, writing] = [
        await openTestFeed({ time: START, db: store!.db, checkMs: 200 }),
        await openTestFeed({ time: START, db: store!.open!() }),
      ]
      const seen = async (): Promise<number> =>
        (await reading.ask<{ state: { events_24h: number } }>('getPotusLive', { access: LIVE })).state.events_24h
      await writing.poll('truth.mirror', postsOf([{ id: postId(START - HOUR), text: 'Old.', at: START - HOUR }]))
      expect(await seen()).to.equal(1)
      await writing.poll('truth.mirror', postsOf([{ id: postId(START), text: 'New.', at: START }]))
      while ((await seen()) < 2) await sleep(20)
    })
  })

describe('calls for the live feed and the health of the sources', () => {
  it('show a source as late from the first millisecond on, in whatever order the moments are asked for', async () => {
    const feed = await openTestFeed({ time: START })
    await feed.poll('wh.news', rssOf([{ key: 'k', text: 'A release.', at: START - HOUR }]))
    const late = START + feed.sources.get('wh.news')!.lateSeconds * 1000 + 1
    const seen = async (asOf: number): Promise<[string | undefined, number]> => {
      const options: AskOptions = { access: LIVE, asOf }
      const { feeds } = await feed.ask<{ feeds: { id: string; status: string }[] }>('getPotusFeeds', options)
      const { state } = await feed.ask<{ state: { sources_ok: number } }>('getPotusLive', options)
      return [feeds.find(({ id }) => id === 'wh.news')?.status, state.sources_ok]
    }
    for (const asOf of [START, late, late - 1, late + DAY, late, START, late - 1])
      expect(await seen(asOf), `${asOf - late} ms`).to.deep.equal(asOf < late ? ['ok', 1] : ['late', 0])
    await feed.close()
  })

  it('run not one statement while nothing has changed', async () => {
    const feed = await openTestFeed({ time: START, checkMs: HOUR })
    await feed.poll('truth.mirror', postsOf([{ id: postId(START), text: 'Tariffs on copper.', at: START }]))
    feed.time += 1000
    const ask = async (): Promise<void> => {
      for (const [operation, query] of QUESTIONS) await feed.ask(operation, { query, access: LIVE })
    }
    await ask()
    let statements = 0
    feed.db.on('query', () => (statements += 1))
    const first = await feed.ask<{ state: { seconds_since_last: number } }>('getPotusLive', { access: LIVE })
    for (let second = 0; second < 60; second += 1) {
      feed.time += 1000
      await ask()
    }
    const last = await feed.ask<{ state: { seconds_since_last: number }; as_of: string }>('getPotusLive', {
      access: LIVE,
    })
    expect(statements).to.equal(0)
    // What changes with time is of the moment of the call.
    expect(last.state.seconds_since_last - first.state.seconds_since_last).to.equal(60)
    expect(last.as_of).to.equal('2026-05-01T12:01:01Z')
    await feed.close()
  })
})
