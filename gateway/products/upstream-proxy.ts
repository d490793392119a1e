/**
 * Sends requests to upstreams whose responses are streamed to the caller. A request contains only the headers and the
 * body that it is given, never those of the caller's connection. The response waits, unread, until the call is paid.
 * http-proxy-middleware does the exchange over kept-alive connections.
 */
import http, {
  type ClientRequest,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type ServerResponse,
} from 'node:http'
import https from 'node:https'
import { Readable, type Writable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createProxyMiddleware, type RequestHandler } from 'http-proxy-middleware'
import type { UpstreamRequest, UpstreamResponse } from './upstream.ts'

export interface UpstreamProxy {
  /** Resolves when the upstream begins to respond, whatever the status. Rejects if it does not respond. */
  request(upstreamRequest: UpstreamRequest): Promise<UpstreamResponse>
  /** Closes the kept-alive connections. */
  close(): void
}

/** Caller headers that change what an upstream sends and reveal neither the caller nor the payment. */
const FORWARDED_REQUEST_HEADERS = ['accept', 'accept-encoding', 'accept-language', 'if-range', 'range']
/** Upstream headers that describe the body. Cookies, challenges, policies and hop-by-hop headers are left out. */
const FORWARDED_RESPONSE_HEADERS = [
  'accept-ranges',
  'content-disposition',
  'content-encoding',
  'content-language',
  'content-length',
  'content-range',
  'content-type',
  'etag',
  'last-modified',
  'retry-after',
]

/** Returns the headers of a caller's request that are forwarded to an upstream. */
export function forwardedHeaders(headers: IncomingHttpHeaders): Record<string, string> {
  return pickHeaders(FORWARDED_REQUEST_HEADERS, headers)
}

/** A request in progress, with the callbacks for its events. */
interface Exchange {
  readonly upstreamRequest: UpstreamRequest
  onRequest(request: ClientRequest): void
  onResponse(response: IncomingMessage): void
  onError(error: Error): void
}

/** A synthetic incoming request for http-proxy-middleware: no connection behind it, only the headers we set. */
type ProxiedRequest = IncomingMessage & { readonly exchange: Exchange }

/** Creates a proxy with its own connection pools for http and https. */
export function createUpstreamProxy(): UpstreamProxy {
  const agents = [new http.Agent({ keepAlive: true }), new https.Agent({ keepAlive: true })] as const
  const [plain, secure] = agents.map(createMiddleware) as [RequestHandler, RequestHandler]
  return {
    request: (upstreamRequest) =>
      sendRequest(upstreamRequest, upstreamRequest.url.protocol === 'https:' ? secure : plain),
    close: () => agents.forEach((agent) => agent.destroy()),
  }
}

function createMiddleware(agent: http.Agent): RequestHandler {
  const exchangeOf = (request: unknown): Exchange => (request as ProxiedRequest).exchange
  return createProxyMiddleware({
    agent,
    router: (request) => exchangeOf(request).upstreamRequest.url.origin,
    // Required by the options, but `router` always overrides it.
    target: 'http://127.0.0.1',
    changeOrigin: true,
    prependPath: false,
    toProxy: true,
    selfHandleResponse: true,
    followRedirects: false,
    // The default plugins answer errors themselves. Ours pass every event to the exchange.
    ejectPlugins: true,
    plugins: [
      (server) => {
        server.on('proxyReq', (outgoing, request) => exchangeOf(request).onRequest(outgoing))
        server.on('proxyRes', (response, request) => exchangeOf(request).onResponse(response))
        server.on('error', (error, request) => exchangeOf(request).onError(error))
      },
    ],
  })
}

function sendRequest(upstreamRequest: UpstreamRequest, middleware: RequestHandler): Promise<UpstreamResponse> {
  const { signal, idleSeconds } = upstreamRequest
  return new Promise((resolve, reject) => {
    let outgoing: ClientRequest | undefined
    const cancel = (): void => {
      outgoing?.destroy()
      reject(signal.reason as Error)
    }
    const exchange: Exchange = {
      upstreamRequest,
      onRequest(request) {
        outgoing = request
        if (signal.aborted) cancel()
      },
      onResponse(response) {
        signal.removeEventListener('abort', cancel)
        resolve(responseOf(response, idleSeconds))
      },
      onError(error) {
        signal.removeEventListener('abort', cancel)
        reject(error)
      },
    }
    if (signal.aborted) return cancel()
    signal.addEventListener('abort', cancel, { once: true })
    const unusedResponse = { headersSent: false, finished: false } as ServerResponse
    const onNext = (error: unknown): void => exchange.onError(error as Error)
    Promise.resolve(middleware(proxiedRequest(exchange), unusedResponse as never, onNext)).catch(reject)
  })
}

function proxiedRequest(exchange: Exchange): ProxiedRequest & Parameters<RequestHandler>[0] {
  const { url, method, headers, body } = exchange.upstreamRequest
  const hasBody = body !== null || !['GET', 'HEAD'].includes(method)
  const request = {
    exchange,
    method,
    url: url.pathname + url.search,
    headers: { ...headers, ...(hasBody ? { 'content-length': String(body?.length ?? 0) } : {}) },
    httpVersion: '1.1',
    socket: {},
    connection: {},
  }
  return Object.assign(Readable.from(body === null ? [] : [body]), request) as never
}

function responseOf(response: IncomingMessage, idleSeconds: number): UpstreamResponse {
  let isPiped = false
  return {
    status: response.statusCode ?? 502,
    headers: pickHeaders(FORWARDED_RESPONSE_HEADERS, response.headers),
    async pipe(to) {
      isPiped = true
      const timer = destroyWhenIdle(response, to, idleSeconds * 1000)
      // The pipeline closes both sides however it ends, so the caller sees a truncated body as such.
      await pipeline(response, to).catch(() => {})
      clearInterval(timer)
    },
    discard() {
      if (!isPiped) response.destroy()
    },
  }
}

/** Destroys a response that sends nothing for `ms`, unless the caller is the one who does not read. */
function destroyWhenIdle(response: IncomingMessage, to: Writable, ms: number): NodeJS.Timeout {
  let lastActivity = performance.now()
  response.on('data', () => {
    lastActivity = performance.now()
  })
  return setInterval(() => {
    if (to.writableNeedDrain) lastActivity = performance.now()
    else if (performance.now() - lastActivity > ms) response.destroy(new Error('the upstream stopped sending'))
  }, ms / 4)
}

function pickHeaders(names: readonly string[], headers: IncomingHttpHeaders): Record<string, string> {
  return Object.fromEntries(
    names.flatMap((name) => {
      const value = headers[name]
      return typeof value === 'string' ? [[name, value]] : []
    }),
  )
}
