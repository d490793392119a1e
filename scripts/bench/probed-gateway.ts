/**
 * A gateway under attack, and what everybody else notices: an unpaid 402 is asked for 50 times a second. A plain node:http
 * server that does nothing else is asked at the same rate: on a busy machine, what it waits for is the operating system, and
 * a p99 says nothing about the gateway.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { Agent, createServer, request, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { freePort } from '../../gateway/sandbox/anvil.ts'
import { percentile } from './percentile.ts'

export const root = resolve(import.meta.dirname, '../..')
export const BAR_P99_MS = 50
export const BAR_MEGABYTES = 1_000
const PROBED = '/v1/regime/current'
/** Answers 200 once the first start is over. */
const FILLED = '/v1/regime/sample'
const EVERY_MS = 20
/** If a server that does nothing takes this long, the machine is too busy to tell. */
const BUSY_P99_MS = 20
const agent = new Agent({ keepAlive: true, maxSockets: 256 })

/** What was noticed while an attack ran. */
export interface Notice {
  /** How long the 402 took, in milliseconds: p50, p99 and the longest. */
  readonly waits: readonly [number, number, number]
  /** The p99 of the server that does nothing. */
  readonly plainP99: number
  readonly isBusy: boolean
  /** The most memory that a process of the gateway had. */
  readonly megabytes: number
  /** Whether the 402 and the memory are within their bars. */
  readonly isGood: boolean
}

/** The built gateway with its own catalog in the sandbox, in a new folder. */
export class ProbedGateway {
  readonly base: string
  readonly port: number
  readonly dataDir: string
  readonly process: ChildProcess
  readonly #plain: Server

  private constructor(port: number, dataDir: string, process: ChildProcess, plain: Server) {
    this.base = `http://127.0.0.1:${port}`
    this.port = port
    this.dataDir = dataDir
    this.process = process
    this.#plain = plain
  }

  /** Starts it, and waits until it is open. What it prints goes to `print`. */
  static async open(
    environment: Readonly<Record<string, string>>,
    print: (text: Buffer) => void = () => {},
  ): Promise<ProbedGateway> {
    const dataDir = mkdtempSync(join(tmpdir(), 'tollgate-bench-'))
    const port = await freePort()
    const plain = createServer((_request, response) => response.writeHead(402).end('{}')).listen(0, '127.0.0.1')
    await once(plain, 'listening')
    const env = { ...process.env, PORT: String(port), DATA_DIR: dataDir, ...environment }
    const child = spawn(process.execPath, ['dist/gateway/main.js'], {
      cwd: root,
      env,
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    child.stdout.on('data', print)
    const gateway = new ProbedGateway(port, dataDir, child, plain)
    try {
      await gateway.#untilOpen()
      return gateway
    } catch (error) {
      await gateway.close()
      throw error
    }
  }

  async #untilOpen(): Promise<void> {
    for (let tries = 0; tries < 900; tries += 1) {
      if ((await get(this.base + FILLED).catch(() => 0)) === 200) return
      await sleep(100)
    }
    throw new Error('the gateway did not open within 90 seconds')
  }

  /** Asks for the 402 until `isOver`, and measures memory. */
  async watch(isOver: () => boolean): Promise<Notice> {
    let megabytes = 0
    const measure = (): void => void (megabytes = Math.max(megabytes, residentMegabytes(this.process.pid as number)))
    const timer = setInterval(measure, 100)
    const plainUrl = `http://127.0.0.1:${(this.#plain.address() as AddressInfo).port}/`
    const [own, plain] = await Promise.all([probe(this.base + PROBED, isOver), probe(plainUrl, isOver)])
    clearInterval(timer)
    const [p50, p99, longest] = [0.5, 0.99, 1].map((share) => percentile(own, share)) as [number, number, number]
    const plainP99 = percentile(plain, 0.99)
    const isBusy = plainP99 > BUSY_P99_MS
    const isGood = (p99 < BAR_P99_MS || isBusy) && megabytes < BAR_MEGABYTES
    return { waits: [p50, p99, longest], plainP99, isBusy, megabytes, isGood }
  }

  /** Ends the gateway and removes its folder. */
  async close(): Promise<void> {
    agent.destroy()
    this.#plain.close()
    if (this.process.exitCode === null && this.process.signalCode === null) {
      const exited = once(this.process, 'exit')
      this.process.kill('SIGTERM')
      await exited
    }
    rmSync(this.dataDir, { recursive: true, force: true })
  }
}

/** Asks for the 402 every 20 ms until `isOver`. Returns the milliseconds of each call, from when it was due. */
async function probe(url: string, isOver: () => boolean): Promise<number[]> {
  const calls: Promise<number>[] = []
  const began = performance.now()
  for (let count = 0; !isOver(); count += 1) {
    const due = began + count * EVERY_MS
    await sleep(Math.max(0, due - performance.now()))
    const call = get(url).then((status) => (status === 402 ? performance.now() - due : Number.POSITIVE_INFINITY))
    calls.push(call.catch(() => Number.POSITIVE_INFINITY))
  }
  return Promise.all(calls)
}

function get(url: string): Promise<number> {
  return new Promise((done, fail) => {
    const outgoing = request(url, { agent }, (response) => {
      response.resume()
      response.on('end', () => done(response.statusCode ?? 0))
    })
    outgoing.on('error', fail)
    outgoing.end()
  })
}

/** Resident memory in megabytes of a process, or of that of its descendants which has most. Linux only. */
function residentMegabytes(pid: number): number {
  try {
    const own = Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) / 1024
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean)
    return Math.max(own, ...children.map((child) => residentMegabytes(Number(child))))
  } catch {
    return 0
  }
}
