/**
 * Serves the operator console: /operator as pages and as JSON, and /metrics. It is not a product and appears in no
 * document. It exists only if there is an operator token: OPERATOR_TOKEN, or the one of the sandbox.
 */
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { Request, Response } from 'express'
import type { Metrics } from '../accounting/metrics.ts'
import type { Action, Download, Fields, OperatorScreens, Screen } from '../accounting/operator-screens.ts'
import type { Edition } from '../products/edition.ts'
import { errorBody, ServiceError } from '../errors.ts'
import type { Logger } from '../plugin/plugin.ts'
import type { CallerAddress } from './caller-address.ts'
import { createHeaders } from './headers.ts'
import type { OperatorSessions } from './operator-session.ts'
import type { Render } from './render.ts'
import { readBody } from './request-body.ts'
import { wantsPage } from './request.ts'

export interface ConsoleParts extends OperatorScreens {
  readonly sessions: OperatorSessions
  readonly metrics: Pick<Metrics, 'text' | 'contentType'>
  readonly render: Render
  readonly baseUrl: string
  readonly log: Logger
}

export interface Visit {
  readonly id: string
  readonly edition: Edition
  readonly path: string
  /** Where the request comes from. */
  readonly from: CallerAddress
}

/** Answers one request to /metrics or below /operator. Rejects with ServiceError if the path does not exist. */
export type OperatorConsole = (request: Request, response: Response, visit: Visit) => Promise<void>

const LOGIN = '/operator/login'
const LOGOUT = '/operator/logout'
const HTML = 'text/html; charset=utf-8'
const JSON_TYPE = 'application/json; charset=utf-8'
const BODY_RULES = { bodyMedia: ['application/x-www-form-urlencoded', 'application/json'], maxBytes: 10_000 }

interface ConsoleAnswer {
  readonly status?: number
  readonly type: string
  readonly body: string
  readonly headers?: Readonly<Record<string, string>>
}

/** One request, with what is needed to answer it. */
interface Exchange extends ConsoleParts, Visit {
  readonly fixedHeaders: Readonly<Record<string, string>>
  readonly request: Request
  readonly response: Response
}

/** Creates the console over the given screens, downloads and actions. */
export function createOperatorConsole(parts: ConsoleParts): OperatorConsole {
  const fixedHeaders = consoleHeaders(parts.baseUrl)
  return async (request, response, visit) => {
    const exchange: Exchange = { ...parts, ...visit, fixedHeaders, request, response }
    try {
      await answer(exchange)
    } catch (error) {
      if (!(error instanceof ServiceError) || ![401, 429].includes(error.status)) throw error
      sendRefusal(exchange, error)
    }
  }
}

/** Headers of every console answer: those of a page, but unreadable for other sites and never cached. */
function consoleHeaders(baseUrl: string): Readonly<Record<string, string>> {
  const { page } = createHeaders(baseUrl)
  const { 'access-control-allow-origin': _origin, 'access-control-expose-headers': _exposed, ...headers } = page
  // Without a referrer, browsers do not send Origin with a form either.
  return { ...headers, 'referrer-policy': 'same-origin', 'x-robots-tag': 'noindex', 'cache-control': 'no-store' }
}

async function answer(exchange: Exchange): Promise<void> {
  const { request, path, edition, sessions, metrics, baseUrl, from } = exchange
  const { method } = request
  if (path === LOGIN && ['GET', 'HEAD', 'POST'].includes(method)) return logIn(exchange)
  if (sessions.authenticate(request.headers, from) === null) throw new ServiceError('unauthorized')
  const isRead = method === 'GET' || method === 'HEAD'
  if (path === '/metrics' && isRead)
    return sendAnswer(exchange, { type: metrics.contentType, body: await metrics.text() })
  const query = new URL(request.url, baseUrl).searchParams
  const screen = isRead ? exchange.screens[path] : undefined
  if (screen) return sendScreen(exchange, screen, await screen.data(edition, query))
  const download = isRead ? exchange.downloads[path] : undefined
  if (download) return sendDownload(exchange, download(query))
  if (path === LOGOUT && method === 'POST') return redirect(exchange, LOGIN, await sessions.close(request.headers))
  const action = method === 'POST' ? exchange.actions[path] : undefined
  if (!action) throw new ServiceError('not_found', 'The operator console has no such page.')
  await runAction(exchange, action)
}

async function logIn(exchange: Exchange): Promise<void> {
  const { request, sessions, log, id, from } = exchange
  if (request.method !== 'POST') {
    if (sessions.authenticate(request.headers, from) !== null) return redirect(exchange, '/operator')
    return sendAnswer(exchange, { type: HTML, body: renderPage(exchange, 'login', { value: { problem: null } }) })
  }
  const { token } = await readFields(request)
  if (typeof token === 'string' && sessions.isToken(token.trim(), from))
    return redirect(exchange, '/operator', sessions.open())
  log.warn({ call: id }, 'a login to the operator console was refused')
  throw new ServiceError('unauthorized', 'This is not the operator token.')
}

async function runAction(exchange: Exchange, action: Action): Promise<void> {
  const { request, path, edition, sessions, log, id, from } = exchange
  const fields = await readFields(request)
  const { csrf_token: csrfToken } = fields
  const isForm = sessions.authenticate(request.headers, from) === 'cookie'
  if (isForm && !sessions.isOwnForm(request.headers, typeof csrfToken === 'string' ? csrfToken : ''))
    throw new ServiceError('unauthorized', 'This form did not come from the console, or its session has ended.')
  log.info({ call: id, action: path }, 'an operator acted')
  const value = await action.run(fields, edition)
  if (action.back !== undefined && wantsPage(request)) return redirect(exchange, action.back)
  if (action.screen) return sendScreen(exchange, action.screen, value)
  sendAnswer(exchange, { type: JSON_TYPE, body: JSON.stringify(value) })
}

async function readFields(request: Request): Promise<Fields> {
  const body = await readBody(request, BODY_RULES)
  return typeof body === 'object' && body !== null ? (body as Fields) : {}
}

function sendScreen(exchange: Exchange, screen: Screen, value: object): void {
  if (!wantsPage(exchange.request)) return sendAnswer(exchange, { type: JSON_TYPE, body: JSON.stringify(value) })
  sendAnswer(exchange, { type: HTML, body: renderPage(exchange, screen.view, { value, title: screen.label }) })
}

async function sendDownload(exchange: Exchange, { type, name, text }: Download): Promise<void> {
  const { request, response, fixedHeaders, id } = exchange
  const disposition = `attachment; filename="${name}"`
  response.writeHead(200, {
    ...fixedHeaders,
    'content-type': type,
    'content-disposition': disposition,
    'x-call-id': id,
  })
  if (request.method === 'HEAD') response.end()
  else await pipeline(Readable.from(text), response)
}

/** Answers 401, or 429 to a caller who has to wait: the login page to a browser, JSON to any other caller. */
function sendRefusal(exchange: Exchange, error: ServiceError): void {
  const { request, path, id } = exchange
  const { status, headers: own } = error
  if (!wantsPage(request)) {
    const headers = status === 401 ? { ...own, 'www-authenticate': 'Bearer realm="operator"' } : own
    const body = JSON.stringify({ ...errorBody(error), call_id: id })
    return sendAnswer(exchange, { status, type: JSON_TYPE, body, headers })
  }
  const problem = status === 429 || (path === LOGIN && request.method === 'POST') ? error.message : null
  sendAnswer(exchange, {
    status,
    type: HTML,
    body: renderPage(exchange, 'login', { value: { problem } }),
    headers: own,
  })
}

function redirect(exchange: Exchange, location: string, cookie?: string): void {
  const headers = { location, ...(cookie === undefined ? {} : { 'set-cookie': cookie }) }
  sendAnswer(exchange, { status: 303, type: HTML, body: '', headers })
}

function sendAnswer({ request, response, fixedHeaders, id }: Exchange, answer: ConsoleAnswer): void {
  const { status = 200, type, body, headers = {} } = answer
  const content = { 'content-type': type, 'content-length': Buffer.byteLength(body) }
  response.writeHead(status, { ...fixedHeaders, ...content, 'x-call-id': id, ...headers })
  response.end(request.method === 'HEAD' ? undefined : body)
}

function renderPage(exchange: Exchange, view: string, locals: object): string {
  const { edition, path, id, screens, sessions, request, render, baseUrl } = exchange
  const { catalog } = edition
  const menu = Object.entries(screens).map(([href, { label }]) => ({ href, label }))
  const csrfToken = sessions.csrfToken(request.headers)
  const page = { catalog, service: catalog.service, base_url: baseUrl, path, call_id: id }
  return render(`operator/${view}`, { ...page, menu, csrfToken, ...locals })
}
