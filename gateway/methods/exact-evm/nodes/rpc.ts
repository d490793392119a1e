/** A JSON-RPC 2.0 client over HTTP. Its errors say whether the request may have had an effect. */
import { Agent, request } from 'undici'
import { withoutCredentials } from '../../../config/address-credentials.ts'
import type { Hex } from '../../../config/networks.ts'

/**
 * - `unsent`: the node was not reached, so nothing happened.
 * - `refused`: the node answered with an error.
 * - `unknown`: the request was sent and no answer could be read. It may have worked.
 */
export type RpcFault = 'unsent' | 'refused' | 'unknown'

/** A call of a node that failed. `fault` says whether it may have had an effect. */
export class RpcError extends Error {
  readonly fault: RpcFault
  /** JSON-RPC error data, e.g. the returned bytes of a reverted call. */
  readonly data: unknown

  constructor(fault: RpcFault, message: string, options: { data?: unknown; cause?: unknown } = {}) {
    super(message, { cause: options.cause })
    this.name = 'RpcError'
    this.fault = fault
    this.data = options.data
  }
}

export type RpcCall = readonly [method: string, ...params: readonly unknown[]]

export interface Rpc {
  /** Result of one call. Throws RpcError. */
  call<Result>(method: string, ...params: readonly unknown[]): Promise<Result>
  /** Results of several calls in one request, in order. A call that was refused has an RpcError as its result. */
  batch(calls: readonly RpcCall[]): Promise<readonly unknown[]>
}

interface Reply {
  readonly id?: unknown
  readonly result?: unknown
  readonly error?: { readonly message?: unknown; readonly data?: unknown }
}

interface WaitingRead {
  readonly call: RpcCall
  readonly resolve: (result: unknown) => void
  readonly reject: (error: unknown) => void
}

/** Reads that share a request with others of the same moment: every payment makes some before any work is done. */
const SHARED_READS: ReadonlySet<string> = new Set(['eth_call', 'eth_getCode'])
/** Nodes limit the size of a request. */
const READS_PER_REQUEST = 50

/** Error codes of requests that failed before a connection was made. */
const NOT_CONNECTED = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
])

/** Whether a request failed before anything was sent. */
export function isUnsent(error: unknown): boolean {
  for (let cause: unknown = error; cause instanceof Error; cause = cause.cause) {
    if ('code' in cause && NOT_CONNECTED.has(String(cause.code))) return true
    if (cause instanceof AggregateError) return cause.errors.length > 0 && cause.errors.every(isUnsent)
  }
  return false
}

/** Writes a number as JSON-RPC nodes expect it. @example quantity(256) → "0x100" */
export function quantity(number: number | bigint): Hex {
  return `0x${number.toString(16)}`
}

/** The connections to all nodes. The logs of 2,000 blocks are a few megabytes; what is longer would fill the memory. */
const connections = new Agent({ maxResponseSize: 32_000_000 })
/** How many times longer than the beginning of an answer a whole call may take. A node that sends slowly would hold a payment. */
const WHOLE_ANSWER = 3

/** Creates a client of one node. A user name and a password in its address are sent as Basic authorization. */
export function createRpc(url: string, timeoutSeconds = 10): Rpc {
  const milliseconds = timeoutSeconds * 1000
  const options = { dispatcher: connections, headersTimeout: milliseconds, bodyTimeout: milliseconds }
  const { address, headers: credentials } = withoutCredentials(url)
  const headers = { 'content-type': 'application/json', ...credentials }

  // undici's request instead of viem's transport, which uses fetch: a call costs 113 µs of CPU instead of 546, and errors
  // of fetch do not say whether the request had left.
  async function post(message: unknown): Promise<unknown> {
    const deadline = new AbortController()
    const timer = setTimeout(() => deadline.abort(), WHOLE_ANSWER * milliseconds)
    try {
      const sent = { method: 'POST', headers, body: JSON.stringify(message), signal: deadline.signal } as const
      const { body } = await request(address, { ...sent, ...options })
      return await body.json()
    } catch (error) {
      if (isUnsent(error)) throw new RpcError('unsent', 'The node cannot be reached.', { cause: error })
      throw new RpcError('unknown', 'The node did not answer, or its answer is not JSON.', { cause: error })
    } finally {
      clearTimeout(timer)
    }
  }

  async function callAlone([method, ...params]: RpcCall): Promise<unknown> {
    return resultOf(await post({ jsonrpc: '2.0', id: 1, method, params }))
  }

  async function batch(calls: readonly RpcCall[]): Promise<readonly unknown[]> {
    const replies = await post(calls.map(([method, ...params], id) => ({ jsonrpc: '2.0', id, method, params })))
    if (!Array.isArray(replies)) return [resultOf(replies)]
    const byId = new Map(replies.map((reply: Reply) => [reply.id, reply]))
    return calls.map((_, id) => {
      try {
        return resultOf(byId.get(id))
      } catch (error) {
        return error
      }
    })
  }

  const readTogether = createReads(callAlone, batch)
  return {
    call: <Result>(...call: RpcCall) =>
      (SHARED_READS.has(call[0]) ? readTogether(call) : callAlone(call)) as Promise<Result>,
    batch,
  }
}

/**
 * Sends the reads of one turn of the event loop in one request. A read that has company neither waits for it nor fails
 * with it: if the node refuses the request as a whole, each read is sent alone.
 */
function createReads(
  callAlone: (call: RpcCall) => Promise<unknown>,
  batch: (calls: readonly RpcCall[]) => Promise<readonly unknown[]>,
): (call: RpcCall) => Promise<unknown> {
  let waiting: WaitingRead[] = []

  async function send(reads: readonly WaitingRead[]): Promise<void> {
    const results = await resultsOf(reads.map(({ call }) => call))
    for (const [at, { resolve, reject }] of reads.entries()) {
      const result = results[at]
      if (result?.status === 'fulfilled') resolve(result.value)
      else reject(result?.reason)
    }
  }

  async function resultsOf(calls: readonly RpcCall[]): Promise<readonly PromiseSettledResult<unknown>[]> {
    if (calls.length === 1) return Promise.allSettled(calls.map(callAlone))
    try {
      const results = await batch(calls)
      return await Promise.allSettled(
        results.map((result) => (result instanceof Error ? Promise.reject(result) : result)),
      )
    } catch (error) {
      const isRefused = error instanceof RpcError && error.fault === 'refused'
      return Promise.allSettled(calls.map((call) => (isRefused ? callAlone(call) : Promise.reject(error as Error))))
    }
  }

  return (call) =>
    new Promise((resolve, reject) => {
      if (waiting.push({ call, resolve, reject }) > 1) return
      setImmediate(() => {
        const reads = waiting
        waiting = []
        for (let from = 0; from < reads.length; from += READS_PER_REQUEST)
          void send(reads.slice(from, from + READS_PER_REQUEST))
      })
    })
}

function resultOf(reply: unknown): unknown {
  const { result, error } = (reply ?? {}) as Reply
  if (error) throw new RpcError('refused', String(error.message), { data: error.data })
  if (result === undefined) throw new RpcError('unknown', 'The answer of the node has no result.')
  return result
}
