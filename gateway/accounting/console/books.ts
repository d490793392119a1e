/** The ledger's months and debts as the console shows them, as files to keep, and a debt struck off. */
import { InvalidInput } from '../../errors.ts'
import { type Book, NoDebt } from '../ledger.ts'
import { exported, MEDIA, totalOf } from '../ledger-export.ts'
import { isOver, type Month, monthAt, monthBefore, monthOf } from '../month.ts'
import type { PaymentRecord } from '../../payments/journal/journal.ts'
import { type Download, type Fields, textField } from './screens.ts'

const HASH = /^0x[0-9a-fA-F]{64}$/
const WORDS = /^[^\p{C}]{0,200}$/u
const KEY = /^[\w:/-]{1,300}$/

/** A debt as JSON; amounts are atomic units as decimal strings. */
export function debtOf({
  key,
  amount,
  payer,
  network,
  transaction,
  operation,
  route,
  reason,
  updatedAt,
}: PaymentRecord) {
  return {
    payment: key,
    network,
    operation,
    route,
    payer,
    amount: String(amount),
    transaction,
    reason,
    since: new Date(updatedAt).toISOString(),
  }
}

export function createBooks(book: Book, now: () => Date) {
  const asked = (query: URLSearchParams): Month => monthOf(query.get('month') ?? monthAt(now()))

  /** What a month adds up to, and every debt of today. */
  async function ledger(query: URLSearchParams) {
    const month = asked(query)
    const isLast = month.name >= monthAt(now())
    return {
      month: month.name,
      is_over: isOver(month, now()),
      previous: monthBefore(month.name),
      next: isLast ? null : monthAt(new Date(month.before)),
      totals: (await book.totals(month)).map(totalOf),
      debts: (await book.debts()).map(debtOf),
    }
  }

  function file(query: URLSearchParams): Download {
    const month = asked(query)
    const format = query.get('format') ?? 'csv'
    if (format !== 'csv' && format !== 'json') throw new InvalidInput('is csv or json', ['query', 'format'])
    return { type: MEDIA[format], name: `ledger-${month.name}.${format}`, text: exported(book, month, format) }
  }

  /** Records that somebody sent the money back. */
  async function repaid(fields: Fields) {
    const transaction = textField(fields, 'transaction', HASH)
    const by = fields['by'] === undefined || fields['by'] === '' ? null : textField(fields, 'by', HASH)
    const note = fields['note'] === undefined ? '' : textField(fields, 'note', WORDS)
    const payment = fields['payment'] === undefined ? null : textField(fields, 'payment', KEY)
    const words = [by, note.trim()].filter(Boolean).join(' ') || 'by the operator'
    try {
      const debt = await book.repay({ transaction, note: words, ...(payment === null ? {} : { payment }) })
      return { repaid: debt.key, note: words }
    } catch (error) {
      if (error instanceof NoDebt) throw new InvalidInput(error.message, ['body', 'transaction'])
      throw error
    }
  }

  return { ledger, file, repaid }
}

export type Books = ReturnType<typeof createBooks>
