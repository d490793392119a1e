/**
 * `npm run lab -- connections`: attacks a gateway with connections that nothing pays for, and measures what everybody else
 * notices. The attacks come from a process of their own, as one stranger with up to 50 connections and 200 Mbit/s; the last
 * one draws a new program for each connection. Beside each, an unpaid 402 is asked for 50 times a second, an answer is bought
 * each second, and a token is used each second. The bars: a p99 of the 402 of 50 ms, 1 GB of memory, every answer delivered
 * in twice the time it takes without an attack, no 500, and few lines of refusals in the log. Before, honest clients upload on
 * slow lines, which takes 15 minutes. Ends with exit code 1 if a bar is missed.
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { number, readOptions, refuse, say, sayTable, seed, text } from '../experiment.ts'
import type { Attacked } from './connections/attacker.ts'
import { ATTACKS, FUZZED } from './connections/attacks.ts'
import { Customers, type Service } from './connections/customers.ts'
import { HONEST, type HonestCase } from './connections/honest.ts'
import { PROXY } from '../../support/connections/sender.ts'
import { percentile } from './percentile.ts'
import { type Notice, openProbedGateway } from './probed-gateway.ts'

const { values } = readOptions({
  only: text('TEXT', 'only what has TEXT in its name, such as GETs or honest', ''),
  seconds: number('S', 'how long drawn programs run', 600, 1),
  each: number('S', 'how long each other attack runs', 15, 1),
  megabits: number('N', 'how fast all connections of an attack send together', 200, 0.1),
  seed,
})
const IDLE_SECONDS = 20
/** A buyer may wait so many times longer than without an attack. */
const BAR_TIMES = 2
const BAR_REFUSALS_PER_SECOND = 6

/** Log of the gateway. */
class Log {
  bytes = 0
  refusals = 0
  readonly errors: string[] = []
  #rest = ''

  add(text: string): void {
    this.bytes += text.length
    const lines = (this.#rest + text).split('\n')
    this.#rest = lines.pop() ?? ''
    for (const line of lines) {
      if (line.includes('"status":429')) this.refusals += 1
      if (/"level":(?:50|60|"error"|"fatal")/.test(line)) this.errors.push(line)
    }
  }

  /** Forgets what was logged before. */
  clear(): void {
    this.bytes = 0
    this.refusals = 0
    this.errors.length = 0
  }
}

interface Measured {
  readonly notice: Notice
  readonly service: Service
  readonly attacked: Attacked | null
  readonly seconds: number
}

async function measure(name: string | null, seconds: number): Promise<Measured> {
  log.clear()
  const began = performance.now()
  const isOver = (): boolean => performance.now() - began > seconds * 1000 || !gateway.isRunning()
  const args = [name ?? '', String(gateway.port), String(values.megabits), String(values.seed)]
  const attacker = name === null ? null : fork(join(import.meta.dirname, 'connections/attacker.ts'), args)
  const ended = attacker ? (once(attacker, 'message') as Promise<[Attacked]>) : [null]
  const [notice, service] = await Promise.all([gateway.watch(isOver), customers.call(isOver)])
  if (attacker?.connected) attacker.send('stop')
  const [attacked] = await ended
  return { notice, service, attacked, seconds: (performance.now() - began) / 1000 }
}

const slowest = ({ bought }: Service): number =>
  percentile(
    bought.map(({ ms }) => ms),
    1,
  )

/** Measures outside their limits. */
function faultsOf({ notice, service, attacked, seconds }: Measured, idle: Service): string[] {
  const faults: string[] = []
  if (!gateway.isRunning()) faults.push('the gateway has ended')
  if (!notice.isGood) faults.push('the 402 or memory')
  for (const [kind, replies] of Object.entries(service)) {
    const wrong = replies.filter(({ status }: { status: number }) => status !== 200) as Service['bought']
    if (wrong.length > 0) faults.push(`${wrong.length} ${kind}: ${wrong[0]?.status} ${wrong[0]?.text.slice(0, 100)}`)
  }
  if (slowest(service) > BAR_TIMES * slowest(idle) && !notice.isBusy) faults.push('a purchase took too long')
  if (attacked?.statuses['500']) faults.push(`${attacked.statuses['500']} answers were 500`)
  if (log.refusals / seconds > BAR_REFUSALS_PER_SECOND) faults.push('lines of refusals')
  if (log.errors.length > 0) faults.push(`${log.errors.length} errors in the log: ${log.errors[0]?.slice(0, 500)}`)
  return faults
}

const HEAD = ['p50 ms', 'p99 ms', 'max ms', 'plain p99', 'buy p50', 'buy max', 'RSS MB', 'log kB/s', 'Mbit/s', 'opened']

function row(name: string, { notice, service, attacked, seconds }: Measured): readonly string[] {
  const megabits = attacked ? (attacked.bytes * 8) / 1e6 / attacked.seconds : 0
  const median = percentile(
    service.bought.map(({ ms }) => ms),
    0.5,
  )
  return [
    name,
    ...[...notice.waits, notice.plainP99, median, slowest(service)].map((ms) => ms.toFixed(1)),
    notice.megabytes.toFixed(0),
    (log.bytes / seconds / 1000).toFixed(1),
    megabits.toFixed(0),
    `${attacked?.connections ?? 0}${notice.isBusy ? ' busy' : ''}`,
  ]
}

/** Runs a case, and prints a line for each client. Returns whether all have read what they should. */
async function runHonest({ name, run }: HonestCase): Promise<boolean> {
  say(name)
  const uploads = await run(gateway.port)
  for (const { client, outcome, seconds, isGood } of uploads)
    say(`  ${client.padEnd(44)}${seconds.toFixed(1).padStart(10)} s  ${outcome}${isGood ? '' : '  MISSED'}`)
  return uploads.every(({ isGood }) => isGood)
}

async function attackAll(): Promise<void> {
  say(`seed ${values.seed}`)
  const idle = await measure(null, IDLE_SECONDS)
  const rows = [['unpaid 402 beside', ...HEAD], row('nothing else', idle)]
  for (const { name } of attacks) {
    const measured = await measure(name, name === FUZZED ? values.seconds : values.each)
    rows.push(row(name, measured))
    const statuses = Object.entries(measured.attacked?.statuses ?? {}).map(([status, count]) => `${status}: ${count}`)
    say(`${name}: answered ${statuses.join(', ') || 'nothing'}`)
    const faults = faultsOf(measured, idle.service)
    for (const fault of faults) say(`  MISSED ${fault}`)
    if (faults.length > 0) process.exitCode = 1
    await sleep(1000)
  }
  sayTable(rows)
}

const isChosen = ({ name }: { readonly name: string }): boolean => name.includes(values.only)
const [attacks, honest] = [ATTACKS.filter(isChosen), HONEST.filter(isChosen)]
if (attacks.length + honest.length === 0) {
  const names = [...ATTACKS, ...HONEST].map(({ name }) => name)
  refuse(`Nothing is named like "${values.only}". There are:\n${names.join('\n')}`)
}
const log = new Log()
// Strangers send X-Forwarded-For on connections of their own, so they count as one caller that is not on this machine.
const gateway = await openProbedGateway({ LOG_LEVEL: 'info', TRUSTED_PROXIES: PROXY }, (text) => log.add(text))
const customers = await Customers.open(gateway)
for (const each of honest) if (!(await runHonest(each))) process.exitCode = 1
if (attacks.length > 0) await attackAll()
