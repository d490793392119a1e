/** Presidential documents at each stage: on the White House site, on public inspection, in the Federal Register. */
import { expect } from 'chai'
import { feedOf, type Newsroom, OLD, openRunningNewsroom } from '../newsroom.ts'

const DAY = 86_400_000

interface Shown {
  readonly source: string
  readonly source_key: string
  readonly occurred_at: string | null
  readonly cluster: { readonly id: string; readonly role: string; readonly sources: string[] }
}

describe('a presidential document', () => {
  let room: Newsroom
  beforeEach(async () => {
    room = await openRunningNewsroom()
    await room.poll('fr.pi', '{"count":0}')
    await room.poll('fr.docs', '{"count":0}')
  })
  afterEach(() => room.close())

  const paper = (number: string, fields: object = {}): object => ({
    document_number: number,
    type: 'Presidential Document',
    title: `Paper ${number} ordered`,
    html_url: `https://example.org/${number}`,
    ...fields,
  })
  const show = (source: string, ...results: object[]): Promise<unknown> =>
    room.poll(source, JSON.stringify({ count: results.length, results }))
  const clusters = async (): Promise<string[][]> => {
    const { items } = await room.ask<{ items: Shown[] }>('getPotusLive', { query: { limit: 100 } })
    const together = new Map<string, string[]>()
    for (const { source, source_key: key, cluster } of items)
      together.set(cluster.id, [...(together.get(cluster.id) ?? []), `${source} ${key.replace(/.*=/, '')}`])
    const before = ['truth.mirror', 'wh.news old']
    return [...together.values()]
      .map((one) => one.toSorted())
      .filter(([first = '']) => !before.some((start) => first.startsWith(start)))
      .toSorted((a, b) => (a.join() < b.join() ? -1 : 1))
  }
  const day = (time: number): string => new Date(time).toISOString().slice(0, 10)

  it('has its own cluster, although the Federal Register describes all documents of a day in the same phrases', async () => {
    const facts = { signing_date: day(room.time - DAY), publication_date: day(room.time) }
    await show(
      'fr.docs',
      paper('2026-1', facts),
      paper('2026-2', facts),
      paper('2026-3', { ...facts, citation: '91 FR 1' }),
    )
    expect(await clusters()).to.deep.equal([['fr.docs 2026-1'], ['fr.docs 2026-2'], ['fr.docs 2026-3']])
  })

  it('stays one document by its number, on inspection and in print, even if its title changes', async () => {
    await show('fr.pi', paper('2026-1', { filed_at: new Date(room.time - 60_000).toISOString() }))
    room.time += 2 * DAY
    await show('fr.docs', paper('2026-1', { title: 'Ordered, and corrected', publication_date: day(room.time) }))
    expect(await clusters()).to.deep.equal([['fr.docs 2026-1', 'fr.pi 2026-1']])
  })

  it('joins the White House page of the same title up to three days after signing', async () => {
    const page = {
      key: 'a',
      title: 'Facilitating Recovery in Arizona',
      text: 'MEMORANDUM FOR the Secretary.',
      at: room.time - 60_000,
      path: 'presidential-actions',
    }
    await room.poll('wh.news', feedOf([page, OLD]))
    const filed = (days: number): object => ({ filed_at: new Date(room.time - 60_000 + days * DAY).toISOString() })
    const { title } = page
    for (const [days, number, fields] of [
      // As the Federal Register sends it: without a signing date, and with the kind of document after the title.
      [3, '2026-1', { title: `${title} (Memorandum of May 1, 2026) `, ...filed(3) }],
      [3, '2026-2', { title, ...filed(3) }],
      [5, '2026-3', { title, ...filed(5) }],
      [5, '2026-4', { title: `${title} (Memorandum of May 4, 2026)`, ...filed(5) }],
      [5, '2026-5', { title: `${title} (Memorandum of April 20, 2026)`, ...filed(5) }],
    ] as const) {
      const now = room.time
      room.time += days * DAY
      await show('fr.pi', paper(number, fields))
      room.time = now
    }
    room.time += 6 * DAY
    expect(await clusters()).to.deep.equal([
      ['fr.pi 2026-1', 'fr.pi 2026-2', 'fr.pi 2026-4', 'wh.news a'],
      ['fr.pi 2026-3'],
      ['fr.pi 2026-5'],
    ])
    const { event } = await room.ask<{ event: Shown }>('getPotusEvent', { params: { selector: 'latest' } })
    expect(event.occurred_at).to.equal('2026-04-20T00:00:00Z')
  })
})
