/**
 * The commands of `tollgate`. Each reads its own arguments, in a module of its own, which is loaded when the command is
 * called: most need little of the gateway, and start sooner without the rest.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Command, CommanderError } from 'commander'
import { GATEWAY_ROOT, IS_BUILT, PROJECT_ROOT } from '../gateway/config/project-root.ts'

interface Subcommand {
  readonly name: string
  readonly what: string
  run(): Promise<unknown>
}

const COMMANDS: readonly Subcommand[] = [
  { name: 'init', what: 'writes a shop of your own', run: () => import('./init.ts') },
  { name: 'start', what: 'opens the gateway', run: start },
  { name: 'dev', what: 'opens the gateway with a local chain and test money, whatever NETWORK says', run: dev },
  { name: 'check', what: 'prints the price list of the catalog, or every error', run: () => import('./check.ts') },
  { name: 'types', what: 'writes the types of plugins from the schemas', run: () => import('./types.ts') },
  { name: 'new', what: 'writes a working product', run: () => import('./new-product.ts') },
  { name: 'import', what: 'puts the API of an OpenAPI document on sale', run: () => import('./import.ts') },
  { name: 'pay', what: 'calls a route and pays for it', run: () => import('./pay.ts') },
  { name: 'mcp', what: 'offers a service to MCP clients on stdio, and pays', run: () => import('./mcp.ts') },
  { name: 'doctor', what: 'examines a running service as indexers and buyers do', run: () => import('./doctor.ts') },
  { name: 'ledger', what: 'exports sales, lists debts, compares with the chain', run: () => import('./ledger.ts') },
  { name: 'tokens', what: 'lists and revokes the access tokens of plans', run: () => import('./tokens.ts') },
  { name: 'pause', what: 'stops selling a product or an operation', run: () => import('./pause.ts') },
  { name: 'resume', what: 'sells it again', run: () => import('./resume.ts') },
  { name: 'keys', what: 'makes keys for production', run: () => import('./keys.ts') },
  { name: 'backup', what: 'copies the databases, also while the gateway runs', run: () => import('./backup.ts') },
  { name: 'restore', what: 'puts a backup where the gateway finds it', run: () => import('./restore.ts') },
]

/** Runs the gateway in place of this program. It starts its other processes from the file that is named here. */
async function start(): Promise<void> {
  process.argv[1] = join(GATEWAY_ROOT, 'gateway', IS_BUILT ? 'main.js' : 'main.ts')
  await import('../gateway/main.ts')
}

async function dev(): Promise<void> {
  process.env['NETWORK'] = 'sandbox'
  await start()
}

function versionOfTollgate(): string {
  return (JSON.parse(readFileSync(join(PROJECT_ROOT, 'package.json'), 'utf8')) as { version: string }).version
}

const program = new Command('tollgate')
  .description('Sells APIs to software agents over x402.')
  .version(versionOfTollgate())
  .helpCommand(false)
  .exitOverride()
  .configureOutput({
    outputError: (text, write) => {
      const said = text.replace(/^error: /, '').trim()
      write(`${said.charAt(0).toUpperCase()}${said.slice(1)}. List the commands with: tollgate --help\n`)
    },
  })
for (const { name, what, run } of COMMANDS)
  program
    .command(name)
    .description(what)
    .usage('[options]')
    .helpOption(false)
    .allowUnknownOption()
    .allowExcessArguments()
    .action(async () => {
      // The command reads its arguments as if it had been started itself.
      process.argv.splice(2, 1)
      await run()
    })

try {
  if (process.argv.length > 2) await program.parseAsync()
  else program.outputHelp()
} catch (error) {
  if (!(error instanceof CommanderError)) throw error
  process.exitCode = error.exitCode === 0 ? 0 : 2
}
