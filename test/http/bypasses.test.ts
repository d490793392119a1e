import { expect } from 'chai'
import { ask, buy, json } from '../support/agent.ts'
import { openGateway, type TestGateway } from '../support/gateway.ts'
import { rawRequest, requestLine } from './raw.ts'

const PATH = '/v1/echo/secretword'
const BODY = '{"text":"secretword"}'

/** How every answer of the route begins. */
const ANSWER = '{"said":"'

type Case = readonly [title: string, request: string]

const get = (title: string, target: string, ...headers: string[]): Case => [title, requestLine('GET', target, headers)]
const other = (title: string, method: string, target: string, ...headers: string[]): Case => [
  title,
  requestLine(method, target, headers),
]
const post = (title: string, body: string, ...headers: string[]): Case => [
  title,
  requestLine('POST', '/v1/echo', ['Content-Type: application/json', ...headers]) + body,
]
const length = `Content-Length: ${BODY.length}`
const chunked = `${BODY.length.toString(16)}\r\n${BODY}\r\n0\r\n\r\n`
/** A paid request hidden behind one that is free. */
const hidden = `GET ${PATH} HTTP/1.1\r\nHost: a\r\n\r\n`

/** Ways to get an answer of a priced route without paying, as raw requests. */
const CASES: readonly Case[] = [
  get('nothing', PATH),
  get('a query', `${PATH}?times=1`),
  get('an absolute target', `http://elsewhere.example${PATH}`),
  get('an absolute target with a user', `http://user:word@elsewhere.example${PATH}`),
  get('an encoded letter', '/v1/echo/secret%77ord'),
  get('a doubled slash', `/${PATH}`),
  get('a dot segment', '/v1/runs/../echo/secretword'),
  get('an encoded dot segment', '/v1/runs/%2e%2e/echo/secretword'),
  get('an encoded slash', '/v1%2fecho/secretword'),
  get('a backslash', '/v1\\echo\\secretword'),
  get('a path parameter', `${PATH};price=0`),
  get('a trailing slash', `${PATH}/`),
  get('capital letters', '/V1/ECHO/secretword'),
  get('a fragment', `${PATH}#free`),
  get('a null byte', `${PATH}%00`),
  other('HEAD', 'HEAD', PATH),
  other('OPTIONS', 'OPTIONS', PATH),
  other('TRACE', 'TRACE', PATH),
  other('PUT', 'PUT', PATH),
  other('PATCH', 'PATCH', PATH),
  other('DELETE', 'DELETE', PATH),
  other('CONNECT', 'CONNECT', 'elsewhere.example:80'),
  other('an unknown method', 'PURGE', PATH),
  other('a method in small letters', 'get', PATH),
  get('a method override', PATH, 'X-HTTP-Method-Override: OPTIONS'),
  get('the path of another request', '/v1/runs', `X-Original-URL: ${PATH}`, `X-Rewrite-URL: ${PATH}`),
  get('a range', PATH, 'Range: bytes=0-1'),
  get('several ranges', PATH, 'Range: bytes=0-1,2-3', 'If-Range: "a"'),
  get('a validator that matches everything', PATH, 'If-None-Match: *'),
  get('a date in the future', PATH, 'If-Modified-Since: Fri, 01 Jan 2100 00:00:00 GMT'),
  get('a request of a cache', PATH, 'Cache-Control: only-if-cached', 'Pragma: no-cache'),
  get(
    'an upgrade',
    PATH,
    'Upgrade: websocket',
    'Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==',
    'Sec-WebSocket-Version: 13',
  ),
  get('an upgrade to HTTP/2', PATH, 'Upgrade: h2c', 'HTTP2-Settings: AAMAAABkAAQAAP__'),
  get('an empty payment', PATH, 'X-PAYMENT: ', 'PAYMENT-SIGNATURE: '),
  get('two junk payments', PATH, 'X-PAYMENT: e30=', 'X-PAYMENT: e30='),
  get('a junk token', PATH, 'X-SERVICE-TOKEN: Bearer eyJhbGciOiJub25lIn0.eyJwbGFuIjoibGF0ZS0xaCJ9.'),
  get(
    'the address of the gateway itself',
    PATH,
    'X-Forwarded-For: 127.0.0.1',
    'X-Real-IP: 127.0.0.1',
    'Forwarded: for=127.0.0.1',
  ),
  get('a page', PATH, 'Accept: text/html'),
  get('a stream of events', PATH, 'Accept: text/event-stream', 'Last-Event-ID: 0'),
  post('a body', BODY, length),
  post('a body in chunks', chunked, 'Transfer-Encoding: chunked'),
  post('two lengths', BODY, length, 'Content-Length: 0'),
  post('a length and chunks', chunked, length, 'Transfer-Encoding: chunked'),
  post('chunks twice', chunked, 'Transfer-Encoding: chunked, chunked'),
  post('an unknown encoding', BODY, 'Transfer-Encoding: gzip, chunked'),
  post('a body that is waited for', '', length, 'Expect: 100-continue'),
  [
    'a request in the body of another one',
    `GET /v1/runs HTTP/1.1\r\nHost: a\r\nContent-Length: ${hidden.length}\r\nConnection: close\r\n\r\n${hidden}`,
  ],
  ['a request behind another one', `GET /v1/runs HTTP/1.1\r\nHost: a\r\n\r\n${requestLine('GET', PATH)}`],
  ['bare line feeds', `GET ${PATH} HTTP/1.1\nHost: a\nConnection: close\n\n`],
  ['HTTP/1.0 without a host', `GET ${PATH} HTTP/1.0\r\n\r\n`],
  ['HTTP/0.9', `GET ${PATH}\r\n\r\n`],
  [
    'a header that is folded',
    `GET ${PATH} HTTP/1.1\r\nHost: a\r\nX-PAYMENT: e30=\r\n more\r\nConnection: close\r\n\r\n`,
  ],
]

describe('a priced route without a payment', () => {
  let shop: TestGateway
  let port: number
  before(async () => {
    shop = await openGateway()
    port = Number(new URL(shop.url).port)
  })
  after(() => shop.close())

  const runs = async (): Promise<Record<string, unknown>> => json(await ask(`${shop.url}/v1/runs`))

  for (const [title, request] of CASES)
    it(`gives no byte of its answer to ${title}`, async () => {
      const before = await runs()
      const { head, body } = await rawRequest(port, request)
      expect(`${head}${body}`).to.not.contain(ANSWER)
      expect(await runs()).to.deep.equal(before)
    })

  it('gives its answer to whoever pays, and to nobody in at least forty other ways', async () => {
    const paid = await buy(shop.url + PATH, shop.wallet)
    expect(await paid.text()).to.match(new RegExp(`^${ANSWER}secretword"`))
    expect(CASES.length).to.be.at.least(40)
    expect(new Set(CASES.map(([title]) => title)).size).to.equal(CASES.length)
  })
})
