/** `npm run ledger`: what is owed, what was repaid, a month for the books, and the comparison with the chain. */
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { type Config, ConfigError, readConfig } from '../gateway/config/config.ts'
import { type Book, createBook, NoDebt } from '../gateway/accounting/ledger.ts'
import { decimal, exported } from '../gateway/accounting/ledger-export.ts'
import { isOver } from '../gateway/accounting/month.ts'
import { openJournal } from '../gateway/payments/journal/open-journal.ts'
import type { Journal, PaymentRecord } from '../gateway/payments/journal/journal.ts'
import { type Command, LedgerError, readCommand, USAGE } from './ledger/arguments.ts'
import { reconcile } from './ledger/reconcile.ts'

async function run(command: Command): Promise<number> {
  if (command.name === 'help') return print(USAGE)
  const config = readConfig()
  const journal = await open(config)
  try {
    const book = createBook({ journal, own: config.ownWallets })
    switch (command.name) {
      case 'owed':
        return await print(owed(await book.debts(), command.json))
      case 'mark-repaid':
        return await print(await repay(book, command))
      case 'export':
        for await (const text of exported(book, command.month, command.format)) await print(text)
        if (!isOver(command.month, new Date()))
          process.stderr.write(`${command.month.name} is not over: more may be added to it.\n`)
        return 0
      case 'reconcile': {
        const { text, clean } = await reconcile(config, journal, command.json)
        await print(text)
        return clean ? 0 : 1
      }
    }
  } finally {
    await journal.close()
  }
}

/** The ledger the gateway writes. A file that does not exist is a wrong setting, not an empty ledger. */
async function open({ databaseUrl, dataDir }: Config): Promise<Journal> {
  if (databaseUrl !== null) return openJournal({ url: databaseUrl })
  const file = join(dataDir, 'journal.sqlite')
  if (!existsSync(file))
    throw new LedgerError(
      `There is no ledger at ${file}. DATA_DIR, NETWORK and DATA_MODE say where the gateway has it.`,
    )
  return openJournal({ file })
}

function owed(debts: readonly PaymentRecord[], json: boolean): string {
  const sum = debts.reduce((total, { amount }) => total + amount, 0n)
  if (json) {
    const rows = debts.map(({ key, amount, payer, network, transaction, route, reason, updatedAt }) => ({
      since: new Date(updatedAt).toISOString(),
      transaction,
      payer,
      network,
      amount: decimal(amount),
      amount_atomic: String(amount),
      route,
      reason,
      payment: key,
    }))
    return `${JSON.stringify({ debts: rows, amount: decimal(sum), amount_atomic: String(sum) }, null, 2)}\n`
  }
  if (debts.length === 0) return 'Nothing is owed.\n'
  const lines = debts.flatMap(({ amount, payer, network, transaction, route, reason, updatedAt }) => [
    `${new Date(updatedAt).toISOString()}  ${decimal(amount)} USDC to ${payer} on ${network}`,
    `  settled by ${transaction} for ${route}`,
    `  ${reason ?? 'its answer is lost'}`,
  ])
  return [`${debts.length} owed, ${decimal(sum)} USDC`, ...lines, ''].join('\n')
}

async function repay(book: Book, { transaction, payment, note }: Extract<Command, { name: 'mark-repaid' }>) {
  const words = note === '' ? 'by the operator' : note
  const debt = await book.repay({ transaction, note: words, ...(payment === null ? {} : { payment }) })
  return `${decimal(debt.amount)} USDC owed to ${debt.payer} are struck off: ${words}. Nothing was sent.\n`
}

/** Waits where the reader is slow, and ends quietly where it has gone. */
async function print(text: string): Promise<number> {
  if (!process.stdout.write(text)) await once(process.stdout, 'drain')
  return 0
}

process.stdout.on('error', () => process.exit(0))
try {
  process.exitCode = await run(readCommand(process.argv.slice(2)))
} catch (error) {
  const isTold = error instanceof LedgerError || error instanceof NoDebt || error instanceof ConfigError
  process.stderr.write(`${isTold ? error.message : ((error as Error).stack ?? String(error))}\n`)
  process.exitCode = 1
}
