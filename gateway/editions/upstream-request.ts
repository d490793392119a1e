/** What passes between a caller and an upstream when the upstream answers the call. */
import type { Writable } from 'node:stream'
import { type Input, Reply } from '../plugin/plugin.ts'

/** The parts of a caller's HTTP request that an upstream receives beside the validated input. */
export interface ForwardedRequest {
  /** Null if the caller sent no body. */
  readonly body: RawBody | null
  /** The caller's headers that may be forwarded. */
  readonly headers: Readonly<Record<string, string>>
  /** Sends a request whose response can be streamed. Rejects if the upstream does not respond. */
  request(to: UpstreamRequest): Promise<UpstreamResponse>
}

/** A body exactly as it was sent. */
export interface RawBody {
  /** The content-type with its parameters. */
  readonly type: string
  readonly bytes: Buffer
}

export interface UpstreamRequest {
  readonly url: URL
  readonly method: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer | null
  /** Ends a response that sends nothing for this long. */
  readonly idleSeconds: number
  /** Cancels the request until the response begins. */
  readonly signal: AbortSignal
}

/** A response that has begun: its status and headers have arrived, its body has not been read. */
export interface UpstreamResponse {
  readonly status: number
  /** The upstream's headers that may reach the caller. */
  readonly headers: Readonly<Record<string, string>>
  /** Streams the body to `to` and ends it. Resolves when the stream has ended, even if it failed. */
  pipe(to: Writable): Promise<void>
  /** Closes the response unread. Does nothing once `pipe` was called. */
  discard(): void
}

/** The input of an operation that an upstream answers. */
export interface ForwardedInput extends Input {
  /** Absent if the call did not come over HTTP. */
  readonly forwarded?: ForwardedRequest
}

/** A handler's answer whose body is still arriving from the upstream. */
export class StreamedReply extends Reply<undefined> {
  readonly response: UpstreamResponse

  constructor(response: UpstreamResponse) {
    super(undefined, { status: response.status, headers: response.headers })
    this.response = response
  }
}
