/** Payloads like the recorded ones, but with fields that are missing, renamed or encoded differently. */
import { expect } from 'chai'
import { type Item, readSources, type Source } from '../../../../plugins/potus/sources/source.ts'
import { type ParsedBody, parseBody } from '../../../../plugins/potus/sources/parsers.ts'
import { rssOf, openTestFeed, postId } from '../test-feed.ts'

const sources = new Map(readSources().map((source) => [source.id, source]))
const NOW = Date.UTC(2026, 9, 3)
const AT = Date.UTC(2026, 9, 2, 14)
const ID = postId(AT)

const read = (id: string, body: string | Buffer | object): Promise<ParsedBody> => {
  const bytes =
    typeof body === 'string' || Buffer.isBuffer(body) ? Buffer.from(body) : Buffer.from(JSON.stringify(body))
  return parseBody(sources.get(id) as Source, bytes, NOW)
}
const singleItem = async (id: string, body: string | Buffer | object): Promise<Item> => {
  const { items } = await read(id, body)
  expect(items).to.have.length(1)
  return items[0] as Item
}

const elements = (fields: Readonly<Record<string, string>>): string =>
  `<item>${Object.entries(fields)
    .map(([name, value]) => `<${name}>${value}</${name}>`)
    .join('')}</item>`
const rss = (items: string, declaration = '<?xml version="1.0" encoding="UTF-8"?>'): string =>
  `${declaration}<rss version="2.0" xmlns:content="http://purl.org/rss/1.0/modules/content/" xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:truth="https://truthsocial.com/ns"><channel><title>News</title>${items}</channel></rss>`
const release = {
  title: 'A release',
  link: 'https://www.whitehouse.gov/releases/2026/10/a/',
  guid: 'a',
  pubDate: new Date(AT).toUTCString(),
}
const post = {
  title: 'x',
  description: '<![CDATA[<p>Words.</p>]]>',
  pubDate: new Date(AT).toUTCString(),
  'truth:originalId': ID,
}
const row = { id: ID, created_at: new Date(AT).toISOString(), content: '<p>Words.</p>', url: 'https://example.org/1' }
const registerDocument = {
  document_number: '2026-1',
  type: 'Presidential Document',
  title: 'On Copper ',
  filed_at: '2026-10-02T08:45:00.000-04:00',
  publication_date: '2026-10-05',
  html_url: 'https://example.org/1',
}

describe('a feed in an unusual form', () => {
  const encodings: Readonly<Record<string, (title: string) => Buffer>> = {
    'UTF-16 with a byte-order mark': (title) =>
      Buffer.from(
        `\uFEFF${rss(elements({ ...release, title }), '<?xml version="1.0" encoding="UTF-16"?>')}`,
        'utf16le',
      ),
    'a declared Latin-1 encoding': (title) =>
      Buffer.from(rss(elements({ ...release, title }), '<?xml version="1.0" encoding="ISO-8859-1"?>'), 'latin1'),
    'an undeclared Windows-1252 encoding': (title) => Buffer.from(rss(elements({ ...release, title }), ''), 'latin1'),
    'UTF-8 with an unknown declared encoding': (title) =>
      Buffer.from(rss(elements({ ...release, title }), '<?xml version="1.0" encoding="x-none"?>')),
  }
  for (const [name, write] of Object.entries(encodings))
    it(`is read in ${name}`, async () => {
      expect((await singleItem('wh.news', write('Café § one'))).title).to.equal('Café § one')
    })

  it('may use characters 145 to 151 for quotes, as bytes and as entities', async () => {
    const body = Buffer.from(
      rss(elements({ ...release, title: 'It\u0092s \u0093so\u0094 &#151; &amp;#146;' }), ''),
      'latin1',
    )
    expect((await singleItem('wh.news', body)).title).to.equal('It’s “so” — ’')
  })

  it('may have one invalid byte; the rest is kept as written', async () => {
    const body = Buffer.concat([
      Buffer.from(rss(elements({ ...release, title: 'Café — “one” #' })).replace(/#[\s\S]*$/, '')),
      Buffer.from([0xe2]),
      Buffer.from(rss(elements({ ...release, title: '#' })).replace(/^[\s\S]*?#/, '')),
    ])
    expect((await singleItem('wh.news', body)).title).to.match(/^Café — “one”/)
  })

  it('may write dates in several forms; a date without a zone is UTC in every process time zone', async () => {
    const dates = {
      'Fri, 02 Oct 2026 14:00:00 +0000': AT,
      'Fri, 02 Oct 2026 10:00:00 EDT': AT,
      'Fri, 02 Oct 2026 10:00:00 -0400 (EDT)': AT,
      'Fri, 2 Oct 26 14:00 Z': AT,
      'Fri, 02 Oct 2026 15:00:00 GMT+1': AT,
      'Fri, 02 Oct 2026 19:30:00 UTC+5:30': AT,
      'Fri, 02 Oct 2026 09:00:00 -5': AT,
      'Fri, 02 Oct 2026 14:00:00': AT,
      '2026-10-02 14:00:00': AT,
      '2026-10-02T14:00:00.000': AT,
      '2026-10-02T16:00:00+02:00': AT,
      'October 2, 2026 2:00 pm': AT,
      '10/02/2026': Date.UTC(2026, 9, 2),
    }
    const zone = process.env['TZ']
    process.env['TZ'] = 'America/New_York'
    try {
      for (const [pubDate, time] of Object.entries(dates))
        expect((await singleItem('wh.news', rss(elements({ ...release, pubDate })))).publishedAt, pubDate).to.equal(
          time,
        )
    } finally {
      if (zone === undefined) delete process.env['TZ']
      else process.env['TZ'] = zone
    }
  })

  it('may lack a date or a key in an entry; only that entry is skipped, and counted', async () => {
    const { pubDate, ...undated } = release
    const nameless = { title: 'No key', pubDate }
    const body = rss([undated, nameless, { ...release, guid: 'b' }].map(elements).join(''))
    const { items, leftOut } = await read('wh.news', body)
    expect([items.map(({ key }) => key), leftOut]).to.deep.equal([['b'], 2])
    const refusal = await read('wh.news', rss(elements(undated))).catch((error: unknown) => error)
    expect(refusal).to.have.property('message', 'None of the 1 entries has both a key and a date.')
  })

  it('may be RSS 1.0 or Atom, with the page linked after an enclosure', async () => {
    const rdf =
      '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/" xmlns:dc="http://purl.org/dc/elements/1.1/"><channel rdf:about="x"><title>News</title></channel><item rdf:about="u1"><title>T</title><link>https://example.org/1</link><dc:date>2026-10-02T14:00:00Z</dc:date><description>D</description></item></rdf:RDF>'
    expect(await singleItem('state.press', rdf)).to.include({
      key: 'u1',
      url: 'https://example.org/1',
      text: 'D',
      publishedAt: AT,
    })
    const atom =
      '<feed xmlns="http://www.w3.org/2005/Atom"><title>News</title><entry><id>a1</id><title>T</title><link rel="enclosure" href="https://example.org/film"/><link href="https://example.org/1"/><updated>2026-10-02T14:00:00Z</updated><summary>D</summary></entry></feed>'
    expect(await singleItem('state.press', atom)).to.include({
      key: 'a1',
      url: 'https://example.org/1',
      text: 'D',
      publishedAt: AT,
    })
  })

  it('may escape its HTML with thousands of entities', async () => {
    const description = '&lt;p&gt;a &amp;amp; b&lt;/p&gt;'.repeat(400)
    const items = Array.from({ length: 30 }, (_, n) => elements({ ...release, guid: `g${n}`, description }))
    expect((await read('wh.news', rss(items.join('')))).items[29]?.text.slice(0, 12)).to.equal('a & b\n\na & b')
    const posts = items.map((_, n) => elements({ ...post, 'truth:originalId': postId(AT, n), description }))
    expect((await read('truth.mirror', rss(posts.join('')))).items[29]?.text.slice(0, 12)).to.equal('a & b\n\na & b')
  })
})

describe('a post in an unusual form', () => {
  it('is dated by its id if its date is missing or invalid', async () => {
    const { pubDate: _, ...undated } = post
    expect(await singleItem('truth.mirror', rss(elements(undated)))).to.include({ publishedAt: AT, text: 'Words.' })
    for (const created_at of [null, undefined, 'yesterday', 1790949600])
      expect((await singleItem('truth.archive', [{ ...row, created_at }])).publishedAt, String(created_at)).to.equal(AT)
  })

  it('uses its address as key if it has no id, and is skipped without either', async () => {
    const { 'truth:originalId': _, ...plain } = post
    const guid = 'https://trumpstruth.org/statuses/9'
    expect(await singleItem('truth.mirror', rss(elements({ ...plain, guid })))).to.include({
      key: guid,
      url: guid,
      post: null,
    })
    const { items, leftOut } = await read('truth.mirror', rss(elements(plain) + elements(post)))
    expect([items.length, leftOut]).to.deep.equal([1, 1])
  })

  it('may be a repost that the platform nests', async () => {
    const reblog = { id: '1', content: '<p>Their words.</p>', account: { acct: 'someone' } }
    expect(await singleItem('truth.api', [{ ...row, content: '', reblog }])).to.include({
      kind: 'social.repost',
      text: 'RT @someone\n\nTheir words.',
    })
    expect((await singleItem('truth.api', [{ ...row, reblog: null, content: null, text: null }])).kind).to.equal(
      'social.media',
    )
  })

  it('may show pictures in its text or attach videos with unusual names', async () => {
    const description = '<![CDATA[<p><img class="x" src="https://example.org/a.jpg?b=1&amp;c=2"></p>]]>'
    const shown = await singleItem('truth.mirror', rss(elements({ ...post, description })))
    expect([shown.kind, shown.media]).to.deep.equal([
      'social.media',
      [{ type: 'image', url: 'https://example.org/a.jpg?b=1&c=2' }],
    ])
    const media_attachments = [{ type: 'gifv', url: 'https://example.org/b.mp4' }]
    expect((await singleItem('truth.archive', [{ ...row, media: null, media_attachments }])).media[0]?.type).to.equal(
      'video',
    )
  })

  it('is read from a list that also has invalid rows', async () => {
    expect((await singleItem('truth.archive', [null, 'x', [], row])).key).to.equal(ID)
  })
})

describe('a document of the Federal Register', () => {
  const listed = (...results: object[]): object => ({ count: results.length, results })

  it('is presidential by its type, whichever agency filed it', async () => {
    const agencies = [null, { slug: 'executive-office-of-the-president' }]
    const registerDocuments = [
      registerDocument,
      { ...registerDocument, document_number: '2026-2', type: 'PRESDOCU' },
      { ...registerDocument, document_number: '2026-3', type: 'Notice', agencies },
      { ...registerDocument, document_number: '2026-4', type: null, agencies },
      { ...registerDocument, document_number: '2026-5', type: null },
      null,
    ]
    const keys = async (body: object, id: string): Promise<string[]> =>
      (await read(id, body)).items.map(({ key }) => key)
    const all = { count: registerDocuments.length, results: registerDocuments }
    expect(await keys(all, 'fr.pi')).to.deep.equal(['2026-1', '2026-2', '2026-4'])
    expect(await keys({ count: 2, results: registerDocuments.slice(0, 3) }, 'fr.docs')).to.deep.equal([
      '2026-1',
      '2026-2',
    ])
  })

  it('may have numeric numbers, American dates, and a title in two halves', async () => {
    const { items } = await read(
      'fr.docs',
      listed(
        {
          ...registerDocument,
          executive_order_number: 14999,
          signing_date: '10/01/2026',
          title: null,
          toc_subject: 'Copper:',
          toc_doc: 'Duties',
        },
        { ...registerDocument, document_number: '2026-2', proclamation_number: '10999', signing_date: null },
      ),
    )
    expect(items[0]).to.include({
      title: 'Copper: Duties',
      text: 'Executive Order 14999. Signed 2026-10-01.',
      signedOn: '2026-10-01',
      occurredAt: Date.UTC(2026, 9, 1),
    })
    expect(items[1]).to.include({ text: 'Proclamation 10999.', signedOn: null, occurredAt: null })
  })

  it('is skipped without a date or number, and others are kept', async () => {
    const undated = { ...registerDocument, document_number: '2026-2', filed_at: null, publication_date: null }
    const { items, leftOut } = await read(
      'fr.pi',
      listed(registerDocument, undated, { ...registerDocument, document_number: null }),
    )
    expect([items.map(({ key }) => key), leftOut]).to.deep.equal([['2026-1'], 2])
  })
})

describe('an entry that lost its date', () => {
  it('does not count as withdrawn', async () => {
    const feed = await openTestFeed({ time: NOW })
    const [a, b] = [
      { key: 'a', text: 'The first of two.', at: AT },
      { key: 'b', text: 'Another one altogether.', at: AT + 60_000 },
    ]
    await feed.poll('wh.news', rssOf([b, a]))
    for (let n = 0; n < 4; n += 1) {
      feed.time += 60_000
      const built = new Date(feed.time).toUTCString()
      const body = rssOf([b, { ...a, text: `${a.text} ${n}` }], built).replace(/<pubDate>.*?<\/pubDate>/, '')
      expect(await feed.poll('wh.news', body)).to.include({ outcome: 'new', fresh: 0 })
    }
    const { detail } = (await feed.db('potus_polls').orderBy('id', 'desc').first()) as { detail: string }
    expect(detail).to.equal('1 skipped: without a key or a date')
    const { event } = await feed.ask<{ event: { status: string } }>('getPotusEvent', { params: { selector: 'seq:2' } })
    expect(event.status).to.equal('active')
    await feed.close()
  })
})
