/** Reads large JSON bodies in a worker thread: parses them, checks them, and digests the request. */
import { type BodyRules, LargeBody } from '../catalog/large-body.ts'
import type { BoundOperation, RawInput } from '../products/edition.ts'
import type { WorkerPool } from '../workers/pool.ts'

/** A request with a large body. */
interface LargeRequest extends Pick<RawInput, 'params' | 'query'> {
  /** The bytes of the body, in memory that threads share. */
  readonly bytes: Uint8Array
  /** True if the request carries a payment, which is bound to its fingerprint. */
  readonly isPaid: boolean
}

/** Reads a large body. Throws InvalidInput if it is not JSON, and Unavailable if too many wait. */
export type ReadLargeBody = (bound: BoundOperation, request: LargeRequest) => Promise<LargeBody>

/** The input of the thread. */
export interface LargeBodyWork extends LargeRequest {
  readonly rules: BodyRules
  readonly operation: { readonly id: string; readonly isPlan: boolean }
}

/**
 * Creates the reader. A body waits in the queue of its operation, so that free uploads do not hold up paid ones.
 * @param workIn of a pool that only reads, so that a body never waits for a computation
 */
export function createLargeBodyReader({ workIn }: Pick<WorkerPool, 'workIn'>): ReadLargeBody {
  const module = new URL('../calls/large-body-work.ts', import.meta.url)
  return async ({ bodyRules, operation: { id, plan, queue } }, request) => {
    const input: LargeBodyWork = { ...request, rules: bodyRules(), operation: { id, isPlan: plan !== null } }
    return new LargeBody(request.bytes, await workIn<Pick<LargeBody, 'items' | 'fingerprint'>>(queue, module, input))
  }
}
