/**
 * The head of an answer that is sent again and again, such as a 402. `writeHead` checks every character of every header
 * each time, a fifth of what a 402 would cost. So node:http writes a head once. After that, what it wrote is sent again with
 * the id of the call and the current date.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'

/** What node:http wrote, around the id of the call and the date. */
interface Written {
  readonly beforeId: string
  readonly beforeDate: string
  readonly afterDate: string
}

/** node:http keeps the head here until it sends it with the first bytes of the body (ADR 83). */
type WithHead = ServerResponse & { _header: string | null }

export class RepeatedHead {
  readonly #status: number
  readonly #headers: readonly string[]
  /** Null until the head is sent for the first time on a connection that stays open. */
  #written: Written | null = null

  /**
   * @param status of an answer with a body
   * @param headers names and values in turn, as `writeHead` takes them, with content-length and without x-call-id
   */
  constructor(status: number, headers: readonly string[]) {
    this.#status = status
    this.#headers = headers
  }

  /** Writes the head of a response that has no header yet. The caller sends the body. */
  write(response: ServerResponse, callId: string): void {
    const isUsual = staysOpen(response)
    if (isUsual && this.#written) {
      const { beforeId, beforeDate, afterDate } = this.#written
      response.statusCode = this.#status
      ;(response as WithHead)._header = beforeId + callId + beforeDate + dateHeader() + afterDate
      return
    }
    response.writeHead(this.#status, this.#headers.concat('x-call-id', callId))
    if (isUsual) this.#written = partsOf((response as WithHead)._header, callId)
  }
}

/** True if the head says nothing about the connection but that it stays open. */
function staysOpen({ req, shouldKeepAlive }: ServerResponse & { readonly req: IncomingMessage }): boolean {
  return shouldKeepAlive && req.httpVersion === '1.1' && req.method !== 'HEAD'
}

/** Takes a head apart. Null if it does not look as expected: then node:http writes it each time. */
function partsOf(head: string | null, callId: string): Written | null {
  const [beforeId, rest, ...more] = head?.split(callId) ?? []
  const [, beforeDate, afterDate] = /^(\r\nDate: )[^\r]+(\r\n.*\r\n\r\n)$/s.exec(rest ?? '') ?? []
  if (beforeId === undefined || beforeDate === undefined || afterDate === undefined || more.length > 0) return null
  return { beforeId, beforeDate, afterDate }
}

let date = { second: 0, text: '' }

/** The value of a Date header (RFC 9110, section 6.6.1), made once a second: "Fri, 27 Nov 2026 11:20:00 GMT". */
function dateHeader(): string {
  const second = Math.floor(Date.now() / 1000)
  if (second !== date.second) date = { second, text: new Date(second * 1000).toUTCString() }
  return date.text
}
