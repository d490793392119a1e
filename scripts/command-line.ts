/** What the command-line scripts share: flags, usage and errors. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs, type ParseArgsConfig } from 'node:util'
import { type Config, ConfigError } from '../gateway/config/config.ts'
import { startErrorText } from '../gateway/start-error.ts'
import type { DatabaseOptions } from '../gateway/stores/database.ts'

/** Prints the usage and exits with 0 if `--help` or `-h` is among the arguments. */
export function showUsage(usage: string): void {
  if (!process.argv.slice(2).some((argument) => argument === '--help' || argument === '-h')) return
  process.stdout.write(`${usage}\n`)
  process.exit(0)
}

/** Reads the flags with `parseArgs`. An unknown flag prints the usage and exits with 2. */
export function readFlags<const Flags extends ParseArgsConfig>(
  usage: string,
  flags: Flags,
): ReturnType<typeof parseArgs<Flags>> {
  showUsage(usage)
  try {
    return parseArgs(flags)
  } catch (error) {
    process.stderr.write(`${(error as Error).message.split('. ')[0]}.\n\n${usage}\n`)
    process.exit(2)
  }
}

/**
 * Reads the number that an argument gives. Prints what is wrong and exits with 2 if it is not a number of `least` or more:
 * a loop that counts to NaN ends at once, and looks like a run without a fault.
 */
export function readNumber(name: string, text: string, least = 0): number {
  const number = Number(text)
  if (text.trim() !== '' && Number.isFinite(number) && number >= least) return number
  process.stderr.write(`${name} takes a number${least > 0 ? ` from ${least} on` : ''}, not "${text}".\n`)
  process.exit(2)
}

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
