/**
 * Answers the JSON-RPC messages of one POST, as MCP's streamable HTTP without sessions prescribes. The rules, their order
 * and their texts are those of the SDK's stateless server, which would need a server object, a validator and a converted
 * request for every POST. The SDK's schemas, which are compiled once, still decide what a message is. ADR 50 lists where the
 * answers differ.
 */
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { MAX_BATCH_SIZE } from '@modelcontextprotocol/sdk/server/requestBody.js'
import { isJsonContentType } from '@modelcontextprotocol/sdk/shared/mediaType.js'
import {
  ErrorCode,
  isInitializeRequest,
  isTaskAugmentedRequestParams,
  type JSONRPCMessage,
  JSONRPCMessageSchema,
  type JSONRPCRequest,
  type RequestId,
  SUPPORTED_PROTOCOL_VERSIONS,
} from '@modelcontextprotocol/sdk/types.js'
import { isObject } from '../validation/json.ts'
import { acceptsMediaType } from './accept.ts'
import { type Fault, faultOf, isStateless, STATELESS_VERSION } from './stateless-requests.ts'

/** An HTTP status with its JSON body, or null for no body. */
export interface PostAnswer {
  readonly status: number
  readonly body: string | null
}

/** Answers one request with the JSON of its result. Throws an Error, with a number as `code`, to refuse it. */
export type Method<Context> = (request: JSONRPCRequest, context: Context) => string | Promise<string>

/** The methods by name: those of a session, and those of requests that begin none. */
export interface Methods<Context> {
  readonly session: ReadonlyMap<string, Method<Context>>
  readonly stateless: ReadonlyMap<string, Method<Context>>
}

/** The refusal of a batch of too many messages. */
export const BATCH_TOO_LONG = `Invalid Request: Batch must not exceed ${MAX_BATCH_SIZE} messages`

const NO_BATCH = `Invalid Request: Requests of ${STATELESS_VERSION} are not sent in batches`

/** The code that the SDK gives to errors of the HTTP transport. */
const TRANSPORT_ERROR = -32_000
const VERSION_HEADER = 'mcp-protocol-version'

/**
 * Answers a POST.
 *
 * @param message the parsed body: a message or a batch of them
 * @param context passed to the methods
 */
export async function answerPost<Context>(
  { headers, headersDistinct }: IncomingMessage,
  message: unknown,
  methods: Methods<Context>,
  context: Context,
): Promise<PostAnswer> {
  if (!acceptsAnswers(headers.accept))
    return refuse(
      406,
      TRANSPORT_ERROR,
      'Not Acceptable: Client must accept both application/json and text/event-stream',
    )
  // Node keeps only the first of several Content-Type headers. Together they say nothing.
  if (!isJsonContentType(headersDistinct['content-type']?.join(', ') ?? null))
    return refuse(415, TRANSPORT_ERROR, 'Unsupported Media Type: Content-Type must be application/json')

  const parts: readonly unknown[] = Array.isArray(message) ? message : [message]
  if (parts.length > MAX_BATCH_SIZE) return refuse(400, ErrorCode.InvalidRequest, BATCH_TOO_LONG)
  const messages = parseMessages(parts)
  if (messages === null) return refuse(400, ErrorCode.ParseError, 'Parse error: Invalid JSON-RPC message')

  const requests = messages.filter(isRequest)
  if (requests.some((request) => isStateless(request, headers))) {
    const [request] = requests as [JSONRPCRequest]
    if (Array.isArray(message)) return refuse(400, ErrorCode.InvalidRequest, NO_BATCH)
    return answerStateless(request, headers, methods.stateless, context)
  }
  if (messages.some(isInitialization)) {
    if (messages.length > 1)
      return refuse(400, ErrorCode.InvalidRequest, 'Invalid Request: Only one initialization request is allowed')
  } else {
    const version = headers[VERSION_HEADER]
    const isSupported = version === STATELESS_VERSION || SUPPORTED_PROTOCOL_VERSIONS.includes(String(version))
    if (typeof version === 'string' && !isSupported) return refuse(400, TRANSPORT_ERROR, unsupportedVersion(version))
  }

  // Notifications and responses need no answer: without a session there is nothing they could refer to.
  const [only] = requests
  if (only === undefined) return { status: 202, body: null }
  const answer = (request: JSONRPCRequest): Promise<string> => answerRequest(request, methods.session, context)
  return { status: 200, body: requests.length === 1 ? await answer(only) : await answerBatch(requests, answer) }
}

/** MCP demands both types, although answers are always JSON. The SDK's clients send the first string. */
const acceptsAnswers = (accept = ''): boolean =>
  accept === 'application/json, text/event-stream' ||
  (acceptsMediaType(accept, 'application/json') && acceptsMediaType(accept, 'text/event-stream'))

function parseMessages(parts: readonly unknown[]): JSONRPCMessage[] | null {
  const messages: JSONRPCMessage[] = []
  for (const part of parts) {
    const { success, data } = JSONRPCMessageSchema.safeParse(withoutNulls(part))
    if (!success) return null
    messages.push(data)
  }
  return messages
}

/** Many clients write null for params or a cursor that they do not have. */
function withoutNulls(message: unknown): unknown {
  if (!isObject(message) || !('params' in message)) return message
  const { params, ...rest } = message
  if (params === null) return rest
  if (!isObject(params) || params['cursor'] !== null) return message
  const { cursor: _, ...others } = params
  return { ...rest, params: others }
}

/** The name is looked at first, because a failed parse costs more than the rest of a ping. */
const isInitialization = (message: JSONRPCMessage): boolean =>
  'method' in message && message.method === 'initialize' && isInitializeRequest(message)

const isRequest = (message: JSONRPCMessage): message is JSONRPCRequest => 'method' in message && 'id' in message

const unsupportedVersion = (version: string): string =>
  `Bad Request: Unsupported protocol version: ${version} (supported versions: ${SUPPORTED_PROTOCOL_VERSIONS.join(', ')})`

/** Answers the requests of a batch at once. Requests that share an id, which is a mistake of the client, share one answer. */
function answerBatch(
  requests: readonly JSONRPCRequest[],
  answer: (request: JSONRPCRequest) => Promise<string>,
): Promise<string> {
  const ids = [...new Set(requests.map(({ id }) => id))]
  const answers = new Map<RequestId, string>()
  return new Promise((resolve, reject) => {
    const take = (id: RequestId, text: string): void => {
      answers.set(id, text)
      const texts = ids.flatMap((each) => answers.get(each) ?? [])
      if (texts.length === ids.length) resolve(ids.length === 1 ? text : `[${texts.join(',')}]`)
    }
    for (const request of requests) answer(request).then((text) => take(request.id, text), reject)
  })
}

/** Answers a request that stands alone. Its faults are errors of HTTP, too, those of its arguments are not. */
async function answerStateless<Context>(
  request: JSONRPCRequest,
  headers: IncomingHttpHeaders,
  methods: ReadonlyMap<string, Method<Context>>,
  context: Context,
): Promise<PostAnswer> {
  const fault = faultOf(request, headers)
  if (fault) return { status: 400, body: errorText(JSON.stringify(request.id), fault) }
  const status = methods.has(request.method) ? 200 : 404
  return { status, body: await answerRequest(request, methods, context) }
}

async function answerRequest<Context>(
  request: JSONRPCRequest,
  methods: ReadonlyMap<string, Method<Context>>,
  context: Context,
): Promise<string> {
  const id = JSON.stringify(request.id)
  const method = methods.get(request.method)
  if (!method) return errorText(id, { code: ErrorCode.MethodNotFound, message: 'Method not found' })
  try {
    assertNoTask(request)
    return `{"result":${await method(request, context)},"jsonrpc":"2.0","id":${id}}`
  } catch (thrown) {
    const { code, message = 'Internal error' } = thrown as { readonly code?: unknown; readonly message?: string }
    return errorText(id, { code: Number.isSafeInteger(code) ? (code as number) : ErrorCode.InternalError, message })
  }
}

/** Refuses requests that ask to be run as a task. */
function assertNoTask({ method, params }: JSONRPCRequest): void {
  if (params?.['task'] !== undefined && isTaskAugmentedRequestParams(params))
    throw new Error(`Server does not support task creation (required for ${method})`)
}

function errorText(id: string, error: Fault): string {
  return `{"jsonrpc":"2.0","id":${id},"error":${JSON.stringify(error)}}`
}

/** The answer to a POST whose messages are not answered one by one. */
function refuse(status: number, code: number, message: string): PostAnswer {
  return { status, body: rpcError(code, message) }
}

/** Returns the JSON of a JSON-RPC error without an id. */
export function rpcError(code: number, message: string): string {
  return JSON.stringify({ jsonrpc: '2.0', error: { code, message }, id: null })
}
