/** Answers that are prepared once are, to every caller, the answers that are made anew for each call. */
import { expect } from 'chai'
import { JsonReply, Reply } from '../../gateway/plugin/plugin.ts'
import { rawRequest, requestLine } from './raw.ts'
import { openTransportGateway, PRICED, route, type TransportGateway } from './transport-gateway.ts'

const LONG = 'a long text that is worth compressing, '.repeat(60)
const rowsOf = (text: string): Buffer[] => [
  Buffer.from('{"rows":['),
  Buffer.from(JSON.stringify(text)),
  Buffer.from(']}'),
]

const FORMS: Readonly<Record<string, readonly string[]>> = {
  plain: [],
  compressed: ['Accept-Encoding: gzip'],
  page: ['Accept: text/html'],
  unchanged: ['If-None-Match: "v1"'],
  'with a token': ['X-SERVICE-TOKEN: abc.def.ghi'],
}

describe('an answer that is prepared once', () => {
  let gateway: TransportGateway
  /** What the handlers show. */
  let text = ''
  let reply = Reply.shared(new Reply({ text }))
  const headers = { etag: '"v1"', 'X-Version': '1' }
  const kept = Object.freeze({ ...headers })
  const show = (next: string): void => {
    text = next
    reply = Reply.shared(new Reply({ text }, { headers }))
  }
  before(async () => {
    gateway = await openTransportGateway(
      [
        route('shared', 'GET /v1/shared', { cacheSeconds: 5 }, () => reply),
        route('fresh', 'GET /v1/fresh', { cacheSeconds: 5 }, () => new Reply({ text }, { headers })),
        route('sharedPage', 'GET /shared-page', { view: 'page' }, () => reply),
        route('freshPage', 'GET /fresh-page', { view: 'page' }, () => new Reply({ text }, { headers })),
        route('pieces', 'GET /v1/pieces', {}, () => Reply.json(rowsOf(text), { headers: kept })),
        route('joined', 'GET /v1/joined', {}, () => Reply.json(Buffer.concat(rowsOf(text)), { headers })),
        route('soldPieces', 'GET /v1/sold-pieces', PRICED, () => Reply.json(rowsOf(text))),
        route('soldJoined', 'GET /v1/sold-joined', PRICED, () =>
          Reply.json(Buffer.concat(rowsOf(text)), { headers: {} }),
        ),
      ],
      { views: { 'page.pug': 'p #{text} #{service.title}' }, limit: { requests: 10_000, seconds: 10 } },
    )
  })
  after(() => gateway.close())

  async function answerTo(method: string, path: string, form: string) {
    const { status, head, body } = await rawRequest(gateway.port, requestLine(method, path, FORMS[form]))
    const [, ...lines] = head.toLowerCase().split('\r\n')
    return { status, head: lines.filter((line) => !/^(date|x-call-id|payment-required):/.test(line)), body }
  }

  const PAIRS = [
    ['/v1/shared', '/v1/fresh'],
    ['/shared-page', '/fresh-page'],
    ['/v1/pieces', '/v1/joined'],
    ['/v1/sold-pieces', '/v1/sold-joined'],
  ] as const

  for (const [prepared, anew] of PAIRS)
    it(`is at ${prepared} what ${anew} answers, in every form and after every change`, async () => {
      for (const next of ['short', LONG, 'short', `${LONG}again`, 'größer: Ωμέγα', '']) {
        show(next)
        for (const form of Object.keys(FORMS))
          for (const method of ['GET', 'HEAD', 'GET']) {
            const wanted = await answerTo(method, anew, form)
            for (let repeated = 0; repeated < 2; repeated += 1)
              expect(await answerTo(method, prepared, form), `${method}, ${form}`).to.deep.equal(wanted)
          }
      }
    })

  it('has a call id of its own in each call', async () => {
    const idOf = async (): Promise<string | undefined> =>
      /x-call-id: (\S+)/i.exec((await rawRequest(gateway.port, requestLine('GET', '/v1/shared', []))).head)?.[1]
    const ids = [await idOf(), await idOf(), await idOf()]
    expect(new Set(ids).size).to.equal(3)
    expect(ids).to.not.include(undefined)
  })

  it('is frozen, also the value of JSON that was written by a handler', () => {
    const value = Reply.shared(new Reply({ list: [{ a: 1 }] })).body
    expect(() => Object.assign(value.list[0] as object, { a: 2 })).to.throw(TypeError)
    const written = Reply.shared(Reply.json<{ rows: unknown[] }>(rowsOf('text'))) as JsonReply<{ rows: unknown[] }>
    expect(() => written.body.rows.push('more')).to.throw(TypeError)
    expect(written.body).to.deep.equal({ rows: ['text'] })
    expect(written.json.toString()).to.equal('{"rows":["text"]}')
  })
})
