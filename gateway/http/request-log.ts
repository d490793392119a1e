/** The access log: one line per request with its route, status and duration, never its content. */
import type { ServerResponse } from 'node:http'
import type { RequestFields } from '../observe/terminal.ts'
import type { Logger } from '../plugin/plugin.ts'
import { type Visit, visitOf } from './request.ts'

/** How many refusals of callers over their limit have a line of their own in each second. The others are counted. */
const REFUSALS_PER_SECOND = 5
/** How often the number of the others is logged, if there are any. */
const COUNT_SECONDS = 10

/**
 * Returns a function that logs a visit when its connection is done with it. All of them share one listener, because a
 * closure for each costs as much as a sixth of a 402.
 */
export function createRequestLog(log: Logger): (visit: Visit) => void {
  const isLogged = createSample(log)
  function logVisit(this: ServerResponse): void {
    if (this.statusCode === 429 && !isLogged()) return
    const { id: call, request, route, startedAt } = visitOf(this)
    const ms = Math.round((performance.now() - startedAt) * 10) / 10
    const { method } = request
    const line: RequestFields = { call, method, route, status: this.statusCode, ms }
    log.info(this.writableFinished ? line : { ...line, gone: true }, 'request')
  }
  return ({ response }) => void response.on('close', logVisit)
}

/** Decides which refusals are logged: a caller can cause thousands a second, and each line would cost more than the refusal. */
function createSample(log: Logger): () => boolean {
  let second = 0
  let refusals = 0
  let counted = 0
  const report = (): void => {
    log.warn({ refusals: counted, seconds: COUNT_SECONDS }, 'more calls were refused with 429 than were logged')
    counted = 0
  }
  return () => {
    const now = Math.floor(performance.now() / 1000)
    if (now !== second) refusals = 0
    second = now
    refusals += 1
    if (refusals <= REFUSALS_PER_SECOND) return true
    if (counted === 0) setTimeout(report, COUNT_SECONDS * 1000).unref()
    counted += 1
    return false
  }
}
