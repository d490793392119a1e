/** The HTTP transport: one request in, one CallRequest to `serve`, one Answer out. */
import { randomUUID } from 'node:crypto'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { join } from 'node:path'
import compression from 'compression'
import express, { type ErrorRequestHandler, type Request, type RequestHandler, type Response } from 'express'
import { errorAnswer } from '../calls/answers.ts'
import type { Serve } from '../calls/serve.ts'
import type { Config } from '../config/config.ts'
import type { BoundOperation, CurrentEdition, Edition } from '../editions/edition.ts'
import type { UpstreamResponse } from '../editions/upstream-request.ts'
import { ServiceError } from '../errors.ts'
import type { Network } from '../config/networks.ts'
import type { Logger } from '../plugin/plugin.ts'
import { createHeaders, optionsHeaders } from './headers.ts'
import { createLimiter, type Limit } from './rate-limit.ts'
import { createUpstreamProxy } from '../editions/upstream-proxy.ts'
import type { Render } from './render.ts'
import { callRequest, clientOf, headerToken, wantsPage, watchCaller } from './request.ts'
import { createResponder, type Exchange } from './respond.ts'
import { createRoutes } from './routes.ts'
import { createServer } from './server.ts'
import { sendEvents } from './event-stream.ts'
import { parseTarget, type Target } from './request-target.ts'

export interface HttpParts {
  readonly editions: CurrentEdition
  readonly serve: Serve
  readonly config: Pick<Config, 'baseUrl' | 'viewDir' | 'trustedProxies'>
  readonly network: Network
  readonly log: Logger
  readonly render: Render
  readonly mcp: { handle(request: IncomingMessage, response: ServerResponse): Promise<void> }
  readonly limit?: Limit
  /** How many event streams may be open at once; a stream costs a socket for as long as it lasts. */
  readonly maxStreams?: number
  /** Answers /operator and /metrics; absent or null: they do not exist. */
  readonly operator?: ((request: Request, response: Response, visit: OperatorVisit) => Promise<void>) | null
}

interface OperatorVisit {
  readonly id: string
  readonly edition: Edition
  readonly path: string
}

const MCP_METHODS = ['GET', 'POST']
const ASSET_METHODS = ['GET', 'HEAD']
const MAX_STREAMS = 2000
const NOWHERE: Target = { path: '/', search: '' }

interface Visit {
  readonly id: string
  readonly edition: Edition
  readonly target: Target
}

const visitOf = (response: Response): Visit => response.locals['visit'] as Visit

/** Creates the server. `close()` stops accepting, ends event streams, and lets running calls finish. */
export function createHttp(parts: HttpParts): Server {
  const { editions, serve, config, network, log, render, mcp, limit, operator, maxStreams = MAX_STREAMS } = parts
  const { baseUrl, viewDir, trustedProxies } = config
  const closing = new AbortController()
  const headers = createHeaders(baseUrl)
  const respond = createResponder({ headers, render, log, closing: closing.signal })
  const admit = createLimiter(limit)
  const routers = new WeakMap<Edition, RequestHandler>()
  let streams = 0
  const proxy = createUpstreamProxy()
  const app = express()
  app.disable('x-powered-by').disable('etag').enable('strict routing').enable('case sensitive routing')
  app.set('query parser', false).set('trust proxy', ['loopback', 'linklocal', 'uniquelocal', ...trustedProxies])

  function exchangeOf(request: Request, response: Response, bound?: BoundOperation): Exchange {
    const { id, edition, target } = visitOf(response)
    const operation = bound?.operation ?? null
    const page = { catalog: edition.catalog, network, baseUrl, path: target.path }
    return { request, response, operation, ...page, callId: id, browser: wantsPage(request) }
  }

  async function onOperation(bound: BoundOperation, request: Request, response: Response): Promise<void> {
    const { id, edition, target } = visitOf(response)
    const { operation } = bound
    response.locals['route'] = operation.route
    const caller = watchCaller(response)
    const carrier = bound.isUpstream ? proxy : null
    const call = callRequest({
      request,
      response,
      operation,
      target,
      baseUrl,
      id,
      signal: caller.signal,
      proxy: carrier,
    })
    const answer = await serve(edition, bound, call)
    if (answer.events && streams >= maxStreams)
      throw new ServiceError('rate_limited', 'Too many open streams.', { headers: { 'retry-after': '60' } })
    respond(exchangeOf(request, response, bound), answer)
    if (answer.stream) await passOn(answer.stream, request, response)
    if (!answer.events) return
    const signal = AbortSignal.any([caller.signal, closing.signal])
    const isCurrent = (): boolean => request.method !== 'HEAD' && editions.current === edition
    streams += 1
    // However the stream ends, the source is told: it may be waiting for an event that never comes.
    await sendEvents(response, answer.events, { signal, isCurrent }).finally(() => {
      streams -= 1
      caller.abort()
    })
  }

  function routerOf(edition: Edition): RequestHandler {
    const known = routers.get(edition)
    if (known) return known
    const router = createRoutes(edition, onOperation, otherwise)
    routers.set(edition, router)
    return router
  }

  function answerOptions(response: Response, methods: readonly string[]): void {
    const { id } = visitOf(response)
    response.writeHead(204, { ...headers.data, ...optionsHeaders([...methods, 'OPTIONS']), 'x-call-id': id }).end()
  }

  /** OPTIONS, an unknown path, or a method the path does not have. */
  function otherwise(request: Request, response: Response, methods: readonly string[]): void {
    if (request.method === 'OPTIONS') return answerOptions(response, methods)
    if (methods.length === 0) throw new ServiceError('not_found')
    const allow = [...methods, 'OPTIONS'].join(', ')
    const message = `${request.method} is not possible here; use ${methods.join(' or ')}.`
    throw new ServiceError('method_not_allowed', message, { headers: { allow } })
  }

  app.use(async (request, response, next) => {
    const target = parseTarget(request.url)
    response.locals['visit'] = {
      id: randomUUID(),
      edition: editions.current,
      target: target ?? NOWHERE,
    } satisfies Visit
    logWhenDone(request, response)
    await admit(clientOf(request), headerToken(request.headers))
    if (target) request.url = target.path + target.search
    else if (request.url === '*' && request.method === 'OPTIONS')
      return answerOptions(response, ['GET', 'HEAD', 'POST'])
    else throw new ServiceError('not_found')
    next()
  })

  app.all('/mcp', async (request, response) => {
    response.locals['route'] = `${request.method} /mcp`
    if (!MCP_METHODS.includes(request.method)) return otherwise(request, response, MCP_METHODS)
    setHeaders(response, { ...headers.data, 'x-call-id': visitOf(response).id, 'cache-control': 'no-store' })
    await mcp.handle(request, response)
  })

  if (operator)
    app.all(['/metrics', '/operator', '/operator/*rest'], async (request, response) => {
      const { id, edition, target } = visitOf(response)
      response.locals['route'] = `${request.method} ${target.path === '/metrics' ? '/metrics' : '/operator'}`
      await operator(request, response, { id, edition, path: target.path })
    })

  app.use('/assets', (request, response, next) => {
    response.locals['route'] = 'GET /assets/*'
    if (!ASSET_METHODS.includes(request.method)) return otherwise(request, response, ASSET_METHODS)
    setHeaders(response, { ...headers.data, 'x-call-id': visitOf(response).id })
    next()
  })
  app.use(
    '/assets',
    compression(),
    express.static(join(viewDir, 'assets'), { index: false, redirect: false, maxAge: '1h' }),
  )

  app.use((request, response, next) => routerOf(visitOf(response).edition)(request, response, next))

  const onError: ErrorRequestHandler = (error: unknown, request, response, _next) => {
    const { id } = visitOf(response)
    const answer = errorAnswer(error, id)
    if (!(error instanceof ServiceError)) log.error({ call: id, err: error }, 'a request failed')
    if (response.headersSent) response.destroy()
    else respond(exchangeOf(request, response), answer)
  }
  app.use(onError)

  /** One line per request: what was asked and how it ended, never what was sent. */
  function logWhenDone(request: Request, response: Response): void {
    const began = performance.now()
    const { method } = request
    response.once('close', () => {
      const { visit, route } = response.locals as { visit: Visit; route?: string }
      const ms = Math.round((performance.now() - began) * 10) / 10
      const gone = response.writableFinished ? {} : { gone: true }
      log.info({ call: visit.id, method, route: route ?? null, status: response.statusCode, ms, ...gone }, 'request')
      if (closing.signal.aborted) setImmediate(() => server.closeIdleConnections())
    })
  }

  const server = createServer(app, closing)
  server.once('close', () => proxy.close())
  return server
}

async function passOn(stream: UpstreamResponse, request: Request, response: Response): Promise<void> {
  if (request.method !== 'HEAD') return stream.pipe(response)
  stream.discard()
  response.end()
}

function setHeaders(response: Response, headers: Readonly<Record<string, string>>): void {
  for (const [name, value] of Object.entries(headers)) response.setHeader(name, value)
}
