/**
 * `npm run bench:journal`: two questions about the journal.
 *
 * 1. What do group commits save? 1, 8, 32 and 128 concurrent buyers each take payments through reserved, answered,
 *    submitted, settled and delivered. Prints wall and CPU microseconds per durable change, and how many times faster
 *    than one buyer it is. With an address it measures PostgreSQL too, in the schema that the address selects. The
 *    payments stay in that journal.
 * 2. Does a payment cost more when the journal has grown? Prints the CPU of a payment in SQLite journals of 1,000 and
 *    1,000,000 payments, in rounds that take turns.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openJournal } from '../../gateway/payments/journal/open-journal.ts'
import type { Journal } from '../../gateway/payments/journal/journal.ts'
import { median } from '../../plugins/lib/quant/rolling-median.ts'
import { paymentIn } from '../../test/contracts/journal-payments.ts'
import { readFlags } from '../command-line.ts'
import { cpuMicros } from './cpu-time.ts'
import { fillJournal } from './filled-journal.ts'

const USAGE = `Usage: npm run bench:journal [-- ADDRESS]

  ADDRESS  also measure PostgreSQL there (postgres://…). The payments stay in that journal.`
const {
  positionals: [url],
} = readFlags(USAGE, { allowPositionals: true })

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
  const single = median((costs.get(1) ?? []).map(({ wall }) => wall))
  for (const [buyers, found] of costs) {
    const wall = median(found.map((cost) => cost.wall))
    const cpu = median(found.map((cost) => cost.cpu))
    const columns = [name.padEnd(12), `${buyers} at a time`.padStart(14), `${wall.toFixed(0)} us`.padStart(9)]
    console.log(
      [...columns, `${cpu.toFixed(0)} us CPU`.padStart(11), `${(single / wall).toFixed(1)}x`.padStart(6)].join('  '),
    )
  }
}

/** Payments in the small and in the large journal, and how many each round adds. */
const SIZES = [1_000, 1_000_000]
const ADDED = 300

/** Compares the cost of a payment in a small and in a large journal. */
async function compareSizes(folder: string): Promise<void> {
  const costs: { readonly rows: number; readonly journal: Journal; readonly found: Cost[] }[] = []
  for (const rows of SIZES) {
    const file = join(folder, `${rows}.sqlite`)
    await fillJournal(file, rows)
    costs.push({ rows, journal: await openJournal({ file }), found: [] })
  }
  for (let round = 0; round < ROUNDS; round++)
    for (const { journal, found } of costs) found.push(await measure(journal, 8, ADDED))
  const [small, ...large] = costs.map(({ rows, found }) => ({
    rows,
    cpu: median(found.map(({ cpu }) => cpu)) * CHANGES,
  }))
  for (const { rows, cpu } of [small, ...large].filter((size) => size !== undefined))
    console.log(
      `${String(rows).padStart(9)} payments in the journal  ${cpu.toFixed(0).padStart(7)} us CPU a payment  ${(cpu / (small?.cpu ?? 1)).toFixed(2).padStart(7)}x`,
    )
  for (const { journal } of costs) await journal.close()
}

const folder = mkdtempSync(join(tmpdir(), 'journal-'))
const journal = await openJournal({ file: join(folder, 'journal.sqlite') })
await compare('SQLite', journal)
await journal.close()
await compareSizes(folder)
rmSync(folder, { recursive: true })

if (url !== undefined) {
  const shared = await openJournal({ url })
  await compare('PostgreSQL', shared)
  await shared.close()
}
