/** From which millisecond on a caller may see an event or a revision, in every field of every answer. */
import { expect } from 'chai'
import { proves } from '../../../requirements.ts'
import { rssOf, LIVE, type TestFeed, openTestFeed, postId, postsOf } from '../test-feed.ts'

const HOUR = 3_600_000
const DAY = 24 * HOUR
const START = Date.UTC(2026, 4, 1, 12)

interface Item {
  readonly id: string
  readonly seq: number
  readonly text: string
  readonly revision: number
  readonly available_at: string
  readonly cluster: { readonly size: number }
}
interface Page {
  readonly as_of: string
  readonly max_freshness_seconds: number
  readonly items: readonly Item[]
  readonly next_cursor: string | null
}

describe('the delay of the feed', () => {
  let feed: TestFeed
  beforeEach(async () => {
    feed = await openTestFeed({ time: START - DAY })
    await feed.poll('wh.news', rssOf([{ key: 'old', text: 'An old release.', at: START - 30 * DAY }]))
    await feed.poll(
      'truth.mirror',
      postsOf([{ id: postId(START - 40 * DAY), text: 'An old post.', at: START - 40 * DAY }]),
    )
    feed.time = START
  })
  afterEach(() => feed.close())
  const old = { key: 'old', text: 'An old release.', at: START - 30 * DAY }
  const archive = (options: Parameters<TestFeed['ask']>[1] = {}) => feed.ask<Page>('getPotusArchive', options)
  const publish = (text: string) => feed.poll('wh.news', rssOf([{ key: 'a', text, at: START - 60_000 }, old]))

  it('shows an event in the archive after exactly 86,400 seconds and not a millisecond earlier', async () => {
    proves('feeds-freshness', 'token-freshness')
    await publish('Tariffs on copper from Mexico.')
    const isVisible = async (age: number): Promise<boolean> => {
      feed.time = START + age
      return (await archive()).items.some(({ text }) => text.includes('copper'))
    }
    expect(await isVisible(86_399_000)).to.equal(false)
    expect(await isVisible(86_399_999)).to.equal(false)
    expect(await isVisible(86_400_000)).to.equal(true)
    expect(await isVisible(86_400_001)).to.equal(true)
    expect(await isVisible(86_401_000)).to.equal(true)
  })

  it('is stated in the answer: the delay of the plan for a token, one day for a single call', async () => {
    await publish('Tariffs on copper from Mexico.')
    expect(await archive()).to.include({ max_freshness_seconds: 86_400, as_of: '2026-04-30T12:00:00Z' })
    const live = await archive({ access: LIVE })
    expect(live).to.include({ max_freshness_seconds: 0, as_of: '2026-05-01T12:00:00Z' })
    expect(live.items.at(-1)?.text).to.include('copper')
    const plan = { ...LIVE, plan: 'archive-30d' } as const
    expect(await archive({ access: plan, asOf: START - DAY })).to.include({ max_freshness_seconds: 86_400 })
  })

  it('hides a revision of an hour ago from every field of the archive', async () => {
    await publish('Tariffs on copper from Mexico are twelve percent.')
    feed.time = START + 2 * DAY
    const before = await archive()
    await publish('Crude oil of Venezuela is welcome, says Marco Rubio in Tehran.')
    feed.time += HOUR
    const asOf = feed.time - DAY
    const after = await archive()
    expect(after.items).to.deep.equal(before.items)
    expect(JSON.stringify(after)).not.to.match(/Venezuela|Rubio|oil|"revision":2|corrected/)
    const id = after.items.at(-1)?.id
    const details = await feed.ask<{ revisions: unknown[]; event: Item }>('getPotusEvent', {
      params: { selector: id },
      asOf,
    })
    expect(details.revisions).to.have.length(1)
    expect(JSON.stringify(details)).not.to.match(/Venezuela|Rubio|corrected/)
    const range = { from: START - DAY, to: START + DAY }
    expect(JSON.stringify(await feed.ask('getPotusEntities', { asOf, query: range }))).not.to.match(/Rubio|Tehran/)
    expect(
      JSON.stringify(await feed.ask('getPotusEvents1m', { asOf, query: { from: START - HOUR, to: START + HOUR } })),
    ).not.to.match(/Venezuela|"revision":2|"15m","revision":1/)
    for (const query of [{ entity: 'place:VE' }, { topics: 'oil' }, { q: 'Venezuela' }])
      expect((await archive({ query })).items, JSON.stringify(query)).to.deep.equal([])
    expect((await archive({ query: { entity: 'place:MX' } })).items).to.have.length(1)
    // The live tier shows it.
    expect((await archive({ access: LIVE, query: { entity: 'place:VE' } })).items).to.have.length(1)
  })

  it('shows a revision from the millisecond in which it became known', async () => {
    await publish('Tariffs on copper are twelve percent.')
    feed.time = START + 2 * DAY
    await publish('Tariffs on copper are thirteen percent.')
    const revisionAt = async (asOf: number) => (await archive({ asOf })).items.at(-1)?.revision
    expect(await revisionAt(START + 2 * DAY - 1)).to.equal(1)
    expect(await revisionAt(START + 2 * DAY)).to.equal(2)
  })

  it('counts the members of a cluster as they were known at the time', async () => {
    const text = 'The tariff on copper from Mexico starts on Monday at noon, and it is a very fair one.'
    const at = START - 60_000
    await feed.poll('truth.mirror', postsOf([{ id: postId(at), text, at }]))
    feed.time = START + 2 * DAY
    const again = feed.time - 60_000
    await feed.poll('truth.mirror', postsOf([{ id: postId(again), text, at: again }]))
    feed.time += HOUR
    const [last] = (await archive()).items.slice(-1)
    expect(last?.cluster.size).to.equal(1)
    const now = (await archive({ access: LIVE })).items.find(({ id }) => id === last?.id)
    expect(now?.cluster.size).to.equal(2)
  })

  it('is a day for the figures, states and newest times of the free index', async () => {
    await publish('Tariffs on copper.')
    feed.time = START + DAY - 1
    const index = () => feed.ask<{ counts: { events: number }; newest_available_at: string | null }>('getPotus')
    const before = await index()
    feed.time += 1
    const after = await index()
    expect(after.counts.events).to.equal(before.counts.events + 1)
    expect(after.newest_available_at).to.equal('2026-05-01T12:00:00Z')
  })

  it('leaves the answers about an earlier moment unchanged, whatever came later', async () => {
    await publish('Tariffs on copper.')
    feed.time += HOUR
    const asOf = feed.time
    const questions = [
      'getPotusLive',
      'getPotusEvents1m',
      'getPotusEvents15m',
      'getPotusArchive',
      'getPotusEntities',
      'getPotusFeeds',
    ]
    const answers = async () => Promise.all(questions.map((id) => feed.ask(id, { asOf, access: LIVE })))
    const before = await answers()
    feed.time += HOUR
    await publish('Tariffs on copper are thirteen percent.')
    await feed.poll('truth.mirror', postsOf([{ id: postId(feed.time), text: 'Another one.', at: feed.time }]))
    await feed.poll('wh.news', '<html></html>')
    expect(await answers()).to.deep.equal(before)
  })

  it('makes an event that may not be seen yet answer 404, like an unknown event', async () => {
    await publish('Tariffs on copper.')
    const { items } = await archive({ access: LIVE })
    const seq = items.at(-1)?.seq
    expect(
      (await feed.ask<{ event: Item }>('getPotusEvent', { params: { selector: `seq:${seq}` } })).event.seq,
    ).to.equal(seq)
    for (const selector of ['evt_0000000000000000', 'seq:999999', 'seq:-1', 'EVT', '../x', `${items[0]?.id}x`]) {
      const error = await feed.ask('getPotusEvent', { params: { selector } }).catch((thrown: unknown) => thrown)
      expect(error, selector).to.include({ code: 'not_found' })
    }
    // The event exists, but this caller may not see it yet.
    const early = await feed
      .ask('getPotusEvent', { params: { selector: items.at(-1)?.id }, asOf: START - 1 })
      .catch((thrown: unknown) => thrown)
    expect(early).to.include({ code: 'not_found' })
  })
})
