/** The pure functions: text, clusters, differences, topics, relevance, cursors. */
import { expect } from 'chai'
import fc from 'fast-check'
import { jaccard, shinglesOf, comparableWords } from '../../../plugins/potus/ingest/clusters.ts'
import { filterHash, readCursor, writeCursor } from '../../../plugins/potus/answers/event-cursor.ts'
import { wordDiff } from '../../../plugins/potus/answers/word-diff.ts'
import { toText } from '../../../plugins/potus/sources/html-text.ts'
import { eventId, isStub } from '../../../plugins/potus/ingest/feed-changes.ts'
import { type Item, readSources, type Source } from '../../../plugins/potus/sources/source.ts'
import { timeRange } from '../../../plugins/potus/time-range.ts'
import { relevanceGrounds, finalRelevance } from '../../../plugins/potus/entities/relevance.ts'
import { snowflakeTime, repairLinks } from '../../../plugins/potus/sources/truth-social.ts'
import { matchAssets, matchTopics } from '../../../plugins/potus/entities/topics.ts'

const source = (id: string): Source => readSources().find((one) => one.id === id) as Source
const item = (change: Partial<Item>): Item => ({
  key: 'k',
  kind: 'social.post',
  title: null,
  text: '',
  lang: 'en',
  url: '',
  media: [],
  occurredAt: null,
  publishedAt: 0,
  precision: 's',
  post: null,
  signedOn: null,
  counts: null,
  ...change,
})

describe('the text of the feed', () => {
  it('has no menus, scripts and tags, and keeps paragraphs and entities', () => {
    expect(
      toText('<nav>menu</nav><p>One&nbsp;&amp; two<br>three</p><script>x</script><p>&#8220;Four&#x201D;</p>'),
    ).to.equal('One & two\nthree\n\n“Four”')
    expect(toText('No tags, a < b & c &amp; d')).to.equal('No tags, a < b & c & d')
    expect(toText('<ul><li>One</li><li>Two</li></ul>')).to.equal('One\nTwo')
    expect(toText('e\u0301 \u200Bx')).to.equal('é x')
    expect(toText('<div class="a wp-block-whitehouse-topper b"><div>x</div>y</div>z')).to.equal('z')
  })

  it('never throws and never contains a tag, whatever the input', () => {
    fc.assert(
      fc.property(
        fc.string({
          unit: fc.constantFrom('<', '>', '/', 'p', ' ', '&', ';', '#', '1', 'é', '"', '<p>', '</p>', '<nav>'),
        }),
        (html) => {
          expect(toText(html)).not.to.match(/<\/?(p|nav)>/)
        },
      ),
    )
  })

  it('joins links that a mirror cut after thirty characters', () => {
    const cut = 'Read: https:// www. foxnews.com/opinion/morning-gl ory-the-rest now'
    expect(repairLinks(cut)).to.equal('Read: https://www.foxnews.com/opinion/morning-glory-the-rest now')
    expect(repairLinks('RT @ realDonaldTrump Hello')).to.equal('RT @realDonaldTrump Hello')
  })
})

describe('ids and times of the feed', () => {
  it('are taken from the ids of the sources, which contain the time of a post', () => {
    expect(snowflakeTime('116457972455781406')).to.equal(Date.parse('2026-04-24T05:13:56.349Z'))
    expect(snowflakeTime('36987')).to.equal(null)
    expect(eventId('truth.mirror', '1')).to.match(/^evt_[0-9a-f]{16}$/)
    expect(eventId('a', 'b\0c')).not.to.equal(eventId('a\0b', 'd'))
  })

  it('are accepted in every usual form and refused otherwise', () => {
    const LIMITS = { asOf: Date.UTC(2027, 0, 1), longest: null }
    const moment = Date.UTC(2026, 1, 1)
    for (const text of [
      '2026-02-01',
      '2026-02-01T00:00:00Z',
      '2026-02-01T01:00:00+01:00',
      '2026-02-01 00:00',
      '1769904000',
      1769904000000,
    ])
      expect(timeRange({ start: text }, LIMITS).from, String(text)).to.equal(moment)
    expect(timeRange({ start: '2026-02-01T00:00:00.123Z' }, LIMITS).from).to.equal(moment + 123)
    for (const text of ['', 'now', '2026-02-30', '2026-13-01', '-1', 'NaN', '1e3'])
      expect(() => timeRange({ start: text }, LIMITS).from, text).to.throw()
    expect(() => timeRange({ start: 10, end: 5 }, LIMITS)).to.throw()
  })
})

describe('clusters', () => {
  it('compare words without links, signatures and punctuation', () => {
    expect(comparableWords('RT @Example Hello, World! https://example.org')).to.deep.equal(['hello', 'world'])
    expect(comparableWords('https://example.org/a')).to.deep.equal(['exampleorga'])
    expect(
      comparableWords('It is done. Thank you for your attention to this matter! President DONALD J. TRUMP'),
    ).to.deep.equal(['it', 'is', 'done'])
  })

  it('measure shared shingles of three words', () => {
    expect(jaccard(new Set(['a', 'b', 'c']), new Set(['b', 'c', 'd']))).to.equal(0.5)
    expect(jaccard(new Set(), new Set(['a']))).to.equal(0)
    expect([...shinglesOf('one two three four')]).to.deep.equal(['one two three', 'two three four'])
    fc.assert(
      fc.property(fc.array(fc.string()), fc.array(fc.string()), (a, b) => {
        const value = jaccard(new Set(a), new Set(b))
        expect(value).to.equal(jaccard(new Set(b), new Set(a)))
        expect(value).to.be.within(0, 1)
        if (a.length > 0) expect(jaccard(new Set(a), new Set(a))).to.equal(1)
      }),
    )
  })

  it('treat a text of more than 400 characters that shrinks below a fifth as a stub', () => {
    const textOfLength = (length: number): string => 'x'.repeat(length)
    expect([
      isStub(textOfLength(500), textOfLength(99)),
      isStub(textOfLength(500), textOfLength(100)),
      isStub(textOfLength(400), textOfLength(1)),
      isStub(textOfLength(401), textOfLength(80)),
    ]).to.deep.equal([true, false, false, true])
  })
})

describe('word differences', () => {
  it('show which words were removed and added, and where', () => {
    expect(wordDiff('a very big day', 'a big great day')).to.deep.equal([
      { after: 'a', removed: 'very', added: '' },
      { after: 'a big', removed: '', added: 'great' },
    ])
    expect(wordDiff('same text', 'same  text')).to.deep.equal([])
    expect(wordDiff('', 'all new')).to.deep.equal([{ after: '', removed: '', added: 'all new' }])
  })

  it('contain every word that changed', () => {
    const words = fc.array(fc.constantFrom('a', 'b', 'c', 'd'), { maxLength: 12 })
    fc.assert(
      fc.property(words, words, (before, after) => {
        const differences = wordDiff(before.join(' '), after.join(' '))
        const count = (field: 'removed' | 'added') =>
          differences.flatMap((one) => one[field].split(' ').filter(Boolean)).length
        expect(count('added') - count('removed')).to.equal(after.length - before.length)
      }),
    )
  })
})

describe('topics, assets and relevance', () => {
  it('match whole words in any case, and abbreviations exactly', () => {
    expect(matchTopics('TARIFFS on Steel')).to.deep.equal(['trade', 'metals'])
    expect(matchTopics('The tariffed stealth')).to.deep.equal(['trade'])
    expect(matchTopics('ICE and ice')).to.include('immigration')
    expect(matchTopics('Only ice')).to.deep.equal([])
    expect(matchTopics('I said that it was warm')).to.deep.equal([])
  })

  it('point to each asset once by rule, and never to a direction', () => {
    expect(
      matchAssets('Tariffs on China', ['trade'], new Set(['place:CN'])).map(({ id, why }) => [id, why]),
    ).to.deep.equal([
      ['fx:CNH', 'topic_rule:trade+place:CN'],
      ['idx:SPX', 'topic_rule:trade'],
    ])
    expect(matchAssets('Tesla', [], new Set(['company:TSLA']))[0]).to.deep.include({ id: 'eq:TSLA' })
    expect(matchAssets('gold and copper', ['metals'], new Set()).map(({ id }) => id)).to.deep.equal([
      'cmd:HG',
      'cmd:XAU',
    ])
  })

  it('give a relevance that adds up, with a reason for every term', () => {
    // 0.30 × 0.9 + 0.35 × 1 + 0.15 × 0.8 = 0.74, and 0.10 for the first of its cluster.
    const grounds = relevanceGrounds(item({ text: 'Tariffs on copper start on Monday.' }), source('truth.mirror'))
    expect(finalRelevance(grounds, true, false)).to.deep.equal({
      score: 0.84,
      band: 'high',
      reasons: ['source:mirror', 'topic:trade', 'kind:social.post', 'novel'],
    })
    expect(finalRelevance(grounds, false, true)).to.deep.include({
      score: 0.84,
      reasons: ['source:mirror', 'topic:trade', 'kind:social.post', 'corroborated'],
    })
    const message = relevanceGrounds(
      item({
        kind: 'statement',
        title: 'Presidential Message on Mother’s Day',
        text: 'A day of thanks.',
        precision: 'day',
      }),
      source('wh.news'),
    )
    expect(message.reasons).to.include.members(['penalty:ceremonial', 'penalty:day_precision'])
    expect(finalRelevance(message, true, false).band).to.equal('low')
    const picture = relevanceGrounds(item({ kind: 'social.media' }), source('truth.mirror'))
    expect(finalRelevance(picture, false, false)).to.include({ score: 0.09 })
  })

  it('keep the relevance between 0 and 1', () => {
    fc.assert(
      fc.property(
        fc.double({ min: -3, max: 3, noNaN: true }),
        fc.boolean(),
        fc.boolean(),
        (score, leads, corroborated) => {
          expect(finalRelevance({ score, reasons: [] }, leads, corroborated).score).to.be.within(0, 1)
        },
      ),
    )
  })
})

describe('a cursor', () => {
  it('leads back to its position in the list it came from', () => {
    fc.assert(
      fc.property(fc.maxSafeNat(), fc.maxSafeNat(), fc.string(), (availableAt, seq, text) => {
        const hash = filterHash({ q: text })
        expect(readCursor(writeCursor('asc', { availableAt, seq }, hash), 'asc', hash)).to.deep.equal({
          availableAt,
          seq,
        })
      }),
    )
    expect(filterHash({ a: 1, b: undefined })).to.equal(filterHash({ b: undefined, a: 1 }))
    expect(filterHash({ a: 1 })).not.to.equal(filterHash({ a: '1' }))
  })
})
