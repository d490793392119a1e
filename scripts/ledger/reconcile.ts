/** One comparison of the ledger with the chain, for the terminal. Alerts stay with the gateway. */
import { join } from 'node:path'
import type { Config } from '../../gateway/config/config.ts'
import { decimal } from '../../gateway/accounting/ledger-export.ts'
import { SANDBOX } from '../../gateway/config/settlement.ts'
import { createLog } from '../../gateway/observe/log.ts'
import { findNetwork, NETWORKS, type Hex, type Network } from '../../gateway/config/networks.ts'
import { readNetworks } from '../../gateway/config/networks.ts'
import type { Journal } from '../../gateway/payments/journal/journal.ts'
import { ALARMING, BUCKETS } from '../../gateway/accounting/reconciliation/buckets.ts'
import { comparisonOf } from '../../gateway/accounting/reconciliation/open.ts'
import { type Comparison, shown, together } from '../../gateway/accounting/reconciliation/reconciliation.ts'
import { openRows, type Row } from '../../gateway/accounting/reconciliation/rows.ts'
import { readJson } from '../../gateway/sandbox/files.ts'
import { openDatabase } from '../../gateway/stores/database.ts'
import { LedgerError } from './arguments.ts'

const MOST = 1_000

/** What was found, as text or JSON, and whether nobody has to look. Throws LedgerError where no chain is known. */
export async function reconcile(
  config: Config,
  journal: Journal,
  json: boolean,
): Promise<{ readonly text: string; readonly clean: boolean }> {
  const places = await placesOf(config)
  const { databaseUrl, dataDir, ownWallets: own } = config
  const db = openDatabase(databaseUrl === null ? { file: join(dataDir, 'products.sqlite') } : { url: databaseUrl })
  try {
    const rows = await openRows(db)
    const shared = { journal, rows, own, log: createLog('silent'), now: () => new Date() }
    // Nobody is told, so the gateway still tells of every row.
    const tell = async (): Promise<boolean> => false
    const comparison = await together(places.map((place) => comparisonOf({ ...place, ...shared, tell })))()
    const found = await rows.list(ALARMING, MOST)
    const doubtful = found.filter(({ isOwn }) => !isOwn)
    const clean = comparison.unreadable === null && doubtful.length === 0
    return { text: json ? asJson(comparison, found) : asText(comparison, found), clean }
  } finally {
    await db.destroy()
  }
}

interface Place {
  readonly rpcUrl: string
  readonly isLocal: boolean
  readonly network: Network
  readonly payTo: Hex
}

/** Which chains to read. The sandbox says where it is while it runs. */
async function placesOf(config: Config): Promise<readonly Place[]> {
  if (config.network === SANDBOX) {
    const file = join(config.dataDir, 'sandbox.json')
    const sandbox = await readJson<{ rpc_url: string; pay_to: Hex }>(file)
    if (!sandbox) throw new LedgerError(`There is no sandbox at ${file}. It is described while its gateway runs.`)
    return [{ rpcUrl: sandbox.rpc_url, isLocal: true, network: NETWORKS['base-sepolia'], payTo: sandbox.pay_to }]
  }
  const known = readNetworks(config.catalogDir)
  return config.networks.map(({ network, rpcUrl, payTo }) => {
    if (rpcUrl === null || payTo === null)
      throw new LedgerError(`RPC_URL of ${network} is missing: the chain cannot be read without it.`)
    return { rpcUrl, isLocal: false, network: findNetwork(known, network) as Network, payTo }
  })
}

function asJson({ at, readTo, unreadable, buckets }: Comparison, rows: readonly Row[]): string {
  const comparison = { at: at.toISOString(), read_to: readTo, unreadable, buckets }
  return `${JSON.stringify({ comparison, rows: rows.map(shown) }, null, 2)}\n`
}

function asText({ readTo, unreadable, buckets }: Comparison, rows: readonly Row[]): string {
  const counts = BUCKETS.map((bucket) => `${bucket.replace('_', ' ').padEnd(15)} ${buckets[bucket]}`)
  const lines = rows.map(({ bucket, note, payer, amount, transaction, payment, isOwn }) =>
    [
      bucket.replace('_', ' '),
      `${amount === null ? '?' : decimal(amount)} USDC from ${payer}${isOwn ? ' (own wallet)' : ''}`,
      transaction ?? payment ?? '',
      note,
    ].join('  '),
  )
  const reached = readTo === null ? 'The chain was not read.' : `Read to block ${readTo}.`
  const trouble = unreadable === null ? [] : [`The chain could not be read to its head: ${unreadable}`]
  return [...counts, reached, ...trouble, ...lines, ''].join('\n')
}
