/** Explains what to do about a PostgreSQL server that cannot be used when the gateway starts. */
import { DataError } from './data-error.ts'

/** Says what is wrong with the database of DATABASE_URL; a mistake in code is returned as it is. */
export function serverError(error: unknown): unknown {
  if (!(error instanceof Error)) return error
  // A write that fails says why in its cause.
  const cause = error.cause instanceof Error ? error.cause : error
  if (cause instanceof TypeError || cause instanceof RangeError) return error
  return new DataError(
    `The database of DATABASE_URL cannot be used: ${reasonOf(cause)}. Check that the server runs and lets this machine in, that the ` +
      'database exists, and that its user may create tables in it.',
  )
}

/** A name with several addresses has an error for each, and no message of its own. */
function reasonOf(error: Error): string {
  if (!(error instanceof AggregateError)) return error.message
  return error.errors.map((each: unknown) => (each instanceof Error ? each.message : String(each))).join(', ')
}
