/** One gateway process: creates the gateway, listens, and stops on signals. A worker also obeys its primary. */
import { resolve } from 'node:path'
import { readConfig } from './config/config.ts'
import { recipientsOf } from './config/pay-to.ts'
import { createGateway, type Gateway } from './compose.ts'
import { simplest } from './documents/listed-operations.ts'
import { isCopiedCode } from './editions/code-copies.ts'
import { guardProcess } from './editions/process-guard.ts'
import { createLog } from './observe/log.ts'
import { configOfWorker, joinPrimary } from './workers.ts'

/** Runs the gateway until a signal or the primary ends it. `exit` ends the process; no plugin may do that. */
export async function runProcess(exit: (code: number) => never): Promise<void> {
  const primary = await joinPrimary()
  const role = primary?.role ?? null
  const settings = role ? configOfWorker(readConfig(), role) : readConfig()
  const shared = createLog(settings.logLevel)
  const log = role ? shared.child({ worker: role.nth + 1 }) : shared
  guardProcess(isCopiedCode, exit, log)
  const sandbox = role?.sandbox ?? null
  const gateway = await createGateway(settings, {
    log,
    ...(sandbox ? { sandbox } : {}),
    ...(primary ? { peers: primary.peers } : {}),
  })
  const stop = stopOnSignals(gateway, exit)
  const address = await gateway.listen().catch(async (error: unknown) => {
    await gateway.close()
    throw error
  })
  await gateway.settlement.sandbox?.describe(gateway.config.baseUrl)
  const text = welcome(gateway, address, role?.workers ?? null)
  if (!primary) return void process.stdout.write(text)
  primary.obey({ reload: () => reload(gateway), drain: () => stop({ drains: true }), stop })
  primary.opened(text)
}

/** What the terminal shows at the start: addresses, the sandbox's buyer, and commands to try. */
function welcome({ config, settlement, current }: Gateway, address: string, workers: number | null): string {
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
  if (workers === null) lines.push(`  process  ${process.pid} (kill -HUP reloads the catalog)`)
  else
    lines.push(
      `  process  ${process.ppid} (kill -HUP reloads the catalog, kill -USR2 restarts the workers one by one)`,
      `  workers  ${workers}`,
    )
  for (const { product, reason } of current.disabled) lines.push(`  disabled ${product}: ${reason}`)
  lines.push('', 'Try:', `  curl -i ${address}${first?.path ?? '/pricing.json'}`)
  const dataDir = config.dataRoot === resolve('data') ? '' : `DATA_DIR=${config.dataRoot} `
  if (settlement.sandbox && first) lines.push(`  ${dataDir}npm run pay -- ${first.route}`)
  lines.push(`  open ${address}/pricing`, '')
  return `${lines.join('\n')}\n`
}

function reload(gateway: Gateway): void {
  gateway.reload().catch((error: unknown) => gateway.log.error({ err: error }, 'the catalog was not reloaded'))
}

/** Stops on SIGINT and SIGTERM, and reloads on SIGHUP. Returns the function that stops. */
function stopOnSignals(gateway: Gateway, exit: (code: number) => never): (options?: { drains: boolean }) => void {
  let stopping = false
  const stop = (options?: { drains: boolean }): void => {
    if (stopping) return
    stopping = true
    gateway.close(options).then(
      () => exit(0),
      (error: unknown) => {
        gateway.log.fatal({ err: error }, 'the gateway did not stop cleanly')
        exit(1)
      },
    )
  }
  process.on('SIGINT', () => stop())
  process.on('SIGTERM', () => stop())
  process.on('SIGHUP', () => reload(gateway))
  return stop
}
