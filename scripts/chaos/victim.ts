/** The gateway under test, as an operator runs it: a process of its own that is killed and restarted. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { resolve } from 'node:path'
import { commandOf, familyOf } from '../process-family.ts'

const root = resolve(import.meta.dirname, '../..')
const MAIN = 'dist/gateway/main.js'
const READY = /is open at/

type Environment = Readonly<Record<string, string>>

export interface VictimOptions {
  /** Arguments of the gateway, such as `--workers 2`. */
  readonly args?: readonly string[]
  /** Options of Node, which all processes of the gateway inherit. */
  readonly nodeOptions?: readonly string[]
  /** Receives what the gateway prints. */
  readonly onOutput?: (text: string) => void
}

export interface Victim {
  /** The processes that answer calls: the gateway itself, or its workers. */
  pids(): readonly number[]
  /** Kills all its processes with SIGKILL. */
  kill(): Promise<void>
  /** Starts it after it was killed. Resolves when it accepts calls. */
  restart(): Promise<void>
  /** Ends it with SIGTERM, so that it finishes its work. */
  stop(): Promise<void>
}

/** Starts the gateway with this environment. Rejects with its output if it ends before it accepts calls. */
export async function startVictim(environment: Environment, options: VictimOptions = {}): Promise<Victim> {
  let child = await start(environment, options)
  return {
    pids: () => familyOf(child.pid as number).filter((pid) => /--as\0(gateway|worker)\0/.test(commandOf(pid))),
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
  { args = [], nodeOptions = [], onOutput = () => {} }: VictimOptions,
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
  if (child.exitCode !== null || child.signalCode !== null) return
  for (const pid of familyOf(child.pid as number).toReversed())
    if (commandOf(pid).includes(MAIN)) process.kill(pid, 'SIGKILL')
}

async function exited(child: ChildProcess): Promise<void> {
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
}
