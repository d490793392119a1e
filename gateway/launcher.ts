/**
 * The process that the operator starts. It hands the keys to the signer, runs the gateway in a process of its own,
 * whose environment has no secrets, and kills it if it does not stop in time.
 */
import { fork } from 'node:child_process'
import { join } from 'node:path'
import { takeEnvironment, type Environment } from './config/environment.ts'
import { namesFromFile } from './config/env-file.ts'
import type { Message, Orders, Report } from './parent.ts'
import { onSignals, STOP_MS } from './signals.ts'
import { startSigner } from './signer/start-signer.ts'
import { v8Flags } from './v8-flags.ts'

/**
 * Starts the gateway and runs until it has ended. SIGTERM, SIGINT and a terminal that closes stop it; SIGHUP reloads it.
 * Ends with the exit code of the gateway, and with 1 if it was killed.
 */
export function launch(exit: (code: number) => never): void {
  const environment = takeEnvironment()
  const fromFile = namesFromFile(environment)
  let failure: string | null = null
  const signer = startSigner(environment, (message) => {
    failure = message
    kill()
  })
  const gateway = fork(process.argv[1] as string, ['--as', 'gateway'], { execArgv: [...v8Flags(1)] })
  const send = (message: Message): void => void gateway.send(message, () => {})
  const order = (name: keyof Orders): void => send({ order: name })
  let isStopping = false
  let limit: NodeJS.Timeout | undefined
  const kill = (): void => void gateway.kill('SIGKILL')
  const watchStop = (): void => {
    isStopping = true
    limit ??= setTimeout(() => {
      process.stderr.write(`The gateway did not stop within ${STOP_MS / 1000} seconds and is killed.\n`)
      kill()
    }, STOP_MS)
  }
  onSignals({
    stop() {
      watchStop()
      // Also ends a gateway that has not opened yet.
      gateway.kill('SIGTERM')
    },
    stopAtOnce: kill,
    reload: () => order('reload'),
  })
  // Otherwise it would end this process, and the calls with it. Windows has no such signal.
  if (process.platform !== 'win32')
    process.on('SIGUSR2', () =>
      process.stderr.write(
        'SIGUSR2 replaces workers, and this gateway was started without --workers. Nothing was done.\n',
      ),
    )
  gateway.on('message', (message: Report) => {
    if (message.report === 'started')
      send({
        role: {
          nth: 0,
          workers: null,
          recovers: true,
          sandbox: null,
          environment: signer.environment,
          fromFile,
          signer: signer.socket,
        },
      })
    else if (message.report === 'opened') process.stdout.write(message.welcome)
    else if (message.report === 'stopping') watchStop()
  })
  gateway.once('exit', (code, signal) => {
    clearTimeout(limit)
    signer.stop()
    if (failure !== null) process.stderr.write(`${failure}\n`)
    else if (signal !== null && !isStopping) process.stderr.write(`The gateway was ended by ${signal}.\n`)
    const isClean = code === 0
    const status = code ?? (isStopping && signal === 'SIGTERM' ? 0 : 1)
    void (isClean ? Promise.resolve() : endChain(environment)).then(() => exit(status))
  })
}

/** Ends the chain of a sandbox whose gateway could not do it, unless another gateway uses it. */
async function endChain(environment: Environment): Promise<void> {
  try {
    const { readConfig } = await import('./config/config.ts')
    const config = readConfig(environment)
    const { SANDBOX } = await import('./config/settlement.ts')
    if (config.network !== SANDBOX) return
    const { endAbandonedChain } = await import('./sandbox/chain-folder.ts')
    const { openLog } = await import('./observe/log.ts')
    await endAbandonedChain(join(config.dataDir, 'chain'), openLog(config))
  } catch (error) {
    // The gateway has said what is wrong with its configuration.
    if ((error as Error).name !== 'ConfigError')
      process.stderr.write(`The sandbox chain could not be ended: ${(error as Error).message}\n`)
  }
}
