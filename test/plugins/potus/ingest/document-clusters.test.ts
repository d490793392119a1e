/** Presidential documents at each stage: on the White House site, on public inspection, in the Federal Register. */
import { expect } from 'chai'
import { rssOf, type TestFeed, OLD_RELEASE, openPolledTestFeed } from '../test-feed.ts'

const DAY = 86_400_000

interface FeedItem {
  readonly source: string
  readonly source_key: string
  readonly occurred_at: string | null
  readonly cluster: { readonly id: string; readonly role: string; readonly sources: string[] }
}

describe('a presidential document', () => {
  let feed: TestFeed
  beforeEach(async () => {
    feed = await openPolledTestFeed()
    await feed.poll('fr.pi', '{"count":0}')
    await feed.poll('fr.docs', '{"count":0}')
  })
  afterEach(() => feed.close())

  const documentWith = (number: string, fields: object = {}): object => ({
    document_number: number,
    type: 'Presidential Document',
    title: `Paper ${number} ordered`,
    html_url: `https://example.org/${number}`,
    ...fields,
  })
  const publish = (source: string, ...results: object[]): Promise<unknown> =>
    feed.poll(source, JSON.stringify({ count: results.length, results }))
  const clusters = async (): Promise<string[][]> => {
    const { items } = await feed.ask<{ items: FeedItem[] }>('getPotusLive', { query: { limit: 100 } })
    const byCluster = new Map<string, string[]>()
    for (const { source, source_key: key, cluster } of items)
      byCluster.set(cluster.id, [...(byCluster.get(cluster.id) ?? []), `${source} ${key.replace(/.*=/, '')}`])
    const earlierItems = ['truth.mirror', 'wh.news old']
    return [...byCluster.values()]
      .map((one) => one.toSorted())
      .filter(([first = '']) => !earlierItems.some((start) => first.startsWith(start)))
      .toSorted((a, b) => (a.join() < b.join() ? -1 : 1))
  }
  const day = (time: number): string => new Date(time).toISOString().slice(0, 10)

  it('has its own cluster, although the Federal Register describes all documents of a day in the same phrases', async () => {
    const facts = { signing_date: day(feed.time - DAY), publication_date: day(feed.time) }
    await publish(
      'fr.docs',
      documentWith('2026-1', facts),
      documentWith('2026-2', facts),
      documentWith('2026-3', { ...facts, citation: '91 FR 1' }),
    )
    expect(await clusters()).to.deep.equal([['fr.docs 2026-1'], ['fr.docs 2026-2'], ['fr.docs 2026-3']])
  })

  it('stays one document by its number, on inspection and in print, even if its title changes', async () => {
    await publish('fr.pi', documentWith('2026-1', { filed_at: new Date(feed.time - 60_000).toISOString() }))
    feed.time += 2 * DAY
    await publish(
      'fr.docs',
      documentWith('2026-1', { title: 'Ordered, and corrected', publication_date: day(feed.time) }),
    )
    expect(await clusters()).to.deep.equal([['fr.docs 2026-1', 'fr.pi 2026-1']])
  })

  it('joins the White House page of the same title up to three days after signing', async () => {
    const page = {
      key: 'a',
      title: 'Facilitating Recovery in Arizona',
      text: 'MEMORANDUM FOR the Secretary.',
      at: feed.time - 60_000,
      path: 'presidential-actions',
    }
    await feed.poll('wh.news', rssOf([page, OLD_RELEASE]))
    const filed = (days: number): object => ({ filed_at: new Date(feed.time - 60_000 + days * DAY).toISOString() })
    const { title } = page
    for (const [days, number, fields] of [
      // As the Federal Register sends it: without a signing date, and with the kind of document after the title.
      [3, '2026-1', { title: `${title} (Memorandum of May 1, 2026) `, ...filed(3) }],
      [3, '2026-2', { title, ...filed(3) }],
      [5, '2026-3', { title, ...filed(5) }],
      [5, '2026-4', { title: `${title} (Memorandum of May 4, 2026)`, ...filed(5) }],
      [5, '2026-5', { title: `${title} (Memorandum of April 20, 2026)`, ...filed(5) }],
    ] as const) {
      const now = feed.time
      feed.time += days * DAY
      await publish('fr.pi', documentWith(number, fields))
      feed.time = now
    }
    feed.time += 6 * DAY
    expect(await clusters()).to.deep.equal([
      ['fr.pi 2026-1', 'fr.pi 2026-2', 'fr.pi 2026-4', 'wh.news a'],
      ['fr.pi 2026-3'],
      ['fr.pi 2026-5'],
    ])
    const { event } = await feed.ask<{ event: FeedItem }>('getPotusEvent', { params: { selector: 'latest' } })
    expect(event.occurred_at).to.equal('2026-04-20T00:00:00Z')
  })
})
