/**
 * The sources of the POTUS feeds as their servers answer: WordPress feeds of the White House, the Federal Register's
 * interface, a mirror and an archive of posts, and the feeds of agencies.
 *
 * Sources: recorded payloads of whitehouse.gov, trumpstruth.org and the archive of posts; Federal Register API v1
 * ("documents.json", "public-inspection-documents/current.json"); RSS 2.0.
 */
import type { Refusal, VenueAnswer, VenueRequest, VenueRoute, VenueScript } from '../scripted-venue.ts'
import type { VenueView } from '../venue-view.ts'
import { type Desk, type NewsItem, SECTIONS, type ScriptedNews } from './scripted-news.ts'

const RSS = 'application/rss+xml; charset=UTF-8'
const PER_PAGE = 30
const DAY = 86_400_000

const escaped = (text: string): string => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
const dated = (at: number): string => new Date(at).toUTCString().replace('GMT', '+0000')
const day = (at: number): string => new Date(at).toISOString().slice(0, 10)
const slug = (title: string): string =>
  title
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replaceAll(/^-|-$/g, '')

/** A page of the site for an address that it does not have. */
const notFound = (): Refusal => ({
  status: 404,
  type: 'text/html; charset=UTF-8',
  body: '<!DOCTYPE html><html><head><title>Page not found</title></head><body>Page not found</body></html>',
})
const LIMITED: Refusal = { status: 429, type: 'text/html', body: '<html><body>Too Many Requests</body></html>' }
const refusals = { unknownSymbol: notFound, rateLimited: LIMITED, unknownRoute: notFound() }
const limit = { weight: 60, seconds: 60 }

/** Wraps items in a channel. Text in `head` comes before the items. */
function channel(title: string, link: string, items: readonly string[], head: string, built: number): VenueAnswer {
  return {
    type: RSS,
    rows: items,
    validators: { lastModified: built },
    wrap: (rows) =>
      `<?xml version="1.0" encoding="UTF-8"?><rss version="2.0" xmlns:content="http://purl.org/rss/1.0/modules/content/" xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:atom="http://www.w3.org/2005/Atom" xmlns:truth="https://truthsocial.com/ns">\n<channel>\n<title>${title}</title>\n<link>${link}</link>\n<description></description>\n${head}${rows.join('\n')}\n</channel></rss>\n`,
  }
}

/** The address of an item at the White House. */
const pageOf = (item: NewsItem): string =>
  `https://www.whitehouse.gov/${item.section}/${day(item.at).slice(0, 7).replace('-', '/')}/${slug(item.title)}/`

/** The scripts of every host, by the name that `SOURCE_HOSTS` gives it. */
export function publicFeeds(news: ScriptedNews): readonly VenueScript[] {
  const whiteHouseItem = (item: NewsItem): string => {
    const label = item.section === 'presidential-actions' ? 'Presidential Actions' : 'Releases'
    const body =
      item.section === 'presidential-actions'
        ? `<p>By the authority vested in me as President, it is hereby ordered:</p><p>${escaped(item.text)}</p>`
        : `<p>${escaped(item.text)}</p>`
    return `<item><title>${escaped(item.title)}</title><link>${pageOf(item)}</link><dc:creator><![CDATA[The White House]]></dc:creator><pubDate>${dated(item.at)}</pubDate><category><![CDATA[${label}]]></category><guid isPermaLink="false">https://www.whitehouse.gov/?p=${item.key}</guid><description><![CDATA[<p>${item.text.slice(0, 200)} [&#8230;]</p>]]></description><content:encoded><![CDATA[<nav class="wp-block-whitehouse-topper-navigation"><ul><li>News</li></ul></nav>${body}<p>The post <a href="${pageOf(item)}">${escaped(item.title)}</a> appeared first on <a href="https://www.whitehouse.gov">The White House</a>.</p>]]></content:encoded></item>`
  }
  const whiteHouseFeed: VenueRoute = {
    name: 'feed',
    path: /^\/(news|releases|briefings-statements|fact-sheets|presidential-actions)(?:\/executive-orders)?\/feed\/$/,
    answer({ path, query }, view) {
      const section = SECTIONS.find((one) => path.startsWith(`/${one}/`))
      const page = Number(query.get('paged') ?? 1)
      // A section has a part of the news only, so that more of the news has to be read to fill its page.
      const share = section ? SECTIONS.length : 1
      const skipped = (page - 1) * PER_PAGE
      const read = news
        .newest('white_house', view.dataEnd, (skipped + PER_PAGE) * share * 2)
        .filter((item) => section === undefined || item.section === section)
      const items = read.slice(skipped, skipped + PER_PAGE)
      if (items.length === 0 && page > 1) {
        const { status, type = '', body } = notFound()
        return { status, type, rows: [], wrap: () => body }
      }
      const built = items[0]?.at ?? view.dataEnd
      const head = `<lastBuildDate>${dated(built)}</lastBuildDate>\n<language>en-US</language>\n`
      return channel(
        'News &#8211; The White House',
        'https://www.whitehouse.gov/news/',
        items.map(whiteHouseItem),
        head,
        built,
      )
    },
  }
  const whiteHousePage: VenueRoute = {
    name: 'page',
    path: /^\/(news|releases|briefings-statements|fact-sheets|presidential-actions)\/(?:page\/(\d+)\/)?$/,
    answer({ path }, view) {
      const page = Number(/\/page\/(\d+)\//.exec(path)?.[1] ?? 1)
      const section = SECTIONS.find((one) => path.startsWith(`/${one}/`))
      const items = news
        .newest('white_house', view.dataEnd, page * 10 * (section ? SECTIONS.length * 2 : 1))
        .filter((item) => section === undefined || item.section === section)
        .slice((page - 1) * 10, page * 10)
      return {
        type: 'text/html; charset=UTF-8',
        ...(items.length === 0 ? { status: 404 } : {}),
        rows: items.map(
          (item) =>
            `<li class="wp-block-post"><h2 class="wp-block-post-title"><a href="${pageOf(item)}">${escaped(item.title)}</a></h2><div class="wp-block-post-date"><time datetime="${new Date(item.at).toISOString()}">${new Date(item.at).toDateString()}</time></div></li>`,
        ),
        wrap: (rows) =>
          `<!DOCTYPE html><html lang="en-US"><head><title>News &#8211; The White House</title></head><body><main><ul class="wp-block-post-template">${rows.join('')}</ul></main></body></html>`,
      }
    },
  }

  const agencies = [
    {
      raw_name: 'EXECUTIVE OFFICE OF THE PRESIDENT',
      name: 'Executive Office of the President',
      id: 538,
      url: 'https://www.federalregister.gov/agencies/executive-office-of-the-president',
      json_url: 'https://www.federalregister.gov/api/v1/agencies/538',
      parent_id: null,
      slug: 'executive-office-of-the-president',
    },
  ]
  const documentOf = (item: NewsItem) => ({
    title: `${item.title} `,
    type: 'Presidential Document',
    subtype: 'Executive Order',
    abstract: null,
    document_number: item.key,
    executive_order_number: String(14_200 + (Number(item.key.slice(5)) % 900)),
    signing_date: day(item.at - 3 * DAY),
    publication_date: day(item.at),
    html_url: `https://www.federalregister.gov/documents/${day(item.at).replaceAll('-', '/')}/${item.key}/${slug(item.title)}`,
    pdf_url: `https://www.govinfo.gov/content/pkg/FR-${day(item.at)}/pdf/${item.key}.pdf`,
    public_inspection_pdf_url: `https://public-inspection.federalregister.gov/${item.key}.pdf`,
    citation: `91 FR ${10_000 + (Number(item.key.slice(5)) % 60_000)}`,
    agencies,
    excerpts: null,
  })
  const documents: VenueRoute = {
    name: 'documents',
    path: /^\/api\/v1\/documents(?:\.json)?$/,
    answer(request, view) {
      const { query } = request
      const perPage = Math.min(1000, Number(query.get('per_page') ?? 20))
      const after = query.get('search_after_cursor')
      const skipped = after === null ? (Number(query.get('page') ?? 1) - 1) * perPage : Number(decoded(after))
      const from = bound(query, 'gte') ?? Date.UTC(2025, 0, 1)
      const to = Math.min(view.dataEnd + 1, (bound(query, 'lte') ?? Infinity) + DAY)
      const found = news.between('register', from, Math.min(to, view.dataEnd + 1))
      const ordered = query.get('order') === 'oldest' ? found : found.toReversed()
      const rows = ordered.slice(skipped, skipped + perPage)
      const fields = query.getAll('fields[]')
      const hasMore = skipped + perPage < ordered.length
      const picked = rows
        .map(documentOf)
        .map((row) =>
          fields.length === 0 ? row : Object.fromEntries(Object.entries(row).filter(([name]) => fields.includes(name))),
        )
      const next = new URLSearchParams(query)
      next.set('search_after_cursor', Buffer.from(String(skipped + perPage)).toString('base64url'))
      return {
        rows: picked,
        wrap: (results) => ({
          description: 'Documents of type Presidential Document',
          count: ordered.length,
          ...(ordered.length === 0 ? {} : { total_pages: Math.ceil(ordered.length / perPage) }),
          ...(hasMore ? { next_page_url: `https://www.federalregister.gov/api/v1/documents?${next.toString()}` } : {}),
          // A search without a match has no list at all.
          ...(ordered.length === 0 ? {} : { results }),
        }),
      }
    },
  }
  const inspection: VenueRoute = {
    name: 'inspection',
    path: /^\/api\/v1\/public-inspection-documents\/current\.json$/,
    answer(_, view) {
      // Documents are on inspection for a day before they are published.
      const rows = news.between('register', view.dataEnd, view.dataEnd + DAY).map((item) => ({
        agencies,
        agency_names: ['Executive Office of the President'],
        docket_numbers: [],
        document_number: item.key,
        editorial_note: null,
        filed_at: new Date(item.at - DAY).toISOString(),
        filing_type: 'regular',
        html_url: documentOf(item).html_url,
        pdf_url: documentOf(item).public_inspection_pdf_url,
        publication_date: day(item.at),
        title: item.title,
        toc_doc: item.title,
        toc_subject: 'EXECUTIVE ORDERS',
        type: 'Presidential Document',
      }))
      return { rows, wrap: (results) => ({ count: results.length, results }) }
    },
  }

  const postAddress = ({ key }: NewsItem): string => `https://truthsocial.com/@realDonaldTrump/${key}`
  const mirror: VenueRoute = {
    name: 'feed',
    path: /^\/feed\/?$/,
    answer({ query }, view) {
      const [from, to] = [query.get('start_date'), query.get('end_date')]
      const end = to === null ? view.dataEnd + 1 : Math.min(view.dataEnd + 1, Date.parse(to) + DAY)
      const items =
        from === null
          ? news.newest('posts', end - 1, 100)
          : news.between('posts', Date.parse(from), end).toReversed().slice(0, 100)
      const rows = items.map(
        (item) =>
          `<item><title><![CDATA[${item.text.slice(0, 60)}]]></title><link>https://www.trumpstruth.org/statuses/${item.key.slice(-6)}</link><description><![CDATA[<p>${item.text}</p>]]></description><pubDate>${dated(item.at)}</pubDate><guid>https://www.trumpstruth.org/statuses/${item.key.slice(-6)}</guid><truth:originalUrl>${postAddress(item)}</truth:originalUrl><truth:originalId>${item.key}</truth:originalId></item>`,
      )
      return channel("Trump's Truth", 'https://www.trumpstruth.org', rows, '', items[0]?.at ?? view.dataEnd)
    },
  }
  const archive: VenueRoute = {
    name: 'archive',
    path: /^\/data\/truth-social\/truth_archive\.json$/,
    answer(_, view) {
      // The archive is written every five minutes.
      const end = Math.floor(view.dataEnd / 300_000) * 300_000
      const items = news.between('posts', 0, end).toReversed()
      return {
        validators: { lastModified: end },
        rows: items.map((item) => ({
          id: item.key,
          created_at: new Date(item.at).toISOString(),
          content: `<p>${item.text}</p>`,
          url: postAddress(item),
          media: [],
          replies_count: 900 + (item.at % 4_000),
          reblogs_count: 2_100 + (item.at % 9_000),
          favourites_count: 8_000 + (item.at % 30_000),
        })),
        wrap: (rows) => rows,
      }
    },
  }

  /** A feed of an agency: a title, a link and an address per item, newest first. */
  const agency = (
    desk: Desk,
    name: string,
    path: RegExp,
    site: string,
    count: number,
    stamp: (at: number) => number = (at) => at,
  ): VenueScript => ({
    name,
    limit,
    refusals,
    routes: [
      {
        name: 'feed',
        path,
        answer(_, view) {
          const items = news.newest(desk, view.dataEnd, count)
          const rows = items.map((item) => {
            const address = `${site}/${slug(item.title)}-${item.key}`
            return `<item><title>${escaped(item.title)}</title><link>${address}</link><guid isPermaLink="true">${address}</guid><description><![CDATA[${item.text}]]></description><pubDate>${dated(stamp(item.at))}</pubDate></item>`
          })
          return channel(name, site, rows, '', items[0]?.at ?? view.dataEnd)
        },
      },
    ],
  })
  const noon = (at: number): number => Math.floor(at / DAY) * DAY + DAY / 2
  const state = agency('state', 'state', /^\/rss-feed\/[a-z-]+\/feed\/$/, 'https://www.state.gov/releases', 10)

  return [
    { name: 'white-house', limit, refusals, routes: [whiteHouseFeed, whiteHousePage] },
    { name: 'federal-register', limit, refusals, routes: [documents, inspection] },
    { name: 'truth-mirror', limit, refusals, routes: [mirror] },
    { name: 'truth-archive', limit, refusals, routes: [archive] },
    agency(
      'federal_reserve',
      'federal-reserve',
      /^\/feeds\/[a-z_]+\.xml$/,
      'https://www.federalreserve.gov/newsevents',
      15,
    ),
    { ...state, routes: [refusesPlainClients, ...state.routes] },
    agency(
      'treasury',
      'treasury',
      /^\/accounts\/USTREAS\/feed\.rss$/,
      'https://content.govdelivery.com/accounts/USTREAS',
      25,
    ),
    agency('war', 'war', /^\/DesktopModules\/ArticleCS\/RSS\.ashx$/, 'https://www.war.gov/News/Releases', 20),
    agency('justice', 'justice', /^\/news\/rss$/, 'https://www.justice.gov/opa/pr', 25, noon),
    agency('govinfo', 'govinfo', /^\/rss\/dcpd\.xml$/, 'https://www.govinfo.gov/app/details', 50),
  ]
}

/** State answers 403 unless the User-Agent looks like a browser's. */
const refusesPlainClients: VenueRoute = {
  name: 'firewall',
  path: /./,
  accepts: ({ headers }: VenueRequest) => headers['user-agent']?.startsWith('Mozilla/5.0 (compatible;') !== true,
  answer: (_request: VenueRequest, _view: VenueView) => ({
    status: 403,
    type: 'text/html',
    rows: [],
    wrap: () => '<html><head><title>403 Forbidden</title></head><body>403 Forbidden</body></html>',
  }),
}

/** Which host serves a source of plugins/potus, by the beginning of its address. */
export const SOURCE_HOSTS: readonly (readonly [address: string, host: string])[] = [
  ['https://www.whitehouse.gov', 'white-house'],
  ['https://www.federalregister.gov', 'federal-register'],
  ['https://www.trumpstruth.org', 'truth-mirror'],
  ['https://ix.cnn.io', 'truth-archive'],
  ['https://www.federalreserve.gov', 'federal-reserve'],
  ['https://www.state.gov', 'state'],
  ['https://public.govdelivery.com', 'treasury'],
  ['https://www.war.gov', 'war'],
  ['https://www.justice.gov', 'justice'],
  ['https://www.govinfo.gov', 'govinfo'],
]

function bound(query: URLSearchParams, side: 'gte' | 'lte'): number | null {
  const written = query.get(`conditions[publication_date][${side}]`)
  return written === null ? null : Date.parse(`${written}T00:00:00Z`)
}

const decoded = (cursor: string): string => Buffer.from(cursor, 'base64url').toString()
