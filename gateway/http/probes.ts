/**
 * GET /livez and GET /readyz, for what starts, watches and balances processes. They are no operations of the catalog: a
 * probe is in no document and no count, is not logged, and costs less than the 429 that a limit would answer it with.
 */
import type { ServerResponse } from 'node:http'
import type { Headers } from './headers.ts'

/** Lists what keeps the process from selling; empty if it can sell. */
export type NotReady = () => readonly ('shutdown' | 'journal' | 'settler')[]

/** Answers a probe. Returns false if the request is none. */
export type AnswerProbe = (method: string, path: string, response: ServerResponse) => boolean

/** Creates the function that answers probes: 200 or 503, with a JSON body. */
export function createProbes(notReady: NotReady, headers: Headers): AnswerProbe {
  const send = (response: ServerResponse, isOk: boolean, body: object): void => {
    const json = JSON.stringify(body)
    const own = { 'content-type': 'application/json; charset=utf-8', 'cache-control': 'no-store' }
    response.writeHead(isOk ? 200 : 503, { ...headers, ...own, 'content-length': Buffer.byteLength(json) })
    response.end(response.req.method === 'HEAD' ? undefined : json)
  }
  return (method, path, response) => {
    if (method !== 'GET' && method !== 'HEAD') return false
    if (path === '/livez') send(response, true, { live: true })
    else if (path === '/readyz') {
      const missing = notReady()
      send(response, missing.length === 0, { ready: missing.length === 0, not_ready: missing })
    } else return false
    return true
  }
}
