/** Calls an operation in a test as a buyer would, without a payment. */
import type { Edition } from '../products/edition.ts'
import { callerOf } from '../workers/timeout.ts'
import {
  type Access,
  type InputOf,
  type Operation,
  type OperationId,
  type OutputOf,
  Reply,
  type ServerEvent,
  type StreamRequest,
} from '../plugin/plugin.ts'

/** The circumstances of a call. */
export interface CallOptions {
  /** The newest moment of data that the caller may see. */
  readonly asOf: Date
  /** Where the call comes from. The default is one place for all calls. */
  readonly client?: string
  readonly signal?: AbortSignal
  /** Set it to accept server-sent events, as a caller does with `Accept: text/event-stream`. */
  readonly stream?: StreamRequest
}

const PAYER = '0x00000000000000000000000000000000000000b2'

/**
 * Calls an operation as a buyer would, or as a free caller if it has no price: validates the input, runs the handler and
 * checks the answer. Resolves with the body, or with the events of a stream if the call accepts them. Rejects with the
 * ServiceError that the gateway would answer.
 */
export function callOperation<Id extends OperationId>(
  edition: Edition,
  id: Id,
  request: InputOf<Id> & CallOptions & { readonly stream: StreamRequest },
): Promise<AsyncIterable<ServerEvent>>
export function callOperation<Id extends OperationId>(
  edition: Edition,
  id: Id,
  request: InputOf<Id> & CallOptions,
): Promise<OutputOf<Id>>
export async function callOperation(
  edition: Edition,
  id: OperationId,
  request: InputOf<OperationId> & CallOptions,
): Promise<unknown> {
  const bound = edition.bound.get(id)
  if (!bound) throw new Error(`The edition has no operation ${id}.`)
  const { params = {}, query = {}, body, asOf, client, signal = new AbortController().signal, stream } = request
  const answer = await bound.handle({
    id: 'contract',
    operation: bound.operation,
    catalog: edition.catalog,
    input: bound.validate({ params, query, body }),
    access: accessTo(bound.operation),
    asOf,
    caller: callerOf(signal, undefined, client),
    ...(stream ? { stream } : {}),
  })
  return answer instanceof Reply ? (answer.source ?? answer.body) : answer
}

function accessTo({ price }: Operation): Access {
  return price === null ? { kind: 'free' } : { kind: 'payment', payer: PAYER, amount: price }
}
