/**
 * Cells of the matrix that fail on the code of today, with the reason. The suite prints them. Remove an entry when its
 * cell passes: for `npm run lab -- venues` a listed cell that passes is a failure too.
 */
import type { FailureScope } from './failure-matrix.ts'
import type { FaultName } from './faults.ts'

export interface ExpectedFailure {
  readonly failures: readonly (FaultName | 'none')[]
  readonly scope?: FailureScope
  readonly products: readonly string[]
  readonly reason: string
}

const EXPECTED_FAILURES: readonly ExpectedFailure[] = []

/** Why a cell is expected to fail; null if it has to pass. */
export function expectedFailure(failure: FaultName | 'none', scope: FailureScope, product: string): string | null {
  const found = EXPECTED_FAILURES.find(
    (entry) => entry.failures.includes(failure) && (entry.scope ?? scope) === scope && entry.products.includes(product),
  )
  return found?.reason ?? null
}
