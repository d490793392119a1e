/** Reads the flags of a command line. */
import { parseArgs, type ParseArgsConfig } from 'node:util'

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
