/** The list of sources: every one has a switch of its own and states whether it was verified. */
import { expect } from 'chai'
import { parseBody } from '../../../../plugins/potus/sources/parsers.ts'
import { readSources, type Source } from '../../../../plugins/potus/sources/source.ts'
import { rssOf } from '../test-feed.ts'

/** Addresses of which a payload was recorded. */
const RECORDED = [
  'https://www.whitehouse.gov/news/feed/',
  'https://www.whitehouse.gov/presidential-actions/feed/',
  'https://www.whitehouse.gov/presidential-actions/executive-orders/feed/',
  'https://www.whitehouse.gov/briefings-statements/feed/',
  'https://www.whitehouse.gov/fact-sheets/feed/',
  'https://www.whitehouse.gov/releases/feed/',
  'https://www.federalregister.gov/api/v1/public-inspection-documents/current.json',
  'https://www.federalregister.gov/api/v1/documents.json',
  'https://www.trumpstruth.org/feed',
  'https://ix.cnn.io/data/truth-social/truth_archive.json',
]
/** Addresses of which no payload was ever recorded, and that are read all the same: official feeds in a common format. */
const READ_UNSEEN = [
  'https://www.federalreserve.gov/feeds/press_all.xml',
  'https://www.federalreserve.gov/feeds/speeches.xml',
  'https://www.state.gov/rss-feed/press-releases/feed/',
]
/** Other addresses of which no payload was ever recorded. */
const NEVER_SEEN = [
  'https://www.federalreserve.gov/feeds/press_monetary.xml',
  'https://www.federalreserve.gov/json/calendar.json',
  'https://public.govdelivery.com/accounts/USTREAS/feed.rss',
  'https://www.war.gov/DesktopModules/ArticleCS/RSS.ashx',
  'https://www.justice.gov/news/rss',
  'https://www.govinfo.gov/rss/dcpd.xml',
]
/** Addresses that are read only if an operator enables them. */
const REFUSED = [
  'https://truthsocial.com/api/v1/accounts/107780257626128497/statuses',
  'https://media-cdn.factba.se/rss/json/trump/calendar.json',
  'https://ustr.gov/rss.xml',
]

const plain = (url: string): string => url.replace(/\?.*$/, '')

describe('the list of sources', () => {
  const sources = readSources()
  const at = (url: string): Source | undefined => sources.find((source) => plain(source.url) === url)

  it('has a parser and a switch for every source', () => {
    for (const url of [...RECORDED, ...READ_UNSEEN, ...NEVER_SEEN, ...REFUSED]) {
      const source = at(url)
      expect(source, url).to.not.equal(undefined)
      const { id, enabled } = source as Source
      const switched = readSources({ [id]: { enabled: !enabled } })
      expect(switched.find((one) => one.id === id)?.enabled, id).to.equal(!enabled)
      expect(switched.filter((one, n) => one.enabled !== sources[n]?.enabled).map((one) => one.id)).to.deep.equal([id])
    }
    expect(sources.filter(({ url }) => url.startsWith('https://www.state.gov/rss-feed/'))).to.have.length(15)
    expect(new Set(sources.map(({ id }) => id))).to.have.length(sources.length)
    expect(new Set(sources.map(({ url }) => url))).to.have.length(sources.length)
  })

  it('marks sources that were never verified, and of these enables only the Fed and the State Department', () => {
    for (const url of [...NEVER_SEEN, ...REFUSED]) expect(at(url), url).to.include({ enabled: false, verified: false })
    for (const url of READ_UNSEEN) expect(at(url), url).to.include({ enabled: true, verified: false })
    for (const url of RECORDED) expect(at(url), url).to.include({ verified: true })
    expect(sources.filter(({ enabled }) => enabled).map(({ id }) => id)).to.deep.equal([
      'wh.news',
      'fr.pi',
      'fr.docs',
      'truth.mirror',
      'truth.archive',
      'fed.press',
      'fed.speeches',
      'state.press',
    ])
  })

  it('sends the State Department the user agent it requires, and bypasses the caches of the Justice Department', () => {
    for (const source of sources.filter(({ publisher }) => publisher === 'state.gov'))
      expect(source.userAgent, source.id).to.match(/^Mozilla\/5\.0 \(compatible; /)
    expect(sources.find(({ id }) => id === 'doj.press')).to.include({ noCache: true, dayStamp: '12:00:00' })
    for (const id of ['fr.pi', 'fr.docs']) expect(sources.find((one) => one.id === id)?.cacheBuster).to.equal('_')
  })

  it('parses a typical body of every RSS source', async () => {
    const noon = Date.UTC(2026, 4, 1, 16)
    for (const source of sources.filter(({ format, parser }) => format === 'rss' && parser !== 'truth-rss@1')) {
      const {
        items: [item],
      } = await parseBody(source, Buffer.from(rssOf([{ key: 'a', text: 'Words.', at: noon }])), noon)
      expect(item, source.id).to.include({ text: 'Words.', publishedAt: noon })
    }
  })

  it('reads a time of noon from the Department of Justice as a whole day', async () => {
    const source = sources.find(({ id }) => id === 'doj.press') as Source
    const noon = Date.UTC(2026, 4, 1, 12)
    const precisionAt = async (at: number): Promise<string | undefined> => {
      const { items } = await parseBody(source, Buffer.from(rssOf([{ key: 'a', text: 'Words.', at }])), at)
      return items[0]?.precision
    }
    expect([await precisionAt(noon), await precisionAt(noon + 60_000)]).to.deep.equal(['day', 's'])
  })

  it('reads the days and Washington clock times of the President’s calendar', async () => {
    const source = sources.find(({ id }) => id === 'rollcall.calendar') as Source
    const entries = [
      { date: '2026-07-01', time: '11:00:00', details: 'The President meets the Cabinet', location: 'Cabinet Room' },
      { date: '2026-12-01', time: '', details: 'No public events' },
      { date: null, details: 'Undated' },
      null,
    ]
    const { items, leftOut } = await parseBody(source, Buffer.from(JSON.stringify(entries)), Date.UTC(2026, 5, 1))
    const times = items.map(({ occurredAt, precision }) => [new Date(occurredAt ?? 0).toISOString(), precision])
    expect([times, leftOut]).to.deep.equal([
      [
        ['2026-07-01T15:00:00.000Z', 'min'],
        ['2026-12-01T00:00:00.000Z', 'day'],
      ],
      1,
    ])
  })

  it('reads the Federal Reserve’s calendar with its byte-order mark, days and clock times, in summer and winter', async () => {
    const source = sources.find(({ id }) => id === 'fed.calendar') as Source
    const events = [
      { title: 'FOMC Meeting', month: '2026-10', days: '27-28', time: '2:00 p.m.', type: 'FOMC' },
      { title: 'FOMC Meeting', month: '2026-12', days: '8, 9', time: '2:00 p.m.', type: 'FOMC' },
      { title: 'Beige Book', month: '2026-11', days: '25', time: '', type: 'Beige' },
      { title: 'Nothing said of the day', month: '2026-11', days: '' },
    ]
    const { items } = await parseBody(source, Buffer.from(`\uFEFF${JSON.stringify({ events })}`), Date.UTC(2026, 8, 1))
    expect(
      items.map(({ occurredAt, precision }) => [new Date(occurredAt ?? 0).toISOString(), precision]),
    ).to.deep.equal([
      ['2026-10-28T18:00:00.000Z', 'min'],
      ['2026-11-25T00:00:00.000Z', 'day'],
      ['2026-12-09T19:00:00.000Z', 'min'],
    ])
  })
})
