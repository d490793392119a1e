/**
 * `npm run lab -- unpaid`: sends a gateway the requests that cost it most and pay nothing, one after
 * another, and measures what everybody else notices. The bars are a p99 of 50 ms of an unpaid 402, 1 GB of memory and no
 * 500. On a busy machine, only memory and answers count. Ends with exit code 1 if a bar is missed. The attacks come from a
 * process of their own.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { readOptions, refuse, sayTable, text } from '../experiment.ts'
import { openProbedGateway } from './probed-gateway.ts'
import { ATTACKS } from './unpaid/attacks.ts'

const { only } = readOptions({
  only: text('TEXT', 'only the requests whose names contain TEXT, such as MCP', ''),
}).values
/** The probe goes on for at least this long, so that a p99 means something. */
const LEAST_MS = 6_000
const MOST_MS = 120_000

/** Starts the process that attacks, and waits until its bodies are made. */
async function prepareAttack(name: string): Promise<ChildProcess> {
  const attacker = fork(join(import.meta.dirname, 'unpaid/attacker.ts'), [name, gateway.base])
  await once(attacker, 'message')
  return attacker
}

/** Measures beside an attack, or beside nothing. Returns the row of the table. */
async function measure(name: string | null): Promise<readonly string[]> {
  const attacker = name === null ? null : await prepareAttack(name)
  const began = performance.now()
  const elapsed = (): number => performance.now() - began
  let isAnswered = attacker === null
  const answer = async (): Promise<{ status: string; seconds: number }> => {
    attacker?.send('go')
    const [status] = attacker ? ((await once(attacker, 'message')) as [string]) : ['']
    isAnswered = true
    return { status, seconds: elapsed() / 1000 }
  }
  const answered = answer()
  const notice = await gateway.watch(() => elapsed() > MOST_MS || (isAnswered && elapsed() > LEAST_MS))
  const { status, seconds } = await answered
  const isGood = notice.isGood && !status.includes('500')
  if (!isGood) process.exitCode = 1
  const figures = [...notice.waits, notice.plainP99].map((ms) => ms.toFixed(1))
  const verdict = isGood ? (notice.isBusy ? 'busy' : '') : 'MISSED'
  return [name ?? 'nothing else', ...figures, notice.megabytes.toFixed(0), seconds.toFixed(1), status, verdict]
}

const names = ATTACKS.map(({ name }) => name).filter((name) => name.includes(only))
if (names.length === 0)
  refuse(`No request is named like "${only}". They are: ${ATTACKS.map(({ name }) => name).join('; ')}`)
const gateway = await openProbedGateway({ LOG_LEVEL: 'error' })
const rows = [['unpaid 402 beside', 'p50 ms', 'p99 ms', 'max ms', 'plain p99', 'RSS MB', 'seconds', 'answered', '']]
for (const name of [null, ...names]) {
  process.stderr.write(`${name ?? 'nothing else'}\n`)
  rows.push([...(await measure(name))])
  await sleep(1000)
}
sayTable(rows, [0, 7, 8])
