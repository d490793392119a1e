/** The process: reads the configuration, creates the gateway, listens, and stops on signals. */
import { resolve } from 'node:path'
import { simplest } from './documents/listed-operations.ts'
import { CatalogError } from './validation/issue.ts'
import { ConfigError, readConfig } from './config/config.ts'
import { isCopiedCode } from './editions/code-copies.ts'
import { guardProcess } from './editions/process-guard.ts'
import { createGateway, type Gateway } from './compose.ts'
import { createLog } from './observe/log.ts'
import { sourceStack } from './observe/source-positions.ts'
import { recipientsOf } from './config/pay-to.ts'

/** Ends the process. Kept before `guardProcess` replaces process.exit, so that no plugin can end it. */
const exit = process.exit.bind(process)

async function main(): Promise<void> {
  const settings = readConfig()
  const log = createLog(settings.logLevel)
  guardProcess(isCopiedCode, exit, log)
  const gateway = await createGateway(settings, { log })
  stopOnSignals(gateway)
  const address = await gateway.listen().catch(async (error: unknown) => {
    await gateway.close()
    throw error
  })
  const { config, settlement } = gateway
  await settlement.sandbox?.describe(config.baseUrl)
  process.stdout.write(welcome(gateway, address))
}

/** What the terminal shows at the start: addresses, the sandbox's buyer, and commands to try. */
function welcome({ config, settlement, current }: Gateway, address: string): string {
  const first = simplest(current.catalog)
  const lines = [
    `Tollgate is open at ${address}`,
    `  data     ${config.dataMode}`,
    ...recipientsOf(settlement).map(({ network, payTo }) => `  network  ${network.name}, paid to ${payTo}`),
  ]
  if (settlement.sandbox)
    lines.push(
      `  chain    ${settlement.sandbox.rpcUrl} (local, test money only)`,
      `  buyer    ${settlement.sandbox.buyer.address}`,
    )
  lines.push(`  process  ${process.pid} (kill -HUP reloads the catalog)`)
  for (const { product, reason } of current.disabled) lines.push(`  disabled ${product}: ${reason}`)
  lines.push('', 'Try:', `  curl -i ${address}${first?.path ?? '/pricing.json'}`)
  const dataDir = config.dataRoot === resolve('data') ? '' : `DATA_DIR=${config.dataRoot} `
  if (settlement.sandbox && first) lines.push(`  ${dataDir}npm run pay -- ${first.route}`)
  lines.push(`  open ${address}/pricing`, '')
  return `${lines.join('\n')}\n`
}

function stopOnSignals(gateway: Gateway): void {
  let stopping = false
  const stop = (): void => {
    if (stopping) return
    stopping = true
    gateway.close().then(
      () => exit(0),
      (error: unknown) => {
        gateway.log.fatal({ err: error }, 'the gateway did not stop cleanly')
        exit(1)
      },
    )
  }
  process.on('SIGINT', stop)
  process.on('SIGTERM', stop)
  process.on('SIGHUP', () => {
    gateway.reload().catch((error: unknown) => gateway.log.error({ err: error }, 'the catalog was not reloaded'))
  })
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
