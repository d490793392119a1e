/** Lets one product call the operations of another: in the same edition, free of charge and without a journal entry. */
import { Unavailable } from '../errors.ts'
import { type Ask, type InputOf, type OperationId, type OutputOf, Reply } from '../plugin/plugin.ts'
import type { Edition } from './edition.ts'

/** What an asked operation inherits from the call, or the run of a job, that asks it. */
export interface Within {
  readonly asOf: Date
  readonly signal: AbortSignal
  readonly callId: string
  /** What the asking operation itself holds back; 0 for a job. */
  readonly heldBackSeconds?: number
}

/**
 * Creates the `ask` of a product. It calls operations that the product's document names in `uses`. It throws Unavailable
 * if the operation is disabled or paused, and an Error if `uses` does not name it. Input is validated and gets its
 * defaults. Answers of internal operations are passed as they are, typed arrays included. An operation that delays its
 * data delays them for products too, so that a free page cannot show what is sold.
 */
export function askFrom(edition: Edition, product: string, within: Within): Ask {
  return async <Id extends OperationId>(id: Id, input: InputOf<Id>): Promise<OutputOf<Id>> => {
    const uses = edition.catalog.products.find((one) => one.id === product)?.uses
    if (!uses?.includes(id)) throw new Error(`${product} asks ${id}; add it to "uses" in the product's document`)
    const asked = edition.bound.get(id)
    if (!asked) throw new Unavailable(`${id} is disabled at the moment; nothing was charged.`)
    asked.assertAvailable()
    const { operation } = asked
    const more = Math.max(0, operation.maxFreshnessSeconds - (within.heldBackSeconds ?? 0))
    const asOf = new Date(within.asOf.getTime() - more * 1000)
    const answer = await asked.handle({
      id: within.callId,
      operation,
      catalog: edition.catalog,
      input: asked.validate(input),
      access: { kind: 'free' },
      asOf,
      signal: within.signal,
    })
    return (answer instanceof Reply ? answer.body : answer) as OutputOf<Id>
  }
}

/** Throws Unavailable if an operation that the product uses is disabled or paused: the product could not answer a payer. */
export function assertAskable(edition: Edition, product: string, uses: readonly OperationId[]): void {
  for (const id of uses) {
    const asked = edition.bound.get(id)
    if (!asked) throw new Unavailable(`${product} needs ${id}, which is disabled at the moment; nothing was charged.`)
    asked.assertAvailable()
  }
}
