/**
 * `npm run lab -- bursts`: how long buyers wait on a chain with one-second blocks, when many buy at the same moment and when few do:
 * from the check of a payment to its settlement, and from the request to the answer of a gateway. In both cases one
 * settles every payment in its own transaction, and the other in batches as it does by default. They take turns on one
 * chain, with keys of their own. Each burst begins at a random time between two blocks, and over a run these times cover
 * the second evenly. A payment that is not settled ends the run.
 *
 * The machine is shared by the buyers, the gateways and the chain, so compare only what one run measured. Half a second
 * is the wait for a block on average.
 */
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Pool } from 'undici'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import type { Hex } from '../../../gateway/config/networks.ts'
import { createChainSettler } from '../../../gateway/methods/exact-evm/chain/chain-settler.ts'
import { createExactEvm } from '../../../gateway/methods/exact-evm/exact-evm.ts'
import { createRpc, quantity } from '../../../gateway/methods/exact-evm/nodes/rpc.ts'
import { decodePayment, type DecodedPayment } from '../../../gateway/methods/payment-method.ts'
import { createLog } from '../../../gateway/observe/log.ts'
import { freePort } from '../../../gateway/sandbox/anvil.ts'
import { openSandbox } from '../../../gateway/sandbox/sandbox.ts'
import type { PaymentRequirements } from '../../../gateway/x402/payment-requirements.ts'
import { fundBuyers } from '../chaos/local-market.ts'
import { readRequirement } from '../../../gateway/client/payment.ts'
import { defer, newFolder, number, readOptions, root, say, sayTable } from '../experiment.ts'
import { startGateway } from '../gateway.ts'
import { createBuyer, headerOf, newWallets, requirementOf } from './calls/payments.ts'
import { percentile } from './percentile.ts'

const { count } = readOptions({ count: number('N', 'bursts of each kind', 20, 1) }).values
const BLOCK_MS = 1_000
const CROWD = 200
const FEW = 8
const PATH = '/v1/echo/burst'
const ETHER = 10n ** 18n

const MODES = [
  { name: 'one by one', batch: 1 },
  { name: 'by default', batch: null },
] as const
type Mode = (typeof MODES)[number]

/** Sells to many buyers at once. */
interface Seller {
  readonly name: string
  /** Signs a payment for each buyer. The purchases begin when they are called, and resolve with their transactions. */
  prepare(buyers: number): Promise<Purchases>
}

interface Purchases {
  readonly begin: readonly (() => Promise<Hex>)[]
  end(): Promise<void>
}

interface Series {
  readonly seller: Seller
  readonly buyers: number
  /** Milliseconds until each answer, by burst. */
  readonly bursts: number[][]
  readonly transactions: Set<Hex>
}

const log = createLog('error')
const sandbox = await openSandbox({ dataDir: newFolder(), blockSeconds: BLOCK_MS / 1_000, log })
defer(() => sandbox.close())
const { network, rpcUrl } = sandbox
const rpc = createRpc(rpcUrl, 60)
const wallets = newWallets(CROWD)
const method = createExactEvm(network)
const sellers: Seller[] = []

async function newKey(): Promise<Hex> {
  const key = generatePrivateKey()
  await rpc.call('anvil_setBalance', privateKeyToAccount(key).address, quantity(1_000n * ETHER))
  return key
}

/** Each seller has its own, or the gateways would look for each other's payments in their journals. */
function newPayTo(): Hex {
  return privateKeyToAccount(generatePrivateKey()).address
}

/** Checks and settles payments without a gateway around it. */
async function openSettler({ name, batch }: Mode): Promise<Seller> {
  const payTo = newPayTo()
  const settler = await createChainSettler({ rpcUrl, key: await newKey(), network, log, confirmSeconds: 60, batch })
  defer(() => settler.close())
  const requirements: PaymentRequirements = { scheme: 'exact', network, amount: 5_000n, payTo, maxTimeoutSeconds: 300 }
  const accepted = method.acceptsV2(requirements)
  const header = Buffer.from(JSON.stringify({ x402Version: 2, accepts: [accepted] })).toString('base64')
  const sign = createBuyer(wallets, readRequirement(header, '{}', false))

  async function buy(payment: DecodedPayment): Promise<Hex> {
    const refusal = await settler.check(payment, requirements)
    if (refusal) throw new Error(`A payment was refused: ${refusal.reason}.`)
    const outcome = await settler.settle(payment, requirements, { record: async () => true, wait: 'confirmed' })
    if (outcome.state !== 'settled') throw new Error(`A payment ended as ${outcome.state}.`)
    return outcome.transaction
  }

  return {
    name: `settler, ${name}`,
    async prepare(buyers) {
      const payments = Array.from({ length: buyers }, () => decodePayment(sign(), [method]))
      return { begin: payments.map((payment) => () => buy(payment)), end: async () => {} }
    },
  }
}

/** Sells over HTTP through a gateway in a process of its own. Every buyer has a connection of their own. */
async function openGateway({ name, batch }: Mode): Promise<Seller> {
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const fixtures = join(root, 'test/fixtures/shop')
  const gateway = await startGateway({
    NODE_ENV: 'production',
    NETWORK: network.name,
    PAY_TO: newPayTo(),
    SETTLE_RPC_URL: rpcUrl,
    SETTLE_KEY: await newKey(),
    DATA_DIR: newFolder(),
    CATALOG_DIR: join(fixtures, 'catalog'),
    PLUGIN_DIRS: join(fixtures, 'plugins'),
    PORT: String(port),
    LOG_LEVEL: 'error',
    ...(batch === null ? {} : { SETTLE_BATCH: String(batch) }),
  })
  defer(() => gateway.stop())
  const sign = createBuyer(wallets, await requirementOf(url + PATH))

  async function buy(pool: Pool, payment: string): Promise<Hex> {
    const answer = await pool.request({ path: PATH, method: 'GET', headers: { 'payment-signature': payment } })
    const text = await answer.body.text()
    if (answer.statusCode !== 200) throw new Error(`A payment was answered ${answer.statusCode}: ${text}`)
    return transactionOf(answer.headers['payment-response'])
  }

  return {
    name: `gateway, ${name}`,
    async prepare(buyers) {
      const payments = Array.from({ length: buyers }, () => headerOf(sign()))
      const pool = new Pool(url, { connections: buyers, pipelining: 1 })
      return { begin: payments.map((payment) => () => buy(pool, payment)), end: () => pool.close() }
    },
  }
}

/** Lets all buyers begin at the same moment, this long after a block. */
async function burst({ seller, buyers, transactions }: Series, phaseMs: number): Promise<number[]> {
  const { begin, end } = await seller.prepare(buyers)
  await nextBlock()
  await sleep(phaseMs)
  const began = performance.now()
  const waits = await Promise.all(
    begin.map(async (buy) => {
      transactions.add(await buy())
      return performance.now() - began
    }),
  )
  await end()
  return waits
}

/** Resolves when a new block is in the chain. */
async function nextBlock(): Promise<void> {
  const before = await rpc.call<Hex>('eth_blockNumber')
  while ((await rpc.call<Hex>('eth_blockNumber')) === before) await sleep(5)
}

function transactionOf(receipt: unknown): Hex {
  return (JSON.parse(Buffer.from(String(receipt), 'base64').toString()) as { transaction: Hex }).transaction
}

/** Random times between two blocks, one in each of as many equal parts, in random order. */
function phases(count: number): readonly number[] {
  const parts = Array.from({ length: count }, (_, at) => ((at + Math.random()) / count) * BLOCK_MS)
  return parts
    .map((part) => ({ part, order: Math.random() }))
    .sort((one, other) => one.order - other.order)
    .map(({ part }) => part)
}

/** Returns the gas that all of these transactions used together. */
async function gasUsed(hashes: ReadonlySet<Hex>): Promise<number> {
  let gas = 0
  for (const hash of hashes)
    gas += Number((await rpc.call<{ gasUsed: Hex }>('eth_getTransactionReceipt', hash)).gasUsed)
  return gas
}

async function row({ seller, buyers, bursts, transactions }: Series): Promise<readonly string[]> {
  const waits = bursts.flat()
  const medians = bursts.map((one) => percentile(one, 0.5))
  const seconds = (milliseconds: number): string => (milliseconds / 1_000).toFixed(2)
  return [
    seller.name,
    String(buyers),
    seconds(percentile(waits, 0.5)),
    seconds(percentile(waits, 0.99)),
    `${seconds(Math.min(...medians))} to ${seconds(Math.max(...medians))}`,
    (waits.length / transactions.size).toFixed(1),
    String(Math.round((await gasUsed(transactions)) / waits.length)),
  ]
}

// Test USDC for all bursts.
const accounts = wallets.map(({ address }) => address)
await fundBuyers(rpc, network, accounts, 100_000_000n)
for (const open of [openSettler, openGateway]) for (const mode of MODES) sellers.push(await open(mode))
const newSeries = (seller: Seller, buyers: number): Series => {
  return { seller, buyers, bursts: [], transactions: new Set() }
}
const series = [CROWD, FEW].flatMap((buyers) => sellers.map((seller) => newSeries(seller, buyers)))
// Code is compiled while it runs, and the first transfer of a wallet costs more gas.
for (let round = 0; round < 3; round++) for (const seller of sellers) await burst(newSeries(seller, CROWD), 0)
for (const [round, phase] of phases(count).entries())
  for (const one of round % 2 === 0 ? series : series.toReversed()) one.bursts.push(await burst(one, phase))
say(`${count} bursts each, blocks of one second`)
sayTable([
  ['seller', 'buyers', 'p50 s', 'p99 s', 'p50 of a burst, s', 'payments a transaction', 'gas a payment'],
  ...(await Promise.all(series.map(row))),
])
