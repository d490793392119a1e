/** MCP over streamable HTTP: a stateless adapter to the same `serve` that answers HTTP. */
import { randomUUID } from 'node:crypto'
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import { Server } from '@modelcontextprotocol/sdk/server/index.js'
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'
import {
  CallToolRequestSchema,
  type CallToolRequest,
  type CallToolResult,
  ErrorCode,
  ListToolsRequestSchema,
  McpError,
} from '@modelcontextprotocol/sdk/types.js'
import type { Credential } from '../calls/request-and-answer.ts'
import type { Serve } from '../calls/serve.ts'
import type { Catalog } from '../plugin/catalog.ts'
import type { CurrentEdition, Edition } from '../editions/edition.ts'
import { RateLimited, ServiceError } from '../errors.ts'
import type { Recipients } from '../config/pay-to.ts'
import type { Logger } from '../plugin/plugin.ts'
import { readBytes } from '../http/request-body.ts'
import { parseJson } from '../http/json-body.ts'
import { bucketOf } from '../http/rate-limit.ts'
import { clientOf, credentialOf, headerPayments, headerToken, idempotencyKey, watchCaller } from '../http/request.ts'
import { toolResult } from './tool-results.ts'
import { publicUrl } from '../http/request-target.ts'
import { createTools, PAYMENT_ARGUMENT, type Tool } from './tools.ts'

export interface McpParts {
  readonly editions: CurrentEdition
  readonly serve: Serve
  readonly baseUrl: string
  /** The networks that payments are taken on, and the wallet that is paid on each. */
  readonly recipients: Recipients
  readonly log: Logger
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
  readonly toolsByCatalog: WeakMap<Catalog, ReadonlyMap<string, Tool>>
  /** One server per open notification stream. */
  readonly subscribers: Set<Server>
}

interface Exchange {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  /** Aborts when the caller disconnects. */
  readonly signal: AbortSignal
}

/** Each notification stream holds a socket. Beyond this number, callers are asked to retry later. */
const MAX_STREAMS = 1000
const META_PAYMENT = 'x402/payment'

/** Creates the MCP endpoint. Each request is served by the edition that is current when it arrives. */
export function createMcp(parts: McpParts): McpHandler {
  const endpoint: Endpoint = { ...parts, toolsByCatalog: new WeakMap(), subscribers: new Set() }
  const stopListening = parts.onEdition(() => notifySubscribers(endpoint))
  return {
    async handle(request, response) {
      const foreign = foreignCaller(request.headers, parts.baseUrl)
      if (foreign !== null) sendRpcError(response, 403, ErrorCode.InvalidRequest, foreign)
      else if (request.method === 'POST') await handleMessage(endpoint, request, response)
      else await openNotificationStream(endpoint, request, response)
    },
    close() {
      stopListening()
      for (const server of endpoint.subscribers) void server.close()
      endpoint.subscribers.clear()
    },
  }
}

function notifySubscribers({ subscribers, log }: Endpoint): void {
  for (const server of subscribers)
    server.sendToolListChanged().catch((error: unknown) => log.debug({ err: error }, 'a notification was not sent'))
}

/** The tools of a catalog, built once. */
function toolsOf({ toolsByCatalog, recipients }: Endpoint, catalog: Catalog): ReadonlyMap<string, Tool> {
  const tools = toolsByCatalog.get(catalog) ?? createTools(catalog, recipients)
  toolsByCatalog.set(catalog, tools)
  return tools
}

async function handleMessage(endpoint: Endpoint, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const edition = endpoint.editions.current
  const limit = messageLimit(toolsOf(endpoint, edition.catalog))
  let message: unknown
  try {
    message = parseJson(await readBytes(request, limit))
  } catch (error) {
    if (!(error instanceof ServiceError) || error.code !== 'validation_failed') throw error
    sendRpcError(response, 400, ErrorCode.ParseError, error.message)
    return
  }
  const server = createServer(endpoint, edition, request, response)
  const transport = new StreamableHTTPServerTransport({ enableJsonResponse: true })
  response.once('close', () => void server.close())
  await server.connect(transport)
  await transport.handleRequest(request, response, message)
}

async function openNotificationStream(
  endpoint: Endpoint,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const { subscribers, editions } = endpoint
  if (subscribers.size >= MAX_STREAMS) throw new RateLimited('Too many open notification streams.', 60)
  const server = createServer(endpoint, editions.current, request, response)
  const transport = new StreamableHTTPServerTransport()
  response.once('close', () => {
    subscribers.delete(server)
    void server.close()
  })
  await server.connect(transport)
  subscribers.add(server)
  await transport.handleRequest(request, response)
}

/** Creates the SDK's server for one HTTP request. */
function createServer(
  endpoint: Endpoint,
  edition: Edition,
  request: IncomingMessage,
  response: ServerResponse,
): Server {
  const { service } = edition.catalog
  const tools = toolsOf(endpoint, edition.catalog)
  const { signal } = watchCaller(response)
  const server = new Server(
    { name: service.name, title: service.title, version: service.version },
    { capabilities: { tools: { listChanged: true } }, instructions: instructionsOf(edition.catalog) },
  )
  server.setRequestHandler(ListToolsRequestSchema, () => ({
    tools: [...tools.values()].map(({ definition }) => definition),
  }))
  server.setRequestHandler(CallToolRequestSchema, async ({ params }) => {
    const tool = tools.get(params.name)
    if (!tool) throw new McpError(ErrorCode.InvalidParams, `Unknown tool ${params.name}. tools/list has all tools.`)
    return callTool(endpoint, edition, tool, params, { request, response, signal })
  })
  return server
}

async function callTool(
  { serve, baseUrl, log }: Endpoint,
  edition: Edition,
  tool: Tool,
  params: CallToolRequest['params'],
  { request, response, signal }: Exchange,
): Promise<CallToolResult> {
  const bound = edition.bound.get(tool.operation.id)
  if (!bound) throw new McpError(ErrorCode.InvalidParams, `The tool ${params.name} is not available.`)
  const id = randomUUID()
  const input = tool.split(params.arguments ?? {})
  const answer = await serve(edition, bound, {
    id,
    transport: 'mcp',
    url: publicUrl(baseUrl, tool.targetOf(input)),
    credential: credentialOf(paymentsOf(params, request), headerToken(request.headers)),
    ...idempotencyKey(request.headers),
    client: bucketOf(clientOf(request)),
    signal,
    onSent: (listener) => void response.once('finish', listener),
    read: async () => input,
  })
  log.info({ call: id, tool: params.name, status: answer.status }, 'tool call')
  return toolResult(answer, tool, id)
}

/** Returns every payment of the call: argument, _meta and headers. `serve` refuses two different ones. */
function paymentsOf(
  { arguments: args, _meta }: CallToolRequest['params'],
  { headers }: IncomingMessage,
): Credential['payments'] {
  const presented = [args?.[PAYMENT_ARGUMENT], _meta?.[META_PAYMENT], ...headerPayments(headers)]
  return presented.flatMap((payment) => {
    if (payment === undefined || payment === null || payment === '') return []
    return [typeof payment === 'string' ? payment : isObject(payment) ? payment : JSON.stringify(payment)]
  })
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
  const body = JSON.stringify({ jsonrpc: '2.0', error: { code, message }, id: null })
  response.writeHead(status, { 'content-type': 'application/json; charset=utf-8' }).end(body)
}

const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/

/**
 * Guards against DNS rebinding (MCP, transports, security warning). Returns null if Host and Origin are our own or
 * loopback, or Origin is absent; otherwise a message that names the foreign one.
 */
function foreignCaller({ host, origin }: IncomingHttpHeaders, baseUrl: string): string | null {
  const own = new URL(baseUrl)
  const hostUrl = parseUrl(`http://${host ?? ''}`)
  if (hostUrl === null || (host?.toLowerCase() !== own.host && !LOOPBACK.test(hostUrl.hostname)))
    return `The Host header is not ${own.host}.`
  if (origin === undefined || origin === own.origin) return null
  const originUrl = parseUrl(origin)
  return originUrl !== null && LOOPBACK.test(originUrl.hostname)
    ? null
    : `Web pages of ${origin} may not use this endpoint.`
}

function parseUrl(text: string): URL | null {
  return URL.canParse(text) ? new URL(text) : null
}
