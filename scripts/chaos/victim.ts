/** The gateway under test, as an operator runs it: a process of its own that is killed and restarted. */
import { type ChildProcess, spawn } from 'node:child_process'
import { resolve } from 'node:path'

const root = resolve(import.meta.dirname, '../..')
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
      await ended(child, 'SIGKILL')
      child = await start(environment)
    },
    stop: () => ended(child, 'SIGTERM'),
  }
}

async function start(environment: Readonly<Record<string, string>>): Promise<ChildProcess> {
  const child = spawn(process.execPath, ['dist/gateway/main.js'], {
    cwd: root,
    env: { ...process.env, ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const killed = (): boolean => child.kill('SIGKILL')
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

async function ended(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const gone = new Promise((resolve) => child.once('exit', resolve))
  child.kill(signal)
  await gone
}
