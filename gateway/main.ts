/** The start: reads the command line, and starts one gateway process or several workers. */
import { parseArgs } from 'node:util'
import { ConfigError } from './config/config-error.ts'
import { processEnvironment } from './config/environment.ts'
import { startErrorText } from './start-error.ts'

/** Ends the process. Kept before `guardProcess` replaces process.exit, so that no plugin can end it. */
const exit = process.exit.bind(process)
const MAX_WORKERS = 64

async function main(): Promise<void> {
  const { workers, as } = parseCommand(process.argv.slice(2))
  // Imported here, because the process that starts the others needs little of the gateway, and starts sooner without.
  if (as === 'signer') await (await import('./signer/signer.ts')).runSigner(exit)
  else if (as !== null) await (await import('./process.ts')).runProcess(exit)
  else if (workers !== null) await (await import('./cluster.ts')).runWorkers(workers, exit)
  else (await import('./launcher.ts')).launch(exit)
}

interface Command {
  /** The number behind `--workers`. */
  readonly workers: number | null
  /** The role of this process, if another process of the gateway has started it. The operator may start a signer too. */
  readonly as: 'gateway' | 'worker' | 'signer' | null
}

/** Parses the command line. Throws ConfigError for arguments that are not valid. */
function parseCommand(args: readonly string[]): Command {
  const usage = `Start with --workers and a number from 1 to ${MAX_WORKERS}, or without arguments.`
  const options = { workers: { type: 'string' }, as: { type: 'string' } } as const
  // npm takes a flag that is not behind "--" for a setting of its own, and starts us without it.
  const kept = processEnvironment()['npm_config_workers']
  if (args.length === 0 && kept !== undefined)
    throw new ConfigError([`npm did not pass --workers on. Write: npm start -- --workers ${kept}`])
  try {
    const { workers, as = null } = parseArgs({ args: [...args], options }).values
    if (as === 'gateway' || as === 'worker' || as === 'signer') return { workers: null, as }
    if (workers === undefined && as === null) return { workers: null, as }
    const count = /^\d{1,3}$/.test(workers ?? '') ? Number(workers) : 0
    if (as === null && count >= 1 && count <= MAX_WORKERS) return { workers: count, as }
  } catch (error) {
    throw new ConfigError([`${(error as Error).message}. ${usage}`])
  }
  throw new ConfigError([`The number of workers is not valid. ${usage}`])
}

main().catch((error: unknown) => {
  process.stderr.write(`${startErrorText(error)}\n`)
  exit(1)
})
