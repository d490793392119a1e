/** Lets one product call the operations of another: in the same edition, free of charge and without a journal entry. */
import { Unavailable } from '../errors.ts'
import { type Ask, type Asked, type FreshnessOf, type OperationId, type OutputOf, Reply } from '../plugin/plugin.ts'
import type { BoundOperation, Edition } from './edition.ts'
import { callerOf, runningOf } from '../workers/timeout.ts'

const NOTHING = { params: {}, query: {}, body: undefined }

/** The part of a call, or of a job's run, that operations inherit which it asks. */
export interface AskingCall {
  readonly id: string
  readonly asOf: Date
  readonly signal: AbortSignal
}

/**
 * Creates the `ask` of a product. It calls operations that the product's document names in `uses`. It throws Unavailable
 * if the operation is disabled or paused, and an Error if `uses` does not name it. Input is validated and gets its
 * defaults. Answers are passed without a copy, so that an internal operation may return typed arrays. The delay of an
 * operation applies to products too, so that a free page cannot show what is sold.
 *
 * @param delaySeconds the delay that the `asOf` of the asking call already contains
 */
export function createAsk(edition: Edition, product: string, asking: AskingCall, delaySeconds = 0): Ask {
  return async <Id extends OperationId>(id: Id, ...[input]: Asked<Id>): Promise<OutputOf<Id>> => {
    const asked = usedBy(edition, product, id)
    asked.assertAvailable()
    const { operation } = asked
    const missingDelay = Math.max(0, operation.maxFreshnessSeconds - delaySeconds)
    const asOf = new Date(asking.asOf.getTime() - missingDelay * 1000)
    const answer = await asked.handle({
      id: asking.id,
      operation,
      catalog: edition.catalog,
      input: asked.validate({ ...NOTHING, ...input }),
      access: { kind: 'free' },
      asOf,
      caller: callerOf(asking.signal, runningOf(asking)),
    })
    return (answer instanceof Reply ? answer.body : answer) as OutputOf<Id>
  }
}

/** Creates the `freshnessOf` of a product: what others report of operations that it uses, at the same asOf. */
export function createFreshnessOf(edition: Edition, product: string, asOf: Date): FreshnessOf {
  return async (id, ...[input]) => {
    const asked = usedBy(edition, product, id)
    return (await asked.freshness?.(asked.validate({ ...NOTHING, ...input }), asOf)) ?? null
  }
}

/** An operation that another product uses. Throws an Error if its document does not say so, and Unavailable if disabled. */
function usedBy({ catalog, bound }: Edition, product: string, id: OperationId): BoundOperation {
  const uses = catalog.products.find((one) => one.id === product)?.uses
  if (!uses?.includes(id)) throw new Error(`${product} asks ${id}; add it to "uses" in the product's document`)
  const asked = bound.get(id)
  if (!asked) throw new Unavailable(`${id} is disabled at the moment; nothing was charged.`)
  return asked
}

/** Throws Unavailable if an operation that the product uses is disabled or paused: the product could not answer a payer. */
export function assertUsable(edition: Edition, product: string, uses: readonly OperationId[]): void {
  for (const id of uses) {
    const asked = edition.bound.get(id)
    if (!asked) throw new Unavailable(`${product} needs ${id}, which is disabled at the moment; nothing was charged.`)
    asked.assertAvailable()
  }
}
