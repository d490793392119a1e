/**
 * A process that works on a journal until it is killed. `journal-process.ts <file> <state>` brings one payment to that
 * state; `journal-process.ts <file>` keeps buying, short answers and long ones. It prints the key of each payment once its
 * change has resolved.
 */
import { openJournal } from '../../gateway/payments/journal/open-journal.ts'
import type { PaymentState } from '../../gateway/payments/journal/payment-states.ts'
import { paymentForLongAnswer, paymentIn } from './journal-payments.ts'

const [file = ':memory:', state] = process.argv.slice(2)
const journal = await openJournal({ file })

if (state === undefined) {
  const kinds = [
    () => paymentIn(journal, 'settled'),
    () => paymentForLongAnswer(journal, 0),
    () => paymentForLongAnswer(journal, 1),
  ]
  const buy = async (nth: number): Promise<never> => {
    for (let at = nth; ; at += 1) process.stdout.write(`key ${await kinds[at % kinds.length]?.()}\n`)
  }
  await Promise.all(Array.from({ length: 8 }, (_, nth) => buy(nth)))
}
process.stdout.write(`key ${await paymentIn(journal, state as PaymentState)}\n`)
// Keeps running: it has to be killed and must not close the journal.
setInterval(() => {}, 1_000)
