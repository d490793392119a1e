/**
 * Group commit against single commits of the ledger, in one run: payments go through reserved, answered, submitted and
 * settled, by 1, 8, 32 and 128 buyers at a time. Prints wall and CPU microseconds per durable change, and the ratio.
 *
 *   node --import tsx scripts/bench/journal.ts [postgres://…]
 *
 * With an address, PostgreSQL is measured too: in the schema the address selects, whose ledger grows by the payments.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openJournal } from '../../gateway/payments/journal/open-journal.ts'
import type { Journal } from '../../gateway/payments/journal/journal.ts'
import { paymentIn } from '../../test/contracts/journal-payments.ts'

const CHANGES = 4
const PAYMENTS = 2_000
const BUYERS = [1, 8, 32, 128]
const ROUNDS = 3

interface Cost {
  readonly wall: number
  readonly cpu: number
}

/** Microseconds per change. */
async function measure(journal: Journal, buyers: number, payments: number): Promise<Cost> {
  const cpuBefore = process.cpuUsage()
  const began = performance.now()
  let left = payments
  const buy = async (): Promise<void> => {
    while (left-- > 0) await paymentIn(journal, 'settled')
  }
  await Promise.all(Array.from({ length: buyers }, buy))
  const wall = (performance.now() - began) * 1000
  const { user, system } = process.cpuUsage(cpuBefore)
  return { wall: wall / payments / CHANGES, cpu: (user + system) / payments / CHANGES }
}

const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN

/** The rounds take turns, so that a busy machine is busy for all. */
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

const folder = mkdtempSync(join(tmpdir(), 'ledger-'))
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
