/**
 * The validators that this process has compiled. An edition whose product has the same schemas and examples as one before
 * takes them over: a product that is switched off and on again, a reload that takes a change back, another gateway of the
 * process.
 */
import { LRUCache } from 'lru-cache'
import type { Validators } from '../catalog/operation-validators.ts'
import type { OperationId } from '../plugin/catalog.ts'

/** More than any catalog of ours has, and few enough that old schemas do not pile up. */
const MAX_PRODUCTS = 50

/** Validators of products whose schemas compile and whose examples are valid, by the key of their schemas. */
export interface KnownValidators {
  get(key: string): ReadonlyMap<OperationId, Validators> | undefined
  set(key: string, validators: ReadonlyMap<OperationId, Validators>): unknown
}

/** The validators of this process. */
export const knownValidators: KnownValidators = new LRUCache<string, ReadonlyMap<OperationId, Validators>>({
  max: MAX_PRODUCTS,
})
