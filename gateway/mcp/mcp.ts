/** MCP over streamable HTTP: a stateless adapter to the same `serve` that answers HTTP. */
import { randomUUID } from 'node:crypto'
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import { MAX_BATCH_SIZE } from '@modelcontextprotocol/sdk/server/requestBody.js'
import {
  type CallToolRequest,
  CallToolRequestSchema,
  ErrorCode,
  GetPromptRequestSchema,
  type InitializeResult,
  InitializeRequestSchema,
  LATEST_PROTOCOL_VERSION,
  ListPromptsRequestSchema,
  ListResourcesRequestSchema,
  ListResourceTemplatesRequestSchema,
  type JSONRPCRequest,
  ListToolsRequestSchema,
  McpError,
  PingRequestSchema,
  ReadResourceRequestSchema,
  type ReadResourceResult,
  SUPPORTED_PROTOCOL_VERSIONS,
} from '@modelcontextprotocol/sdk/types.js'
import type { CallRequest, Credential } from '../calls/request-and-answer.ts'
import type { Serve } from '../calls/serve.ts'
import type { Catalog } from '../plugin/catalog.ts'
import type { BoundOperation, CurrentEdition, Edition, RawInput } from '../products/edition.ts'
import { InvalidInput, type ValidationItem } from '../errors.ts'
import { MCP_PATHS } from '../documents/how-to-pay.ts'
import type { Recipients } from '../config/pay-to.ts'
import type { ToolFields } from '../observe/terminal.ts'
import type { Logger } from '../plugin/plugin.ts'
import { LARGE_BODY_BYTES, LARGE_BODY_VALUES } from '../catalog/large-body.ts'
import type { ArrivedBody, BodyStorage } from '../http/body-storage.ts'
import { parseMeasuredJson } from '../validation/json-body.ts'
import { JSON_LIMITS, JsonMeter } from '../validation/json-meter.ts'
import type { NameClient } from '../http/client-names.ts'
import type { Limits } from '../http/rate-limit.ts'
import type { LargeMessages } from './large-messages.ts'
import {
  callerPlaceOf,
  clientOf,
  credentialOf,
  headerPayments,
  headerToken,
  HttpCaller,
  idempotencyKey,
  releaseWithAnswer,
  sendContinue,
  signInOf,
  visitOf,
} from '../http/request.ts'
import { announcedBytes } from '../http/request-body.ts'
import { StreamPlaces } from '../http/stream-places.ts'
import { InvalidParams, parseRequest } from './invalid-params.ts'
import { answerPost, BATCH_TOO_LONG, type Method, type Methods, type PostAnswer, rpcError } from './json-rpc.ts'
import type { NotificationStream } from './notification-stream.ts'
import { createPrompts } from './prompts.ts'
import { createResources, type ReadableResource } from './resources.ts'
import { toolResult } from './tool-results.ts'
import { cacheable, completed, STATELESS_VERSION } from './stateless-requests.ts'
import { publicUrl } from '../http/request-target.ts'
import { createTools, PAYMENT_ARGUMENT, type Tool } from './tools.ts'
import { SIGN_IN_WITH_X } from '../x402/sign-in-with-x.ts'

export interface McpParts {
  readonly editions: CurrentEdition
  readonly serve: Serve
  readonly baseUrl: string
  /** The networks that payments are taken on, and the wallet that is paid on each. */
  readonly recipients: Recipients
  readonly limits: Limits
  readonly nameClient: NameClient
  readonly log: Logger
  /** Where messages are kept while they arrive. */
  readonly bodies: BodyStorage
  /** Reads large messages. If absent, they are parsed on the event loop. */
  readonly largeMessages?: LargeMessages
  /** How many notification streams may be open at once. Default: 1,000. */
  readonly maxStreams?: number
  /** Calls `listener` after each change of the edition. Returns a function that stops it. */
  readonly onEdition: (listener: (edition: Edition) => void) => () => void
}

export interface McpHandler {
  /** Answers one POST (messages) or GET (the stream of notifications). */
  handle(request: IncomingMessage, response: ServerResponse): Promise<void>
  /** Ends the notification streams. */
  close(): void
}

/** The parts, and what the endpoint keeps between requests. */
interface Endpoint extends McpParts {
  /** BASE_URL. */
  readonly own: URL
  readonly prepared: Readonly<Record<'named' | 'all', WeakMap<Edition, PreparedEdition>>>
  readonly places: StreamPlaces
  /** The open notification streams. */
  readonly subscribers: Set<NotificationStream>
}

/** Parts of an edition that the endpoint needs, made once. */
interface PreparedEdition {
  readonly methods: Methods<Exchange>
  readonly tools: ReadonlyMap<string, Tool>
  /** The largest message accepted, in bytes. */
  readonly messageLimit: number
}

interface Exchange {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly caller: HttpCaller
  /** The size of the message in bytes. */
  readonly size: number
  /** The bytes of a message that was read as an outline. */
  readonly large: Uint8Array | null
}

/** Smaller messages cost so little to read that they are counted afterwards, by what they ask for. */
const SMALL_MESSAGE_BYTES = 16_384
const MAX_STREAMS = 1_000
const META_PAYMENT = 'x402/payment'
/** Every spelling of the key under which clients send the payment in _meta. x402-mcp writes the one with a dot. */
const META_PAYMENTS = [META_PAYMENT, 'x402.payment'] as const
const META_SIGN_IN = `x402/${SIGN_IN_WITH_X}`
/** How long a stateless client may keep the list of tools: by default, an old price is honoured for longer. */
const LIST_TTL_MS = 60_000
const CAPABILITIES = { tools: { listChanged: true }, resources: {}, prompts: {} }
/** The same where no stream tells of a change. */
const STATELESS_CAPABILITIES = { tools: {}, resources: {}, prompts: {} }

/** Creates the MCP endpoint. Each request is served by the edition that is current when it arrives. */
export function createMcp(parts: McpParts): McpHandler {
  const own = new URL(parts.baseUrl)
  const places = new StreamPlaces('notification', parts.maxStreams ?? MAX_STREAMS)
  const endpoint: Endpoint = {
    ...parts,
    own,
    prepared: { named: new WeakMap(), all: new WeakMap() },
    places,
    subscribers: new Set(),
  }
  const stopListening = parts.onEdition(() => notifySubscribers(endpoint))
  return {
    async handle(request, response) {
      const foreign = foreignCaller(request.headers, own)
      if (foreign !== null) sendRpcError(response, 403, ErrorCode.InvalidRequest, foreign)
      else if (request.method === 'POST') await handleMessage(endpoint, request, response)
      else await openNotificationStream(endpoint, request, response)
    },
    close() {
      stopListening()
      for (const stream of endpoint.subscribers) void stream.close()
      endpoint.subscribers.clear()
    },
  }
}

function notifySubscribers({ subscribers, log }: Endpoint): void {
  for (const stream of subscribers)
    stream.sendToolListChanged().catch((error: unknown) => log.debug({ err: error }, 'a notification was not sent'))
}

async function handleMessage(endpoint: Endpoint, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { limits, nameClient } = endpoint
  const { from, target } = visitOf(response)
  const scope = target.path === MCP_PATHS.all ? 'all' : 'named'
  const { methods, tools, messageLimit } = preparedOf(endpoint, endpoint.editions.current, scope)
  const token = headerToken(request.headers)
  if (announcedBytes(request) > SMALL_MESSAGE_BYTES) limits.largeMessages(from, token)
  sendContinue(request, response)
  let read: ReadMessage | PostAnswer
  try {
    read = await readMessage(endpoint, request, response, messageLimit)
  } catch (error) {
    if (!(error instanceof InvalidInput)) throw error
    const { 'content-encoding': encoding } = request.headers
    const message =
      encoding === undefined || /^identity$/i.test(encoding)
        ? error.message
        : `The content-encoding ${encoding} is not supported; send the message uncompressed.`
    sendRpcError(response, 400, ErrorCode.ParseError, message)
    return
  }
  if ('status' in read) return sendAnswer(response, read)
  const { message, size, large } = read
  for (const part of Array.isArray(message) ? message : [message])
    limits[isSale(part, tools) ? 'sales' : 'free'](from, token)
  const exchange = { request, response, caller: new HttpCaller(response, nameClient), size, large }
  sendAnswer(response, await answerPost(request, message, methods, exchange))
}

/** True for a call of a priced tool. */
function isSale(message: unknown, tools: ReadonlyMap<string, Tool>): boolean {
  if (!isObject(message) || message['method'] !== 'tools/call' || !isObject(message['params'])) return false
  const { name } = message['params']
  const tool = typeof name === 'string' ? tools.get(name) : undefined
  return tool !== undefined && tool.operation.price !== null
}

function sendAnswer(response: ServerResponse, { status, body }: PostAnswer): void {
  if (response.closed) return
  if (body === null) response.writeHead(status).end()
  else {
    const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }
    // Node writes a head and a string in one piece, which is cheaper than a head and a buffer.
    response.writeHead(status, headers).end(body)
  }
}

/** A message that was read: as a whole, or only its outline if it is large. */
interface ReadMessage {
  readonly message: unknown
  readonly size: number
  /** The bytes of a large message. */
  readonly large: Uint8Array | null
}

const MESSAGE_LIMITS = { ...JSON_LIMITS, items: MAX_BATCH_SIZE }

/** Reads a message, or returns the answer that refuses it. Throws InvalidInput if it is not JSON. */
async function readMessage(
  { bodies, largeMessages }: Endpoint,
  request: IncomingMessage,
  response: ServerResponse,
  limit: number,
): Promise<ReadMessage | PostAnswer> {
  const meter = new JsonMeter(MESSAGE_LIMITS)
  let arrived: ArrivedBody
  try {
    arrived = await bodies.receive(request, limit, (piece) => meter.take(piece), visitOf(response).from.address)
  } catch (error) {
    if (error instanceof InvalidInput && error.detail[0]?.type === 'too_long') return refuse(BATCH_TOO_LONG)
    throw error
  }
  const { size } = arrived
  const isLarge = size > LARGE_BODY_BYTES || meter.values > LARGE_BODY_VALUES
  if (isLarge && largeMessages) {
    releaseWithAnswer(response, () => arrived.release())
    const large = await arrived.bytes(true)
    const outline = await largeMessages.outline(large)
    return 'refusal' in outline ? refuse(`Invalid Request: ${outline.refusal}`) : { ...outline, size, large }
  }
  try {
    return { message: parseMeasuredJson(await arrived.bytes()), size, large: null }
  } finally {
    arrived.release()
  }
}

const refuse = (message: string): PostAnswer => ({ status: 400, body: rpcError(ErrorCode.InvalidRequest, message) })

async function openNotificationStream(
  { subscribers, places, editions, limits }: Endpoint,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const { from } = visitOf(response)
  limits.free(from, headerToken(request.headers))
  // No token opens these streams, so none is checked: it could be made up.
  places.take(response, from, null)
  const { createNotificationStream } = await import('./notification-stream.ts')
  const stream = await createNotificationStream(serverInfo(editions.current.catalog), CAPABILITIES)
  // The client may have left meanwhile.
  if (response.closed) return stream.close()
  response.once('close', () => {
    subscribers.delete(stream)
    void stream.close()
  })
  subscribers.add(stream)
  await stream.answer(request, response)
}

function preparedOf(endpoint: Endpoint, edition: Edition, scope: 'named' | 'all'): PreparedEdition {
  const known = endpoint.prepared[scope].get(edition)
  if (known) return known
  const tools = createTools(edition.catalog, endpoint.recipients, scope)
  const prepared = { tools, methods: methodsOf(endpoint, edition, tools), messageLimit: messageLimit(tools) }
  endpoint.prepared[scope].set(edition, prepared)
  return prepared
}

/** The methods of an edition. What is the same in every answer is serialized here, once. */
function methodsOf(endpoint: Endpoint, edition: Edition, tools: ReadonlyMap<string, Tool>): Methods<Exchange> {
  const { catalog } = edition
  const server = serverInfo(catalog)
  const resources = createResources(catalog, endpoint.baseUrl)
  const prompts = createPrompts(catalog, tools)
  const lists = [
    listMethod('tools/list', ListToolsRequestSchema, { tools: definitionsOf(tools) }),
    listMethod('resources/list', ListResourcesRequestSchema, { resources: definitionsOf(resources) }),
    listMethod('resources/templates/list', ListResourceTemplatesRequestSchema, { resourceTemplates: [] }),
    listMethod('prompts/list', ListPromptsRequestSchema, { prompts: definitionsOf(prompts) }),
  ]
  const discovery = cacheable(
    {
      supportedVersions: [STATELESS_VERSION],
      capabilities: STATELESS_CAPABILITIES,
      instructions: instructionsOf(catalog),
    },
    server,
    LIST_TTL_MS,
  )
  const call: Method<Exchange> = (request, exchange) => {
    const { params } = parseRequest(CallToolRequestSchema, request)
    const tool = tools.get(params.name)
    if (!tool) throw new InvalidParams(`Unknown tool: ${params.name}. tools/list names the tools.`)
    return callTool(endpoint, edition, tool, params, exchange)
  }
  const read = async (request: JSONRPCRequest, exchange: Exchange) => {
    const { uri } = parseRequest(ReadResourceRequestSchema, request).params
    const resource = resources.get(uri)
    if (!resource) throw new InvalidParams(`Unknown resource: ${uri}. resources/list names the resources.`)
    return readResource(endpoint, edition, resource, exchange)
  }
  const getPrompt = (request: JSONRPCRequest) => {
    const { name, arguments: given } = parseRequest(GetPromptRequestSchema, request).params
    const prompt = prompts.get(name)
    if (!prompt) throw new InvalidParams(`Unknown prompt: ${name}. prompts/list names the prompts.`)
    return prompt.messages(given?.['question'])
  }
  const session = new Map<string, Method<Exchange>>([
    [
      'initialize',
      (request) => {
        const { protocolVersion } = parseRequest(InitializeRequestSchema, request).params
        const isSupported = SUPPORTED_PROTOCOL_VERSIONS.includes(protocolVersion)
        return JSON.stringify(initializeResult(catalog, isSupported ? protocolVersion : LATEST_PROTOCOL_VERSION))
      },
    ],
    [
      'ping',
      (request) => {
        parseRequest(PingRequestSchema, request)
        return '{}'
      },
    ],
    ...lists.map(({ name, method }): [string, Method<Exchange>] => [name, method(JSON.stringify)]),
    ['tools/call', call],
    ['resources/read', async (request, exchange) => JSON.stringify(await read(request, exchange))],
    ['prompts/get', (request) => JSON.stringify(getPrompt(request))],
  ])
  const stateless = new Map<string, Method<Exchange>>([
    ['server/discover', () => discovery],
    ...lists.map(({ name, method }): [string, Method<Exchange>] => [
      name,
      method((result) => cacheable(result, server, LIST_TTL_MS)),
    ]),
    ['tools/call', async (request, exchange) => completed(await call(request, exchange))],
    ['resources/read', async (request, exchange) => cacheable(await read(request, exchange), server, 0)],
    ['prompts/get', (request) => completed(JSON.stringify(getPrompt(request)))],
  ])
  return { session, stateless }
}

const definitionsOf = <Definition>(all: ReadonlyMap<string, { readonly definition: Definition }>): Definition[] =>
  [...all.values()].map(({ definition }) => definition)

/** A method that lists what an edition has. Its result is serialized once for each revision of MCP. */
function listMethod(
  name: string,
  schema: Parameters<typeof parseRequest>[0],
  result: Readonly<Record<string, unknown>>,
) {
  return {
    name,
    method(serialize: (result: Readonly<Record<string, unknown>>) => string): Method<Exchange> {
      const list = serialize(result)
      return (request) => {
        parseRequest(schema, request)
        return list
      }
    },
  }
}

function initializeResult(catalog: Catalog, protocolVersion: string): InitializeResult {
  return {
    protocolVersion,
    capabilities: CAPABILITIES,
    serverInfo: serverInfo(catalog),
    instructions: instructionsOf(catalog),
  }
}

function serverInfo({ service: { name, title, version } }: Catalog): InitializeResult['serverInfo'] {
  return { name, title, version }
}

async function callTool(
  endpoint: Endpoint,
  edition: Edition,
  tool: Tool,
  params: CallToolRequest['params'],
  exchange: Exchange,
): Promise<string> {
  const { largeMessages, log, baseUrl } = endpoint
  const { request, large } = exchange
  const bound = edition.bound.get(tool.operation.id)
  if (!bound) throw new InvalidParams(`The tool ${params.name} is not available.`)
  const input = tool.split(params.arguments ?? {})
  const payments = paymentsOf(params, request)
  const call = callOf(exchange, publicUrl(baseUrl, tool.targetOf(input)))
  const answer = await endpoint.serve(edition, bound, {
    ...call,
    credential: credentialOf(payments, headerToken(request.headers)),
    ...idempotencyKey(request.headers),
    ...signInOf(request.headers),
    ...metaSignIn(params),
    read(onArrival) {
      onArrival?.()
      return large && largeMessages ? largeMessages.read(tool, bound, large, input, payments.length > 0) : input
    },
  })
  const line: ToolFields = { call: call.id, tool: params.name, status: answer.status }
  log.info(line, 'tool call')
  const mistakes = answer.quote && payments.length === 0 && !large ? mistakesIn(bound, input) : []
  return toolResult(answer, tool, call.id, mistakes)
}

/** What all calls of one exchange say of themselves. */
function callOf({ request, response, caller, size }: Exchange, url: string) {
  return {
    id: randomUUID(),
    transport: 'mcp',
    url,
    credential: credentialOf([], headerToken(request.headers)),
    bodyBytes: size,
    client: clientOf(visitOf(response)),
    ...callerPlaceOf(visitOf(response)),
    caller,
    onSent: (listener: () => void) => void response.once('finish', listener),
  } as const
}

/** Returns what a resource has at present. Throws an Error with its message if the operation refuses. */
async function readResource(
  { serve, baseUrl }: Endpoint,
  edition: Edition,
  { operation, definition: { uri, mimeType } }: ReadableResource,
  exchange: Exchange,
): Promise<ReadResourceResult> {
  const bound = edition.bound.get(operation.id)
  if (!bound) throw new InvalidParams(`The resource ${uri} is not available.`)
  const call = callOf(exchange, publicUrl(baseUrl, { path: operation.path, search: '' }))
  const read = (onArrival?: () => void): RawInput => {
    onArrival?.()
    return { params: {}, query: {}, body: undefined }
  }
  const { error, headers, body } = await serve(edition, bound, { ...call, read })
  if (error) throw new McpError(ErrorCode.InternalError, error.message)
  return { contents: [{ uri, mimeType: headers['content-type'] ?? mimeType, text: body.toString() }] }
}

/** What the product would refuse of these arguments, so that nobody signs a payment for a call that cannot be answered. */
function mistakesIn(bound: BoundOperation, input: RawInput): readonly ValidationItem[] {
  try {
    bound.validate(input)
    return []
  } catch (error) {
    if (error instanceof InvalidInput) return error.detail
    throw error
  }
}

/** Returns every payment of the call: argument, _meta and headers. `serve` refuses two different ones. */
function paymentsOf(
  { arguments: args, _meta }: CallToolRequest['params'],
  { headers }: IncomingMessage,
): Credential['payments'] {
  const inMeta = META_PAYMENTS.map((key) => _meta?.[key])
  const presented = [args?.[PAYMENT_ARGUMENT], ...inMeta, ...headerPayments(headers)]
  return presented.flatMap((payment) => {
    if (payment === undefined || payment === null || payment === '') return []
    return [typeof payment === 'string' ? payment : isObject(payment) ? payment : JSON.stringify(payment)]
  })
}

/** Returns the sign-in of the caller's wallet in _meta: base64 text or the object. */
function metaSignIn({ _meta }: CallToolRequest['params']): Pick<CallRequest, 'signIn'> {
  const signIn = _meta?.[META_SIGN_IN]
  return typeof signIn === 'string' || isObject(signIn) ? { signIn } : {}
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null

/** The largest message accepted: the largest tool's body as an escaped JSON string, plus the envelope. */
function messageLimit(tools: ReadonlyMap<string, Tool>): number {
  const largest = Math.max(0, ...[...tools.values()].map(({ operation }) => operation.maxBytes))
  return Math.ceil(largest * 1.25) + 65_536
}

function instructionsOf({ service }: Catalog): string {
  return (
    `${service.summary} Free tools need no payment. A paid tool that is called without payment returns isError with ` +
    `x402 requirements. Sign one of them and call again with ${PAYMENT_ARGUMENT} (base64) or _meta["${META_PAYMENT}"].`
  )
}

/** Sends a JSON-RPC error without an id, for a message that was not parsed or not read. */
function sendRpcError(response: ServerResponse, status: number, code: ErrorCode, message: string): void {
  response.writeHead(status, { 'content-type': 'application/json; charset=utf-8' }).end(rpcError(code, message))
}

const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/

/**
 * Guards against DNS rebinding (MCP, transports, security warning). Returns null if Host and Origin are our own or
 * loopback, or Origin is absent; otherwise a message that names the foreign one.
 */
function foreignCaller({ host = '', origin }: IncomingHttpHeaders, own: URL): string | null {
  if (host !== own.host && !isOwnOrLoopback(host, own)) return `The Host header is not ${own.host}.`
  if (origin === undefined || origin === own.origin) return null
  const originUrl = parseUrl(origin)
  return originUrl !== null && LOOPBACK.test(originUrl.hostname)
    ? null
    : `Web pages of ${origin} may not use this endpoint.`
}

/** Anything beside a name and a port, such as a user or a path, makes a Host foreign. */
function isOwnOrLoopback(host: string, own: URL): boolean {
  const name = host.toLowerCase()
  const url = parseUrl(`http://${name}`)
  if (url === null) return false
  return name === own.host || (LOOPBACK.test(url.hostname) && name.replace(/:\d+$/, '') === url.hostname)
}

function parseUrl(text: string): URL | null {
  return URL.canParse(text) ? new URL(text) : null
}
