/** The command line of the ledger. */
import { parseArgs } from 'node:util'
import type { Format } from '../../gateway/accounting/ledger-export.ts'
import { type Month, monthOf } from '../../gateway/accounting/month.ts'

export const USAGE = `npm run ledger -- COMMAND [options]

  owed                    payments that were settled and cannot be delivered, not repaid yet
    --format text|json      (default: text)

  mark-repaid --tx 0x...  strikes the debt of that settlement off. It only records: you have sent the money yourself
    --by 0x...              the transaction that sent it back, kept with the debt
    --note TEXT             any other words to keep with it
    --payment KEY           which payment, where one transaction settled several that are owed

  export --month YYYY-MM  sales, debts and repayments of a month (UTC), always the same bytes once the month is over
    --format csv|json       (default: csv)

  reconcile               compares the ledger with the chain; ends with 1 where somebody must look
    --format text|json      (default: text)

The ledger is that of the gateway's own settings: DATA_DIR, NETWORK and DATA_MODE, or DATABASE_URL. The gateway may run
meanwhile. OWN_WALLETS marks what is no revenue. reconcile reads RPC_URL, or the sandbox's chain while it runs.
`

/** A mistake in words for the person at the terminal; no stack is shown. */
export class LedgerError extends Error {}

export type Command =
  | { readonly name: 'help' }
  | { readonly name: 'owed' | 'reconcile'; readonly json: boolean }
  | { readonly name: 'export'; readonly month: Month; readonly format: Format }
  | {
      readonly name: 'mark-repaid'
      readonly transaction: string
      readonly payment: string | null
      readonly note: string
    }

const HASH = /^0x[0-9a-f]{64}$/i

/** What to do. Throws LedgerError where that cannot be told. */
export function readCommand(argv: readonly string[]): Command {
  const { values, positionals } = parse(argv)
  const [name, ...rest] = positionals
  if (values.help || name === 'help') return { name: 'help' }
  if (name === undefined) throw new LedgerError(`Say what to do.\n\n${USAGE}`)
  if (rest.length > 0) throw new LedgerError(`${rest.join(' ')}: nothing is known by that name.\n\n${USAGE}`)
  const { format, month, tx, by, note, payment } = values
  const only = (...allowed: string[]): void => {
    const odd = Object.keys(values).filter((option) => !allowed.includes(option))
    if (odd.length > 0)
      throw new LedgerError(`${name} takes no ${odd.map((option) => `--${option}`).join(' and no ')}.`)
  }
  switch (name) {
    case 'owed':
    case 'reconcile':
      only('format')
      return { name, json: oneOf(format ?? 'text', ['text', 'json']) === 'json' }
    case 'export':
      only('format', 'month')
      if (month === undefined) throw new LedgerError('Name the month: --month 2026-11')
      return { name, month: readMonth(month), format: oneOf(format ?? 'csv', ['csv', 'json']) }
    case 'mark-repaid':
      only('tx', 'by', 'note', 'payment')
      if (tx === undefined)
        throw new LedgerError('Name the settlement of the debt: --tx 0x... (npm run ledger -- owed)')
      if (by?.toLowerCase() === tx.toLowerCase())
        throw new LedgerError('--by is the transaction that sent the money back, not the settlement.')
      return {
        name,
        transaction: hash('--tx', tx),
        payment: payment ?? null,
        note: [...(by === undefined ? [] : [hash('--by', by)]), ...(note === undefined ? [] : [note])].join(' '),
      }
    default:
      throw new LedgerError(`${name} is no command.\n\n${USAGE}`)
  }
}

function parse(argv: readonly string[]) {
  const text = { type: 'string' } as const
  const options = { format: text, month: text, tx: text, by: text, note: text, payment: text }
  try {
    return parseArgs({
      args: [...argv],
      options: { ...options, help: { type: 'boolean', short: 'h' } },
      allowPositionals: true,
    })
  } catch (error) {
    throw new LedgerError(`${(error as Error).message}\n\n${USAGE}`)
  }
}

function oneOf<Word extends string>(word: string, words: readonly Word[]): Word {
  const found = words.find((one) => one === word)
  if (found === undefined) throw new LedgerError(`--format is ${words.join(' or ')}, not "${word}".`)
  return found
}

function hash(option: string, text: string): string {
  if (!HASH.test(text)) throw new LedgerError(`${option} is a transaction, 0x and 64 hex digits, not "${text}".`)
  return text
}

function readMonth(text: string): Month {
  try {
    return monthOf(text)
  } catch {
    throw new LedgerError(`"${text}" is no month; write it like 2026-11.`)
  }
}
