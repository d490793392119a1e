/**
 * Who is given a bought token again. Once a payment has settled, its signature stands on the chain for everybody to
 * read and to present; what it bought is mostly not worth that, but a token opens routes for days. So a kept token is
 * given again only where it was bought from; anywhere else the wallet has to sign for it.
 */
import { createHash } from 'node:crypto'
import type { Operation } from '../catalog/catalog.ts'
import { ServiceError } from '../errors.ts'
import type { Answer, CallRequest } from './call.ts'

/** Kept with the answer, and never sent. */
const MARK = 'x-bought-from'

type Caller = Pick<CallRequest, 'client'>

/** The answer as it is to be kept: a plan's says where it was bought from. */
export function marked({ plan }: Operation, caller: Caller, answer: Answer): Answer {
  return plan ? { ...answer, headers: { ...answer.headers, [MARK]: markOf(caller) } } : answer
}

/** The answer as it is to be sent. Throws ServiceError `forbidden` where it is a token bought from somewhere else. */
export function unmarked(caller: Caller, answer: Answer): Answer {
  const { [MARK]: mark, ...headers } = answer.headers
  if (mark === undefined) return answer
  if (mark !== markOf(caller))
    throw new ServiceError(
      'forbidden',
      'The token this payment bought is given again only where it was bought from, or to the wallet that signs for it: see the note of the list of plans. Do not pay again.',
    )
  return { ...answer, headers }
}

function markOf({ client }: Caller): string {
  return createHash('sha256').update(`bought from ${client}`).digest('hex').slice(0, 32)
}
