/**
 * The operator's side: /operator as pages and as JSON, and /metrics. It is no product and stands in no document; where
 * no token is configured it does not exist.
 */
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { Request, Response } from 'express'
import type { Edition } from '../editions/edition.ts'
import { errorBody, ServiceError } from '../errors.ts'
import type { Metrics } from '../accounting/metrics.ts'
import type { Logger } from '../plugin/plugin.ts'
import { readBody } from './request-body.ts'
import { wantsPage } from './request.ts'
import type { HeaderSets } from './headers.ts'
import type { Render } from './render.ts'
import type { Action, Download, Fields, OperatorScreens, Screen } from '../accounting/operator-screens.ts'
import type { Access } from './operator-session.ts'

export interface ConsoleParts extends OperatorScreens {
  readonly access: Access
  readonly metrics: Pick<Metrics, 'text' | 'contentType'>
  readonly headers: HeaderSets
  readonly render: Render
  readonly baseUrl: string
  readonly log: Logger
}

export interface Visit {
  readonly id: string
  readonly edition: Edition
  readonly path: string
}

/** Answers one request below /operator, or to /metrics. Throws ServiceError where there is nothing at the path. */
export type Console = (request: Request, response: Response, visit: Visit) => Promise<void>

const LOGIN = '/operator/login'
const LOGOUT = '/operator/logout'
const HTML = 'text/html; charset=utf-8'
const JSON_TYPE = 'application/json; charset=utf-8'
const BODY = { bodyMedia: ['application/x-www-form-urlencoded', 'application/json'], maxBytes: 10_000 }

export function createConsole(parts: ConsoleParts): Console {
  const { access, screens, downloads, actions, metrics, render, baseUrl, log } = parts
  const { 'access-control-allow-origin': _any, 'access-control-expose-headers': _names, ...closed } = parts.headers.page
  const menu = Object.entries(screens).map(([href, { label }]) => ({ href, label }))
  // A browser that sends no referrer at all sends no Origin with a form either.
  const fixed = { ...closed, 'referrer-policy': 'same-origin', 'x-robots-tag': 'noindex', 'cache-control': 'no-store' }

  type Answer = { status?: number; type: string; body: string; headers?: Record<string, string> }

  function send(request: Request, response: Response, { id }: Visit, answer: Answer): void {
    const { status = 200, type, body, headers = {} } = answer
    const length = { 'content-type': type, 'content-length': Buffer.byteLength(body) }
    response.writeHead(status, { ...fixed, ...length, 'x-call-id': id, ...headers })
    response.end(request.method === 'HEAD' ? undefined : body)
  }

  function page(request: Request, { edition, path, id }: Visit, view: string, locals: object): string {
    const { catalog } = edition
    const word = access.formWord(request.headers)
    const place = { catalog, service: catalog.service, base_url: baseUrl, path, call_id: id }
    return render(`operator/${view}`, { ...place, menu, word, ...locals })
  }

  function refuse(request: Request, response: Response, visit: Visit, error: ServiceError): void {
    const headers = error.status === 401 ? { 'www-authenticate': 'Bearer realm="operator"' } : {}
    if (!wantsPage(request)) {
      const body = JSON.stringify({ ...errorBody(error), call_id: visit.id })
      return send(request, response, visit, { status: error.status, type: JSON_TYPE, body, headers })
    }
    const problem = visit.path === LOGIN && request.method === 'POST' ? error.message : null
    const body = page(request, visit, 'login', { value: { problem } })
    send(request, response, visit, { status: error.status, type: HTML, body })
  }

  function go(request: Request, response: Response, visit: Visit, location: string, cookie?: string): void {
    const headers = { location, ...(cookie === undefined ? {} : { 'set-cookie': cookie }) }
    send(request, response, visit, { status: 303, type: HTML, body: '', headers })
  }

  const bodyOf = async (request: Request): Promise<Fields> => {
    const body = await readBody(request, BODY)
    return typeof body === 'object' && body !== null ? (body as Fields) : {}
  }

  async function login(request: Request, response: Response, visit: Visit): Promise<void> {
    if (request.method !== 'POST') {
      if (access.of(request.headers) !== null) return go(request, response, visit, '/operator')
      const body = page(request, visit, 'login', { value: { problem: null } })
      return send(request, response, visit, { type: HTML, body })
    }
    const { token } = await bodyOf(request)
    if (typeof token === 'string' && access.isToken(token.trim()))
      return go(request, response, visit, '/operator', access.open())
    log.warn({ call: visit.id }, 'a login to the operator console was refused')
    refuse(request, response, visit, new ServiceError('unauthorized', 'This is not the operator token.'))
  }

  function show(request: Request, response: Response, visit: Visit, screen: Screen, value: object): void {
    const body = wantsPage(request)
      ? page(request, visit, screen.view, { value, title: screen.label })
      : JSON.stringify(value)
    send(request, response, visit, { type: wantsPage(request) ? HTML : JSON_TYPE, body })
  }

  async function download(request: Request, response: Response, { id }: Visit, { type, name, text }: Download) {
    const disposition = `attachment; filename="${name}"`
    response.writeHead(200, { ...fixed, 'content-type': type, 'content-disposition': disposition, 'x-call-id': id })
    if (request.method === 'HEAD') response.end()
    else await pipeline(Readable.from(text), response)
  }

  async function act(request: Request, response: Response, visit: Visit, action: Action): Promise<void> {
    const fields = await bodyOf(request)
    const isForm = access.of(request.headers) === 'cookie'
    const { word } = fields
    if (isForm && !access.isOwnForm(request.headers, typeof word === 'string' ? word : ''))
      throw new ServiceError('unauthorized', 'This form did not come from the console, or its session has ended.')
    log.info({ call: visit.id, action: visit.path }, 'an operator acted')
    const value = await action.run(fields, visit.edition)
    if (action.back !== undefined && wantsPage(request)) return go(request, response, visit, action.back)
    if (action.screen) return show(request, response, visit, action.screen, value)
    send(request, response, visit, { type: JSON_TYPE, body: JSON.stringify(value) })
  }

  async function answer(request: Request, response: Response, visit: Visit): Promise<void> {
    const { path } = visit
    const { method } = request
    if (path === LOGIN && ['GET', 'HEAD', 'POST'].includes(method)) return login(request, response, visit)
    if (access.of(request.headers) === null) throw new ServiceError('unauthorized')
    const isRead = method === 'GET' || method === 'HEAD'
    if (path === '/metrics' && isRead)
      return send(request, response, visit, { type: metrics.contentType, body: await metrics.text() })
    const query = new URL(request.url, baseUrl).searchParams
    const screen = isRead ? screens[path] : undefined
    if (screen) return show(request, response, visit, screen, await screen.data(visit.edition, query))
    const file = isRead ? downloads[path] : undefined
    if (file) return download(request, response, visit, file(query))
    if (path === LOGOUT && method === 'POST') return go(request, response, visit, LOGIN, access.close())
    const action = method === 'POST' ? actions[path] : undefined
    if (!action) throw new ServiceError('not_found', 'The operator console has nothing at this address.')
    await act(request, response, visit, action)
  }

  return async (request, response, visit) => {
    try {
      await answer(request, response, visit)
    } catch (error) {
      if (!(error instanceof ServiceError) || error.status !== 401) throw error
      refuse(request, response, visit, error)
    }
  }
}
