/** The process that attacks for `npm run lab -- connections`, until it is told to stop. It reports what it has sent. */
import { ATTACKS } from './attacks.ts'
import { Pace } from '../../../support/connections/pace.ts'
import { send } from '../../../support/connections/sender.ts'

/** Traffic of an attack, sent and received. */
export interface Attacked {
  readonly connections: number
  readonly bytes: number
  readonly seconds: number
  readonly statuses: Readonly<Record<string, number>>
}

/** A connection that an attack keeps longer is opened again. */
const MOST_MS = 20_000
const END_MS = 500
let isOver = false

async function attack(name: string, port: number, megabits: number, seed: number): Promise<Attacked> {
  const { connections, programs } = ATTACKS.find((each) => each.name === name) as (typeof ATTACKS)[number]
  const [next, pace] = [programs(seed), new Pace(megabits)]
  const statuses = new Map<string, number>()
  let [opened, bytes] = [0, 0]
  const began = performance.now()
  const repeat = async (): Promise<void> => {
    while (!isOver) {
      opened += 1
      const sent = await send(next.next().value, { port, pace, mostMs: MOST_MS, endMs: END_MS, isOver: () => isOver })
      bytes += sent.bytes
      for (const [status, count] of sent.statuses) statuses.set(status, (statuses.get(status) ?? 0) + count)
    }
  }
  await Promise.all(Array.from({ length: connections }, repeat))
  const seconds = (performance.now() - began) / 1000
  return { connections: opened, bytes, seconds, statuses: Object.fromEntries(statuses) }
}

process.once('message', () => (isOver = true))
const [name = '', port, megabits, seed] = process.argv.slice(2)
const attacked = await attack(name, Number(port), Number(megabits), Number(seed))
process.send?.(attacked satisfies Attacked, () => process.exit())
