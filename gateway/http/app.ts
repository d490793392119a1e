/** The HTTP transport: turns each request into a CallRequest for `serve`, and sends the answer. */
import { setMaxListeners } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { join } from 'node:path'
import compression from 'compression'
import express, { type Express, type Request, type RequestHandler, type Response } from 'express'
import { andThen, type Awaitable } from '../awaitable.ts'
import { errorAnswer } from '../calls/answers.ts'
import type { Answer } from '../calls/request-and-answer.ts'
import type { ReadLargeBody } from '../calls/large-bodies.ts'
import type { Serve } from '../calls/serve.ts'
import type { Config } from '../config/config.ts'
import type { Network } from '../config/networks.ts'
import type { BoundOperation, CurrentEdition, Edition } from '../editions/edition.ts'
import { createUpstreamProxy, type UpstreamProxy } from '../editions/upstream-proxy.ts'
import { ServiceError } from '../errors.ts'
import type { Logger } from '../plugin/plugin.ts'
import type { CallerAddresses } from './caller-address.ts'
import type { NameClient } from './client-names.ts'
import type { BodyStorages } from './body-storage.ts'
import type { ConnectionOptions } from './connections.ts'
import { sendEvents } from './event-stream.ts'
import { createExactRoutes, type ExactRoutes, type Handlers, type UnpaidCalls } from './exact-routes.ts'
import { createHeaders, type HeaderSets, optionsHeaders } from './headers.ts'
import { createRequestLog } from './request-log.ts'
import type { Limits } from './rate-limit.ts'
import type { OperatorConsole } from './operator-console.ts'
import type { Render } from './render.ts'
import { beginVisit, callRequest, headerToken, HttpCaller, type Visit, visitOf, wantsPage } from './request.ts'
import { parseTarget, type Target } from './request-target.ts'
import { type Exchange, respond } from './respond.ts'
import { createRoutes } from './routes.ts'
import { type ClosingServer, createServer } from './server.ts'
import { StreamPlaces } from './stream-places.ts'

export interface HttpParts {
  readonly editions: CurrentEdition
  readonly serve: Serve
  /** Answers unpaid calls before the router. If absent, `serve` answers them too. */
  readonly unpaid?: UnpaidCalls
  readonly config: Pick<Config, 'baseUrl' | 'viewDir'>
  /** Finds the callers of requests. */
  readonly callers: CallerAddresses
  readonly nameClient: NameClient
  readonly network: Network
  readonly log: Logger
  readonly render: Render
  readonly mcp: { handle(request: IncomingMessage, response: ServerResponse): Promise<void> }
  /** Reads large bodies. If absent, they are parsed on the event loop. */
  readonly readLarge?: ReadLargeBody
  /** Where request bodies are kept. */
  readonly bodies?: BodyStorages
  readonly limits: Limits
  /** How long a connection may wait for its caller. */
  readonly restTimes?: Omit<ConnectionOptions, 'maxBodyBytes'>
  /** How many event streams may be open at once. Default: 2,000. */
  readonly maxStreams?: number
  /** Serves /operator and /metrics. If absent or null, these paths answer 404. */
  readonly operator?: OperatorConsole | null
}

const MAX_STREAMS = 2_000
const MCP_METHODS = ['GET', 'POST']
const ASSETS = 'GET /assets/*'
const ASSET_METHODS = ['GET', 'HEAD']
/** Stands in for a request target that could not be parsed. */
const ROOT_TARGET: Target = { path: '/', search: '' }

/** What every handler needs: the parts, and what the transport keeps between requests. */
interface App extends HttpParts {
  readonly headers: HeaderSets
  /** Aborts when the server begins to close. */
  readonly closing: AbortController
  readonly logVisit: (visit: Visit) => void
  readonly proxy: UpstreamProxy
  readonly routers: WeakMap<Edition, RequestHandler>
  readonly streams: StreamPlaces
}

/** Creates the server. Its `close()` stops accepting connections, ends event streams and lets running calls finish. */
export function createHttpServer(parts: HttpParts): ClosingServer {
  const closing = new AbortController()
  // Every open event stream listens to it. Node would take that for a leak and warn.
  setMaxListeners(0, closing.signal)
  const app: App = {
    ...parts,
    headers: createHeaders(parts.config.baseUrl),
    closing,
    logVisit: createRequestLog(parts.log),
    proxy: createUpstreamProxy(),
    routers: new WeakMap(),
    streams: new StreamPlaces('event', parts.maxStreams ?? MAX_STREAMS),
  }
  const framework = createExpress()
  const handlers: Handlers = {
    endpoints: new Map([['POST /mcp', (visit) => answerMcp(app, visit)]]),
    handle: (visit, bound) => handleOperation(app, visit, bound),
    repeat: (visit, bound, answer) => respond(app, exchangeOf(app, visit, bound), answer),
    fail: (visit, error) => answerFailure(app, visit, error),
  }
  const exact = createExactRoutes({ ...app, baseUrl: parts.config.baseUrl }, handlers, framework)
  const server = createServer(framework, {
    listener: exact.listener,
    closing,
    ...parts.restTimes,
    maxBodyBytes: () => maxBodyBytes(parts.editions.current),
    countChunks: (request) => parts.limits.chunks(parts.callers.of(request), headerToken(request.headers)),
  })
  addHandlers(framework, app, exact)
  server.once('close', () => app.proxy.close())
  return server
}

/** The size of the largest request body that an edition accepts. */
function maxBodyBytes({ catalog }: Edition): number {
  let most = 0
  for (const { maxBytes } of catalog.operations.values()) most = Math.max(most, maxBytes)
  return most
}

function createExpress(): Express {
  const framework = express()
  framework.disable('x-powered-by').disable('etag').enable('strict routing').enable('case sensitive routing')
  framework.set('query parser', false)
  return framework
}

/** Adds the handlers in the order in which a request meets them. */
function addHandlers(framework: Express, app: App, exact: ExactRoutes): void {
  const { operator, config } = app
  framework.use((request, response, next) => admitVisit(app, request, response, next))
  framework.all('/mcp', (request, response) => handleMcp(app, request, response))
  if (operator)
    framework.all(['/metrics', '/operator', '/operator/*rest'], async (request, response) => {
      const visit = visitOf(response)
      admit(app, 'free', visit)
      const { id, edition, target, from } = visit
      visit.route = `${request.method} ${target.path === '/metrics' ? '/metrics' : '/operator'}`
      await operator(request, response, { id, edition, path: target.path, from })
    })
  framework.use('/assets', (request, response, next) => beginAsset(app, request, response, next))
  // Assets are small, and a range of a compressed one would be cut from the wrong bytes.
  const assets = { index: false, redirect: false, maxAge: '1h', acceptRanges: false } as const
  framework.use('/assets', compression(), express.static(join(config.viewDir, 'assets'), assets))
  framework.use((request, response, next) => routerOf(app, exact, visitOf(response).edition)(request, response, next))
  framework.use((error: unknown, _request: Request, response: Response, _next: unknown) =>
    answerFailure(app, visitOf(response), error),
  )
}

function answerFailure(app: App, visit: Visit, error: unknown): void {
  const answer = errorAnswer(error, visit.id)
  if (!(error instanceof ServiceError)) app.log.error({ call: visit.id, err: error }, 'a request failed')
  if (visit.response.headersSent) visit.response.destroy()
  else respond(app, exchangeOf(app, visit), answer)
}

/** Counts a request. Throws RateLimited if its caller is over the limit. */
function admit({ limits }: App, kind: 'free' | 'sales', { from, request }: Visit): void {
  limits[kind](from, headerToken(request.headers))
}

/** Gives the request an id and an edition, and rejects malformed targets. Who answers it counts it. */
function admitVisit(app: App, request: Request, response: Response, next: () => void): void {
  const target = parseTarget(request.url)
  const edition = app.editions.current
  const from = app.callers.of(request)
  const visit = beginVisit(request, response, { edition, target: target ?? ROOT_TARGET, from, route: null })
  app.logVisit(visit)
  if (!target) admit(app, 'free', visit)
  if (target) request.url = target.path + target.search
  else if (request.url === '*' && request.method === 'OPTIONS')
    return answerOptions(app, response, ['GET', 'HEAD', 'POST'])
  else throw new ServiceError('not_found')
  next()
}

async function handleMcp(app: App, request: Request, response: Response): Promise<void> {
  visitOf(response).route = `${request.method} /mcp`
  if (!MCP_METHODS.includes(request.method)) return answerUnrouted(app, request, response, MCP_METHODS)
  await answerMcp(app, visitOf(response))
}

async function answerMcp({ headers, mcp }: App, { id, request, response }: Visit): Promise<void> {
  setHeaders(response, { ...headers.data, 'x-call-id': id, 'cache-control': 'no-store' })
  await mcp.handle(request, response)
}

function beginAsset(app: App, request: Request, response: Response, next: () => void): void {
  visitOf(response).route = ASSETS
  admit(app, 'free', visitOf(response))
  if (!ASSET_METHODS.includes(request.method)) return answerUnrouted(app, request, response, ASSET_METHODS)
  setHeaders(response, { ...app.headers.data, 'x-call-id': visitOf(response).id })
  // As on every other route. Express would answer them with an error of its own.
  for (const precondition of ['if-match', 'if-unmodified-since']) delete request.headers[precondition]
  next()
}

/** The routes of an edition, built on its first request. */
function routerOf(app: App, exact: ExactRoutes, edition: Edition): RequestHandler {
  const known = app.routers.get(edition)
  if (known) return known
  const router = createRoutes(
    edition,
    async (bound, _request, response) => {
      const visit = visitOf(response)
      visit.route = bound.operation.route
      admit(app, bound.operation.price === null ? 'free' : 'sales', visit)
      exact.add(visit, bound)
      await handleOperation(app, visit, bound)
    },
    (request, response, methods) => answerUnrouted(app, request, response, methods),
  )
  app.routers.set(edition, router)
  return router
}

/** Serves an operation, sends the answer to its end, and returns it. */
function handleOperation(app: App, visit: Visit, bound: BoundOperation): Awaitable<Answer> {
  const { baseUrl } = app.config
  const { proxy, streams, readLarge, bodies } = app
  const caller = new HttpCaller(visit.response, app.nameClient)
  const call = callRequest({ visit, bound, caller, baseUrl, proxy, streams, readLarge, bodies })
  return andThen(app.serve(visit.edition, bound, call), (answer) => {
    if (answer.events || answer.stream) return sendStream(app, visit, bound, caller, answer)
    respond(app, exchangeOf(app, visit, bound), answer)
    return answer
  })
}

/** Sends an answer whose body is a stream. Resolves when the stream has ended. */
async function sendStream(
  app: App,
  visit: Visit,
  bound: BoundOperation,
  caller: HttpCaller,
  answer: Answer,
): Promise<Answer> {
  const { edition, request, response } = visit
  respond(app, exchangeOf(app, visit, bound), answer)
  if (answer.stream && request.method !== 'HEAD') await answer.stream.pipe(response)
  else if (answer.stream) {
    answer.stream.discard()
    response.end()
  }
  if (!answer.events) return answer
  const isCurrent = (): boolean => request.method !== 'HEAD' && app.editions.current === edition
  const { signal } = caller
  const leave = (): void => caller.leave()
  // Not AbortSignal.any: Node remembers in a signal whatever was made of it, and that of the server lives for weeks.
  const closing = app.closing.signal
  closing.addEventListener('abort', leave, { once: true })
  if (closing.aborted) leave()
  try {
    await sendEvents(response, answer.events, { signal, isCurrent })
  } finally {
    closing.removeEventListener('abort', leave)
    // However the stream ends, the source has to stop: it may be waiting for an event that never comes.
    leave()
  }
  return answer
}

function exchangeOf(app: App, visit: Visit, bound?: BoundOperation): Exchange {
  const { request, response, id, edition, target } = visit
  return {
    request,
    response,
    operation: bound?.operation ?? null,
    catalog: edition.catalog,
    network: app.network,
    baseUrl: app.config.baseUrl,
    path: target.path,
    callId: id,
    browser: wantsPage(request),
  }
}

/** Answers OPTIONS, an unknown path (404), or a method that the path does not support (405). */
function answerUnrouted(app: App, request: Request, response: Response, methods: readonly string[]): void {
  const visit = visitOf(response)
  // An asset that does not exist was counted before it was looked for.
  if (visit.route !== ASSETS) admit(app, 'free', visit)
  if (request.method === 'OPTIONS') return answerOptions(app, response, methods)
  if (methods.length === 0) throw new ServiceError('not_found')
  const allow = [...methods, 'OPTIONS'].join(', ')
  const message = `${request.method} is not supported here; use ${methods.join(' or ')}.`
  throw new ServiceError('method_not_allowed', message, { headers: { allow } })
}

function answerOptions({ headers }: App, response: Response, methods: readonly string[]): void {
  const { id } = visitOf(response)
  response.writeHead(204, { ...headers.data, ...optionsHeaders([...methods, 'OPTIONS']), 'x-call-id': id }).end()
}

function setHeaders(response: Response, headers: Readonly<Record<string, string>>): void {
  for (const [name, value] of Object.entries(headers)) response.setHeader(name, value)
}
