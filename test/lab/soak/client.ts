/** Sends requests of a soak run and notes how each of them ended. */
import type { IncomingHttpHeaders } from 'node:http'
import { Pool } from 'undici'
import type { Sample } from './measures.ts'

export interface SoakRequest {
  readonly kind: string
  readonly method: 'GET' | 'POST'
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  /** When it was due, as `performance.now` says. */
  readonly due?: number
  /** Reads the answer, if its status alone does not say how the call ended. */
  readonly read?: (reply: Reply) => Reply
}

export interface Reply {
  /** 0 if there was no answer. */
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
  readonly code?: string
  readonly retryAfter?: number
}

/**
 * Callers are many: they call from as many addresses, each with connections of its own, more than they need, so that no
 * request waits for another. (From one address, a new connection would often get the port of one that the killed gateway has
 * not forgotten yet, and wait a second for its second SYN.)
 */
const ADDRESSES = 32
const CONNECTIONS_OF_ADDRESS = 64
const PURCHASES = new Set(['paid', 'mcp', 'plan'])
/** Longer than a settlement is waited for. */
const TIMEOUT_MS = 60_000
const BUSY = new Set([429, 503])
const EXPECTED: Readonly<Record<string, number>> = { '402': 402 }

export class Client {
  readonly #purchases: readonly Pool[]
  readonly #others: readonly Pool[]
  #sent = 0
  #samples: Sample[] = []

  constructor(url: string) {
    const open = (): readonly Pool[] =>
      Array.from({ length: ADDRESSES }, (_, nth) => {
        const connect = { localAddress: `127.0.0.${nth + 2}` }
        const timeouts = { headersTimeout: TIMEOUT_MS, bodyTimeout: TIMEOUT_MS }
        return new Pool(url, { connections: CONNECTIONS_OF_ADDRESS, pipelining: 1, connect, ...timeouts })
      })
    this.#purchases = open()
    this.#others = open()
  }

  /** Returns the samples since the last call. */
  takeSamples(): readonly Sample[] {
    const samples = this.#samples
    this.#samples = []
    return samples
  }

  /** Sends a request. Never rejects. */
  async send({ kind, method, path, headers = {}, body, due = performance.now(), read }: SoakRequest): Promise<Reply> {
    const pool = (PURCHASES.has(kind) ? this.#purchases : this.#others)[this.#sent++ % ADDRESSES] as Pool
    const note = (reply: Reply, outcome: string): Reply => {
      const expected = EXPECTED[kind] ?? 200
      // 504: the product was too slow, which costs nothing.
      const isRefused = reply.status === 504 || (BUSY.has(reply.status) && reply.retryAfter !== undefined)
      const ending =
        reply.status === expected ? 'answered' : reply.status === 0 ? 'lost' : isRefused ? 'refused' : 'wrong'
      this.#samples.push({ kind, at: due, ms: performance.now() - due, ending, outcome })
      return reply
    }
    try {
      const answer = await pool.request({ path, method, headers, ...(body ? { body } : {}) })
      const text = await answer.body.text()
      const after = answer.headers['retry-after']
      const plain: Reply = {
        status: answer.statusCode,
        headers: answer.headers,
        text,
        ...(after === undefined ? {} : { retryAfter: Number(after) }),
      }
      const reply = read?.(plain) ?? plain
      return note(reply, outcomeOf(kind, reply))
    } catch (error) {
      const { code = 'lost' } = error as { code?: string }
      return note({ status: 0, headers: {}, text: '' }, code)
    }
  }

  async close(): Promise<void> {
    await Promise.all([...this.#purchases, ...this.#others].map((pool) => pool.destroy()))
  }
}

/** The status, the error code and the reason of an answer; and whether a refusal does not say when to come back. */
function outcomeOf(kind: string, { status, text, code, retryAfter }: Reply): string {
  if (status < 400 || kind === '402') return String(status)
  const why = code ?? reasonOf(text)
  return [status, why, ...(status === 503 && retryAfter === undefined ? ['without Retry-After'] : [])].join(' ')
}

function reasonOf(body: string): string {
  try {
    const { code = '', error = '' } = JSON.parse(body) as { code?: string; error?: string }
    return [...new Set([code, error])].filter(Boolean).join(' ')
  } catch {
    return ''
  }
}
