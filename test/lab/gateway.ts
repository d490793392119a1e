/** The one starter of gateways: the built one as an operator runs it, a process of its own that can be killed and restarted. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import { commandOf, familyOf } from '../support/process-family.ts'
import { root } from './experiment.ts'

const MAIN = 'dist/gateway/main.js'
const READY = /is open at/

type Environment = Readonly<Record<string, string>>

export interface GatewayOptions {
  /** Arguments of the gateway, such as `--workers 2`. */
  readonly args?: readonly string[]
  /** Options of Node, which all processes of the gateway inherit. */
  readonly nodeOptions?: readonly string[]
  /** Receives what the gateway prints. */
  readonly onOutput?: (text: string) => void
}

export interface Gateway {
  /** The processes that answer calls: the gateway itself, or its workers. */
  pids(): readonly number[]
  isRunning(): boolean
  /** Kills all its processes with SIGKILL. */
  kill(): Promise<void>
  /** Starts it after it was killed. Resolves when it accepts calls. */
  restart(): Promise<void>
  /** Ends it with SIGTERM, so that it finishes its work. */
  stop(): Promise<void>
}

/** Starts the gateway with this environment. Rejects with its output if it ends before it accepts calls. */
export async function startGateway(environment: Environment, options: GatewayOptions = {}): Promise<Gateway> {
  let child = await start(environment, options)
  return {
    pids: () => familyOf(child.pid as number).filter((pid) => /--as\0(gateway|worker)\0/.test(commandOf(pid))),
    isRunning: () => isAlive(child),
    async kill() {
      killAll(child)
      await exited(child)
    },
    async restart() {
      child = await start(environment, options)
    },
    async stop() {
      child.kill('SIGTERM')
      await exited(child)
    },
  }
}

async function start(
  environment: Environment,
  { args = [], nodeOptions = [], onOutput = () => {} }: GatewayOptions,
): Promise<ChildProcess> {
  const child = spawn(process.execPath, [...nodeOptions, MAIN, ...args], {
    cwd: root,
    env: { PATH: process.env['PATH'], HOME: process.env['HOME'], ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const killed = (): void => killAll(child)
  process.once('exit', killed)
  child.once('exit', () => process.off('exit', killed))
  let printed = ''
  await new Promise<void>((ready, reject) => {
    const take = (chunk: Buffer): void => {
      const text = chunk.toString()
      onOutput(text)
      printed = (printed + text).slice(-3_000)
      if (READY.test(printed)) ready()
    }
    child.stdout.on('data', take)
    child.stderr.on('data', take)
    child.once('exit', () => reject(new Error(`the gateway did not start:\n${printed}`)))
  })
  return child
}

/**
 * Kills every process of the gateway in one go: a gateway whose launcher has died ends by itself, which is no crash. The
 * chain of the sandbox lives on.
 */
function killAll(child: ChildProcess): void {
  if (!isAlive(child)) return
  for (const pid of familyOf(child.pid as number).toReversed())
    if (commandOf(pid).includes(MAIN)) process.kill(pid, 'SIGKILL')
}

async function exited(child: ChildProcess): Promise<void> {
  if (isAlive(child)) await once(child, 'exit')
}

const isAlive = ({ exitCode, signalCode }: ChildProcess): boolean => exitCode === null && signalCode === null

/** Waits until a service with our own catalog has computed the history that it sells. Throws after two minutes. */
export async function untilReady(url: string): Promise<void> {
  for (let tries = 0; tries < 600; tries++) {
    const response = await fetch(`${url}/v1/regime/sample`).catch(() => null)
    // An answer that nobody reads keeps its connection open.
    await response?.body?.cancel()
    if (response?.ok) return
    await delay(200)
  }
  throw new Error('the service has not computed its history within two minutes')
}
