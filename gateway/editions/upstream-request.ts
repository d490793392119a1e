/** What an upstream gets of a request beyond its validated input: the body as it was sent, and a way to pass bytes on. */
import type { Writable } from 'node:stream'
import { type Input, Reply } from '../plugin/plugin.ts'

export interface Passage {
  /** Null where nothing was sent. */
  readonly body: Sent | null
  /** Those headers of the caller that may travel on. */
  readonly headers: Readonly<Record<string, string>>
  /** Opens a request whose answer is passed on while it arrives. Rejects where there is no answer. */
  carry(to: Carriage): Promise<Carried>
}

export interface Sent {
  /** The content-type, with its parameters. */
  readonly type: string
  readonly bytes: Buffer
}

export interface Carriage {
  readonly url: URL
  readonly method: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer | null
  /** Ends an answer that stops arriving. */
  readonly idleSeconds: number
  /** Counts until the answer begins. */
  readonly signal: AbortSignal
}

/** An answer that has begun: its head is here, its body waits. */
export interface Carried {
  readonly status: number
  /** Those headers of the upstream that may leave. */
  readonly headers: Readonly<Record<string, string>>
  /** Passes the body on, and ends what it is passed on to. Resolves when it has ended, however. */
  pipe(to: Writable): Promise<void>
  /** Lets it go unread; does nothing once it has been passed on. */
  drop(): void
}

/** The input of an operation that an upstream answers. */
export interface PassedInput extends Input {
  /** Absent where a call did not come over HTTP. */
  readonly passage?: Passage
}

/** What a handler answers with when the bytes are still on their way. */
export class Streamed extends Reply<undefined> {
  readonly carried: Carried

  constructor(carried: Carried) {
    super(undefined, { status: carried.status, headers: carried.headers })
    this.carried = carried
  }
}
