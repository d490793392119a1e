/** One gateway process: creates the gateway, listens, and obeys signals and the process that started it. */
import { resolve } from 'node:path'
import { isSetting, readConfig } from './config/config.ts'
import { followEnvFile } from './config/env-file.ts'
import { ONE_JOURNAL, recipientsOf } from './config/pay-to.ts'
import { createGateway, type Gateway } from './compose.ts'
import { simplest, simplestPost } from './documents/listed-operations.ts'
import { isPluginCode } from './plugin-code/copies.ts'
import { guardProcess } from './plugin-code/process-guard.ts'
import { format } from './http/view-formats.ts'
import { openLog } from './observe/log.ts'
import { configOfProcess, joinParent, type Parent } from './parent.ts'
import { isHungUp, STOP_MS } from './signals.ts'
import { connectSigner } from './stores/signer-client.ts'
import { withCommands } from './config/project-root.ts'

/**
 * Runs the gateway until a signal, the launcher or the primary ends it. `exit` ends the process; no plugin may do that.
 *
 * @throws Error if this process was started by hand
 */
export async function runProcess(exit: (code: number) => never): Promise<void> {
  const obeyed = obeySignals()
  const parent = await joinParent(exit)
  const { role } = parent
  const settings = configOfProcess(readConfig(role.environment), role)
  const shared = openLog(settings)
  const log = role.workers === null ? shared : shared.child({ worker: role.nth + 1 })
  guardProcess(isPluginCode, exit, log)
  const { sandbox } = role
  const signer = connectSigner(role.signer, log)
  // Awaited where a key is first needed, and may fail before.
  signer.catch(() => {})
  const gateway = await createGateway(settings, {
    log,
    signer,
    recovers: role.recovers,
    envFile: followEnvFile({
      ...role,
      isSetting: (name) => isSetting(name, settings),
      onSetting: (name) => {
        if (role.nth === 0) log.warn({ setting: name }, `.env: restart to use ${name}`)
      },
    }),
    ...(sandbox ? { sandbox } : {}),
    ...(parent.peers ? { peers: parent.peers } : {}),
  })
  const stop = stopper(gateway, parent, exit)
  obeyed(gateway, stop, role.workers !== null)
  await parent.mayListen()
  const address = await gateway.listen().catch(async (error: unknown) => {
    await gateway.close()
    throw error
  })
  await gateway.settlement.sandbox?.describe(gateway.config.baseUrl)
  parent.obey({
    reload: () => reload(gateway),
    renewConnections: () => gateway.renewConnections(),
    drain: () => stop({ drains: true }),
    stop,
  })
  parent.opened(welcome(gateway, address, role.workers))
}

/** The text that the terminal shows at the start: addresses, the sandbox's buyer and token, and commands to try. */
export function welcome(
  { config, settlement, current }: Pick<Gateway, 'config' | 'settlement' | 'current'>,
  address: string,
  workers: number | null,
): string {
  const first = simplest(current.catalog)
  const lines = [
    `Tollgate is open at ${address}`,
    `  data     ${config.dataMode}`,
    ...recipientsOf(settlement).map(({ network, payTo }) => `  network  ${network.name}, paid to ${payTo}`),
  ]
  if (!settlement.sandbox) lines.push(`           ${ONE_JOURNAL}`)
  else
    lines.push(
      `  chain    ${settlement.sandbox.rpcUrl} (local, test money only)`,
      `  buyer    ${settlement.sandbox.buyer.address}`,
      ...unusedInSandbox(config),
    )
  if (workers === null) lines.push(`  process  ${process.ppid} (kill -HUP reloads the catalog)`)
  else
    lines.push(
      `  process  ${process.ppid} (kill -HUP reloads the catalog, kill -USR2 restarts the workers one by one)`,
      `  workers  ${workers}`,
    )
  lines.push(`  operator ${operatorConsole(config, settlement, address)}`)
  for (const { product, reason } of current.disabled) lines.push(`  disabled ${product}: ${reason}`)
  lines.push('', 'Try:', `  curl -i ${address}${first?.path ?? '/pricing.json'}`)
  const dataDir = config.dataRoot === resolve('data') ? '' : `DATA_DIR=${format.shell(config.dataRoot)} `
  const post = simplestPost(current.catalog)
  const routes = [
    ...(first ? [first.route] : []),
    ...(post ? [`${post.operation.route} --body ${format.shell(post.body)}`] : []),
  ]
  if (settlement.sandbox) lines.push(...routes.map((route) => `  ${dataDir}${withCommands(`npm run pay -- ${route}`)}`))
  lines.push(`  open ${address}/pricing`, '')
  return `${lines.join('\n')}\n`
}

/** Where the operator console is and what opens it. A token that the operator has set is not shown. */
function operatorConsole(
  { operatorToken }: Gateway['config'],
  { sandbox }: Gateway['settlement'],
  address: string,
): string {
  if (operatorToken !== null) return `${address}/operator (OPERATOR_TOKEN opens it)`
  if (sandbox) return `${address}/operator (the token is ${sandbox.operatorToken})`
  return 'off (OPERATOR_TOKEN would open it)'
}

/** Names settings that only a real network uses: NETWORK was probably forgotten, and sales would be for test money. */
function unusedInSandbox({ facilitatorUrls, rpcUrl, settleRpcUrl, settleKey }: Gateway['config']): readonly string[] {
  const names = Object.entries({
    FACILITATOR_URL: facilitatorUrls[0],
    RPC_URL: rpcUrl === settleRpcUrl ? null : rpcUrl,
    SETTLE_RPC_URL: settleRpcUrl,
    SETTLE_KEY: settleKey,
  }).flatMap(([name, value]) => (value ? [name] : []))
  if (names.length === 0) return []
  return [`           ${names.join(', ')}: not used in the sandbox. Set NETWORK to take payments on a real network.`]
}

function reload(gateway: Gateway): void {
  gateway.reload().catch((error: unknown) => gateway.log.error({ err: error }, 'the catalog was not reloaded'))
}

type Stop = (options?: { readonly drains: boolean }) => void

/** Longer than a worker that is replaced takes to finish its calls. */
const DRAIN_STOP_MS = 60_000

/** Returns the function that stops the gateway. It may be called again. */
function stopper(gateway: Gateway, parent: Parent, exit: (code: number) => never): Stop {
  let stopping = false
  return ({ drains } = { drains: false }) => {
    if (stopping) return
    stopping = true
    parent.stopping()
    // The process that started this one kills it in time, unless it is gone.
    setTimeout(() => exit(1), drains ? DRAIN_STOP_MS : STOP_MS).unref()
    gateway.close({ drains }).then(
      () => exit(0),
      (error: unknown) => {
        gateway.log.fatal({ err: error }, 'the gateway did not stop cleanly')
        exit(1)
      },
    )
  }
}

/**
 * Stops on SIGINT and SIGTERM, and on SIGHUP if the terminal is gone; otherwise SIGHUP reloads. A terminal sends its signals
 * to this process and to the one that started it, so that the same one may arrive twice. A worker leaves those to its primary,
 * which first takes the port from it. Until the gateway is there, SIGINT and SIGTERM end the process.
 * @returns a function that takes the gateway once it is there
 */
function obeySignals(): (gateway: Gateway, stop: Stop, isWorker: boolean) => void {
  let onHangup = (): void => {}
  process.on('SIGHUP', () => onHangup())
  return (gateway, stop, isWorker) => {
    const stopUnlessLed = (): void => {
      if (!isWorker || !process.connected) stop()
    }
    process.on('SIGINT', stopUnlessLed)
    process.on('SIGTERM', () => stop())
    onHangup = () => (isHungUp() ? stopUnlessLed() : reload(gateway))
  }
}
