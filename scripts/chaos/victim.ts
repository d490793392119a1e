/** The gateway under test, as an operator runs it: a process of its own that is killed and restarted. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { resolve } from 'node:path'
import { commandOf, familyOf } from '../process-family.ts'

const root = resolve(import.meta.dirname, '../..')
const MAIN = 'dist/gateway/main.js'
const READY = /Tollgate is open/

export interface Victim {
  /** Kills it with SIGKILL and starts it again. Resolves when it accepts calls. */
  killAndRestart(): Promise<void>
  /** Ends it with SIGTERM, so that it finishes its work. */
  stop(): Promise<void>
}

/** Starts the gateway with this environment. Rejects with its output if it ends before it accepts calls. */
export async function startVictim(environment: Readonly<Record<string, string>>): Promise<Victim> {
  let child = await start(environment)
  return {
    async killAndRestart() {
      killAll(child)
      await exited(child)
      child = await start(environment)
    },
    async stop() {
      child.kill('SIGTERM')
      await exited(child)
    },
  }
}

async function start(environment: Readonly<Record<string, string>>): Promise<ChildProcess> {
  const child = spawn(process.execPath, [MAIN], {
    cwd: root,
    env: { ...process.env, ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const killed = (): void => killAll(child)
  process.once('exit', killed)
  child.once('exit', () => process.off('exit', killed))
  let printed = ''
  await new Promise<void>((ready, reject) => {
    const onOutput = (chunk: Buffer): void => {
      printed += chunk.toString()
      if (READY.test(printed)) ready()
    }
    child.stdout.on('data', onOutput)
    child.stderr.on('data', onOutput)
    child.once('exit', () => reject(new Error(`the gateway did not start:\n${printed.slice(-3_000)}`)))
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
