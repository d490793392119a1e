/** The HTTP transport: turns each request into a CallRequest for `serve`, and sends the answer. */
import { setMaxListeners } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { join } from 'node:path'
import compression from 'compression'
import express, { type Express, type Request, type Response } from 'express'
import { andThen, type Awaitable, isPromise } from '../awaitable.ts'
import { errorAnswer, isConstantAnswer } from '../calls/answers.ts'
import type { Answer } from '../calls/request-and-answer.ts'
import type { ReadLargeBody } from '../calls/large-bodies.ts'
import type { Serve } from '../calls/serve.ts'
import type { Config } from '../config/config.ts'
import type { Network } from '../config/networks.ts'
import type { BoundOperation, CurrentEdition, Edition } from '../products/edition.ts'
import { createUpstreamProxy, type UpstreamProxy } from '../products/upstream-proxy.ts'
import { MCP_PATHS } from '../documents/how-to-pay.ts'
import { ServiceError } from '../errors.ts'
import type { Catalog } from '../plugin/catalog.ts'
import type { Logger } from '../plugin/plugin.ts'
import type { TestWallet } from '../sandbox/test-wallet.ts'
import type { CallerAddresses } from './caller-address.ts'
import type { NameClient } from './client-names.ts'
import type { BodyStorages } from './body-storage.ts'
import type { ConnectionOptions } from './connections.ts'
import { sendEvents } from './event-stream.ts'
import { createHeaders, type HeaderSets, optionsHeaders } from './headers.ts'
import { type AnswerProbe, createProbes, type NotReady } from './probes.ts'
import { createRequestLog } from './request-log.ts'
import type { Limits } from './rate-limit.ts'
import type { OperatorConsole } from './operator-console.ts'
import type { Render } from './render.ts'
import { beginVisit, callRequest, headerToken, HttpCaller, type Visit, visitOf, wantsPage } from './request.ts'
import { hasBody } from './request-body.ts'
import { parseTarget, type Target } from './request-target.ts'
import { type Exchange, respond } from './respond.ts'
import { createRoutes, type Routes } from './routes.ts'
import { type ClosingServer, createServer } from './server.ts'
import { StreamPlaces } from './stream-places.ts'
import { answerTestWallet, TEST_WALLET } from './test-wallet.ts'
import { createUnpaidAnswers, isUnpaid, type UnpaidCalls } from './unpaid.ts'

export interface HttpParts {
  readonly editions: CurrentEdition
  readonly serve: Serve
  /** The 402s of unpaid calls. If absent, `serve` answers them too. */
  readonly unpaid?: UnpaidCalls
  readonly config: Pick<Config, 'baseUrl' | 'viewDirs'>
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
  /** What keeps the process from selling, for /readyz. If absent, nothing does. */
  readonly notReady?: NotReady
  /** The wallet that pages lend, at /sandbox/wallet. Null on real networks, where the path answers 404. */
  readonly testWallet?: TestWallet | null
  /** Serves /operator and /metrics. If absent or null, these paths answer 404. */
  readonly operator?: OperatorConsole | null
}

const MAX_STREAMS = 2_000
const MCP: ReadonlySet<string> = new Set(Object.values(MCP_PATHS))
const MCP_METHODS = ['GET', 'POST']
const ASSETS = 'GET /assets/*'
const ASSET_METHODS = ['GET', 'HEAD']
const ASSET = /^\/assets(?:\/|$)/
const OPERATOR = /^\/(?:metrics|operator(?:\/.*)?)$/
/** Stands in for a request target that could not be parsed. */
const ROOT_TARGET: Target = { path: '/', search: '' }

/** Context of every handler: the parts, and what the transport keeps between requests. */
interface App extends HttpParts {
  readonly headers: HeaderSets
  /** Aborts when the server begins to close. */
  readonly closing: AbortController
  readonly logVisit: (visit: Visit) => void
  readonly answerProbe: AnswerProbe
  readonly proxy: UpstreamProxy
  readonly routes: WeakMap<Edition, Routes>
  readonly streams: StreamPlaces
  /** Sends the 402 of an unpaid call; null if `serve` answers it. */
  readonly answerUnpaid: ReturnType<typeof createUnpaidAnswers> | null
  /** Answers of free operations that are the same for every call without input: documents, for example. */
  readonly constants: WeakMap<BoundOperation, Constant>
  /** Serves the assets. */
  readonly framework: Express
}

/** An answer that is the same while its catalog is. */
interface Constant {
  readonly catalog: Catalog
  readonly answer: Answer
}

/** Creates the server. Its `close()` stops accepting connections, ends event streams and lets running calls finish. */
export function createHttpServer(parts: HttpParts): ClosingServer {
  const closing = new AbortController()
  // Every open event stream listens to it. Node would take that for a leak and warn.
  setMaxListeners(0, closing.signal)
  const headers = createHeaders(parts.config.baseUrl)
  const framework = createExpress()
  const app: App = {
    ...parts,
    headers,
    closing,
    logVisit: createRequestLog(parts.log),
    answerProbe: createProbes(parts.notReady ?? (() => []), headers.data),
    proxy: createUpstreamProxy(),
    routes: new WeakMap(),
    streams: new StreamPlaces('event', parts.maxStreams ?? MAX_STREAMS),
    answerUnpaid: parts.unpaid ? createUnpaidAnswers(parts.unpaid, headers, parts.config.baseUrl) : null,
    constants: new WeakMap(),
    framework,
  }
  const server = createServer(framework, {
    listener: (request, response) => answerRequest(app, request, response),
    closing,
    ...parts.restTimes,
    maxBodyBytes: () => maxBodyBytes(parts.editions.current),
    countChunks: (request) => parts.limits.chunks(parts.callers.of(request), headerToken(request.headers)),
  })
  addAssets(app)
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

/** Lets Express serve the assets of pages. */
function addAssets(app: App): void {
  const { framework, config } = app
  // Assets are small, and a range of a compressed one would be cut from the wrong bytes.
  const assets = { index: false, redirect: false, acceptRanges: false } as const
  const folders = config.viewDirs.map((folder) => join(folder, 'assets'))
  framework.use('/assets', compression())
  // Those of the shop may be edited at any time.
  for (const own of folders.slice(0, -1)) framework.use('/assets', express.static(own, { ...assets, maxAge: 0 }))
  framework.use('/assets', express.static(folders.at(-1) as string, { ...assets, maxAge: '1h' }))
  framework.use((_request: Request, response: Response) => answerUnrouted(app, visitOf(response), []))
  framework.use((error: unknown, _request: Request, response: Response, _next: unknown) =>
    answerFailure(app, visitOf(response), error),
  )
}

/** Gives the request an id and an edition, and answers it. */
function answerRequest(app: App, request: Request, response: Response): void {
  const target = parseTarget(request.url)
  if (target && app.answerProbe(request.method, target.path, response)) return
  const edition = app.editions.current
  const from = app.callers.of(request)
  const visit = beginVisit(request, response, { edition, target: target ?? ROOT_TARGET, from, route: null })
  app.logVisit(visit)
  try {
    const answered = target ? answer(app, visit) : answerMalformed(app, visit)
    if (isPromise(answered)) answered.catch((error: unknown) => answerFailure(app, visit, error))
  } catch (error) {
    answerFailure(app, visit, error)
  }
}

/** Answers a visit where its path leads. Who answers it counts it. */
function answer(app: App, visit: Visit): Awaitable<unknown> {
  const { request, edition, target } = visit
  const { path } = target
  if (MCP.has(path)) return answerMcp(app, visit)
  if (app.operator && OPERATOR.test(path)) return answerOperator(app, app.operator, visit)
  if (ASSET.test(path)) return answerAsset(app, visit)
  if (app.testWallet && path === TEST_WALLET) return answerWallet(app, app.testWallet, visit)
  const found = routesOf(app, edition)(request.method, path)
  if (found.bound === null) return answerUnrouted(app, visit, found.methods)
  const { bound, params } = found
  const { operation } = bound
  visit.route = operation.route
  admit(app, operation.price === null ? 'free' : 'sales', visit)
  if (app.answerUnpaid && isUnpaid(request, operation) && !app.unpaid?.isPaused(operation))
    return app.answerUnpaid(visit, bound)
  request.params = params
  const isPlain =
    operation.form === null &&
    operation.rows === null &&
    path === operation.path &&
    target.search === '' &&
    !hasBody(request)
  if (operation.price !== null || !isPlain) return handleOperation(app, visit, bound)
  const known = app.constants.get(bound)
  const { catalog } = edition
  if (known?.catalog === catalog && isAvailable(bound)) return respond(app, exchangeOf(app, visit, bound), known.answer)
  return andThen(handleOperation(app, visit, bound), (answer) => {
    if (isConstantAnswer(answer)) app.constants.set(bound, { catalog, answer })
  })
}

function isAvailable(bound: BoundOperation): boolean {
  try {
    bound.assertAvailable()
    return true
  } catch {
    return false
  }
}

/** The routes of an edition, built on its first request. */
function routesOf({ routes }: App, edition: Edition): Routes {
  const known = routes.get(edition)
  if (known) return known
  const created = createRoutes(edition)
  routes.set(edition, created)
  return created
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

function answerMalformed(app: App, visit: Visit): void {
  admit(app, 'free', visit)
  const { url, method } = visit.request
  if (url !== '*' || method !== 'OPTIONS') throw new ServiceError('not_found')
  answerOptions(app, visit, ['GET', 'HEAD', 'POST'])
}

/** The endpoint counts its messages itself. */
async function answerMcp(app: App, visit: Visit): Promise<void> {
  const { id, request, response, target } = visit
  visit.route = `${request.method} ${target.path}`
  if (!MCP_METHODS.includes(request.method)) return answerUnrouted(app, visit, MCP_METHODS)
  setHeaders(response, { ...app.headers.data, 'x-call-id': id, 'cache-control': 'no-store' })
  await app.mcp.handle(request, response)
}

function answerOperator(app: App, operator: OperatorConsole, visit: Visit): Promise<void> {
  const { id, edition, request, response, target, from } = visit
  admit(app, 'free', visit)
  visit.route = `${request.method} ${target.path === '/metrics' ? '/metrics' : '/operator'}`
  return operator(request, response, { id, edition, path: target.path, from })
}

async function answerWallet(app: App, wallet: TestWallet, visit: Visit): Promise<void> {
  visit.route = `${visit.request.method} ${TEST_WALLET}`
  if (visit.request.method !== 'POST') return answerUnrouted(app, visit, ['POST'])
  admit(app, 'free', visit)
  await answerTestWallet(wallet, visit, app.headers.data)
}

function answerAsset(app: App, visit: Visit): void {
  const { id, request, response, target } = visit
  visit.route = ASSETS
  admit(app, 'free', visit)
  if (!ASSET_METHODS.includes(request.method)) return answerUnrouted(app, visit, ASSET_METHODS)
  setHeaders(response, { ...app.headers.data, 'x-call-id': id })
  // As on every other route. Express would answer them with an error of its own.
  for (const precondition of ['if-match', 'if-unmodified-since']) delete request.headers[precondition]
  request.url = target.path + target.search
  app.framework(request, response)
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
    search: target.search,
    callId: id,
    browser: wantsPage(request),
  }
}

/** Answers OPTIONS, an unknown path (404), or a method that the path does not support (405). */
function answerUnrouted(app: App, visit: Visit, methods: readonly string[]): void {
  const { request } = visit
  // An asset that does not exist was counted before it was looked for.
  if (visit.route !== ASSETS) admit(app, 'free', visit)
  if (request.method === 'OPTIONS') return answerOptions(app, visit, methods)
  if (methods.length === 0) throw new ServiceError('not_found')
  const allow = [...methods, 'OPTIONS'].join(', ')
  const message = `${request.method} is not supported here; use ${methods.join(' or ')}.`
  throw new ServiceError('method_not_allowed', message, { headers: { allow } })
}

function answerOptions({ headers }: App, { id, response }: Visit, methods: readonly string[]): void {
  response.writeHead(204, { ...headers.data, ...optionsHeaders([...methods, 'OPTIONS']), 'x-call-id': id }).end()
}

function setHeaders(response: Response, headers: Readonly<Record<string, string>>): void {
  for (const [name, value] of Object.entries(headers)) response.setHeader(name, value)
}
