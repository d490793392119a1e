/**
 * `npm run bench:loop`: how long an unpaid 402 takes while the gateway works. One gateway gets 50 unpaid calls a second:
 * first with nothing else to do, then while it audits a ledger of 200,000 rows and checks 50,000 bars, again and again, one
 * at a time and six of each at once, all of them paid for. Beside it, a plain node:http server that does nothing else sends
 * the same 402 at the same rate: what it waits for is the operating system. A process that does nothing else measures both.
 * Rounds take turns. Trust the ratios: milliseconds depend on what else the machine does.
 */
import { type ChildProcess, fork, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { freePort } from '../../gateway/sandbox/anvil.ts'
import { readFlags, readNumber } from '../command-line.ts'
import { readRequirement, signPayment } from '../pay/payment.ts'
import type { SandboxDescription } from '../pay/run.ts'
import { type Form, ledgerForm } from './ledger-form.ts'
import type { Waits } from './loop-prober.ts'
import { percentile } from './percentile.ts'

const root = resolve(import.meta.dirname, '../..')
const USAGE = `Usage: npm run bench:loop [-- OPTIONS]

  --rounds N   rounds of each load (default 3)
  --seconds S  seconds of each load in a round (default 10)`
const { values } = readFlags(USAGE, {
  options: { rounds: { type: 'string', default: '3' }, seconds: { type: 'string', default: '10' } },
})
const ROUNDS = readNumber('--rounds', values.rounds, 1)
const SECONDS = readNumber('--seconds', values.seconds, 0.1)
const ROWS = 200_000
const BARS = 50_000
const DESCRIPTION = 'sandbox.json'
/** Answers 200 once the history of the sample is classified, which keeps the gateway busy after its first start. */
const FILLED = '/v1/regime/sample'
const PROBED = '/v1/regime/current'
/** Small enough that this process is never busy for long, which would count as time of the gateway. */
const PIECE = 65_536
const agent = new Agent({ keepAlive: true, maxSockets: 256 })

interface Answer {
  readonly status: number
  readonly headers: NodeJS.Dict<string | string[]>
  readonly text: string
}

/** Sends a request, its body in small pieces. */
function send(method: string, url: string, headers: Readonly<Record<string, string>> = {}, body?: Buffer) {
  return new Promise<Answer>((resolve, reject) => {
    const length = body ? { 'content-length': String(body.length) } : {}
    const outgoing = request(url, { method, agent, headers: { ...headers, ...length } }, (response) => {
      const pieces: Buffer[] = []
      response.on('data', (piece: Buffer) => pieces.push(piece))
      response.on('end', () =>
        resolve({
          status: response.statusCode ?? 0,
          headers: response.headers,
          text: Buffer.concat(pieces).toString(),
        }),
      )
      response.on('error', reject)
    })
    outgoing.on('error', reject)
    if (body) Readable.from(piecesOf(body)).pipe(outgoing)
    else outgoing.end()
  })
}

function* piecesOf(body: Buffer): Generator<Buffer> {
  for (let at = 0; at < body.length; at += PIECE) yield body.subarray(at, at + PIECE)
}

/** Bars of one minute each, as a random walk that is the same in every run. */
function barsBody(): Buffer {
  let [close, state] = [100, 1]
  const random = (): number => (state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff) / 0x7fffffff
  const bars = Array.from({ length: BARS }, (_, at) => {
    const [o, c] = [close, close * (1 + (random() - 0.5) * 0.002)]
    close = c
    const [h, l] = [Math.max(o, c) * (1 + random() * 0.001), Math.min(o, c) * (1 - random() * 0.001)]
    const [day, minute] = [Math.floor(at / 1440), at % 1440]
    return { t: 1_600_041_600 + day * 86_400 + minute * 60, o, h, l, c, v: Math.round(1e5 * random()) + 1 }
  })
  return Buffer.from(JSON.stringify({ bars }))
}

/** Calls both servers until `isOver`. A process of its own does it, so that purchases do not delay the calls. */
async function probeBoth(isOver: () => boolean): Promise<Waits> {
  const prober = fork(join(import.meta.dirname, 'loop-prober.ts'), [base + PROBED, plainBase + PROBED])
  const ended = once(prober, 'exit').then(() => Promise.reject(new Error('the calls of the 402 have failed')))
  const waits = Promise.race([once(prober, 'message') as Promise<[Waits]>, ended])
  waits.catch(() => {})
  while (!isOver()) await sleep(10)
  if (prober.connected) prober.send('stop')
  return (await waits)[0]
}

/** Buys an audit of the ledger. Returns as `buy` does. */
function audit(sandbox: SandboxDescription, { type, body }: Form): Promise<number | null> {
  return buy('/v1/audit', sandbox, type, body)
}

/** Buys a check of the bars. Returns as `buy` does. */
function checkBars(sandbox: SandboxDescription, body: Buffer): Promise<number | null> {
  return buy('/v1/bars/qc', sandbox, 'application/json', body)
}

/** Buys an answer. Returns the seconds it took, from the payment on; null if it took longer than allowed or had no room. */
async function buy(path: string, { buyer }: SandboxDescription, type: string, body: Buffer): Promise<number | null> {
  const url = base + path
  const quote = await send('POST', url)
  const requirement = readRequirement(String(quote.headers['payment-required']), quote.text, false)
  const payment = await signPayment(requirement, buyer.private_key, Math.floor(Date.now() / 1000))
  const began = performance.now()
  const headers = { 'content-type': type, [payment.header]: payment.value }
  const { status, headers: answered, text } = await send('POST', url, headers, body)
  if (status === 503) await sleep(Number(answered['retry-after'] ?? 1) * 1000)
  if (status === 504 || status === 503) return null
  if (status !== 200) throw new Error(`${path} answered ${status}: ${text.slice(0, 300)}`)
  return (performance.now() - began) / 1000
}

/** Runs `work` again and again until the time is over. Returns the seconds of each run. */
async function repeat(isOver: () => boolean, work: () => Promise<number | null>): Promise<(number | null)[]> {
  const seconds: (number | null)[] = []
  while (!isOver()) seconds.push(await work())
  return seconds
}

function line(name: string, milliseconds: readonly number[], idle?: readonly number[]): string {
  const [p50, p99, most] = [0.5, 0.99, 1].map((share) => percentile(milliseconds, share)) as [number, number, number]
  const ratio = idle ? (p99 / percentile(idle, 0.99)).toFixed(1) : ''
  const columns = [String(milliseconds.length), p50.toFixed(1), p99.toFixed(1), most.toFixed(1), ratio]
  return name.padEnd(34) + columns.map((column) => column.padStart(10)).join('')
}

/** Waits until the gateway has nothing to do, and returns its buyer. */
async function readSandbox(): Promise<SandboxDescription> {
  for (let tries = 0; tries < 900; tries += 1) {
    const { status } = await send('GET', base + FILLED).catch(() => ({ status: 0 }))
    const file = readdirSync(dataDir, { recursive: true, encoding: 'utf8' }).find((name) => name.endsWith(DESCRIPTION))
    if (status === 200 && file) return JSON.parse(readFileSync(join(dataDir, file), 'utf8')) as SandboxDescription
    await sleep(100)
  }
  throw new Error('the gateway did not open within 90 seconds')
}

/** Starts a server that sends the gateway's 402 and does nothing else. */
async function startPlain(): Promise<ChildProcess> {
  const { status, headers, text } = await send('GET', base + PROBED)
  const own = Object.entries(headers).filter(([name]) => !/^(date|connection|keep-alive|transfer-encoding)$/.test(name))
  const answer = { path: PROBED, status, headers: Object.fromEntries(own), body: Buffer.from(text).toString('base64') }
  const file = join(dataDir, 'answers.json')
  writeFileSync(file, JSON.stringify([answer]))
  const args = [
    'scripts/bench/calls/baseline-process.mjs',
    'plain',
    String(plainPort),
    JSON.stringify({ answers: file }),
  ]
  const server = spawn(process.execPath, args, { cwd: root, stdio: 'ignore' })
  while (!(await send('GET', plainBase + PROBED).catch(() => null))) await sleep(100)
  return server
}

async function stop(child: ChildProcess): Promise<void> {
  const exited = new Promise((done) => child.once('exit', done))
  child.kill('SIGTERM')
  await exited
}

const dataDir = mkdtempSync(join(tmpdir(), 'tollgate-bench-'))
const port = await freePort()
const base = `http://127.0.0.1:${port}`
const plainPort = await freePort()
const plainBase = `http://127.0.0.1:${plainPort}`
const env = { ...process.env, PORT: String(port), DATA_DIR: dataDir, LOG_LEVEL: 'error' }
const children = [spawn(process.execPath, ['dist/gateway/main.js'], { cwd: root, env, stdio: 'ignore' })]
try {
  const [form, bars] = [ledgerForm(ROWS), barsBody()]
  const sandbox = await readSandbox()
  children.push(await startPlain())
  const work = { audit: () => audit(sandbox, form), checkBars: () => checkBars(sandbox, bars) }
  // The first calls compile code and open threads.
  await work.audit()
  await work.checkBars()
  const idle: Waits = { gateway: [], plain: [] }
  const newLoad = (works: readonly (() => Promise<number | null>)[]) => ({
    works,
    waits: { gateway: [], plain: [] } as Waits,
    seconds: [] as (number | null)[],
  })
  const loads = new Map([
    ['an audit of 200,000 rows', newLoad([work.audit])],
    ['a check of 50,000 bars', newLoad([work.checkBars])],
    ['both at once', newLoad([work.audit, work.checkBars])],
    [
      'six of each at once',
      newLoad([
        ...Array<typeof work.audit>(6).fill(work.audit),
        ...Array<typeof work.checkBars>(6).fill(work.checkBars),
      ]),
    ],
  ])
  const isOverAfter = (seconds: number): (() => boolean) => {
    const end = performance.now() + seconds * 1000
    return () => performance.now() >= end
  }
  const add = (waits: Waits, more: Waits): void => {
    waits.gateway.push(...more.gateway)
    waits.plain.push(...more.plain)
  }
  for (let round = 0; round < ROUNDS; round += 1) {
    add(idle, await probeBoth(isOverAfter(SECONDS)))
    for (const { works, waits, seconds } of loads.values()) {
      const isOver = isOverAfter(SECONDS)
      let working = works.length
      const runs = works.map(async (one) => {
        seconds.push(...(await repeat(isOver, one)))
        working -= 1
      })
      add(waits, await probeBoth(() => working === 0))
      await Promise.all(runs)
      await sleep(500)
    }
  }
  const titles = ['calls', 'p50 ms', 'p99 ms', 'max ms', 'p99/idle']
  console.log('unpaid 402 during'.padEnd(34) + titles.map((title) => title.padStart(10)).join(''))
  console.log(line('nothing else', idle.gateway))
  console.log(line('  from plain node:http', idle.plain))
  for (const [name, { waits, seconds }] of loads) {
    const done = seconds.filter((one) => one !== null)
    const mean = (done.reduce((sum, one) => sum + one, 0) / done.length).toFixed(2)
    const runs = `   (${done.length} runs, ${mean} s each; ${seconds.length - done.length} refused or timed out)`
    console.log(line(name, waits.gateway, idle.gateway) + runs)
    console.log(line('  from plain node:http', waits.plain, idle.plain))
  }
} finally {
  await Promise.all(children.map(stop))
  rmSync(dataDir, { recursive: true, force: true })
}
