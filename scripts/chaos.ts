/**
 * `npm run chaos -- --minutes 2 [--calls 2000] [--kills 30] [--buyers 6]`: kills a real gateway with SIGKILL at random
 * under paid load on the sandbox chain, and then reads from the chain who was charged for what. It runs for the given
 * time and until the numbers are reached. Exits with 1 if a buyer was charged twice, paid for nothing or got an answer
 * without paying.
 */
import { randomInt } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { generatePrivateKey, privateKeyToAddress } from 'viem/accounts'
import { openJournal } from '../gateway/payments/journal/open-journal.ts'
import { NETWORKS, type Hex } from '../gateway/config/networks.ts'
import { createRpc, type Rpc } from '../gateway/methods/exact-evm/nodes/rpc.ts'
import { freePort } from '../gateway/sandbox/anvil.ts'
import { mintData } from '../gateway/sandbox/contracts.ts'
import { type Requirement, createSigner, startLoad } from './chaos/buyers.ts'
import { startVictim } from './chaos/victim.ts'
import { faultsOf, judge, readTransfers, type Verdict } from './chaos/verdict.ts'

const network = NETWORKS['base-sepolia']
const shop = resolve(import.meta.dirname, '../test/fixtures/shop')
const FUNDS = 1_000_000_000n
const DONOR: Hex = '0x00000000000000000000000000000000000fa0ce'

interface ChaosOptions {
  readonly minutes: number
  readonly calls: number
  readonly kills: number
  readonly buyers: number
}

interface Chaos extends Verdict {
  readonly paidCalls: number
  readonly sent: number
  readonly kills: number
  /** Purchases whose outcome the buyer still does not know. */
  readonly unresolved: number
  readonly answers: Readonly<Record<string, number>>
}

/** Runs the test. `say` receives progress lines. */
async function chaos(options: ChaosOptions, say: (line: string) => void): Promise<Chaos> {
  const dataDir = mkdtempSync(join(tmpdir(), 'tollgate-chaos-'))
  const port = await freePort()
  const baseUrl = `http://127.0.0.1:${port}`
  const victim = await startVictim({
    PORT: String(port),
    DATA_DIR: dataDir,
    CATALOG_DIR: join(shop, 'catalog'),
    PLUGIN_DIRS: join(shop, 'plugins'),
    LOG_LEVEL: 'silent',
  })
  try {
    const folder = join(dataDir, 'sandbox-sample')
    const sandbox = JSON.parse(readFileSync(join(folder, 'sandbox.json'), 'utf8')) as { rpc_url: string; pay_to: Hex }
    const rpc = createRpc(sandbox.rpc_url, 60)
    const keys = Array.from({ length: options.buyers }, () => generatePrivateKey())
    await fund(rpc, keys.map(privateKeyToAddress))
    const requirement = await requirementOf(`${baseUrl}/v1/echo/price`)
    const fromBlock = Number(await rpc.call<Hex>('eth_blockNumber'))
    const load = startLoad({
      baseUrl,
      requirement,
      buyers: keys.map((key) => createSigner(network, key)),
      path: (id) => `/v1/echo/${id}`,
    })
    const ends = Date.now() + options.minutes * 60_000
    let kills = 0
    while (Date.now() < ends || kills < options.kills || load.purchases.length < options.calls) {
      await delay(randomInt(500, 6_000))
      await victim.killAndRestart()
      kills += 1
      if (kills % 5 === 0) say(`${kills} kills, ${load.purchases.length} paid calls`)
    }
    await load.stop()
    say('no more kills; every buyer repeats its open payments')
    const unresolved = await load.resolveOpen()
    const transfers = await readTransfers(rpc, network, sandbox.pay_to, fromBlock)
    await victim.stop()
    const journal = await openJournal({ file: join(folder, 'journal.sqlite') })
    const verdict = await judge(load.purchases, transfers, journal, { network, price: BigInt(requirement.amount) })
    await journal.close()
    const sent = load.purchases.reduce((sum, purchase) => sum + purchase.sent, 0)
    const answers = Object.fromEntries(load.answers)
    return { paidCalls: load.purchases.length, sent, kills, ...verdict, unresolved, answers }
  } finally {
    await victim.stop()
    rmSync(dataDir, { recursive: true, force: true })
  }
}

async function requirementOf(url: string): Promise<Requirement> {
  const header = (await fetch(url)).headers.get('payment-required') ?? ''
  const { accepts } = JSON.parse(Buffer.from(header, 'base64').toString()) as { accepts: [Requirement] }
  return accepts[0]
}

async function fund(rpc: Rpc, accounts: readonly Hex[]): Promise<void> {
  await rpc.call('anvil_setBalance', DONOR, '0x56bc75e2d63100000')
  await rpc.call('anvil_impersonateAccount', DONOR)
  for (const account of accounts) {
    const call = { from: DONOR, to: network.asset, data: mintData(account, FUNDS), gas: '0x30d40' }
    await rpc.call('eth_sendTransaction', call)
  }
  await rpc.call('anvil_stopImpersonatingAccount', DONOR)
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      minutes: { type: 'string', default: '2' },
      calls: { type: 'string', default: '0' },
      kills: { type: 'string', default: '0' },
      buyers: { type: 'string', default: '6' },
    },
  })
  const { minutes, calls, kills, buyers } = values
  const say = (line: string): boolean => process.stdout.write(`${line}\n`)
  const began = Date.now()
  const result = await chaos(
    { minutes: Number(minutes), calls: Number(calls), kills: Number(kills), buyers: Number(buyers) },
    say,
  )
  const { answers, ...figures } = result
  for (const [name, value] of Object.entries(figures)) say(`${name.padEnd(16)} ${value}`)
  say(`${'answers'.padEnd(16)} ${JSON.stringify(answers)}`)
  say(`${'seconds'.padEnd(16)} ${Math.round((Date.now() - began) / 1000)}`)
  const faults = faultsOf(result)
  if (faults.length > 0 || result.unresolved > 0) {
    say(`FAILED: ${[...faults, ...(result.unresolved > 0 ? [`unresolved: ${result.unresolved}`] : [])].join(', ')}`)
    process.exitCode = 1
  }
}

await main()
