/**
 * A process that works on a ledger until it is killed. `ledger-process.ts <file> <state>` brings one payment to that
 * state; `ledger-process.ts <file>` goes on buying. It prints the key of each payment once its change has resolved.
 */
import { openJournal } from '../../gateway/payments/journal/open-journal.ts'
import type { PaymentState } from '../../gateway/payments/journal/payment-states.ts'
import { paymentIn } from './payment.ts'

const [file = ':memory:', state] = process.argv.slice(2)
const journal = await openJournal({ file })

if (state === undefined) {
  const buy = async (): Promise<never> => {
    for (;;) process.stdout.write(`key ${await paymentIn(journal, 'settled')}\n`)
  }
  await Promise.all(Array.from({ length: 8 }, buy))
}
process.stdout.write(`key ${await paymentIn(journal, state as PaymentState)}\n`)
// Stays, so that it is killed and never closes.
setInterval(() => {}, 1_000)
