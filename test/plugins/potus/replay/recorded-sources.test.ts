/** The peculiarities of the sources, on recorded payloads. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { candidateOf, jaccard, shinglesOf, findDuplicate } from '../../../../plugins/potus/ingest/clusters.ts'
import { type Item, readSources } from '../../../../plugins/potus/sources/source.ts'
import { type RecordedEntry, readRecordings } from '../../../../plugins/potus/replay/recordings.ts'
import { parseBody } from '../../../../plugins/potus/sources/parsers.ts'
import { snowflakeTime } from '../../../../plugins/potus/sources/truth-social.ts'
import { SHARED } from '../test-feed.ts'

const sources = new Map(readSources().map((source) => [source.id, source]))

describe('the recorded sources', () => {
  let recorded: RecordedEntry[]
  before(async function () {
    if (!existsSync(SHARED)) {
      this.test?.parent?.tests.forEach(
        (test) => (test.title += ' (skipped: no recorded payloads in ../shared/data/potus)'),
      )
      this.skip()
    }
    recorded = await readRecordings(SHARED, sources)
  })
  const rows = (file: string): Record<string, unknown>[] =>
    readFileSync(join(SHARED, 'truthsocial', file), 'utf8')
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line) as Record<string, unknown>)
  const posts = (source: string): Item[] =>
    recorded.flatMap(({ source: id, item }) => (id === source && item ? [item] : []))

  it('lose the menu of nine thousand characters that begins each White House entry', async () => {
    const poll = recorded.find(({ source }) => source === 'wh.news') as RecordedEntry
    const body = poll.body as Buffer
    expect(body.toString()).to.match(/<nav[\s\S]{5000,}<\/nav>/)
    const {
      items: [item],
    } = await parseBody(sources.get('wh.news')!, body, Infinity)
    expect(item?.text.length).to.be.within(500, 2000)
    expect(item?.text).to.match(/^Today, President Donald J\. Trump’s Council of Economic Advisers/)
    expect(item?.text).not.to.match(/Menu|Search|svg|<|Select Category|appeared first on/i)
  })

  it('have ids that exceed JavaScript numbers and contain the time of the post to the second', () => {
    const found = posts('truth.archive')
    expect(found.length).to.equal(983)
    const apart = found.map(({ key, publishedAt }) => Math.abs((snowflakeTime(key) ?? 0) - publishedAt))
    expect(Math.max(...apart)).to.equal(121)
    expect(apart.toSorted((a, b) => a - b)[491]).to.equal(3)
    for (const { key } of found) {
      expect(key).to.match(/^\d{18}$/)
      expect(Number.isSafeInteger(Number(key))).to.equal(false)
    }
  })

  it('are classified by their text, because the archive’s flag misses reposts', () => {
    const flagged = rows('posts_2026-01-26_2026-03-14.jsonl').filter((row) => row['is_reblog'] === true).length
    const kinds = (kind: string): number => posts('truth.archive').filter((item) => item.kind === kind).length
    expect([flagged, kinds('social.repost'), kinds('social.media'), kinds('social.link')]).to.deep.equal([
      0, 156, 304, 15,
    ])
  })

  it('put a deleted post and its corrected copy into one cluster as two events', () => {
    const mirror = sources.get('truth.mirror')!
    const at = (moment: string): Item =>
      posts('truth.mirror').find(({ publishedAt }) => publishedAt === Date.parse(moment)) as Item
    const [first, second] = [at('2026-04-25T16:27:38Z'), at('2026-04-25T18:19:24Z')]
    expect(first.key).not.to.equal(second.key)
    expect(jaccard(shinglesOf(first.text), shinglesOf(second.text))).to.be.within(0.85, 0.97)
    const before = candidateOf(first, mirror, first.publishedAt, 1, 'clu_first')
    expect(findDuplicate(candidateOf(second, mirror, second.publishedAt, 2, 'clu_second'), [before])?.cluster).to.equal(
      'clu_first',
    )
  })

  it('match 188 of 190 posts between two sources by their text alone', () => {
    const second = (item: Item): number => Math.floor(item.publishedAt / 1000)
    const archived = new Map(posts('truth.archive').map((item) => [second(item), item]))
    const pairs = posts('truth.mirror').flatMap((item): [Item, Item][] => {
      const other = archived.get(second(item))
      return other && other.text !== '' && item.text !== '' ? [[item, other]] : []
    })
    const alike = pairs.filter(([a, b]) => jaccard(shinglesOf(a.text), shinglesOf(b.text)) >= 0.8)
    expect([pairs.length, alike.length]).to.deep.equal([190, 188])
  })
})
