/** `fresh` of an operation: what must be true of the data for an answer to be sold. */
import type { FreshData, Operation } from '../plugin/catalog.ts'
import { isObject } from '../validation/json.ts'

/** Reads `fresh` as a document writes it. False means that the answer rests on the request alone. */
export function readFreshData(written: unknown): Operation['fresh'] {
  if (written === false) return 'request'
  if (!isObject(written)) return null
  const { newest_seconds: newestSeconds, sources, coverage } = written as Readonly<Record<string, number>>
  return {
    ...(newestSeconds === undefined ? {} : { newestSeconds }),
    ...(sources === undefined ? {} : { sources }),
    ...(coverage === undefined ? {} : { coverage }),
  }
}

/** True if an operation is sold only while its data are fresh. */
export function promisesFreshData<Kind extends Pick<Operation, 'fresh'>>(
  operation: Kind,
): operation is Kind & { readonly fresh: FreshData } {
  return typeof operation.fresh === 'object' && operation.fresh !== null
}

/** What is required, as the catalog writes it. */
export function writtenFreshData({ newestSeconds, sources, coverage }: FreshData) {
  return {
    ...(newestSeconds === undefined ? {} : { newest_seconds: newestSeconds }),
    ...(sources === undefined ? {} : { sources }),
    ...(coverage === undefined ? {} : { coverage }),
  }
}
