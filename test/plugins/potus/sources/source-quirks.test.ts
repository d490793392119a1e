/** The peculiarities that recorded sources have shown. */
import { expect } from 'chai'
import { rssOf, type TestFeed, OLD_RELEASE, openPolledTestFeed, postId, postsOf } from '../test-feed.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const LONG = 'The delegations met and agreed on the schedule for the next round of talks. '.repeat(12).trim()

interface FeedItem {
  readonly id: string
  readonly source: string
  readonly source_key: string
  readonly kind: string
  readonly text: string
  readonly title: string | null
  readonly status: string
  readonly revision: number
  readonly available_at: string
  readonly published_at: string
  readonly published_precision: string
  readonly first_seen_at: string
  readonly latency_ms: number | null
  readonly occurred_at: string | null
  readonly cluster: { readonly id: string; readonly role: string; readonly size: number; readonly sources: string[] }
}

describe('the sources of the feed', () => {
  let feed: TestFeed
  beforeEach(async () => {
    feed = await openPolledTestFeed()
  })
  afterEach(() => feed.close())
  const items = async (query: object = {}): Promise<FeedItem[]> =>
    (await feed.ask<{ items: FeedItem[] }>('getPotusLive', { query: { limit: 100, ...query } })).items

  it('may send a body that differs only in its build date, which counts as unchanged', async () => {
    const written = await feed.poll('wh.news', rssOf([OLD_RELEASE], 'Fri, 02 Oct 2026 14:00:00 +0000'), {
      headers: { etag: '"2"' },
    })
    expect(written).to.include({ outcome: 'unchanged', fresh: 0 })
    const again = await feed.poll('wh.news', rssOf([OLD_RELEASE, OLD_RELEASE], 'Fri, 02 Oct 2026 15:00:00 +0000'))
    expect(again).to.include({ outcome: 'new', fresh: 0, repeated: 1 })
  })

  it('may date an item long before it appears; it is available from when it was first seen', async () => {
    await feed.poll('wh.news', rssOf([{ key: 'late', text: 'Dated early.', at: feed.time - 14.5 * HOUR }, OLD_RELEASE]))
    const [first] = await items()
    expect(first).to.include({ available_at: '2026-05-01T13:00:00Z', latency_ms: 14.5 * HOUR })
    expect(first?.published_at).to.equal('2026-04-30T22:30:00Z')
  })

  it('may use midnight for a whole day, which gives no latency', async () => {
    const at = Date.UTC(2026, 4, 1)
    await feed.poll('wh.news', rssOf([{ key: 'midnight', text: 'Dated by the day.', at }, OLD_RELEASE]))
    expect((await items())[0]).to.include({ published_precision: 'day', latency_ms: null })
  })

  it('may change the text of a key, which is a revision unless the text was seen before', async () => {
    const item = { key: 'edit', at: feed.time - MINUTE }
    const publish = (text: string) => feed.poll('wh.news', rssOf([{ ...item, text }, OLD_RELEASE]))
    expect(await publish('Twelve plants come.')).to.include({ fresh: 1 })
    feed.time += MINUTE
    expect(await publish('Thirteen plants come.')).to.include({ revised: 1 })
    feed.time += MINUTE
    expect(await publish('Twelve plants come.')).to.include({ revised: 0, repeated: 2 })
    expect((await items())[0]).to.include({ revision: 2, status: 'corrected', text: 'Thirteen plants come.' })
  })

  it('may lose a text and restore it; a stub is held back until two more polls agree', async () => {
    const item = { key: 'stub', at: feed.time - MINUTE }
    const publish = async (text: string) => {
      feed.time += MINUTE
      return feed.poll('wh.news', rssOf([{ ...item, text }, OLD_RELEASE]))
    }
    await publish(LONG)
    expect(await publish('A stub.')).to.include({ held: 1, revised: 0 })
    expect(await publish(LONG)).to.include({ repeated: 2, held: 0 })
    expect(await publish('A stub.')).to.include({ held: 1 })
    // The same body twice more: two polls agree, although an unchanged body is not parsed.
    expect(await publish('A stub.')).to.include({ outcome: 'unchanged', revised: 0 })
    expect(await publish('A stub.')).to.include({ outcome: 'unchanged', revised: 1 })
    expect((await items())[0]).to.include({ text: 'A stub.', revision: 2 })
  })

  it('may wrap a text in a menu, which is removed', async () => {
    const menu = `<div class="alignfull wp-block-whitehouse-topper"><h1>News</h1><nav><ul><li>Menu <b>item</b></li></ul></nav><div>more</div></div>`
    const body = rssOf([{ key: 'menu', text: 'TEXT', at: feed.time - MINUTE }, OLD_RELEASE]).replace(
      '<p>TEXT</p>',
      `${menu}<p>Only &amp; this.</p><p>The post <a href="#">Menu</a> appeared first on <a href="#">The White House</a>.</p>`,
    )
    await feed.poll('wh.news', body)
    expect((await items())[0]).to.include({ text: 'Only & this.' })
  })

  it('may mislabel an order; its own text decides its kind', async () => {
    const text = 'By the authority vested in me as President, it is hereby ordered: Section 1.'
    const order = { key: 'order', text, at: feed.time - MINUTE, path: 'presidential-actions', label: 'Proclamations' }
    const labelled = { ...order, key: 'other', text: 'Nothing that tells.', at: feed.time - 2 * MINUTE }
    await feed.poll('wh.news', rssOf([order, labelled, OLD_RELEASE]))
    expect((await items()).slice(0, 2).map(({ kind }) => kind)).to.have.members([
      'action.executive_order',
      'action.proclamation',
    ])
  })

  it('may send a search without results, a filing without a time, and a title with spaces', async () => {
    const nothing = '{"description":"none","count":0}'
    expect(await feed.poll('fr.pi', nothing)).to.include({ outcome: 'new', items: 0 })
    // The hundred newest documents are never none.
    expect(await feed.poll('fr.docs', nothing)).to.include({ outcome: 'quarantined' })
    const registerDocument = {
      document_number: '2026-1',
      type: 'Presidential Document',
      title: 'On Copper ',
      filed_at: null,
      publication_date: '2026-05-04',
      html_url: 'https://example.org/1',
    }
    await feed.poll('fr.pi', JSON.stringify({ count: 1, results: [registerDocument] }))
    const [found] = await items({ kinds: 'fr.public_inspection' })
    expect(found).to.include({ title: 'On Copper', published_precision: 'day' })
    expect(await feed.poll('fr.docs', '{"error":"x"}')).to.include({ outcome: 'quarantined' })
  })

  it('have ids beyond JavaScript’s safe integers, which contain their time', async () => {
    const id = '116457972455781406'
    await feed.poll(
      'truth.mirror',
      postsOf([{ id, text: 'A post with a long id.', at: Date.parse('2026-04-24T05:13:56Z') }]),
    )
    const [post] = await items()
    expect(post).to.include({
      source_key: id,
      occurred_at: '2026-04-24T05:13:56.349Z',
      published_at: '2026-04-24T05:13:56Z',
    })
    expect(
      await feed.poll('truth.archive', `[{"id": ${id}, "created_at": "2026-04-24T05:13:56.349Z", "content": ""}]`),
    ).to.include({ outcome: 'quarantined' })
  })

  it('do not flag reposts, links and pictures; the text decides, and a joined handle is separated', async () => {
    const at = feed.time - 10 * MINUTE
    const texts = ['RT @DanScavinoPROMISES MADE', 'https://example.org/a', '', 'Words of his own.']
    await feed.poll(
      'truth.mirror',
      postsOf(texts.map((text, n) => ({ id: postId(at + n * 1000), text, at: at + n * 1000 }))),
    )
    const found = (await items()).slice(0, 4).reverse()
    expect(found.map(({ kind }) => kind)).to.deep.equal(['social.repost', 'social.link', 'social.media', 'social.post'])
    expect(found[0]?.text).to.equal('RT @DanScavino PROMISES MADE')
  })

  it('may delete and repost with one word fixed, which is a new event in the same cluster', async () => {
    const text =
      'The delegation will arrive tonight for the negotiations about the strait, and I very much hope that they succed in it. Ships must pass, fuel must flow, and nobody shall be charged for a passage that was free for a hundred years. If they refuse, the ports stay closed to them, and the talks end on the first day.'
    const at = feed.time - 3 * HOUR
    await feed.poll('truth.mirror', postsOf([{ id: postId(at), text, at }]))
    feed.time += HOUR
    const again = feed.time - MINUTE
    const written = await feed.poll(
      'truth.mirror',
      postsOf([{ id: postId(again), text: text.replace('succed', 'succeed'), at: again }]),
    )
    expect(written).to.include({ fresh: 1, joined: 1, revised: 0 })
    const [second, first] = await items()
    expect(second?.id).not.to.equal(first?.id)
    expect(second?.cluster.id).to.equal(first?.cluster.id)
    expect([second?.cluster.role, first?.cluster.role]).to.deep.equal(['member', 'lead'])
  })

  it('may show one post in two places, which is one cluster with two records; changed counts are no revision', async () => {
    const at = feed.time - 5 * MINUTE
    const id = postId(at)
    await feed.poll('truth.mirror', postsOf([{ id, text: 'Tariffs on copper start Monday.', at }]))
    const row = {
      id,
      created_at: new Date(at).toISOString(),
      content: '<p>Tariffs on copper start Monday.</p>',
      media: [],
      replies_count: 1,
      reblogs_count: 2,
      favourites_count: 3,
    }
    await feed.poll('truth.archive', JSON.stringify([row]))
    feed.time += MINUTE
    const written = await feed.poll('truth.archive', JSON.stringify([{ ...row, favourites_count: 4000 }]))
    expect(written).to.include({ revised: 0, repeated: 1 })
    const found = (await items()).filter(({ source_key: key }) => key === id)
    expect(found).to.have.length(2)
    expect(new Set(found.map(({ cluster }) => cluster.id))).to.have.length(1)
    expect(found[0]?.cluster).to.include({ size: 2 })
    const archived = found.find(({ source }) => source === 'truth.archive')
    const { engagement } = await feed.ask<{ engagement: object }>('getPotusEvent', {
      params: { selector: archived?.id },
    })
    expect(engagement).to.include({ favourites: 4000 })
  })

  it('may withdraw items: after three successful polls without it an item is retracted, never deleted, and may return', async () => {
    const at = feed.time - 20 * MINUTE
    const [a, b] = [
      { key: 'a', text: 'The first of two.', at },
      { key: 'b', text: 'Something else altogether.', at: at + MINUTE },
    ]
    await feed.poll('wh.news', rssOf([b, a, OLD_RELEASE]))
    const statuses: string[] = []
    for (const shown of [
      [a, OLD_RELEASE],
      [a, OLD_RELEASE],
      [a, OLD_RELEASE],
      [b, a, OLD_RELEASE],
    ]) {
      feed.time += MINUTE
      await feed.poll('wh.news', rssOf(shown))
      statuses.push((await items()).find(({ source_key: key }) => key.endsWith('=b'))?.status ?? 'gone')
    }
    expect(statuses).to.deep.equal(['active', 'active', 'retracted', 'active'])
  })

  it('may drop old items from a full page; an item older than the oldest is not missing', async () => {
    const at = feed.time - 20 * MINUTE
    const pageFrom = (from: number) =>
      rssOf(
        [0, 1, 2]
          .map((n) => ({
            key: `k${from + n}`,
            text: `Release number ${from + n} about plants.`,
            at: at + (from + n) * MINUTE,
          }))
          .reverse(),
      )
    for (const from of [0, 3, 3, 3, 3]) {
      feed.time += MINUTE
      await feed.poll('wh.news', pageFrom(from))
    }
    expect((await items()).every(({ status }) => status === 'active')).to.equal(true)
  })
})
