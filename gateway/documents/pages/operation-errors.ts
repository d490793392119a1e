/** The errors that an operation can answer, from what the catalog says of it. */
import { promisesFreshData } from '../../catalog/fresh-data.ts'
import { ERRORS, type ErrorCode } from '../../errors.ts'
import type { Catalog, Operation } from '../../plugin/plugin.ts'
import { hasInput } from '../listed-operations.ts'

export interface OperationError {
  readonly code: ErrorCode
  readonly status: number
  readonly when: string
  readonly action: string
}

/** Returns the errors by status: those of its input, its payment and its data, and those of any call. */
export function errorsOf(operation: Operation, { plans }: Catalog): readonly OperationError[] {
  const { price, params, bodyMedia, identifier, sellEmpty, id } = operation
  const isCovered = plans.plans.some(({ authorizes }) => authorizes.includes(id))
  const codes: readonly ErrorCode[] = [
    ...(price === null ? [] : PRICED),
    ...(isCovered ? (['token_invalid', 'token_expired', 'token_route'] as const) : []),
    ...(price !== null && identifier === 'required' ? (['identifier_required'] as const) : []),
    ...(hasInput(operation) ? (['validation_failed'] as const) : []),
    ...(params === null ? [] : (['not_found'] as const)),
    ...(bodyMedia.length === 0 ? [] : (['body_too_large', 'media_unsupported'] as const)),
    ...(sellEmpty ? [] : (['empty_not_sold'] as const)),
    ...(promisesFreshData(operation) ? (['data_stale'] as const) : []),
    'rate_limited',
    'product_failed',
    'product_suspended',
    'product_timeout',
  ]
  return codes
    .map((code) => ({ code, ...ERRORS[code] }))
    .sort((one, other) => one.status - other.status)
    .map(({ code, status, when, action }) => ({ code, status, when, action }))
}

const PRICED = [
  'payment_required',
  'payment_invalid',
  'payment_conflict',
  'settlement_failed',
  'settlement_pending',
  'settler_unavailable',
] as const satisfies readonly ErrorCode[]
