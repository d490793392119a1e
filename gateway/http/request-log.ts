/** The access log: one line per request with its route, status and duration, never its content. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Logger } from '../plugin/plugin.ts'

/** Logs the request when its connection is done with it. `describe` is asked then: the route may not be known before. */
export function logWhenDone(
  log: Logger,
  { method }: IncomingMessage,
  response: ServerResponse,
  describe: () => { readonly call: string; readonly route: string | null },
): void {
  const startedAt = performance.now()
  response.once('close', () => {
    const { call, route } = describe()
    const ms = Math.round((performance.now() - startedAt) * 10) / 10
    const gone = response.writableFinished ? {} : { gone: true }
    log.info({ call, method, route, status: response.statusCode, ms, ...gone }, 'request')
  })
}
