/**
 * What a connection sends: requests of every kind, whole or broken, fast or slowly, and how it ends. The programs that
 * `npm run lab -- connections` draws are those that the tests draw, only larger.
 */
import * as fc from 'fast-check'

/** What one connection does. */
export interface Program {
  /** The callers of a named proxy have addresses of their own. Null: it comes directly, as one more connection of one stranger. */
  readonly caller: number | null
  readonly steps: readonly Step[]
  /** The size of each write. */
  readonly writeBytes: number
  readonly bytesPerSecond: number
  readonly reads: 'at once' | 'after it has written' | 'never'
  readonly ends: 'by half-close' | 'by reset' | 'by close' | 'by waiting'
}

export type Step =
  | { readonly kind: 'request'; readonly request: Sent; readonly times: number }
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'wait'; readonly ms: number }

export interface Sent {
  readonly target: string
  readonly version: '1.0' | '1.1'
  readonly headers: readonly string[]
  readonly body: Body | null
}

export type Body =
  /** `sent` of the announced bytes are sent. */
  | { readonly kind: 'length'; readonly bytes: number; readonly sent: number }
  | { readonly kind: 'chunks'; readonly chunkBytes: number; readonly chunks: number; readonly isEnded: boolean }

/** A gateway limits those who do not call from its own machine, and those that a proxy forwards. */
const STRANGER = '203.0.113.9'
const BLOCK_BYTES = 65_536
const FILLING = Buffer.alloc(BLOCK_BYTES, 'a')

const GETS = ['/v1/regime/current', '/v1/regime/sample', '/', '/openapi.json', '/nothing', '/mcp', '/audit?a=1&a=2']
const POSTS = ['/v1/audit', '/v1/bars/qc', '/v1/regime/current', '/audit', '/mcp', '/founding', '/nothing']
const MEDIA = [
  'application/json',
  'text/csv',
  'multipart/form-data; boundary=b',
  'application/x-www-form-urlencoded',
  'image/png',
]
const HEADERS = [
  'X-PAYMENT: e30=',
  'PAYMENT-SIGNATURE: junk',
  'X-SERVICE-TOKEN: a.b.c',
  'Expect: 100-continue',
  'Connection: close',
  'Connection: keep-alive',
  'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==',
  'Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__',
  'Accept: text/html',
  'Accept: application/json, text/event-stream',
  'Accept-Encoding: gzip',
]
const HOST = 'Host: localhost\r\n'
const MALFORMED = [
  'GET / HTTP/1.1\r\n\r\n',
  `get / HTTP/1.1\r\n${HOST}\r\n`,
  `GET  / HTTP/1.1\r\n${HOST}\r\n`,
  `GET / HTTP/9.9\r\n${HOST}\r\n`,
  `GET / HTTP/1.1\r\n${HOST}No colon\r\n\r\n`,
  `GET / HTTP/1.1\r\n${HOST}${HOST}\r\n`,
  `POST /v1/audit HTTP/1.1\r\n${HOST}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
  `POST /v1/audit HTTP/1.1\r\n${HOST}Content-Length: -1\r\n\r\n`,
  `POST /audit HTTP/1.1\r\n${HOST}Transfer-Encoding: chunked\r\n\r\nno size\r\n`,
  `POST /audit HTTP/1.1\r\n${HOST}Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n`,
  `POST /audit HTTP/1.1\r\n${HOST}Transfer-Encoding: chunked\r\n\r\n1;${'x'.repeat(20_000)}\r\na\r\n0\r\n\r\n`,
  `POST /audit HTTP/1.1\r\n${HOST}Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nTrailer: a\r\n\r\n`,
  `GET / HTTP/1.1\r\n${HOST}X-Long: ${'x'.repeat(40_000)}\r\n\r\n`,
  `GET / HTTP/1.1\r\n${HOST}${'a:b\r\n'.repeat(3_000)}\r\n`,
  `GET / HTTP/1.1\r\n${HOST}X-Endless: `,
  'CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n',
  `OPTIONS * HTTP/1.1\r\n${HOST}\r\n`,
  'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
  '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03',
  '\r\n\r\n\r\n',
  '\0'.repeat(100),
]

export interface ProgramSizes {
  /** The most bytes that one step sends. */
  readonly mostBytes: number
  /** The longest wait of a program. */
  readonly mostMs: number
  readonly leastBytesPerSecond: number
}

/** Sizes of which the small ones are as frequent as the large ones. */
const sizes = (most: number): fc.Arbitrary<number> =>
  fc.noBias(fc.double({ min: 0, max: Math.log2(most), noNaN: true })).map((power) => Math.round(2 ** power))

/** Draws programs. */
export function programs({ mostBytes, mostMs, leastBytesPerSecond }: ProgramSizes): fc.Arbitrary<Program> {
  const bodySizes = fc.oneof(sizes(mostBytes), fc.noBias(fc.integer({ min: 1, max: mostBytes })))
  const ofLength = fc
    .tuple(bodySizes, fc.double({ min: 0, max: 1, noNaN: true }), fc.boolean())
    .map(([bytes, share, isWhole]): Body => ({
      kind: 'length',
      bytes,
      sent: isWhole ? bytes : Math.floor(share * bytes),
    }))
  const inChunks = fc.tuple(sizes(BLOCK_BYTES), bodySizes, fc.boolean()).map(([chunkBytes, bytes, isEnded]): Body => {
    return { kind: 'chunks', chunkBytes, chunks: Math.max(1, Math.floor(bytes / (chunkBytes + 5))), isEnded }
  })
  const version = fc.constantFrom<Sent['version']>('1.1', '1.1', '1.1', '1.0')
  const headers = fc.uniqueArray(fc.constantFrom(...HEADERS), { maxLength: 3 })
  const get = fc.record({
    target: fc
      .tuple(fc.constantFrom('GET', 'GET', 'HEAD', 'DELETE'), fc.constantFrom(...GETS))
      .map((both) => both.join(' ')),
    version,
    headers,
    body: fc.constant(null),
  })
  const post = fc
    .record({
      path: fc.constantFrom(...POSTS),
      media: fc.constantFrom(...MEDIA),
      version,
      headers,
      body: fc.oneof(ofLength, inChunks),
    })
    .map(({ path, media, ...rest }): Sent => ({
      ...rest,
      target: `POST ${path}`,
      headers: [`Content-Type: ${media}`, ...rest.headers],
    }))
  const step = fc.oneof(
    {
      weight: 6,
      arbitrary: fc.record({
        kind: fc.constant('request' as const),
        request: post,
        times: fc.constantFrom(1, 1, 1, 20),
      }),
    },
    {
      weight: 3,
      arbitrary: fc.record({ kind: fc.constant('request' as const), request: get, times: sizes(mostBytes / 100) }),
    },
    { weight: 2, arbitrary: fc.record({ kind: fc.constant('wait' as const), ms: fc.nat(mostMs) }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('text' as const), text: fc.constantFrom(...MALFORMED) }) },
    {
      weight: 1,
      arbitrary: fc.record({
        kind: fc.constant('text' as const),
        text: fc.string({ unit: 'binary-ascii', maxLength: 300 }),
      }),
    },
  )
  return fc.record({
    caller: fc.oneof({ weight: 3, arbitrary: fc.constant(null) }, { weight: 1, arbitrary: fc.nat(3) }),
    steps: fc.array(step, { minLength: 1, maxLength: 8 }),
    writeBytes: fc.oneof(
      { weight: 2, arbitrary: fc.constant(BLOCK_BYTES) },
      { weight: 1, arbitrary: sizes(BLOCK_BYTES) },
    ),
    bytesPerSecond: fc.oneof(
      { weight: 2, arbitrary: fc.constant(Number.POSITIVE_INFINITY) },
      { weight: 1, arbitrary: sizes(10_000_000).map((rate) => rate + leastBytesPerSecond) },
    ),
    reads: fc.constantFrom<Program['reads']>('at once', 'at once', 'after it has written', 'never'),
    ends: fc.constantFrom<Program['ends']>('by half-close', 'by reset', 'by close', 'by waiting'),
  })
}

/** The bytes of a program's step, in blocks of 64 kB or less. */
export function* bytesOf(step: Step, caller: number | null): Generator<Buffer> {
  if (step.kind === 'text') yield Buffer.from(step.text, 'latin1')
  if (step.kind !== 'request') return
  const { request, times } = step
  const head = Buffer.from(headOf(request, caller), 'latin1')
  if (request.body === null) return yield* repeated(head, times)
  for (let at = 0; at < times; at += 1) {
    yield head
    yield* bytesOfBody(request.body)
  }
}

function headOf({ target, version, headers, body }: Sent, caller: number | null): string {
  const from = `X-Forwarded-For: ${caller === null ? STRANGER : `198.51.100.${caller + 1}`}`
  const lines = [`${target} HTTP/${version}`, 'Host: localhost', from, ...headers]
  if (body?.kind === 'length') lines.push(`Content-Length: ${body.bytes}`)
  if (body?.kind === 'chunks') lines.push('Transfer-Encoding: chunked')
  return [...lines, '', ''].join('\r\n')
}

function* bytesOfBody(body: Body): Generator<Buffer> {
  if (body.kind === 'length') {
    for (let left = body.sent; left > 0; left -= BLOCK_BYTES) yield FILLING.subarray(0, Math.min(left, BLOCK_BYTES))
    return
  }
  const { chunkBytes, chunks, isEnded } = body
  const size = Buffer.from(`${chunkBytes.toString(16)}\r\n`)
  yield* repeated(Buffer.concat([size, FILLING.subarray(0, chunkBytes), Buffer.from('\r\n')]), chunks)
  if (isEnded) yield Buffer.from('0\r\n\r\n')
}

function* repeated(bytes: Buffer, times: number): Generator<Buffer> {
  const inBlock = Math.max(1, Math.min(times, Math.floor(BLOCK_BYTES / bytes.length)))
  const block = Buffer.concat(Array<Buffer>(inBlock).fill(bytes))
  for (let left = times; left > 0; left -= inBlock) yield block.subarray(0, Math.min(left, inBlock) * bytes.length)
}
