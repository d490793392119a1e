/** The processes that `npm run lab -- bench` measures: baselines and gateways, each on a free port of loopback. */
import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Hex, NETWORKS } from '../../../../gateway/config/networks.ts'
import { freePort } from '../../../../gateway/sandbox/anvil.ts'
import { v8Flags } from '../../../../gateway/v8-flags.ts'
import { cpuBetween, readProcessCpu } from '../cpu-time.ts'
import { fillJournal } from '../filled-journal.ts'
import { familyOf } from '../../../support/process-family.ts'
import { defer, newFolder, root } from '../../experiment.ts'

export const NETWORK = NETWORKS['base-sepolia']
export const PAY_TO: Hex = '0x00000000000000000000000000000000000000A1'

export interface Server {
  readonly name: string
  readonly pid: number
  readonly port: number
  readonly url: string
  /** Where its data are, if it is a gateway. */
  readonly dataDir: string
  /** The file that has what it prints. */
  readonly log: string
}

interface GatewayOptions {
  readonly workers?: number
  readonly counts?: string
  readonly settings?: Readonly<Record<string, string>>
}

const GATEWAY = 'test/lab/bench/calls/gateway-process.mjs'

export interface PreparedAnswer {
  readonly path: string
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  /** Base64. */
  readonly body: string
}

export type BaselineKind = 'plain' | 'express' | 'x402' | 'facilitator'

/** The processes of one run, with their files and logs in one folder. They end with the experiment. */
export class Servers {
  readonly #folder = newFolder()
  readonly #children: ChildProcess[] = []

  constructor() {
    defer(() => this.stop())
  }

  /** Starts a node:http server that repeats these answers. */
  async startPlain(answers: readonly PreparedAnswer[]): Promise<Server> {
    const file = join(this.#folder, `answers-${this.#children.length}.json`)
    writeFileSync(file, JSON.stringify(answers))
    return this.startBaseline('plain', { answers: file })
  }

  /** Starts a baseline and waits until it answers. baseline-process.mjs says which options each kind has. */
  async startBaseline(kind: BaselineKind, options: object = {}): Promise<Server> {
    const port = await freePort()
    const script = 'test/lab/bench/calls/baseline-process.mjs'
    const name = 'facilitator' in options ? `${kind} with facilitator` : kind
    return this.#start(name, port, [script, kind, String(port), JSON.stringify(options)], {})
  }

  /**
   * Starts a gateway and waits until it has nothing to do. Its journal has `rows` payments before the first call. Each
   * of its `workers` adds the number of its requests to the file `counts` at its end. `settings` are further environment
   * variables. One of a name that was used has the data of the one before.
   */
  async startGateway(
    name: string,
    rows: number,
    { workers = 1, counts = '', settings = {} }: GatewayOptions = {},
  ): Promise<Server> {
    const port = await freePort()
    const dataDir = join(this.#folder, name)
    const journal = join(dataDir, `${NETWORK.name}-sample`)
    mkdirSync(journal, { recursive: true })
    if (rows > 0) await fillJournal(join(journal, 'journal.sqlite'), rows)
    // Without the loader of this process: it would take the plugins' imports of the gateway to its sources.
    const flags = v8Flags(workers, availableParallelism(), { execArgv: [], nodeOptions: '' })
    const started = [...flags, GATEWAY, JSON.stringify(NETWORK), String(workers)]
    const server = await this.#start(name, port, started, {
      ...(counts === '' ? {} : { COUNTS: counts }),
      PORT: String(port),
      DATA_DIR: dataDir,
      DATA_MODE: 'sample',
      NETWORK: NETWORK.name,
      PAY_TO,
      // Required, and never called.
      FACILITATOR_URL: 'http://127.0.0.1:9',
      RPC_URL: 'http://127.0.0.1:9',
      ...settings,
    })
    await waitUntilIdle(server)
    return server
  }

  /** Ends every process and waits for it. */
  async stop(): Promise<void> {
    await Promise.all(
      this.#children.map(async (child) => {
        if (child.exitCode !== null || child.signalCode !== null) return
        const exited = new Promise((done) => child.once('exit', done))
        child.kill('SIGTERM')
        await exited
      }),
    )
  }

  async #start(
    name: string,
    port: number,
    args: readonly string[],
    environment: Readonly<Record<string, string>>,
  ): Promise<Server> {
    const log = join(this.#folder, `${name}-${port}.log`)
    const output = openSync(log, 'w')
    const child = spawn(process.execPath, args, {
      cwd: root,
      env: { PATH: process.env['PATH'], NODE_ENV: 'production', ...environment },
      stdio: ['ignore', output, output],
    })
    closeSync(output)
    this.#children.push(child)
    const url = `http://127.0.0.1:${port}`
    const printed = (): string => readFileSync(log, 'utf8').slice(-3_000)
    for (let tries = 0; tries < 1_200; tries++) {
      if (child.exitCode !== null) throw new Error(`${name} ended:\n${printed()}`)
      if (await fetch(url).catch(() => null))
        return { name, pid: child.pid as number, port, url, log, dataDir: environment['DATA_DIR'] ?? '' }
      await sleep(100)
    }
    throw new Error(`${name} did not answer within two minutes:\n${printed()}`)
  }
}

const IDLE_SHARE = 0.05

/** Waits until a process and its workers have used less than 5 % of a core for a second. After its first start a gateway computes history. */
async function waitUntilIdle({ pid }: Server): Promise<void> {
  for (let tries = 0; tries < 180; tries++) {
    const before = familyOf(pid).map((each) => ({ pid: each, cpu: readProcessCpu(each) }))
    await sleep(1_000)
    const used = before.reduce((sum, each) => sum + cpuBetween(each.cpu, readProcessCpu(each.pid)), 0)
    if (used < IDLE_SHARE * before.length * 1e6) return
  }
  throw new Error('a gateway was still busy three minutes after its start')
}
