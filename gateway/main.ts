/** The start: reads the command line, and runs the gateway in this process or in several workers. */
import cluster from 'node:cluster'
import { parseArgs } from 'node:util'
import { ConfigError } from './config/config.ts'
import { sourceStack } from './observe/source-positions.ts'
import { CatalogError } from './validation/issue.ts'

/** Ends the process. Kept before `guardProcess` replaces process.exit, so that no plugin can end it. */
const exit = process.exit.bind(process)
const MAX_WORKERS = 64

async function main(): Promise<void> {
  const workers = workersOf(process.argv.slice(2))
  // Imported here, because the primary of several workers needs little of the gateway and starts sooner without the rest.
  if (workers === null || cluster.isWorker) await (await import('./process.ts')).runProcess(exit)
  else await (await import('./workers.ts')).runWorkers(workers, exit)
}

/** Returns the number behind `--workers`, or null without it. Throws ConfigError for any other argument. */
function workersOf(args: readonly string[]): number | null {
  const usage = `Start with --workers and a number from 1 to ${MAX_WORKERS}, or without arguments.`
  try {
    const { workers } = parseArgs({ args: [...args], options: { workers: { type: 'string' } } }).values
    if (workers === undefined) return null
    const count = /^\d{1,3}$/.test(workers) ? Number(workers) : 0
    if (count >= 1 && count <= MAX_WORKERS) return count
  } catch (error) {
    throw new ConfigError([`${(error as Error).message}. ${usage}`])
  }
  throw new ConfigError([`The number of workers is not valid. ${usage}`])
}

/** Returns the message alone for errors that an operator can fix, else the stack. */
function describeError(error: unknown): string {
  if (error instanceof ConfigError) return error.message
  const { code, port, message, stack } = error as NodeJS.ErrnoException & { readonly port?: number }
  if (code === 'EADDRINUSE') return `Port ${port} is in use by another process. Set PORT to a free port.`
  if (error instanceof CatalogError) return message
  return sourceStack(stack ?? String(error))
}

main().catch((error: unknown) => {
  process.stderr.write(`${describeError(error)}\n`)
  exit(1)
})
