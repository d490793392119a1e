/** The command line of `npm run ledger`. */
import { parseArgs } from 'node:util'
import type { Format } from '../gateway/accounting/ledger-export.ts'
import { type Month, monthOf } from '../gateway/accounting/ledger.ts'
import { withCommands } from '../gateway/config/project-root.ts'

export const USAGE = withCommands(`npm run ledger -- COMMAND [options]

  owed                    lists payments that were settled but cannot be delivered and are not repaid yet
    --format text|json      (default: text)

  mark-repaid --tx 0x...  marks the debt of that settlement as repaid; it sends nothing, you have sent the money yourself
    --by 0x...              the transaction that sent the money back, kept with the debt
    --note TEXT             a note to keep with the debt
    --payment KEY           the payment, if one transaction settled several that are owed

  decide --tx 0x...       says how a debt ended that \`owed\` lists as unclear; it sends nothing
    --as repaid|withdrawn   you sent the money back, or you did not and a reorganisation took the payment back
    --payment KEY           the payment, if one transaction settled several of them

  export --month YYYY-MM  exports the sales, debts and repayments of a month (UTC); the same bytes once the month is over
    --format csv|json       (default: csv)

  reconcile               compares the ledger with the chain; exits with 1 if something needs attention
    --format text|json      (default: text)

The command uses the settings of the gateway (DATA_DIR, NETWORK and DATA_MODE, or DATABASE_URL) and may run beside it.
OWN_WALLETS marks payments that are not revenue. reconcile reads RPC_URL, or the sandbox chain while the gateway runs.
`)

/** An error to show without a stack trace. */
export class LedgerError extends Error {}

export type Command =
  | { readonly name: 'help' }
  | { readonly name: 'owed' | 'reconcile'; readonly json: boolean }
  | { readonly name: 'export'; readonly month: Month; readonly format: Format }
  | {
      readonly name: 'decide'
      readonly transaction: string
      readonly payment: string | null
      readonly ending: 'repaid' | 'withdrawn'
    }
  | {
      readonly name: 'mark-repaid'
      readonly transaction: string
      readonly payment: string | null
      readonly note: string
    }

const HASH = /^0x[0-9a-f]{64}$/i

/** Parses the command line. Throws LedgerError if it is wrong. */
export function readCommand(argv: readonly string[]): Command {
  const { values, positionals } = parse(argv)
  const [name, ...rest] = positionals
  if (values.help || name === 'help') return { name: 'help' }
  if (name === undefined) throw new LedgerError(`Name a command.\n\n${USAGE}`)
  if (rest.length > 0) throw new LedgerError(`${rest.join(' ')}: unknown argument.\n\n${USAGE}`)
  const { format, month, tx, by, note, payment, as } = values
  const allow = (...allowed: string[]): void => {
    const unknown = Object.keys(values).filter((option) => !allowed.includes(option))
    if (unknown.length > 0)
      throw new LedgerError(`${name} does not take ${unknown.map((option) => `--${option}`).join(' or ')}.`)
  }
  switch (name) {
    case 'owed':
    case 'reconcile':
      allow('format')
      return { name, json: oneOf('--format', format ?? 'text', ['text', 'json']) === 'json' }
    case 'export':
      allow('format', 'month')
      if (month === undefined) throw new LedgerError('Name the month: --month 2026-11')
      return { name, month: readMonth(month), format: oneOf('--format', format ?? 'csv', ['csv', 'json']) }
    case 'decide':
      allow('tx', 'as', 'payment')
      if (tx === undefined || as === undefined)
        throw new LedgerError('Name the payment and what happened: --tx 0x... --as repaid or --as withdrawn')
      return {
        name,
        transaction: hash('--tx', tx),
        payment: payment ?? null,
        ending: oneOf('--as', as, ['repaid', 'withdrawn']),
      }
    case 'mark-repaid':
      allow('tx', 'by', 'note', 'payment')
      if (tx === undefined)
        throw new LedgerError('Name the transaction that settled the debt: --tx 0x... (see: npm run ledger -- owed)')
      if (by?.toLowerCase() === tx.toLowerCase())
        throw new LedgerError('--by must be the transaction that sent the money back, not the settlement.')
      return {
        name,
        transaction: hash('--tx', tx),
        payment: payment ?? null,
        note: [...(by === undefined ? [] : [hash('--by', by)]), ...(note === undefined ? [] : [note])].join(' '),
      }
    default:
      throw new LedgerError(`${name} is not a command.\n\n${USAGE}`)
  }
}

function parse(argv: readonly string[]) {
  const text = { type: 'string' } as const
  const options = { format: text, month: text, tx: text, by: text, note: text, payment: text, as: text }
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

function oneOf<Word extends string>(option: string, value: string, words: readonly Word[]): Word {
  const found = words.find((word) => word === value)
  if (found === undefined) throw new LedgerError(`${option} must be ${words.join(' or ')}, not "${value}".`)
  return found
}

function hash(option: string, text: string): string {
  if (!HASH.test(text))
    throw new LedgerError(`${option} must be a transaction hash, 0x and 64 hex digits, not "${text}".`)
  return text
}

function readMonth(text: string): Month {
  try {
    return monthOf(text)
  } catch {
    throw new LedgerError(`"${text}" is not a month; write it like 2026-11.`)
  }
}
