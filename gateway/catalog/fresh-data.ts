/** `fresh` of operations and plans: what must be true of the data for an answer or a plan to be sold. */
import type { FreshData, Operation } from '../plugin/catalog.ts'
import { isObject } from '../validation/json.ts'

/** Reads `fresh` of an operation as a document writes it. False means that the answer rests on the request alone. */
export function readFresh(written: unknown): Operation['fresh'] {
  return written === false ? 'request' : readFreshData(written)
}

/** Reads what a document demands of data. Null if it demands nothing. */
export function readFreshData(written: unknown): FreshData | null {
  if (!isObject(written)) return null
  const { newest_seconds: newestSeconds, sources, coverage } = written as Readonly<Record<string, number>>
  return {
    ...(newestSeconds === undefined ? {} : { newestSeconds }),
    ...(sources === undefined ? {} : { sources }),
    ...(coverage === undefined ? {} : { coverage }),
  }
}

/** Both demands in one: of each, the stricter. */
export function stricterOf(one: FreshData, other: FreshData): FreshData {
  const newestSeconds = Math.min(one.newestSeconds ?? Infinity, other.newestSeconds ?? Infinity)
  const sources = Math.max(one.sources ?? 0, other.sources ?? 0)
  const coverage = Math.max(one.coverage ?? 0, other.coverage ?? 0)
  return {
    ...(newestSeconds === Infinity ? {} : { newestSeconds }),
    ...(sources === 0 ? {} : { sources }),
    ...(coverage === 0 ? {} : { coverage }),
  }
}

/** True if an operation is sold only while its data are fresh. */
export function promisesFreshData<Kind extends Pick<Operation, 'fresh'>>(
  operation: Kind,
): operation is Kind & { readonly fresh: FreshData } {
  return typeof operation.fresh === 'object' && operation.fresh !== null
}

/** The requirements, as the catalog writes them. */
export function writtenFreshData({ newestSeconds, sources, coverage }: FreshData) {
  return {
    ...(newestSeconds === undefined ? {} : { newest_seconds: newestSeconds }),
    ...(sources === undefined ? {} : { sources }),
    ...(coverage === undefined ? {} : { coverage }),
  }
}
