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
export type KnownValidators = Pick<LRUCache<string, ReadonlyMap<OperationId, Validators>>, 'get' | 'set'>

/** Those of this process. */
export const knownValidators: KnownValidators = new LRUCache({ max: MAX_PRODUCTS })
