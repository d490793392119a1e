/** Servers on this machine that answer as the sources of the feed do, with as many old items as a test asks for. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGzip } from 'node:zlib'
import { postId, postsOf, rssOf } from '../test-feed.ts'

const HOUR = 3_600_000
const DAY = 24 * HOUR

export interface ScriptOptions {
  /** The present of the scripts. */
  readonly now: number
  readonly posts: number
  readonly releases: number
  readonly documents: number
  /** Called before each answer, which is not sent if it returns true. */
  readonly intercept?: (request: IncomingMessage, response: ServerResponse) => boolean | Promise<boolean>
}

export interface ScriptedSources {
  /** Settings of the product: the addresses of the sources, and every other source off. */
  readonly settings: Readonly<Record<string, { enabled: boolean; url?: string }>>
  readonly requests: readonly { readonly url: string; readonly headers: IncomingMessage['headers'] }[]
  /** Posts that the lists no longer have, by their number. */
  readonly deleted: { readonly mirror: Set<number>; readonly archive: Set<number> }
  /** Posts that were added after the first `posts`. */
  added: number
  close(): Promise<void>
}

const WORDS =
  'tariffs copper steel China Canada farmers border taxes interest rates energy housing courts oil Iran NATO'
const words = WORDS.split(' ')

/** A text of its own for each number, about as long as a post. */
export function textOf(n: number): string {
  let state = n + 1
  const next = (): number => (state = (state * 48_271) % 2_147_483_647)
  const parts = Array.from({ length: 12 + (n % 17) }, () => words[(next() >> 4) % words.length])
  return `Number ${n}: ${parts.join(' ')}.`
}

/** Posts come twenty a day; the newest is an hour old. */
const postTime = (now: number, n: number): number => now - HOUR - n * Math.floor(DAY / 20)
const releaseTime = (now: number, n: number): number => Math.floor((now - 2 * HOUR - n * 8 * HOUR) / 1000) * 1000
const documentTime = (now: number, n: number): number => Math.floor(now / DAY) * DAY - (n + 1) * 3 * DAY

export async function openScriptedSources(options: ScriptOptions): Promise<ScriptedSources> {
  const { now, posts, releases, documents, intercept } = options
  const requests: { url: string; headers: IncomingMessage['headers'] }[] = []
  const deleted = { mirror: new Set<number>(), archive: new Set<number>() }
  const script = { added: 0 }
  /** Numbers of the posts, newest first; added ones are negative. */
  function* numbers(): Generator<number> {
    for (let n = -script.added; n < posts; n += 1) yield n
  }
  const post = (n: number) => ({ id: postId(postTime(now, n), 1000 + n), text: textOf(n), at: postTime(now, n) })

  function* archive(): Generator<string> {
    yield '[\n'
    let separator = ''
    for (const n of numbers()) {
      if (deleted.archive.has(n)) continue
      const { id, text, at } = post(n)
      const row = {
        id,
        created_at: new Date(at).toISOString(),
        content: `<p>${text}</p>`,
        media: [],
        favourites_count: n + 100,
      }
      yield `${separator}${JSON.stringify(row)}`
      separator = ',\n'
    }
    yield '\n]'
  }
  function mirror(): string {
    const shown = [...numbers()].filter((n) => !deleted.mirror.has(n)).slice(0, 100)
    return postsOf(shown.map(post))
  }
  function news(page: number): string | null {
    const first = (page - 1) * 30
    if (first >= releases) return null
    const items = Array.from({ length: Math.min(30, releases - first) }, (_, k) => first + k)
    return rssOf(items.map((n) => ({ key: `r${n}`, text: textOf(50_000 + 3 * n).repeat(8), at: releaseTime(now, n) })))
  }
  function register(query: URLSearchParams): object {
    const [from, to] = [
      query.get('conditions[publication_date][gte]') ?? '',
      query.get('conditions[publication_date][lte]') ?? '9',
    ]
    const days = Array.from({ length: documents }, (_, n) => ({
      n,
      day: new Date(documentTime(now, n)).toISOString().slice(0, 10),
    }))
    const found = days.filter(({ day }) => day >= from && day <= to)
    const [size, page] = [Number(query.get('per_page') ?? 100), Number(query.get('page') ?? 1)]
    if (found.length === 0) return { count: 0, description: 'Documents' }
    const results = found.slice((page - 1) * size, page * size).map(({ n, day }) => ({
      title: `Document ${n} on ${words[n % words.length]} `,
      type: 'Presidential Document',
      abstract: null,
      document_number: `2026-${10_000 + n}`,
      publication_date: day,
      signing_date: day,
      html_url: `https://www.federalregister.gov/documents/2026-${10_000 + n}`,
    }))
    return { count: found.length, results }
  }

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    requests.push({ url: request.url ?? '', headers: request.headers })
    if (await intercept?.(request, response)) return
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://localhost')
    if (pathname === '/archive.json') {
      const etag = `"${script.added}-${deleted.archive.size}"`
      if (request.headers['if-none-match'] === etag) return void response.writeHead(304).end()
      response.writeHead(200, { 'content-type': 'application/json', 'content-encoding': 'gzip', etag })
      return pipeline(Readable.from(archive()), createGzip(), response).catch(() => {})
    }
    if (pathname === '/mirror')
      return void response.writeHead(200, { 'content-type': 'application/rss+xml' }).end(mirror())
    if (pathname === '/fr')
      return void response
        .writeHead(200, { 'content-type': 'application/json' })
        .end(JSON.stringify(register(searchParams)))
    const page = pathname === '/news' ? news(Number(searchParams.get('paged') ?? 1)) : null
    if (page === null)
      return void response.writeHead(404, { 'content-type': 'text/html' }).end('<html>Not found</html>')
    response.writeHead(200, { 'content-type': 'application/rss+xml' }).end(page)
  }

  // Each source has a host of its own, as the real ones do.
  const servers: Server[] = []
  const serve = async (path: string): Promise<string> => {
    const server = createServer((request, response) => void answer(request, response))
    servers.push(server)
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', () => resolve()))
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}${path}`
  }
  const urls: Readonly<Record<string, string>> = {
    'wh.news': await serve('/news'),
    'fr.docs': await serve('/fr?conditions[type][]=PRESDOCU&order=newest&per_page=100'),
    'truth.mirror': await serve('/mirror'),
    'truth.archive': await serve('/archive.json'),
  }
  const { readSources } = await import('../../../../plugins/potus/sources/source.ts')
  const settings = Object.fromEntries(
    readSources().map(({ id }) => [id, urls[id] === undefined ? { enabled: false } : { enabled: true, url: urls[id] }]),
  )
  return Object.assign(script, {
    settings,
    requests,
    deleted,
    async close() {
      for (const server of servers) {
        server.closeAllConnections()
        await new Promise((resolve) => server.close(resolve))
      }
    },
  })
}
