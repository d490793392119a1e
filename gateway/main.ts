/** Read the configuration, create the gateway, listen, close on signals. */
import { ConfigError, readConfig } from './config.ts'
import { createGateway, type Gateway } from './gateway.ts'
import { payeesOf } from './payments/accounts.ts'

async function main(): Promise<void> {
  const gateway = await createGateway(readConfig())
  stopOnSignals(gateway)
  // A plugin that forgot to wait for something must not end the calls of all others.
  process.on('unhandledRejection', (error) => gateway.log.error({ err: error }, 'a failure nobody waited for'))
  const address = await gateway.listen()
  const { config, road } = gateway
  await road.sandbox?.describe(config.baseUrl)
  process.stdout.write(welcome(gateway, address))
}

/** The address, the buyer, and three commands to try. */
function welcome({ config, road, current }: Gateway, address: string): string {
  const priced = [...current.catalog.operations.values()].filter((operation) => operation.price !== null)
  const first = priced.find((operation) => operation.method === 'GET') ?? priced[0]
  const lines = [
    `Tollgate is open at ${address}`,
    `  data     ${config.dataMode}`,
    ...payeesOf(road).map(({ network, payTo }) => `  network  ${network.name}, paid to ${payTo}`),
  ]
  if (road.sandbox)
    lines.push(`  chain    ${road.sandbox.rpcUrl} (local, test money only)`, `  buyer    ${road.sandbox.buyer.address}`)
  for (const { product, reason } of current.withheld) lines.push(`  withheld ${product}: ${reason}`)
  lines.push('', 'Try:', `  curl -i ${address}${first?.path ?? '/pricing.json'}`)
  if (road.sandbox && first) lines.push(`  npm run pay -- ${first.route}`)
  lines.push(`  open ${address}/pricing`, '')
  return `${lines.join('\n')}\n`
}

function stopOnSignals(gateway: Gateway): void {
  let stopping = false
  const stop = (): void => {
    if (stopping) return
    stopping = true
    gateway.close().then(
      () => process.exit(0),
      (error: unknown) => {
        gateway.log.fatal({ err: error }, 'the gateway did not stop cleanly')
        process.exit(1)
      },
    )
  }
  process.on('SIGINT', stop)
  process.on('SIGTERM', stop)
  process.on('SIGHUP', () => {
    gateway.reload().catch((error: unknown) => gateway.log.error({ err: error }, 'the catalog was not reloaded'))
  })
}

main().catch((error: unknown) => {
  process.stderr.write(`${error instanceof ConfigError ? error.message : ((error as Error).stack ?? String(error))}\n`)
  process.exit(1)
})
