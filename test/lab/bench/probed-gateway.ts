/**
 * A gateway at work or under attack, and what everybody else notices: an unpaid 402 is asked for 50 times a second. A plain
 * node:http server that sends the same 402 and does nothing else is asked at the same rate: on a busy machine, what it waits
 * for is the operating system, and a p99 says nothing about the gateway. A process of its own asks both.
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { freePort } from '../../../gateway/sandbox/anvil.ts'
import type { SandboxDescription } from '../../../scripts/sandbox-wallet.ts'
import { defer, newFolder } from '../experiment.ts'
import { startGateway, untilReady } from '../gateway.ts'
import { answerOf } from './calls/cases.ts'
import { Servers } from './calls/servers.ts'
import { percentile } from './percentile.ts'
import type { Waits } from './prober.ts'

const BAR_P99_MS = 50
const BAR_MEGABYTES = 1_000
const PROBED = '/v1/regime/current'
/** If a server that does nothing takes this long, the machine is too busy to tell. */
const BUSY_P99_MS = 20

/** Observations while an attack ran. */
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

export interface ProbedGateway {
  readonly base: string
  readonly port: number
  /** The buyer of its sandbox, who has test money. */
  readonly buyer: SandboxDescription['buyer']
  isRunning(): boolean
  /** Asks both servers for the 402 until `isOver`. */
  probe(isOver: () => boolean): Promise<Waits>
  /** Asks for the 402 until `isOver`, measures memory, and holds both against their bars. */
  watch(isOver: () => boolean): Promise<Notice>
}

/**
 * Starts the built gateway with its own catalog in the sandbox, and waits until it is open. What it prints goes to `onOutput`.
 * Ends with the experiment.
 */
export async function openProbedGateway(
  environment: Readonly<Record<string, string>>,
  onOutput?: (text: string) => void,
): Promise<ProbedGateway> {
  const [dataDir, port, servers] = [newFolder(), await freePort(), new Servers()]
  const base = `http://127.0.0.1:${port}`
  const gateway = await startGateway(
    { ...environment, PORT: String(port), DATA_DIR: dataDir },
    onOutput ? { onOutput } : {},
  )
  defer(() => gateway.stop())
  await untilReady(base)
  const plain = await servers.startPlain([await answerOf({ port }, { path: PROBED })])
  const description = readdirSync(dataDir, { recursive: true, encoding: 'utf8' }).find((name) =>
    name.endsWith('sandbox.json'),
  )
  const { buyer } = JSON.parse(readFileSync(join(dataDir, description ?? ''), 'utf8')) as SandboxDescription

  // JSON has no infinity.
  const options = { serialization: 'advanced' } as const
  const prober = fork(join(import.meta.dirname, 'prober.ts'), [base + PROBED, plain.url + PROBED], options)
  defer(() => prober.kill())
  await once(prober, 'message')

  async function probe(isOver: () => boolean): Promise<Waits> {
    prober.send('start')
    const waits = once(prober, 'message') as Promise<[Waits]>
    while (!isOver()) await sleep(10)
    prober.send('stop')
    return (await waits)[0]
  }

  async function watch(isOver: () => boolean): Promise<Notice> {
    let megabytes = 0
    const measure = (): void => void (megabytes = Math.max(megabytes, ...gateway.pids().map(residentMegabytes)))
    const timer = setInterval(measure, 100)
    const waits = await probe(isOver)
    clearInterval(timer)
    const [p50, p99, longest] = [0.5, 0.99, 1].map((share) => percentile(waits.gateway, share)) as [
      number,
      number,
      number,
    ]
    const plainP99 = percentile(waits.plain, 0.99)
    const isBusy = plainP99 > BUSY_P99_MS
    const isGood = (p99 < BAR_P99_MS || isBusy) && megabytes < BAR_MEGABYTES
    return { waits: [p50, p99, longest], plainP99, isBusy, megabytes, isGood }
  }

  return { base, port, buyer, isRunning: () => gateway.isRunning(), probe, watch }
}

/** Linux only. 0 if the process has ended. */
function residentMegabytes(pid: number): number {
  try {
    return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) / 1024
  } catch {
    return 0
  }
}
