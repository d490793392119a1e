/** Starts child processes for tests, waits for them, and ends them by pid. */
import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { generatePrivateKey } from 'viem/accounts'
import { compiled } from './compiled.ts'

const root = resolve(import.meta.dirname, '../..')

type Environment = Readonly<Record<string, string>>

export interface Started {
  readonly child: ChildProcess
  /** Returns everything it has printed. */
  output(): string
  /** Resolves with the exit code, or the signal that ended it. */
  readonly ended: Promise<number | string>
  /** Ends it with SIGTERM and waits; after 20 seconds with SIGKILL. */
  stop(): Promise<void>
}

/**
 * Returns the environment of a gateway that keeps everything in `folder`: catalog, plugins and data. It settles payments
 * itself through a node that does not answer.
 */
export function environmentIn(folder: string, port: number): Environment {
  return {
    NETWORK: 'base-sepolia',
    PAY_TO: '0x00000000000000000000000000000000000000A1',
    SETTLE_RPC_URL: 'http://127.0.0.1:9/',
    SETTLE_KEY: generatePrivateKey(),
    DATA_DIR: join(folder, 'data'),
    CATALOG_DIR: join(folder, 'catalog'),
    PLUGIN_DIRS: join(folder, 'plugins'),
    PORT: String(port),
    LOG_LEVEL: 'warn',
  }
}

/** Throws if there is no build. `npm test` makes one; mocha alone does not. */
export function requireBuild(): void {
  if (!existsSync(join(root, 'dist/build.json'))) throw new Error('The gateway is not built: run npm run build first.')
}

/** Starts the built gateway of `project`, as `npm start` does, and resolves once its output matches `sign`. */
export async function startGateway(
  sign: RegExp,
  env: Environment,
  project = root,
  args: readonly string[] = [],
): Promise<Started> {
  requireBuild()
  return startNode([join(project, 'dist/gateway/main.js'), ...args], sign, env)
}

/** Starts a TypeScript file and resolves once its output matches `sign`. Rejects if it ends before. */
export async function start(file: string, sign: RegExp, env: Environment, args: string[] = []): Promise<Started> {
  requireBuild()
  return startNode([await compiled(file), ...args], sign, env)
}

/** Starts a program in `cwd` and resolves once its output matches `sign`. Rejects if it ends before. */
export async function startNode(args: readonly string[], sign: RegExp, env: Environment, cwd = root): Promise<Started> {
  const child = spawn(process.execPath, args, {
    cwd,
    env: { PATH: process.env['PATH'], HOME: process.env['HOME'], ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let printed = ''
  const ended = new Promise<number | string>((done) => child.once('exit', (code, signal) => done(code ?? signal ?? 0)))
  await new Promise<void>((ready, reject) => {
    const onOutput = (chunk: Buffer): void => {
      printed += chunk.toString()
      if (sign.test(printed)) ready()
    }
    child.stdout.on('data', onOutput)
    child.stderr.on('data', onOutput)
    void ended.then((how) => reject(new Error(`${args.join(' ')} ended with ${how}:\n${printed}`)))
  })
  return {
    child,
    output: () => printed,
    ended,
    async stop() {
      child.kill('SIGTERM')
      const killTimer = setTimeout(() => child.kill('SIGKILL'), 20_000)
      await ended
      clearTimeout(killTimer)
    },
  }
}
