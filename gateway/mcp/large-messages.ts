/**
 * Large tool calls. A worker thread reads them twice: first an outline, which is enough to quote, refuse or admit the
 * call, and later the arguments, if the call gets as far as validating its input. The event loop only keeps the bytes.
 */
import type { LargeBodyWork } from '../calls/large-bodies.ts'
import { LargeBody } from '../catalog/large-body.ts'
import type { BoundOperation, RawInput } from '../products/edition.ts'
import { InvalidInput } from '../errors.ts'
import type { WorkerPool } from '../workers/pool.ts'
import type { ArgumentPlaces, Tool } from './tools.ts'

/** A call without its large arguments; or why the message is refused. */
export type Outline = { readonly message: unknown } | { readonly refusal: string }

/** The arguments of a large call as the body of a request. */
export interface LargeArguments extends Pick<LargeBody, 'items' | 'fingerprint'> {
  /** The body as JSON, in memory that threads share. */
  readonly bytes: Uint8Array
}

/** Input of the thread that reads the arguments. `bytes` are those of the message. */
export interface LargeArgumentsWork extends LargeBodyWork {
  readonly places: ArgumentPlaces
}

export interface LargeMessages {
  /** Reads the outline of a message. Throws InvalidInput if it is not JSON. */
  outline(bytes: Uint8Array): Promise<Outline>
  /**
   * Reads the arguments of a call.
   * @param small the input without the large arguments
   * @throws InvalidInput if the tool takes no body
   */
  read(tool: Tool, bound: BoundOperation, bytes: Uint8Array, small: RawInput, isPaid: boolean): Promise<RawInput>
}

/**
 * Creates the reader. Until the outline is read, it is unknown whether a message is paid for, so it waits with free
 * work. The arguments wait in the queue of the operation.
 * @param workIn of a pool that only reads, so that a message never waits for a computation
 */
export function createLargeMessages({ workIn }: Pick<WorkerPool, 'workIn'>): LargeMessages {
  const outlines = new URL('../mcp/large-message-outline.ts', import.meta.url)
  const readers = new URL('../mcp/large-message-arguments.ts', import.meta.url)
  return {
    outline: (bytes) => workIn<Outline>('free', outlines, bytes),
    async read({ places }, { operation, bodyRules }, bytes, { params, query }, isPaid) {
      if (operation.body === null) throw new InvalidInput([NO_BODY])
      const { id, plan, queue } = operation
      const input: LargeArgumentsWork = {
        bytes,
        places,
        rules: bodyRules(),
        operation: { id, isPlan: plan !== null },
        params,
        query,
        isPaid,
      }
      const read = await workIn<LargeArguments>(queue, readers, input)
      return { params, query, body: new LargeBody(read.bytes, read) }
    },
  }
}

const NO_BODY = {
  loc: ['arguments'],
  msg: 'Are larger than any arguments of this tool; send fewer.',
  type: 'too_long',
} as const
