/**
 * Compares group commits of the journal with single commits. 1, 8, 32 and 128 concurrent buyers each take payments
 * through reserved, answered, submitted and settled. Prints wall and CPU microseconds per durable change, and how many
 * times faster than one buyer it is.
 *
 *   npm run bench:journal [-- postgres://…]
 *
 * With an address it measures PostgreSQL too, in the schema that the address selects. The payments stay in that journal.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openJournal } from '../../gateway/payments/journal/open-journal.ts'
import type { Journal } from '../../gateway/payments/journal/journal.ts'
import { median } from '../../plugins/lib/quant/rolling-median.ts'
import { paymentIn } from '../../test/contracts/journal-payments.ts'
import { cpuMicros } from './cpu-time.ts'

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
    while (remaining-- > 0) await paymentIn(journal, 'settled')
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

const folder = mkdtempSync(join(tmpdir(), 'journal-'))
const journal = await openJournal({ file: join(folder, 'journal.sqlite') })
await compare('SQLite', journal)
await journal.close()
rmSync(folder, { recursive: true })

const [url] = process.argv.slice(2)
if (url !== undefined) {
  const shared = await openJournal({ url })
  await compare('PostgreSQL', shared)
  await shared.close()
}
