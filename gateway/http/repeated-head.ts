/**
 * The head of an answer that is sent again and again, such as a 402. `writeHead` checks every character of every header
 * each time, a fifth of what a 402 would cost. So node:http writes a head once. After that, what it wrote is sent again with
 * the length of the body, the id of the call and the current date.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'

/** node:http keeps the head here until it sends it with the first bytes of the body (ADR 83). */
type WithHead = ServerResponse & { _header: string | null }

export class RepeatedHead {
  readonly #status: number
  readonly #headers: readonly string[]
  /**
   * What node:http wrote before the length and after the date, when the head was first sent on a connection that stays open.
   * Null before.
   */
  #beforeLength: string | null = null
  #afterDate = ''

  /**
   * @param status of an answer with a body
   * @param headers names and values in turn, as `writeHead` takes them, without content-length and x-call-id
   */
  constructor(status: number, headers: readonly string[]) {
    this.#status = status
    this.#headers = headers
  }

  /** Writes the head of a response that has no header yet. The caller sends the body, of which `length` is the size in bytes. */
  write(response: ServerResponse, callId: string, length: number): void {
    const isUsual = staysOpen(response)
    if (isUsual && this.#beforeLength !== null) {
      response.statusCode = this.#status
      const own = ownHeaders(callId, length)
      ;(response as WithHead)._header = this.#beforeLength + own + dateHeader() + this.#afterDate
      return
    }
    response.writeHead(this.#status, this.#headers.concat('content-length', String(length), 'x-call-id', callId))
    if (isUsual) this.#keep((response as WithHead)._header ?? '', ownHeaders(callId, length))
  }

  /** Takes a head apart. If it does not look as expected, node:http writes it each time. */
  #keep(head: string, own: string): void {
    const [beforeLength, rest, ...more] = head.split(own)
    const [, afterDate] = /^[^\r]+(\r\n.*\r\n\r\n)$/s.exec(rest ?? '') ?? []
    if (beforeLength === undefined || afterDate === undefined || more.length > 0) return
    this.#beforeLength = beforeLength
    this.#afterDate = keptOnce(afterDate)
  }
}

/** The headers that differ from call to call, up to the date. */
function ownHeaders(callId: string, length: number): string {
  return `\r\ncontent-length: ${length}\r\nx-call-id: ${callId}\r\nDate: `
}

/**
 * True if the head says nothing about the connection but that it stays open. A caller that was not asked for the body that it
 * announced may send its next request instead, which would be read as that body: node:http ends the connection then.
 */
function staysOpen({ req, shouldKeepAlive }: ServerResponse & { readonly req: IncomingMessage }): boolean {
  return shouldKeepAlive && req.httpVersion === '1.1' && req.method !== 'HEAD' && req.headers.expect === undefined
}

let date = { second: 0, text: '' }

/** The value of a Date header (RFC 9110, section 6.6.1), made once a second: "Fri, 27 Nov 2026 11:20:00 GMT". */
function dateHeader(): string {
  const second = Math.floor(Date.now() / 1000)
  if (second !== date.second) date = { second, text: new Date(second * 1000).toUTCString() }
  return date.text
}

/** What follows the date in the heads so far. */
const endings = new Map<string, string>()
const MAX_ENDINGS = 100

/** Returns the one string that all heads with this ending share: nearly all heads end in the same bytes. */
function keptOnce(ending: string): string {
  const known = endings.get(ending)
  if (known !== undefined) return known
  if (endings.size < MAX_ENDINGS) endings.set(ending, ending)
  return ending
}
