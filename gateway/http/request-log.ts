/** The access log: one line per request with its route, status and duration, never its content. */
import type { ServerResponse } from 'node:http'
import type { Logger } from '../plugin/plugin.ts'
import { type Visit, visitOf } from './request.ts'

/**
 * Returns a function that logs a visit when its connection is done with it. All of them share one listener, because a
 * closure for each costs as much as a sixth of a 402.
 */
export function createRequestLog(log: Logger): (visit: Visit) => void {
  function logVisit(this: ServerResponse): void {
    const { id: call, request, route, startedAt } = visitOf(this)
    const ms = Math.round((performance.now() - startedAt) * 10) / 10
    const { method } = request
    const line = { call, method, route, status: this.statusCode, ms }
    log.info(this.writableFinished ? line : { ...line, gone: true }, 'request')
  }
  return ({ response }) => void response.on('close', logVisit)
}
