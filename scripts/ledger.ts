/** `npm run ledger`: lists debts, marks them as repaid, decides on unclear ones, exports a month, and compares the journal with the chain. */
import { once } from 'node:events'
import { join } from 'node:path'
import { decimal, exportMonth } from '../gateway/accounting/ledger-export.ts'
import { createLedger, isOver, type Ledger, RepaymentError } from '../gateway/accounting/ledger.ts'
import { ALARMING, BUCKETS } from '../gateway/accounting/reconciliation/buckets.ts'
import {
  compareAll,
  type ComparedRecipient,
  type Comparison,
  comparisonOf,
} from '../gateway/accounting/reconciliation/comparison.ts'
import { openFindings, type Row, rowToJson } from '../gateway/accounting/reconciliation/findings.ts'
import { type Config, readStorageConfig } from '../gateway/config/config.ts'
import { withCommands } from '../gateway/config/project-root.ts'
import { findNetwork, NETWORKS, type Hex, type Network, readNetworks } from '../gateway/config/networks.ts'
import { readingNodes, SANDBOX } from '../gateway/config/settlement.ts'
import { createLog } from '../gateway/observe/log.ts'
import { openJournal } from '../gateway/payments/journal/open-journal.ts'
import type { Journal, PaymentRecord } from '../gateway/payments/journal/journal.ts'
import { readJson } from '../gateway/sandbox/shared-files.ts'
import { openDatabase } from '../gateway/stores/database.ts'
import { existingDatabase, reportError } from './command-line.ts'
import { type Command, LedgerError, readCommand, USAGE } from './ledger-arguments.ts'

const MAX_ROWS = 1_000

async function run(command: Command): Promise<number> {
  if (command.name === 'help') return print(USAGE)
  const config = readStorageConfig()
  const journal = await openJournal(existingDatabase(config, 'journal.sqlite'))
  try {
    const ledger = createLedger({ journal, own: config.ownWallets })
    switch (command.name) {
      case 'owed':
        return await print(listDebts(await ledger.debts(), await ledger.unclear(), command.json))
      case 'decide':
        return await print(await decide(ledger, command))
      case 'mark-repaid':
        return await print(await markRepaid(ledger, command))
      case 'export':
        for await (const text of exportMonth(ledger, command.month, command.format)) await print(text)
        if (!isOver(command.month, new Date()))
          process.stderr.write(`${command.month.name} is not over: more entries may be added to it.\n`)
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

function listDebts(debts: readonly PaymentRecord[], unclear: readonly PaymentRecord[], json: boolean): string {
  const sum = debts.reduce((total, { amount }) => total + amount, 0n)
  if (json) {
    const sums = { amount: decimal(sum), amount_atomic: String(sum) }
    return `${JSON.stringify({ debts: debts.map(debtAsJson), ...sums, unclear: unclear.map(debtAsJson) }, null, 2)}\n`
  }
  const title = debts.length === 0 ? 'Nothing is owed.' : `${debts.length} owed, ${decimal(sum)} USDC`
  return [
    title,
    ...debts.flatMap(debtAsText),
    ...(unclear.length === 0 ? [] : [`\n${unclear.length} unclear. ${UNCLEAR}`, ...unclear.flatMap(debtAsText)]),
    '',
  ].join('\n')
}

const UNCLEAR =
  withCommands(`An earlier release did not record whether you repaid these debts or a reorganisation took their payments
back. Nothing was sent and nothing will be. Say which it was: npm run ledger -- decide --tx 0x... --as repaid|withdrawn`)

function debtAsJson({ key, amount, payer, network, transaction, route, reason, updatedAt }: PaymentRecord) {
  return {
    since: new Date(updatedAt).toISOString(),
    transaction,
    payer,
    network,
    amount: decimal(amount),
    amount_atomic: String(amount),
    route,
    reason,
    payment: key,
  }
}

function debtAsText({ amount, payer, network, transaction, route, reason, updatedAt }: PaymentRecord): string[] {
  return [
    `${new Date(updatedAt).toISOString()}  ${decimal(amount)} USDC to ${payer} on ${network}`,
    `  settled by ${transaction} for ${route}`,
    `  ${reason ?? 'the answer is lost'}`,
  ]
}

async function decide(
  ledger: Ledger,
  { transaction, payment, ending }: Extract<Command, { name: 'decide' }>,
): Promise<string> {
  const debt = await ledger.decide({ transaction, ending, ...(payment === null ? {} : { payment }) })
  return `Recorded that ${decimal(debt.amount)} USDC owed to ${debt.payer} were ${ending}. Nothing was sent.\n`
}

async function markRepaid(
  ledger: Ledger,
  { transaction, payment, note }: Extract<Command, { name: 'mark-repaid' }>,
): Promise<string> {
  const recorded = note === '' ? 'by the operator' : note
  const debt = await ledger.repay({ transaction, note: recorded, ...(payment === null ? {} : { payment }) })
  return `Marked ${decimal(debt.amount)} USDC owed to ${debt.payer} as repaid: ${recorded}. Nothing was sent.\n`
}

/**
 * Compares the journal with the chain once. `clean` is false if a row needs attention. Alerts stay with the gateway.
 * Throws LedgerError if no chain is known.
 */
async function reconcile(
  config: Config,
  journal: Journal,
  json: boolean,
): Promise<{ readonly text: string; readonly clean: boolean }> {
  const accounts = await accountsOf(config)
  const { ownWallets: own } = config
  const db = openDatabase(existingDatabase(config, 'products.sqlite'))
  try {
    const findings = await openFindings(db)
    // Refusing every alert leaves the rows marked as not alerted, so that the gateway still sends them.
    const alert = async (): Promise<boolean> => false
    const shared = { journal, findings, own, alert, log: createLog('silent'), now: () => new Date() }
    const comparison = await compareAll(accounts.map((account) => comparisonOf({ ...account, ...shared })))()
    const rows = await findings.list(ALARMING, MAX_ROWS)
    const clean = comparison.unreadable === null && rows.every(({ isOwn }) => isOwn)
    return { text: json ? comparisonAsJson(comparison, rows) : comparisonAsText(comparison, rows), clean }
  } finally {
    await db.destroy()
  }
}

/** The accounts to compare. A running sandbox describes itself in sandbox.json. */
async function accountsOf(config: Config): Promise<readonly ComparedRecipient[]> {
  const { twoNodesFrom } = config
  if (config.network === SANDBOX) {
    const file = join(config.dataDir, 'sandbox.json')
    const sandbox = await readJson<{ rpc_url: string; pay_to: Hex }>(file)
    if (!sandbox) throw new LedgerError(`There is no sandbox at ${file}. Start the gateway first.`)
    const network = NETWORKS['base-sepolia']
    return [{ rpcUrl: sandbox.rpc_url, isLocal: true, network, payTo: sandbox.pay_to, twoNodesFrom }]
  }
  const known = readNetworks(config.catalogDir)
  return config.networks.map(({ network, rpcUrl: url, settleRpcUrl, payTo }) => {
    const rpcUrl = readingNodes(url, settleRpcUrl)
    const missing = [rpcUrl === null ? 'RPC_URL' : '', payTo === null ? 'PAY_TO' : ''].filter(Boolean).join(' and ')
    if (rpcUrl === null || payTo === null)
      throw new LedgerError(`The payments on ${network} cannot be compared with the chain: set ${missing}.`)
    return { rpcUrl, isLocal: false, network: findNetwork(known, network) as Network, payTo, twoNodesFrom }
  })
}

function comparisonAsJson({ at, readTo, unreadable, buckets }: Comparison, rows: readonly Row[]): string {
  const comparison = { at: at.toISOString(), read_to: readTo, unreadable, buckets }
  return `${JSON.stringify({ comparison, rows: rows.map(rowToJson) }, null, 2)}\n`
}

function comparisonAsText({ readTo, unreadable, buckets }: Comparison, rows: readonly Row[]): string {
  const counts = BUCKETS.map((bucket) => `${bucket.replace('_', ' ').padEnd(15)} ${buckets[bucket]}`)
  const lines = rows.map(({ bucket, note, payer, amount, transaction, payment, isOwn }) =>
    [
      bucket.replace('_', ' '),
      `${amount === null ? '?' : decimal(amount)} USDC from ${payer}${isOwn ? ' (own wallet)' : ''}`,
      transaction ?? payment ?? '',
      note,
    ].join('  '),
  )
  const read = readTo === null ? 'No block was read.' : `Read up to block ${readTo}.`
  const trouble = unreadable === null ? [] : [`The chain could not be read to its head: ${unreadable}`]
  return [...counts, read, ...trouble, ...lines, ''].join('\n')
}

/** Writes to standard output and waits while the reader is slow. */
async function print(text: string): Promise<number> {
  if (!process.stdout.write(text)) await once(process.stdout, 'drain')
  return 0
}

// The reader may leave early (`| head`).
process.stdout.on('error', () => process.exit(0))
try {
  process.exitCode = await run(readCommand(process.argv.slice(2)))
} catch (error) {
  reportError(error, LedgerError, RepaymentError)
}
