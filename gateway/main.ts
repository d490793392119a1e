/** Read the configuration, create the gateway, listen, close on signals. */
import { simplest } from './documents/listed-operations.ts'
import { CatalogError } from './validation/issue.ts'
import { ConfigError, readConfig } from './config/config.ts'
import { COPIES } from './editions/code-copies.ts'
import { guardProcess } from './editions/guard.ts'
import { createGateway, type Gateway } from './compose.ts'
import { createLog } from './observe/log.ts'
import { recipientsOf } from './config/pay-to.ts'

/** The only way to end the process, once it is guarded. */
const exit = process.exit.bind(process)

async function main(): Promise<void> {
  const settings = readConfig()
  const log = createLog(settings.logLevel)
  guardProcess(COPIES, exit, log)
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

/** The address, the buyer, the process, and commands to try. */
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
  lines.push(`  process  ${process.pid} (kill -HUP reads the files anew)`)
  for (const { product, reason } of current.withheld) lines.push(`  withheld ${product}: ${reason}`)
  lines.push('', 'Try:', `  curl -i ${address}${first?.path ?? '/pricing.json'}`)
  if (settlement.sandbox && first) lines.push(`  npm run pay -- ${first.route}`)
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

/** One sentence for what an operator can mend, else the stack. */
function wordsOf(error: unknown): string {
  if (error instanceof ConfigError) return error.message
  const { code, port, message, stack } = error as NodeJS.ErrnoException & { readonly port?: number }
  if (code === 'EADDRINUSE') return `Port ${port} is taken by another process. Set PORT to one that is free.`
  if (error instanceof CatalogError) return message
  return stack ?? String(error)
}

main().catch((error: unknown) => {
  process.stderr.write(`${wordsOf(error)}\n`)
  exit(1)
})
