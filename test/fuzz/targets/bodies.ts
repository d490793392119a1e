/** Bodies of requests: JSON, forms, multipart and MCP messages, and the input of every operation. */
import { AnswerBody } from '../../../gateway/plugin/answer-body.ts'
import { deepEqual, equal, ok } from 'node:assert/strict'
import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { PassThrough } from 'node:stream'
import type { Request, Response } from 'express'
import { fingerprintOf } from '../../../gateway/calls/fingerprint.ts'
import { NETWORKS } from '../../../gateway/config/networks.ts'
import type { Edition } from '../../../gateway/products/edition.ts'
import { BodyStorage } from '../../../gateway/http/body-storage.ts'
import { beginVisit } from '../../../gateway/http/request.ts'
import { readBody } from '../../../gateway/http/request-body.ts'
import { parsePairs } from '../../../gateway/http/request-target.ts'
import { createMcp } from '../../../gateway/mcp/mcp.ts'
import readArguments from '../../../gateway/mcp/large-message-arguments.ts'
import outlineMessage from '../../../gateway/mcp/large-message-outline.ts'
import { createLog } from '../../../gateway/observe/log.ts'
import type { Operation } from '../../../gateway/plugin/catalog.ts'
import type { Upload } from '../../../gateway/plugin/plugin.ts'
import { decodePayment } from '../../../gateway/methods/payment-method.ts'
import { createExactEvm } from '../../../gateway/methods/exact-evm/exact-evm.ts'
import { decodeText, parseJson } from '../../../gateway/validation/json-body.ts'
import { JSON_LIMITS, type JsonLimits, JsonMeter } from '../../../gateway/validation/json-meter.ts'
import { isObject } from '../../../gateway/validation/json.ts'
import { acceptedBy, acceptedLater, type FuzzTarget } from '../target.ts'
import { CATALOG, validatorsOf } from './operations.ts'
import { headersOf } from './requests.ts'

/** A request whose body arrives in pieces of at most `size` bytes. */
function requestOf(headers: Readonly<Record<string, string>>, body: Buffer, size: number): IncomingMessage {
  const stream = new PassThrough({ highWaterMark: 1_000_000 })
  for (let at = 0; at < body.length; at += size) stream.write(body.subarray(at, at + size))
  stream.end()
  return Object.assign(stream, {
    headers: { 'transfer-encoding': 'chunked', ...headers },
  }) as unknown as IncomingMessage
}

const MULTIPART = 'multipart/form-data; boundary=b'
const form = (...parts: readonly string[]): string => parts.map((part) => `--b\r\n${part}\r\n`).join('') + '--b--\r\n'
const storage = new BodyStorage()

/** The headers of a request and its body, split by an empty line. */
function splitRequest(input: Buffer): { readonly headers: Record<string, string>; readonly body: Buffer } {
  const at = input.indexOf('\n\n')
  if (at === -1) return { headers: {}, body: input }
  return { headers: headersOf(input.subarray(0, at).toString('latin1')), body: input.subarray(at + 2) }
}

const DECODED = [MULTIPART.split(';')[0] as string, 'application/x-www-form-urlencoded', 'application/json', 'text/csv']

async function decodedBody(input: Buffer, size: number): Promise<unknown> {
  const { headers, body } = splitRequest(input)
  return readBody(requestOf(headers, body, size), { bodyMedia: DECODED, maxBytes: 50_000 }, { storage })
}

/** What a reader of bodies made of them, without memory addresses: equal for equal content. */
const comparable = (value: unknown): unknown =>
  JSON.parse(JSON.stringify(value, (_, part: unknown) => (part instanceof Uint8Array ? String(part) : part)) ?? 'null')

/** An operation that a fuzzed call may name: those with an input. */
const CALLABLE = [...CATALOG.operations.values()].filter(
  ({ params, query, body, retired }) => !retired && (params !== null || query !== null || body !== null),
)

function callOf(operation: Operation, input: Readonly<Record<string, unknown>>): string {
  return JSON.stringify({ operation: operation.id, params: {}, query: {}, body: null, ...input })
}

const EXAMPLES: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  estimateExecutionCost: { body: { symbol: 'BTC-USD', side: 'buy', notional_usd: 1000, order_type: 'market' } },
  preflightTrade: { body: { symbol: 'BTC-USD', side: 'buy', notional_usd: 1000 } },
  auditBacktest: { body: { file: 'symbol,side\n', preset: 'large_cap', n_trials: '10', extra_bps: '0.0' } },
  joinFounding: { body: { email: 'a@b.example', source: 'pricing' } },
  getRegimeHistory: { query: { start: '2026-02-01', limit: '10' } },
  getPotusArchive: { query: { from: '2026-02-01', limit: '10' } },
  getPotusEvent: { params: { selector: 'latest' } },
  getPayment: { params: { network: 'eip155:8453', payer: `0x${'a'.repeat(40)}`, nonce: `0x${'b'.repeat(64)}` } },
  getDeflatedSharpe: { query: { sharpe: '1.5', days: '500', trials: '10', skew: '0', kurt: '3' } },
  checkBarQuality: { body: { bars: [[1, 1, 1, 1, 1]], interval: '1m' } },
  getPerpFundingRates: { query: { symbol: 'BTC' } },
}

const fieldNames = (schema: unknown): string[] =>
  isObject(schema) && isObject(schema['properties']) ? Object.keys(schema['properties']) : []
const FIELDS = [...new Set(CALLABLE.flatMap(({ params, query, body }) => [params, query, body].flatMap(fieldNames)))]

/** The endpoint of MCP with the real tools. Its calls decode and validate, and are not served. */
const edition = {
  catalog: CATALOG,
  bound: new Map([...CATALOG.operations.values()].map((operation) => [operation.id, { operation, isUpstream: false }])),
} as unknown as Edition
const network = NETWORKS.base
const methods = [createExactEvm(network)]
const unlimited = { sales: () => {}, free: () => {}, largeMessages: () => {} } as never
const mcp = createMcp({
  editions: { current: edition },
  baseUrl: 'https://gate.test',
  recipients: { network, payTo: `0x${'1'.repeat(40)}` },
  limits: unlimited,
  nameClient: (address) => address,
  log: createLog('silent'),
  bodies: storage,
  onEdition: () => () => {},
  async serve(_, { operation }, call) {
    const { credential } = call
    for (const payment of credential?.payments ?? []) acceptedBy(() => decodePayment(payment, methods))
    ok(call.url.startsWith('https://gate.test/'))
    const input = await call.read()
    acceptedBy(() => validatorsOf(operation.id).input(input as never))
    await fingerprintOf({ id: operation.id, isPlan: false }, input)
    return { status: 200, headers: { 'content-type': 'application/json' }, body: AnswerBody.of('{}') }
  },
})

async function postMessage(body: Buffer): Promise<{ readonly status: number; readonly text: string }> {
  const socket = new Socket()
  const request = new IncomingMessage(socket)
  const json = 'application/json'
  Object.assign(request, { method: 'POST', url: '/mcp' })
  request.headers = { host: 'gate.test', accept: `${json}, text/event-stream`, 'content-type': json }
  request.headersDistinct['content-type'] = [json]
  const response = new ServerResponse(request)
  let text = ''
  response.end = ((chunk?: string) => {
    text = chunk ?? ''
    return response
  }) as never
  const from = { address: '203.0.113.1', isKnown: true, isShared: false }
  const target = { path: '/mcp', search: '' }
  beginVisit(request as Request, response as Response, { edition, target, from, route: null })
  request.push(body)
  request.push(null)
  await mcp.handle(request, response)
  response.emit('close')
  socket.destroy()
  return { status: response.statusCode, text }
}

const rpc = (method: string, params: object, id: unknown = 1): object => ({ jsonrpc: '2.0', id, method, params })
const TOOL_CALL = rpc('tools/call', {
  name: 'get_regime_history',
  arguments: { start: '2026-02-01', limit: 3, payment_signature: 'e30=' },
  _meta: { 'x402/payment': { x402Version: 2 }, 'x402/sign-in-with-x': {} },
})

export const BODIES: readonly FuzzTarget[] = [
  {
    name: 'json-body',
    maxBytes: 64_000,
    seeds: [
      '{"a":[1,2.5e3,"x\\u0041",null,true],"b":{"c":{}}}',
      '[1e999]',
      '"\\ud800"',
      '{"a":1,"a":2}',
      '[[[]]]',
      '\uFEFF{}',
    ],
    words: ['{', '}', '[', ']', ':', ',', '"', '\\', '\\u', 'null', 'true', 'false', '1e5', '-', '[1e999,'],
    read(input) {
      const value = acceptedBy(() => ({ parsed: parseJson(input) }))
      if (value) deepEqual(value.parsed, JSON.parse(decodeText(input)))
      // However the bytes arrive, the meter counts the same.
      const whole = acceptedBy(() => measured(input, input.length || 1))
      equal(
        acceptedBy(() => measured(input, 1)),
        whole,
      )
      equal(
        acceptedBy(() => measured(input, 7)),
        whole,
      )
    },
  },
  {
    name: 'multipart',
    maxBytes: 32_000,
    seeds: [
      `content-type: ${MULTIPART}\n\n` +
        form(
          'Content-Disposition: form-data; name="n_trials"\r\n\r\n10',
          'Content-Disposition: form-data; name="file"; filename="a.csv"\r\nContent-Type: text/csv\r\n\r\na,b\r\n1,2',
        ),
      `content-type: ${MULTIPART}\n\n` +
        form(
          'Content-Disposition: form-data; name="f"; filename*=utf-8\'\'%e2%82%ac\r\nContent-Transfer-Encoding: base64\r\n\r\neA==',
          'Content-Disposition: form-data; name="f"; filename=""\r\n\r\n',
          'Content-Type: text/plain; charset=utf-16\r\n\r\nno name',
        ),
      `content-type: multipart/form-data; boundary="b"; charset=utf-8\ncontent-encoding: identity\n\n${form('\r\nx')}`,
      'content-type: application/x-www-form-urlencoded\n\na=1&b=%20',
      'content-type: application/json; charset=utf-8\n\n{"file":"a,b"}',
      'content-type: text/csv\n\na,b\n1,2\n',
      'content-type: application/problem+json\n\n[]',
    ],
    words: [
      '--b',
      '\r\n',
      '\r\n\r\n',
      '--',
      'Content-Disposition: form-data; name="x"',
      'filename=',
      "filename*=utf-8''",
      'Content-Type: ',
      'Content-Transfer-Encoding: quoted-printable',
      'boundary=',
      'charset=',
      '"',
      ';',
      '\\"',
    ],
    async read(input) {
      const read = await acceptedLater(() => decodedBody(input, 64))
      const again = await acceptedLater(() => decodedBody(input, 4_096))
      deepEqual(comparable(again), comparable(read))
      if (isObject(read))
        for (const value of Object.values(read).flat())
          ok(typeof value !== 'object' || value === null || !('bytes' in value) || isUpload(value))
      const { arriving, held, disk } = storage.used
      equal(arriving + held + disk, 0, 'a body is still held after it was read')
    },
  },
  {
    name: 'form',
    maxBytes: 64_000,
    seeds: ['email=a%40b.example&source=pricing', 'a=1&a=2', '=&=', '%F0%9F%98%80=+'],
    words: ['&', '=', '+', '%', '%00', '__proto__'],
    async read(input) {
      const pairs = acceptedBy(() => parsePairs(decodeText(input), 'body'))
      if (!pairs) return
      await fingerprintOf({ id: 'x', isPlan: false }, { params: {}, query: {}, body: pairs })
    },
  },
  {
    name: 'operation-input',
    maxBytes: 32_000,
    seeds: CALLABLE.map((operation) => callOf(operation, EXAMPLES[operation.id] ?? {})),
    words: [...CALLABLE.map(({ id }) => id), ...FIELDS, 'params', 'query', 'body', '2026-02-01', 'BTC-USD', 'latest'],
    async read(input) {
      const call = acceptedBy(() => parseJson(input))
      if (!isObject(call)) return
      const operation = CALLABLE.find(({ id }) => id === call['operation'])
      if (!operation) return
      // Path and query are always objects of text and lists of text. A body is anything.
      const raw = { params: asText(call['params']), query: asText(call['query']), body: call['body'] }
      const before = JSON.stringify(raw)
      const read = acceptedBy(() => validatorsOf(operation.id).input(raw as never))
      equal(JSON.stringify(raw), before, 'validation changed what was sent')
      // What was accepted with its defaults is accepted again, and gets no others.
      if (read && operation.body === null)
        deepEqual(JSON.stringify(validatorsOf(operation.id).input(raw as never)), JSON.stringify(read))
      const fingerprint = await fingerprintOf({ id: operation.id, isPlan: false }, raw)
      equal(await fingerprintOf({ id: operation.id, isPlan: false }, JSON.parse(before) as typeof raw), fingerprint)
    },
  },
  {
    name: 'mcp-message',
    maxBytes: 64_000,
    seeds: [
      TOOL_CALL,
      rpc('initialize', { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'a', version: '1' } }),
      rpc('tools/list', {}),
      rpc('ping', {}, 'a'),
      [rpc('ping', {}), rpc('tools/call', { name: 'get_pricing', arguments: {} }, 2)],
      { jsonrpc: '2.0', method: 'notifications/initialized' },
      rpc('tools/call', { name: 'check_bar_quality', arguments: { bars: [[1, 2, 3, 1, 2]] } }),
      rpc('tools/call', { name: 'audit_backtest', arguments: { file: 'a,b\n' }, task: { ttl: 1 } }),
    ].map((message) => JSON.stringify(message)),
    words: [
      'jsonrpc',
      'method',
      'params',
      'id',
      'name',
      'arguments',
      '_meta',
      'tools/call',
      'ping',
      'x402/payment',
      'task',
    ],
    async read(input) {
      const answer = await postMessage(input)
      ok([200, 202, 400].includes(answer.status), `status ${answer.status}`)
      if (answer.text !== '') {
        const body = JSON.parse(answer.text) as unknown
        for (const { error } of [body].flat() as { error?: { message: string } }[])
          // The SDK's own refusals have the code of an internal error too, so the text must tell them apart.
          ok(
            !/^(?:URI malformed|Cannot |undefined|.* is not (?:a function|iterable|defined))/.test(
              error?.message ?? '',
            ),
            error?.message,
          )
      }
      if (acceptedBy(() => measured(input, input.length || 1, JSON_LIMITS)) === null) return
      const outline = acceptedBy(() => outlineMessage(input))
      if (!outline || 'refusal' in outline) return
      const places = { isWhole: false, outside: ['limit'] }
      const rules = validatorsOf('checkBarQuality').bodyRules()
      const parts = { params: {}, query: {}, operation: { id: 'checkBarQuality', isPlan: false }, isPaid: true }
      const read = await acceptedLater(() => readArguments({ bytes: input, places, rules, ...parts }))
      ok(read !== null)
    },
  },
]

const FEW = { depth: 16, values: 2_000, keys: 200, items: 100 }

function measured(bytes: Buffer, size: number, limits: JsonLimits = FEW): number {
  const meter = new JsonMeter(limits)
  for (let at = 0; at < bytes.length; at += size) meter.take(bytes.subarray(at, at + size))
  return meter.values
}

function isUpload(value: object): boolean {
  const { filename, mediaType, bytes } = value as Partial<Upload>
  return typeof filename === 'string' && typeof mediaType === 'string' && Buffer.isBuffer(bytes)
}

function asText(value: unknown): Readonly<Record<string, string | string[]>> {
  if (!isObject(value)) return {}
  return Object.fromEntries(
    Object.entries(value).map(([name, each]) => [
      name,
      Array.isArray(each) ? each.map((item) => textOf(item)) : textOf(each),
    ]),
  )
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : (JSON.stringify(value) ?? ''))
