/** MCP over streamable HTTP: a thin, stateless shell around the same `serve`. */
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
import type { Credential } from '../calls/call.ts'
import type { Serve } from '../calls/serve.ts'
import type { Catalog } from '../plugin/catalog.ts'
import type { CurrentEdition, Edition } from '../editions/edition.ts'
import { ServiceError } from '../errors.ts'
import type { Recipients } from '../config/pay-to.ts'
import type { Logger } from '../plugin/plugin.ts'
import { readBytes } from '../http/request-body.ts'
import { parseJson } from '../http/json.ts'
import { bucketOf } from '../http/rate-limit.ts'
import { clientOf, credentialOf, headerPayments, headerToken, idempotencyKey, watchCaller } from '../http/request.ts'
import { toolResult } from './tool-results.ts'
import { publicUrl } from '../http/request-target.ts'
import { createTools, PAYMENT_ARGUMENT, type Tool } from './tools.ts'

export interface McpParts {
  readonly editions: CurrentEdition
  readonly serve: Serve
  readonly baseUrl: string
  /** Where payments are taken. */
  readonly accounts: Recipients
  readonly log: Logger
  /** Calls back after each swap of the edition; returns the way to stop. */
  readonly onEdition: (listener: (edition: Edition) => void) => () => void
}

export interface McpHandler {
  /** Answers one POST (messages) or GET (the standing stream of notifications). */
  handle(request: IncomingMessage, response: ServerResponse): Promise<void>
  /** Ends the standing streams. */
  close(): void
}

interface Exchange {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  /** Aborts when the caller is gone. */
  readonly signal: AbortSignal
}

/** A standing stream costs a socket each; beyond this a caller is asked to come back. */
const MAX_STREAMS = 1000
const META_PAYMENT = 'x402/payment'

/** Creates the MCP endpoint. Each request is served by the edition current when it arrives. */
export function createMcp({ editions, serve, baseUrl, accounts, log, onEdition }: McpParts): McpHandler {
  const toolsets = new WeakMap<Catalog, ReadonlyMap<string, Tool>>()
  const standing = new Set<Server>()
  const stopListening = onEdition(() => {
    for (const server of standing)
      server.sendToolListChanged().catch((error: unknown) => log.debug({ err: error }, 'a notification was not sent'))
  })

  function toolsOf(catalog: Catalog): ReadonlyMap<string, Tool> {
    const known = toolsets.get(catalog)
    if (known) return known
    const tools = createTools(catalog, accounts)
    toolsets.set(catalog, tools)
    return tools
  }

  function createServer(edition: Edition, request: IncomingMessage, response: ServerResponse): Server {
    const { service } = edition.catalog
    const tools = toolsOf(edition.catalog)
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
      if (!tool) throw new McpError(ErrorCode.InvalidParams, `Unknown tool ${params.name}; tools/list names all.`)
      return call(edition, tool, params, { request, response, signal })
    })
    return server
  }

  async function call(
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
      url: publicUrl(baseUrl, tool.addressOf(input)),
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

  async function post(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const edition = editions.current
    const limit = messageLimit(toolsOf(edition.catalog))
    let message: unknown
    try {
      message = parseJson(await readBytes(request, limit))
    } catch (error) {
      if (!(error instanceof ServiceError) || error.code !== 'validation_failed') throw error
      refuse(response, 400, ErrorCode.ParseError, error.message)
      return
    }
    const server = createServer(edition, request, response)
    const transport = new StreamableHTTPServerTransport({ enableJsonResponse: true })
    response.once('close', () => void server.close())
    await server.connect(transport)
    await transport.handleRequest(request, response, message)
  }

  async function stream(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (standing.size >= MAX_STREAMS)
      throw new ServiceError('rate_limited', 'Too many open streams.', { headers: { 'retry-after': '60' } })
    const server = createServer(editions.current, request, response)
    const transport = new StreamableHTTPServerTransport()
    response.once('close', () => {
      standing.delete(server)
      void server.close()
    })
    await server.connect(transport)
    standing.add(server)
    await transport.handleRequest(request, response)
  }

  return {
    async handle(request, response) {
      const foreign = foreignCaller(request.headers, baseUrl)
      if (foreign !== null) refuse(response, 403, ErrorCode.InvalidRequest, foreign)
      else if (request.method === 'POST') await post(request, response)
      else await stream(request, response)
    },
    close() {
      stopListening()
      for (const server of standing) void server.close()
      standing.clear()
    },
  }
}

/** Every payment presented with the call, wherever it was put; `serve` refuses two different ones. */
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

/** Room for the largest tool's body as an escaped JSON string, and for the envelope around it. */
function messageLimit(tools: ReadonlyMap<string, Tool>): number {
  const largest = Math.max(0, ...[...tools.values()].map(({ operation }) => operation.maxBytes))
  return Math.ceil(largest * 1.25) + 65_536
}

function instructionsOf({ service }: Catalog): string {
  return (
    `${service.summary} Free tools need nothing. A paid tool called without payment answers isError with x402 ` +
    `requirements; sign one and call again with ${PAYMENT_ARGUMENT} (base64) or _meta["${META_PAYMENT}"].`
  )
}

/** A JSON-RPC error without an id: the message was not understood, or not looked at. */
function refuse(response: ServerResponse, status: number, code: ErrorCode, message: string): void {
  const body = JSON.stringify({ jsonrpc: '2.0', error: { code, message }, id: null })
  response.writeHead(status, { 'content-type': 'application/json; charset=utf-8' }).end(body)
}

const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/

/** Null where Host and Origin are ours, loopback or absent (Origin); else a sentence that says which is foreign. */
function foreignCaller({ host, origin }: IncomingHttpHeaders, baseUrl: string): string | null {
  const own = new URL(baseUrl)
  const named = parse(`http://${host ?? ''}`)
  if (named === null || (host?.toLowerCase() !== own.host && !LOOPBACK.test(named.hostname)))
    return `The Host header is not ${own.host}.`
  if (origin === undefined || origin === own.origin) return null
  const from = parse(origin)
  return from !== null && LOOPBACK.test(from.hostname) ? null : `Web pages of ${origin} may not use this endpoint.`
}

function parse(text: string): URL | null {
  return URL.canParse(text) ? new URL(text) : null
}
