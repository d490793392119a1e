/** Files of a recording: each is recognised by its content, and a broken one does not affect the others. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { expect } from 'chai'
import { type RecordedEntry, readRecordings } from '../../../../plugins/potus/replay/recordings.ts'
import { readSources } from '../../../../plugins/potus/sources/source.ts'
import { rssOf, postId, postsOf } from '../test-feed.ts'

const sources = new Map(readSources().map((source) => [source.id, source]))
const AT = Date.UTC(2026, 9, 2, 14)
const ID = postId(AT)
const archivedPost = { id: ID, created_at: new Date(AT).toISOString(), content: '<p>Words.</p>' }
const mirroredPost = {
  post_id: '10',
  timestamp_utc: '2026-10-02 14:00:00',
  text: 'Words.',
  url: 'https://example.org/10',
}
const registerDocument = {
  document_number: '2026-1',
  type: 'Presidential Document',
  title: 'T',
  publication_date: '2026-10-02',
}
const rssFrom = (page: string): string =>
  rssOf([{ key: 'a', text: 'Words.', at: AT }]).replace('<title>News</title>', `$&<link>https://${page}</link>`)

describe('the files of a recording', () => {
  let folder: string
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'tollgate-recording-'))
  })
  afterEach(() => rmSync(folder, { recursive: true, force: true }))

  async function readFiles(files: Readonly<Record<string, string | Buffer>>): Promise<readonly RecordedEntry[]> {
    for (const [name, content] of Object.entries(files)) {
      mkdirSync(dirname(join(folder, name)), { recursive: true })
      writeFileSync(join(folder, name), content)
    }
    return readRecordings(folder, sources)
  }
  const summaryOf = (all: readonly RecordedEntry[]): string[] =>
    all.map(({ source, at, body }) => `${source} ${new Date(at).toISOString()} ${body ? 'body' : 'row'}`).sort()

  it('are recognised by content, compressed or not, and dated by their name or their newest item', async () => {
    const all = await readFiles({
      'a.xml': postsOf([{ id: ID, text: 'Words.', at: AT }]),
      'b.json.gz': gzipSync(JSON.stringify([archivedPost])),
      'c_2026-10-03.xml': rssFrom('www.whitehouse.gov/news/'),
      'd/e.rss': rssFrom('www.whitehouse.gov/presidential-actions/executive-orders/'),
      'd/f.xml': rssFrom('www.federalreserve.gov/newsevents/'),
      'g.json': JSON.stringify({ orders: [registerDocument] }),
      'h.jsonc': JSON.stringify({
        count: 1,
        results: [{ ...registerDocument, filed_at: '2026-10-02T08:45:00-04:00' }],
      }),
      'i.jsonl.gz': gzipSync([archivedPost, mirroredPost].map((row) => JSON.stringify(row)).join('\n')),
    })
    expect(summaryOf(all)).to.deep.equal([
      'fed.press 2026-10-02T14:01:00.000Z body',
      'fr.docs 2026-10-02T00:01:00.000Z body',
      'fr.pi 2026-10-02T12:46:00.000Z body',
      'truth.archive 2026-10-02T14:00:00.000Z row',
      'truth.archive 2026-10-02T14:01:00.000Z body',
      'truth.mirror 2026-10-02T14:00:00.000Z row',
      'truth.mirror 2026-10-02T14:01:00.000Z body',
      'wh.eo 2026-10-02T14:01:00.000Z body',
      'wh.news 2026-10-03T23:59:00.000Z body',
    ])
  })

  it('count as polls of their folder’s source if their names contain a time, even if they are error pages', async () => {
    const all = await readFiles({
      'wh.fact_sheets/20261002T140000Z_1.xml': '<html>Not found</html>',
      'whitehouse-briefings-rss/2026-10-02T150000Z_2.xml.gz': gzipSync(rssFrom('example.org/')),
    })
    expect(summaryOf(all)).to.deep.equal([
      'wh.briefings 2026-10-02T15:00:00.000Z body',
      'wh.fact_sheets 2026-10-02T14:00:00.000Z body',
    ])
  })

  it('are skipped if they are damaged or unknown, without affecting others', async () => {
    const all = await readFiles({
      'half.jsonl.gz': gzipSync(JSON.stringify(archivedPost)).subarray(0, 30),
      'wh.news/20261002T140000Z_1.xml.gz': 'not packed',
      'half.xml': rssFrom('www.whitehouse.gov/news/').slice(0, 300),
      'undated.xml': rssFrom('www.whitehouse.gov/news/').replace(/<pubDate>.*?<\/pubDate>/, ''),
      'members.json': JSON.stringify([{ id: { bioguide: 'A1' }, name: 'A' }]),
      'contracts.json': JSON.stringify({ results: [{ id: '1', created_at: 5 }] }),
      'README.md': '# Recordings',
      'rows.jsonl': ['no JSON', '[]', '{"post_id":"9","timestamp_utc":null}', JSON.stringify(mirroredPost), ''].join(
        '\n',
      ),
    })
    expect(summaryOf(all)).to.deep.equal(['truth.mirror 2026-10-02T14:00:00.000Z row'])
  })
})
