/**
 * `npm run lab -- journal`: three questions about the journal.
 *
 * 1. What do group commits save? 1, 8, 32 and 128 concurrent buyers each take payments through reserved, answered,
 *    submitted, settled and delivered. Prints wall and CPU microseconds per durable change, and how many times faster
 *    than one buyer it is. With an address it measures PostgreSQL too, in the schema that the address selects. The
 *    payments stay in that journal.
 * 2. Does a payment cost more when the journal has grown? Prints the CPU of a payment in SQLite journals of 1,000 and
 *    1,000,000 payments, in rounds that take turns.
 * 3. How many bytes of SQLite does a payment take, indexes included? Once with all that it leaves behind while its answer is
 *    kept, and once as a million settled payments lie there when their answers are dropped.
 */
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { openJournal } from '../../../gateway/payments/journal/open-journal.ts'
import type { Journal } from '../../../gateway/payments/journal/journal.ts'
import { median } from '../../../plugins/lib/quant/rolling-median.ts'
import { paymentIn } from '../../contracts/journal-payments.ts'
import { newFolder, readOptions, say, sayTable } from '../experiment.ts'
import { cpuMicros } from './cpu-time.ts'
import { fillJournal } from './filled-journal.ts'

const [url] = readOptions(
  {},
  '[ADDRESS]',
  'Also measures PostgreSQL at ADDRESS (postgres://…). The payments stay in that journal.',
).words

/** Durable changes per payment. */
const CHANGES = 4
const PAYMENTS = 2_000
const BUYERS = [1, 8, 32, 128]
const ROUNDS = 3

interface Cost {
  readonly wall: number
  readonly cpu: number
}

/** Returns the microseconds per durable change. */
async function measure(journal: Journal, buyers: number, payments: number): Promise<Cost> {
  const cpuBefore = cpuMicros()
  const began = performance.now()
  let remaining = payments
  const buy = async (): Promise<void> => {
    while (remaining-- > 0) await journal.delivered(await paymentIn(journal, 'settled'))
  }
  await Promise.all(Array.from({ length: buyers }, buy))
  const wall = (performance.now() - began) * 1000
  return { wall: wall / payments / CHANGES, cpu: (cpuMicros() - cpuBefore) / payments / CHANGES }
}

/** Measures every number of buyers in turn, so that other work on the machine affects all of them. */
async function compare(name: string, journal: Journal): Promise<void> {
  const costs = new Map<number, Cost[]>(BUYERS.map((buyers) => [buyers, []]))
  await measure(journal, 8, 200)
  for (let round = 0; round < ROUNDS; round++)
    for (const [buyers, found] of costs)
      found.push(await measure(journal, buyers, buyers === 1 ? PAYMENTS / 4 : PAYMENTS))
  const walls = [...costs.values()].map((found) => median(found.map(({ wall }) => wall)))
  const cpus = [...costs.values()].map((found) => median(found.map(({ cpu }) => cpu)))
  sayTable([
    [name, 'µs a change', 'µs CPU', 'times as fast as one'],
    ...BUYERS.map((buyers, at) => [
      `${buyers} at a time`,
      (walls[at] as number).toFixed(0),
      (cpus[at] as number).toFixed(0),
      ((walls[0] as number) / (walls[at] as number)).toFixed(1),
    ]),
  ])
  await journal.close()
}

/** Payments in the small and in the large journal, and how many each round adds. */
const SIZES = [1_000, 1_000_000] as const
const ADDED = 300

/** Compares the cost of a payment in a small and in a large journal. */
async function compareSizes(folder: string): Promise<void> {
  const costs = []
  for (const rows of SIZES) {
    const file = join(folder, `${rows}.sqlite`)
    await fillJournal(file, rows)
    costs.push({ rows, bytes: statSync(file).size, journal: await openJournal({ file }), found: [] as Cost[] })
  }
  for (let round = 0; round < ROUNDS; round++)
    for (const { journal, found } of costs) found.push(await measure(journal, 8, ADDED))
  const cpus = costs.map(({ found }) => median(found.map(({ cpu }) => cpu)) * CHANGES)
  sayTable([
    ['payments in the journal', 'µs CPU a payment', 'times'],
    ...costs.map(({ rows }, at) => [
      rows,
      (cpus[at] as number).toFixed(0),
      ((cpus[at] as number) / (cpus[0] as number)).toFixed(2),
    ]),
  ])
  for (const { journal } of costs) await journal.close()
  say(`${((costs[1]?.bytes ?? 0) / SIZES[1]).toFixed(0)} bytes a payment, settled and without its answer`)
}

/** So many that the pages of an empty file do not count. */
const KEPT = 50_000

async function measureKept(file: string): Promise<void> {
  const journal = await openJournal({ file })
  await measure(journal, 128, KEPT)
  await journal.close()
  say(`${(statSync(file).size / KEPT).toFixed(0)} bytes a payment, with all its changes and its answer`)
}

const folder = newFolder()
await compare('SQLite', await openJournal({ file: join(folder, 'journal.sqlite') }))
await compareSizes(folder)
await measureKept(join(folder, 'kept.sqlite'))
if (url !== undefined) await compare('PostgreSQL', await openJournal({ url }))
