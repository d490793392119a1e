/** Assembles an edition from its catalog and the products that were set up. */
import { fileURLToPath } from 'node:url'
import type { Catalog, OperationId, Product } from '../plugin/catalog.ts'
import { frozenMap } from '../catalog/frozen.ts'
import type { Validators } from '../catalog/validators.ts'
import { ServiceError } from '../errors.ts'
import type { Facts, Logger } from '../plugin/plugin.ts'
import { assertAskable, bind } from './bound-operation.ts'
import type { BoundOperation, Edition, ProductStatus, DisabledProduct } from './edition.ts'
import type { Instance } from './instance.ts'
import type { ReadyProduct } from './instantiate.ts'

const FACTS_MS = 2_000

export function assemble(
  catalog: Catalog,
  made: ReadonlyMap<string, ReadyProduct>,
  withheld: readonly DisabledProduct[],
  { checkAnswers, log }: { readonly checkAnswers: boolean; readonly log: Logger },
): Edition {
  const bound = new Map<OperationId, BoundOperation>()
  const instances = new Map<string, Instance>()
  for (const product of catalog.products) {
    const { instance, validators } = made.get(product.file) as ReadyProduct
    instances.set(product.id, instance)
    for (const operation of product.operations) {
      const own = validators.get(operation.id) as Validators
      const parts = { operation, instance, validators: own, uses: product.uses, checkAnswers, log }
      bound.set(operation.id, bind({ ...parts, edition: () => edition }))
    }
  }

  function statusOf({ id: product, operations, uses }: Product): ProductStatus {
    const failing = operations.filter(({ id }) => instances.get(product)?.breaker(id).isOpen())
    if (failing.length > 0)
      return {
        product,
        status: 'suspended',
        reason: `${failing.map(({ id }) => id).join(', ')} failed five times running`,
      }
    try {
      assertAskable(edition, product, uses)
      return { product, status: 'ok' }
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error
      return { product, status: 'suspended', reason: error.message }
    }
  }

  const edition: Edition = {
    catalog,
    bound: frozenMap(bound),
    disabled: withheld,
    viewDirs: [
      ...new Set([...instances.values()].flatMap(({ plugin }) => (plugin?.views ? [fileURLToPath(plugin.views)] : []))),
    ],
    status: () => [
      ...catalog.products.map(statusOf),
      ...withheld.map(({ product, reason }) => ({ product, status: 'withheld' as const, reason })),
    ],
    async facts() {
      const all = [...instances].map(async ([id, instance]) => [id, await factsOf(instance, log)] as const)
      return Object.fromEntries(await Promise.all(all))
    },
    start() {
      for (const instance of instances.values()) instance.start(edition)
    },
    async stopJobs(next) {
      await Promise.all([...instances.values()].map((instance) => instance.stopJobs(next)))
    },
    async stop() {
      await Promise.all([...instances.values()].map((instance) => instance.release(edition)))
    },
  }
  for (const instance of instances.values()) instance.retain(edition)
  return edition
}

/** The last facts of each product. */
const lastFacts = new WeakMap<Instance, Facts>()

/** Reads a product's facts. Returns the last ones if it fails or takes too long. */
async function factsOf(instance: Instance, log: Logger): Promise<Facts> {
  let patience: NodeJS.Timeout | undefined
  const late = new Promise<Facts>((_, reject) => {
    patience = setTimeout(() => reject(new Error('they took too long')), FACTS_MS)
  })
  const asked = instance.facts().then((facts) => {
    lastFacts.set(instance, facts)
    return facts
  })
  try {
    return await Promise.race([asked, late])
  } catch (error) {
    log.warn({ product: instance.product, reason: String(error) }, 'a product gave no new facts')
    return lastFacts.get(instance) ?? {}
  } finally {
    clearTimeout(patience)
  }
}
