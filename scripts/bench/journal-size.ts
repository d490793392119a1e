/**
 * `npm run bench:journal-size`: bytes of a SQLite journal per payment, indexes included. Once with all that a payment
 * leaves behind while its answer is kept (four durable changes and a small answer), and once as a million settled payments
 * lie there when their answers are dropped.
 */
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openJournal } from '../../gateway/payments/journal/open-journal.ts'
import { paymentIn } from '../../test/contracts/journal-payments.ts'
import { readFlags } from '../command-line.ts'
import { fillJournal } from './filled-journal.ts'

readFlags('Usage: npm run bench:journal-size', {})
const PAYMENTS = 50_000
const BUYERS = 128
const SETTLED = 1_000_000

const folder = mkdtempSync(join(tmpdir(), 'journal-size-'))
try {
  const file = join(folder, 'kept.sqlite')
  const journal = await openJournal({ file })
  let remaining = PAYMENTS
  const buy = async (): Promise<void> => {
    while (remaining-- > 0) await journal.delivered(await paymentIn(journal, 'settled'))
  }
  await Promise.all(Array.from({ length: BUYERS }, buy))
  await journal.close()
  console.log(`${(statSync(file).size / PAYMENTS).toFixed(0)} bytes a payment, with all its changes and its answer`)

  const settled = join(folder, 'settled.sqlite')
  await fillJournal(settled, SETTLED)
  console.log(`${(statSync(settled).size / SETTLED).toFixed(0)} bytes a payment, settled and without its answer`)
} finally {
  rmSync(folder, { recursive: true })
}
