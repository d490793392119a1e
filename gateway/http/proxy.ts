/**
 * Passes streams of upstreams on. A request of ours goes out, made from nothing but what may travel; its answer waits
 * until it is paid for. http-proxy-middleware does the talking, over connections that are kept.
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
import type { Carriage, Carried } from '../editions/upstream-request.ts'

export interface Proxy {
  /** Resolves when the upstream has begun to answer, whatever its status; rejects where it does not. */
  carry(to: Carriage): Promise<Carried>
  /** Closes the kept connections. */
  close(): void
}

/** Headers of a caller that change what an upstream sends, and say nothing of who asks and what was paid. */
const ASKED = ['accept', 'accept-encoding', 'accept-language', 'if-range', 'range']
/** Headers of an upstream that describe its body. No cookie, no challenge, no policy, nothing hop by hop. */
const DESCRIBED = [
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

/** Of the headers of a request, those that travel on to an upstream. */
export function askedHeaders(headers: IncomingHttpHeaders): Record<string, string> {
  return only(ASKED, headers)
}

interface Waiting {
  readonly carriage: Carriage
  begun(request: ClientRequest): void
  answered(answer: IncomingMessage): void
  failed(error: Error): void
}

/** The request as http-proxy-middleware meets it: no connection behind it, no header that we did not put there. */
type Outgoing = IncomingMessage & { readonly waiting: Waiting }

export function createProxy(): Proxy {
  const agents = [new http.Agent({ keepAlive: true }), new https.Agent({ keepAlive: true })] as const
  const [plain, secure] = agents.map(talker) as [RequestHandler, RequestHandler]
  return {
    carry: (carriage) => carry(carriage, carriage.url.protocol === 'https:' ? secure : plain),
    close: () => agents.forEach((agent) => agent.destroy()),
  }
}

function talker(agent: http.Agent): RequestHandler {
  return createProxyMiddleware({
    agent,
    router: (request) => (request as Outgoing).waiting.carriage.url.origin,
    // Replaced by what `router` says; it must be there for the options to be complete.
    target: 'http://127.0.0.1',
    changeOrigin: true,
    prependPath: false,
    toProxy: true,
    selfHandleResponse: true,
    followRedirects: false,
    // The stock plugins answer errors by themselves; ours hand everything to whoever waits.
    ejectPlugins: true,
    plugins: [
      (server) => {
        server.on('proxyReq', (sent, request) => (request as Outgoing).waiting.begun(sent))
        server.on('proxyRes', (answer, request) => (request as Outgoing).waiting.answered(answer))
        server.on('error', (error, request) => (request as Outgoing).waiting.failed(error))
      },
    ],
  })
}

function carry(carriage: Carriage, talk: RequestHandler): Promise<Carried> {
  const { signal } = carriage
  return new Promise((resolve, reject) => {
    let sent: ClientRequest | undefined
    const stop = (): void => {
      sent?.destroy()
      reject(signal.reason as Error)
    }
    const waiting: Waiting = {
      carriage,
      begun(request) {
        sent = request
        if (signal.aborted) stop()
      },
      answered(answer) {
        signal.removeEventListener('abort', stop)
        resolve(carriedOf(answer, carriage.idleSeconds))
      },
      failed(error) {
        signal.removeEventListener('abort', stop)
        reject(error)
      },
    }
    if (signal.aborted) return stop()
    signal.addEventListener('abort', stop, { once: true })
    const untouched = { headersSent: false, finished: false } as ServerResponse
    Promise.resolve(talk(outgoing(waiting), untouched as never, (error) => waiting.failed(error as Error))).catch(
      reject,
    )
  })
}

function outgoing(waiting: Waiting): Outgoing & Parameters<RequestHandler>[0] {
  const { url, method, headers, body } = waiting.carriage
  const hasBody = body !== null || !['GET', 'HEAD'].includes(method)
  const request = {
    waiting,
    method,
    url: url.pathname + url.search,
    headers: { ...headers, ...(hasBody ? { 'content-length': String(body?.length ?? 0) } : {}) },
    httpVersion: '1.1',
    socket: {},
    connection: {},
  }
  return Object.assign(Readable.from(body === null ? [] : [body]), request) as never
}

function carriedOf(answer: IncomingMessage, idleSeconds: number): Carried {
  let isPassedOn = false
  return {
    status: answer.statusCode ?? 502,
    headers: only(DESCRIBED, answer.headers),
    async pipe(to) {
      isPassedOn = true
      const watch = watchIdle(answer, to, idleSeconds * 1000)
      // However it ends, both sides are closed by it; what was cut short the caller sees as such.
      await pipeline(answer, to).catch(() => {})
      clearInterval(watch)
    },
    drop() {
      if (!isPassedOn) answer.destroy()
    },
  }
}

/** Ends an answer from which nothing came for `ms`, unless it is the caller who does not read. */
function watchIdle(answer: IncomingMessage, to: Writable, ms: number): NodeJS.Timeout {
  let since = performance.now()
  answer.on('data', () => {
    since = performance.now()
  })
  return setInterval(() => {
    if (to.writableNeedDrain) since = performance.now()
    else if (performance.now() - since > ms) answer.destroy(new Error('the upstream stopped sending'))
  }, ms / 4)
}

function only(names: readonly string[], headers: IncomingHttpHeaders): Record<string, string> {
  return Object.fromEntries(
    names.flatMap((name) => {
      const value = headers[name]
      return typeof value === 'string' ? [[name, value]] : []
    }),
  )
}
