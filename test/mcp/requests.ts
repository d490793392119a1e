/** The requests of the MCP contract: what clients send to /mcp, rightly or wrongly. */
import { once } from 'node:events'
import http from 'node:http'
import { text } from 'node:stream/consumers'
import { InvalidInput, ServiceError, Unavailable } from '../../gateway/errors.ts'
import { Reply } from '../../gateway/plugin/plugin.ts'
import {
  NETWORK,
  openTransportGateway,
  PRICED,
  route,
  type Route,
  type TransportGateway,
} from '../http/transport-gateway.ts'

const PAYMENT = { x402Version: 2, payload: { signature: '0x' } }
const BASE64 = Buffer.from(JSON.stringify(PAYMENT)).toString('base64')

/** A shop whose tools give every kind of answer. */
const CONTRACT_ROUTES: readonly Route[] = [
  route('getSample', 'GET /v1/sample', { tool: 'get_sample' }, () => ({ free: true, text: 'naïve "quoted" 價' })),
  route('getHistory', 'GET /v1/history/{venue}', {
    ...PRICED,
    tool: 'get_history',
    params: { type: 'object', properties: { venue: { type: 'string' } }, required: ['venue'] },
    query: { type: 'object', properties: { symbol: { type: 'string' }, limit: { type: 'integer' } } },
    description: 'Newest first.',
  }),
  route(
    'echoBody',
    'POST /v1/echo',
    { tool: 'echo_body', body: { type: 'array', items: {} }, bodyMedia: ['application/json'] },
    ({ raw }) => raw.body,
  ),
  route(
    'echoFields',
    'POST /v1/fields',
    { tool: 'echo_fields', body: { type: 'object', properties: { side: {} } }, bodyMedia: ['application/json'] },
    ({ raw }) => raw,
  ),
  route('getNumber', 'GET /v1/number', { tool: 'get_number' }, () => 42),
  route('getNothing', 'GET /v1/nothing', { tool: 'get_nothing' }, () => undefined),
  route(
    'getTable',
    'GET /v1/table',
    { tool: 'get_table' },
    () => new Reply('a,b\n1,2\n', { headers: { 'content-type': 'text/csv' } }),
  ),
  route(
    'getSpacedJson',
    'GET /v1/spaced',
    { tool: 'get_spaced_json' },
    () => new Reply('{ "n": 1.0,\n "2": [ ], "1": null }', { headers: { 'content-type': 'application/geo+json' } }),
  ),
  route(
    'getBrokenJson',
    'GET /v1/broken',
    { tool: 'get_broken_json' },
    () => new Reply('{"n":', { headers: { 'content-type': 'application/json' } }),
  ),
  route(
    'getRefusal',
    'GET /v1/refusal',
    { tool: 'get_refusal' },
    () => new Reply({ reason: 'closed' }, { status: 409 }),
  ),
  route('failInput', 'GET /v1/input', { tool: 'fail_input' }, () => {
    throw new InvalidInput([{ loc: ['query', 'side'], msg: 'is unknown', type: 'enum' }])
  }),
  route('failLater', 'GET /v1/later', { tool: 'fail_later' }, () => {
    throw new Unavailable('Closed for a moment.', 30)
  }),
  route('failSettling', 'GET /v1/unsettled', { ...PRICED, tool: 'fail_settling' }, () => {
    throw new ServiceError('settlement_failed', 'The balance is too small.', { reason: 'insufficient_funds' })
  }),
  route('failInside', 'GET /v1/inside', { tool: 'fail_inside' }, () => {
    throw new Error('a bug')
  }),
]

const PAYER = '0x857b06519e91e3a54538791bdbb0e22373e36b66'

/** Opens the shop. A paid call that succeeds has a receipt. */
export function openContractGateway(): Promise<TransportGateway> {
  return openTransportGateway(CONTRACT_ROUTES, {
    settle: (answer, { request }) =>
      request.credential?.payments.length
        ? {
            ...answer,
            receipt: { success: true, transaction: '0x1', network: NETWORK, payer: PAYER, amount: 5000n, version: 2 },
          }
        : answer,
  })
}

export interface ContractRequest {
  readonly title: string
  readonly headers: Readonly<Record<string, string | readonly string[]>>
  readonly body: Buffer
}

const HEADERS = {
  host: 'shop.example',
  accept: 'application/json, text/event-stream',
  'content-type': 'application/json',
}

type Headers = Readonly<Record<string, string | readonly string[] | undefined>>

/** A request with the headers that clients send, changed by `headers`. An undefined header is left out. */
function request(title: string, body: unknown, headers: Headers = {}): ContractRequest {
  const bytes = Buffer.isBuffer(body) ? body : Buffer.from(typeof body === 'string' ? body : JSON.stringify(body))
  const sent = Object.entries({ ...HEADERS, ...headers }).filter(([, value]) => value !== undefined)
  return { title, body: bytes, headers: Object.fromEntries(sent) }
}

const message = (method: unknown, params?: unknown, id: unknown = 1) => ({ jsonrpc: '2.0', id, method, params })
const notification = (method: string, params?: unknown) => ({ jsonrpc: '2.0', method, params })
const call = (name: unknown, args?: unknown, more: object = {}, id: unknown = 1) =>
  message('tools/call', { name, arguments: args, ...more }, id)
const initialize = (protocolVersion: unknown = '2025-11-25', more: object = {}) =>
  message('initialize', { protocolVersion, capabilities: {}, clientInfo: { name: 'c', version: '1' }, ...more })

const VERSIONS = ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05', '2024-10-07', '2026-07-28', '2099-01-01']
const RELATED_TASK = { 'io.modelcontextprotocol/related-task': { taskId: 't' } }
const HEADER = 'mcp-protocol-version'

const INITIALIZATIONS = [
  ...VERSIONS.map((version) => request(`initialize with version ${version}`, initialize(version))),
  request('initialize with all capabilities', initialize('2025-06-18', { capabilities: { roots: {}, sampling: {} } })),
  request('initialize without clientInfo', initialize('2025-06-18', { clientInfo: undefined })),
  request('initialize without params', message('initialize')),
  request('initialize with a number as version', initialize(7)),
  request('initialize with a task', initialize('2025-06-18', { task: {} })),
  request('initialize with an unsupported version header', initialize(), { [HEADER]: '1999-01-01' }),
  request('invalid initialize with an unsupported version header', message('initialize'), { [HEADER]: '1999-01-01' }),
  request('initialize as a notification', { ...initialize(), id: undefined }),
  request(
    'initialize as a notification with an unsupported version header',
    { ...initialize(), id: undefined },
    { [HEADER]: 'x' },
  ),
  request('initialize alone in a batch', [initialize()]),
  request('initialize and ping in a batch', [initialize(), message('ping', undefined, 2)]),
  request('invalid initialize and ping in a batch', [message('initialize'), message('ping', undefined, 2)]),
  request('two initialize in a batch', [initialize(), initialize()]),
]

const NOTIFICATIONS = [
  request('initialized', notification('notifications/initialized')),
  request('cancelled', notification('notifications/cancelled', { requestId: 1, reason: 'late' })),
  request('cancelled without params', notification('notifications/cancelled')),
  request('progress', notification('notifications/progress', { progressToken: 1, progress: 2 })),
  request('an unknown notification', notification('notifications/unheard', { of: 1 })),
  request('a notification with a list as params', notification('notifications/unheard', [1])),
  request('a request method as notification', notification('tools/call', { name: 'get_sample' })),
  request('a notification with an unsupported version header', notification('notifications/initialized'), {
    [HEADER]: 'x',
  }),
  request('a result', { jsonrpc: '2.0', id: 1, result: {} }),
  request('a result without id', { jsonrpc: '2.0', result: {} }),
  request('an error', { jsonrpc: '2.0', id: 1, error: { code: 1, message: 'm' } }),
  request('an error without id', { jsonrpc: '2.0', error: { code: 1, message: 'm' } }),
  request('an error with a fraction as code', { jsonrpc: '2.0', error: { code: 1.5, message: 'm' } }),
  request('a result with more fields', { jsonrpc: '2.0', id: 1, result: {}, more: 1 }),
]

const IDS: readonly unknown[] = ['a', '', 0, -1, 9007199254740991, 9007199254740992, 1.5, null, true, {}, 'ü\n"']

const REQUESTS = [
  request('ping', message('ping')),
  ...IDS.map((id) => request(`ping with id ${JSON.stringify(id)}`, message('ping', undefined, id))),
  request('ping with params', message('ping', { any: 1 })),
  request('ping with a progress token', message('ping', { _meta: { progressToken: 'p' } })),
  request('ping with a fraction as progress token', message('ping', { _meta: { progressToken: 1.5 } })),
  request('ping with text as _meta', message('ping', { _meta: 'm' })),
  request('ping with null as params', message('ping', null)),
  request('ping with a list as params', message('ping', [])),
  request('ping with a task', message('ping', { task: { ttl: 1 } })),
  request('ping with a related task', message('ping', { _meta: RELATED_TASK })),
  request('tools/list', message('tools/list')),
  request('tools/list with empty params', message('tools/list', {})),
  request('tools/list with a cursor', message('tools/list', { cursor: 'c' })),
  request('tools/list with null as params', message('tools/list', null)),
  request('tools/list with null as cursor', message('tools/list', { cursor: null })),
  request('tools/list with a number as cursor', message('tools/list', { cursor: 1 })),
  request('tools/list with a task', message('tools/list', { task: {} })),
  request('tools/list with text as task', message('tools/list', { task: 't' })),
  ...VERSIONS.map((version) =>
    request(`tools/list with header ${version}`, message('tools/list'), { [HEADER]: version }),
  ),
  request('tools/list with an empty version header', message('tools/list'), { [HEADER]: '' }),
  request('tools/list with two version headers', message('tools/list'), { [HEADER]: ['2025-06-18', '2025-06-18'] }),
  request('tools/list with a session id', message('tools/list'), { 'mcp-session-id': 's' }),
  ...['logging/setLevel', 'completion/complete', 'tasks/get', 'tasks/list', ''].map((method) =>
    request(`method ${JSON.stringify(method)}`, message(method)),
  ),
  ...['__proto__', 'constructor', 'toString', 'tools/list ', 'TOOLS/LIST', 'notifications/initialized'].map((method) =>
    request(`method ${JSON.stringify(method)}`, message(method, {})),
  ),
  request('an unknown method with a task', message('completion/complete', { task: {} })),
  request('a number as method', message(7)),
  request('no method', { jsonrpc: '2.0', id: 1 }),
  request('JSON-RPC 1.0', { ...message('ping'), jsonrpc: '1.0' }),
  request('no JSON-RPC version', { id: 1, method: 'ping' }),
  request('a request with more fields', { ...message('ping'), more: 1 }),
  request('a request with a result', { ...message('ping'), result: {} }),
]

const CALLS = [
  request('a free tool', call('get_sample')),
  request('a free tool with empty arguments', call('get_sample', {})),
  request('a free tool with an unknown argument', call('get_sample', { other: 1 })),
  request('a free tool with null as arguments', call('get_sample', null)),
  request('a free tool with a list as arguments', call('get_sample', [])),
  request('a free tool with text as id', call('get_sample', {}, {}, 'id')),
  request(
    'a free tool with an argument __proto__',
    '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo_fields","arguments":{"__proto__":{"a":1},"side":"buy"}}}',
  ),
  request('a call without name', message('tools/call', { arguments: {} })),
  request('a call without params', message('tools/call')),
  request('a call with a number as name', call(7)),
  request('a call with more params', call('get_sample', {}, { more: 1 })),
  request('an unknown tool', call('get_hidden')),
  request('a tool named __proto__', call('__proto__')),
  request('an unpaid call', call('get_history', { venue: 'a b', symbol: 'X', limit: 5 })),
  request('an unpaid call without arguments', call('get_history')),
  request('an unpaid call with null arguments', call('get_history', { venue: 'v', symbol: null })),
  request('a paid call', call('get_history', { venue: 'v', payment_signature: BASE64 })),
  request('a call paid in _meta as text', call('get_history', { venue: 'v' }, { _meta: { 'x402/payment': BASE64 } })),
  request(
    'a call paid in _meta as object',
    call('get_history', { venue: 'v' }, { _meta: { 'x402/payment': PAYMENT } }),
  ),
  request('a call paid in a header', call('get_history', { venue: 'v' }), { 'payment-signature': BASE64 }),
  request('a call paid with a number', call('get_history', { venue: 'v', payment_signature: 7 })),
  request('a call with an empty payment', call('get_history', { venue: 'v', payment_signature: '' })),
  request('a call with a token', call('get_history', { venue: 'v' }), { 'x-service-token': 'Bearer t.o.k' }),
  request('a call with text as _meta', call('get_sample', {}, { _meta: 'm' })),
  request('a call with null as _meta', call('get_sample', {}, { _meta: null })),
  request('a call with a progress token', call('get_sample', {}, { _meta: { progressToken: 1 } })),
  request('a call with a related task', call('get_sample', {}, { _meta: RELATED_TASK })),
  request(
    'a call with an invalid related task',
    call('get_sample', {}, { _meta: { 'io.modelcontextprotocol/related-task': 1 } }),
  ),
  request('a call with a task', call('get_sample', {}, { task: {} })),
  request('a call with a task and without name', call(undefined, {}, { task: {} })),
  request('a call with text as task', call('get_sample', {}, { task: 't' })),
  request('a call of an unknown tool with a task', call('get_hidden', {}, { task: { ttl: 5 } })),
  request('a list as body', call('echo_body', { body: [1, { a: 'é' }] })),
  request('an empty list as body', call('echo_body', { body: [] })),
  request('fields as body', call('echo_fields', { side: { '10': 1, '9': 2, b: [null], a: -0 } })),
  ...['get_number', 'get_nothing', 'get_table', 'get_spaced_json', 'get_broken_json', 'get_refusal'].map((name) =>
    request(`the answer of ${name}`, call(name)),
  ),
  ...['fail_input', 'fail_later', 'fail_inside'].map((name) => request(`the error of ${name}`, call(name))),
  request('a failed settlement', call('fail_settling', { payment_signature: BASE64 })),
]

const BATCHES = [
  request('an empty batch', []),
  request('a batch of one', [message('ping')]),
  request('a batch of three', [
    call('get_sample', {}, {}, 'a'),
    message('ping', undefined, 2),
    message('tools/list', {}, 1),
  ]),
  request('a batch with id 1 as number and text', [message('ping', {}, 1), message('ping', {}, '1')]),
  request('a batch with one id twice', [message('ping', {}, 1), message('tools/call', {}, 1)]),
  request('a batch with one id twice beside another', [
    message('ping', {}, 1),
    message('ping', {}, 2),
    message('ping', {}, 1),
  ]),
  request('a batch with a notification', [notification('notifications/initialized'), message('ping')]),
  request('a batch with a response', [{ jsonrpc: '2.0', id: 1, result: {} }, message('ping', {}, 2)]),
  request('a batch of notifications', [notification('notifications/initialized'), notification('notifications/any')]),
  request('a batch with an invalid member', [message('ping'), { hello: 'world' }]),
  request('a batch in a batch', [[message('ping')]]),
  request('a batch with errors', [message('nothing', {}, 1), call('get_hidden', {}, {}, 2), call(7, {}, {}, 3)]),
  request(
    'a batch of a hundred',
    Array.from({ length: 100 }, (_, id) => message('ping', undefined, id)),
  ),
  request(
    'a batch of a hundred and one',
    Array.from({ length: 101 }, (_, id) => message('ping', undefined, id)),
  ),
  request(
    'a batch of a hundred and one invalid members',
    Array.from({ length: 101 }, () => 7),
  ),
  request('a batch with an unsupported version header', [message('ping')], { [HEADER]: 'x' }),
]

const ACCEPTS = [
  undefined,
  '',
  '*/*',
  'application/json',
  'text/event-stream',
  'APPLICATION/JSON, TEXT/EVENT-STREAM',
  'application/*',
  'application/*, text/*;q=0.5',
  'Application/*, text/event-stream',
  'application/json;q=0, */*',
  'text/html, */*;q=0.8',
  'text/event-stream;q=0.5,application/json;q=0.1',
  ['application/json', 'text/event-stream'],
]
const TYPES = [
  undefined,
  '',
  'text/plain',
  'Application/JSON',
  'application/json; charset=utf-8',
  'application/json; charset=latin1',
  'application/json;',
  'application/json; charset=',
  'application/json, application/json',
  'application/json; a, application/json',
  'application/vnd.api+json',
  'text/plain; a=application/json',
  ['application/json', 'application/json'],
  ['application/json', 'text/plain'],
]

const ENVELOPES = [
  ...ACCEPTS.map((accept) => request(`Accept ${JSON.stringify(accept)}`, message('ping'), { accept })),
  ...TYPES.map((type) => request(`Content-Type ${JSON.stringify(type)}`, message('ping'), { 'content-type': type })),
  request('wrong Accept and wrong Content-Type', message('ping'), {
    accept: 'text/html',
    'content-type': 'text/plain',
  }),
  request('wrong Accept and an invalid message', { hello: 1 }, { accept: 'text/html' }),
  request('wrong Accept and a broken body', '{', { accept: 'text/html' }),
  request('wrong Accept and an unsupported version header', message('ping'), { accept: 'text/html', [HEADER]: 'x' }),
  request('an invalid message and an unsupported version header', { hello: 1 }, { [HEADER]: 'x' }),
  request('an unknown method and an unsupported version header', message('nothing'), { [HEADER]: 'x' }),
  request('an empty body', ''),
  request('a body of spaces', '  '),
  request('half a message', '{"jsonrpc":"2.0",'),
  request('a message with a byte order mark', Buffer.from(`\ufeff${JSON.stringify(message('ping'))}`)),
  request('a message that is not UTF-8', Buffer.from([0x22, 0xff, 0x22])),
  request('a message of null', null),
  request('a message of a number', 5),
  request('a message of text', '"ping"'),
  request('an object that is no message', { hello: 'world' }),
  request('a message with an infinite number', '{"jsonrpc":"2.0","id":1e999,"method":"ping"}'),
  request('a message nested too deep', `${'['.repeat(70)}${']'.repeat(70)}`),
  request('a message with duplicate members', '{"jsonrpc":"2.0","id":1,"id":2,"method":"nothing","method":"ping"}'),
  request('a message that is too large', { ...message('ping'), pad: 'x'.repeat(200_000) }),
  request('a large message', call('echo_body', { body: ['x'.repeat(6_000)] })),
  request('a foreign host', message('ping'), { host: 'evil.example' }),
  request('a loopback host', message('ping'), { host: 'localhost:6274' }),
  request('an IPv6 loopback host', message('ping'), { host: '[::1]:8080' }),
  request('the own host in capitals', message('ping'), { host: 'SHOP.example' }),
  request('a foreign origin', message('ping'), { origin: 'https://evil.example' }),
  request('the own origin', message('ping'), { origin: 'http://shop.example' }),
  request('a loopback origin', message('ping'), { origin: 'http://127.0.0.1:5173' }),
  request('the origin null', message('ping'), { origin: 'null' }),
]

export const CONTRACT: readonly ContractRequest[] = [
  ...INITIALIZATIONS,
  ...NOTIFICATIONS,
  ...REQUESTS,
  ...CALLS,
  ...BATCHES,
  ...ENVELOPES,
]

/** What the contract fixes of an answer. */
export interface ContractAnswer {
  readonly status: number
  readonly type: string | null
  readonly length: string | null
  /** Call ids are replaced by zeros. */
  readonly body: string
}

const CALL_ID = /[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g
const MASKED_CALL_ID = '00000000-0000-0000-0000-000000000000'

/** Sends a request as it is: no client adds headers or normalizes them. */
export async function send(port: number, { headers, body }: ContractRequest): Promise<ContractAnswer> {
  const request = http.request({
    port,
    host: '127.0.0.1',
    path: '/mcp',
    method: 'POST',
    agent: false,
    headers: { ...headers, 'content-length': body.length } as http.OutgoingHttpHeaders,
  })
  request.end(body)
  const [response] = (await once(request, 'response')) as [http.IncomingMessage]
  const received = (await text(response)).replace(CALL_ID, MASKED_CALL_ID)
  const { 'content-type': type = null, 'content-length': length = null } = response.headers
  return { status: response.statusCode as number, type, length, body: received }
}
