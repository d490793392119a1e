/** What commands that work on the data of a gateway have in common: where these are, and how they end. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { type Config, ConfigError } from '../gateway/config/config.ts'
import { startErrorText } from '../gateway/start-error.ts'
import type { DatabaseOptions } from '../gateway/stores/database.ts'

/**
 * Prints an error and sets the exit code to 1. Errors of the `expected` classes are shown without a stack trace, as those
 * that end a start are: their message tells the operator what to do.
 */
export function reportError(error: unknown, ...expected: readonly (new (...args: never[]) => Error)[]): void {
  const isExpected = expected.some((kind) => error instanceof kind)
  process.stderr.write(`${isExpected ? (error as Error).message : startErrorText(error)}\n`)
  process.exitCode = 1
}

/**
 * Returns where a database of the gateway is. Throws ConfigError if the file is missing: an empty database would look as if
 * nothing had been sold.
 */
export function existingDatabase({ databaseUrl, dataDir }: Config, name: string): DatabaseOptions {
  if (databaseUrl !== null) return { url: databaseUrl }
  const file = join(dataDir, name)
  if (!existsSync(file))
    throw new ConfigError([
      `${file} does not exist. Start the gateway first, or set DATA_DIR, NETWORK and DATA_MODE as the gateway has them.`,
    ])
  return { file }
}
