/** How a script is told what to do: its flags, and the words that explain them. */
import { parseArgs, type ParseArgsConfig } from 'node:util'

/** Where `--help` is among the arguments: shows how the script is used, and ends it. */
export function showUsage(usage: string): void {
  if (!process.argv.slice(2).some((argument) => argument === '--help' || argument === '-h')) return
  process.stdout.write(`${usage}\n`)
  process.exit(0)
}

/** The flags as `parseArgs` reads them. A flag that there is not ends the script with 2 and the words. */
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
