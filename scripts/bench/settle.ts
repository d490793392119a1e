/**
 * `npm run bench:settle`: settlements per second and gas per payment on the sandbox chain. One run compares single settlements, one
 * after the other and all at once, with batches of up to 10 and up to 50 payments in one Multicall3 transaction. Every
 * payment has its own payer, and every outcome is read from the chain.
 *
 * Rates depend on the machine and its load, so compare only the ratios within one run. The modes take turns.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { generatePrivateKey, type PrivateKeyAccount, privateKeyToAccount } from 'viem/accounts'
import { createLog } from '../../gateway/observe/log.ts'
import { decodePayment, type DecodedPayment, type Settler } from '../../gateway/methods/payment-method.ts'
import type { PaymentRequirements } from '../../gateway/x402/payment-requirements.ts'
import type { Hex } from '../../gateway/config/networks.ts'
import { createChainSettler } from '../../gateway/methods/exact-evm/chain/chain-settler.ts'
import { createExactEvm } from '../../gateway/methods/exact-evm/exact-evm.ts'
import { createRpc } from '../../gateway/methods/exact-evm/nodes/rpc.ts'
import { openSandbox } from '../../gateway/sandbox/sandbox.ts'
import { median } from '../../plugins/lib/quant/rolling-median.ts'
import { createPayment, type Requirement } from '../../test/support/wallet.ts'
import { fundBuyers } from '../chaos/local-market.ts'
import { readFlags, readNumber } from '../command-line.ts'
import { gasUsed } from './gas-used.ts'

interface Mode {
  readonly name: string
  readonly batch: number
  /** Settlements requested at the same time. */
  readonly concurrency: number
}

interface Measured {
  readonly perSecond: number
  readonly gas: number
}

const USAGE = `Usage: npm run bench:settle [-- N]

  N  payments in each round (default 200)`
const { positionals } = readFlags(USAGE, { allowPositionals: true })
const PAYMENTS = readNumber('The number of payments', positionals[0] ?? '200', 1)
const ROUNDS = 3
const PRICE = 5_000n
const MODES: readonly Mode[] = [
  { name: 'single, one after the other', batch: 1, concurrency: 1 },
  { name: 'single, all at once', batch: 1, concurrency: PAYMENTS },
  { name: 'batches of 10', batch: 10, concurrency: PAYMENTS },
  { name: 'batches of 50', batch: 50, concurrency: PAYMENTS },
]

const dataDir = mkdtempSync(join(tmpdir(), 'bench-settle-'))
const log = createLog('error')
const sandbox = await openSandbox({ dataDir, blockSeconds: 0, log })
const { network, rpcUrl, payTo } = sandbox
const method = createExactEvm(network)
const rpc = createRpc(rpcUrl, 60)
const requirements: PaymentRequirements = { scheme: 'exact', network, amount: PRICE, payTo, maxTimeoutSeconds: 3_600 }

async function sign(account: PrivateKeyAccount): Promise<DecodedPayment> {
  const requirement = method.acceptsV2(requirements) as unknown as Requirement
  return decodePayment(await createPayment({ account, requirement, version: 2 }), [method])
}

/** Settles all payments. Returns the hashes of the transactions. Throws if a payment is not settled. */
async function settleAll(
  settler: Settler,
  payloads: readonly DecodedPayment[],
  concurrency: number,
): Promise<Set<Hex>> {
  const hashes = new Set<Hex>()
  const queue = payloads.values()
  const work = async (): Promise<void> => {
    for (const payload of queue) {
      const outcome = await settler.settle(payload, requirements, { record: async () => true, wait: 'confirmed' })
      if (outcome.state !== 'settled') throw new Error(`A payment ended as ${outcome.state}.`)
      hashes.add(outcome.transaction)
    }
  }
  await Promise.all(Array.from({ length: Math.min(concurrency, payloads.length) }, work))
  return hashes
}

async function measure({ batch, concurrency }: Mode, payers: readonly PrivateKeyAccount[]): Promise<Measured> {
  const some = concurrency === 1 ? payers.slice(0, Math.ceil(PAYMENTS / 4)) : payers
  const payloads = await Promise.all(some.map(sign))
  const key = generatePrivateKey()
  await rpc.call('anvil_setBalance', privateKeyToAccount(key).address, `0x${(10n ** 20n).toString(16)}`)
  const settler = await createChainSettler({ rpcUrl, key, network, log, confirmSeconds: 60, batch, pollMs: 5 })
  const began = performance.now()
  const hashes = await settleAll(settler, payloads, concurrency)
  const seconds = (performance.now() - began) / 1000
  await settler.close()
  return { perSecond: payloads.length / seconds, gas: (await gasUsed(rpc, hashes)) / payloads.length }
}

try {
  const payers = Array.from({ length: PAYMENTS }, () => privateKeyToAccount(generatePrivateKey()))
  // Money for all rounds and for one unmeasured payment, because a first transfer costs more gas.
  const accounts = payers.map(({ address }) => address)
  await fundBuyers(rpc, network, accounts, 1_000_000n)
  await measure({ name: 'warm-up', batch: 50, concurrency: PAYMENTS }, payers)
  const found = new Map<Mode, Measured[]>(MODES.map((mode) => [mode, []]))
  for (let round = 0; round < ROUNDS; round++)
    for (const [mode, measured] of found) measured.push(await measure(mode, payers))
  const rows = [...found].map(([{ name }, measured]) => ({
    name,
    perSecond: median(measured.map((one) => one.perSecond)),
    gas: median(measured.map((one) => one.gas)),
  }))
  const [single] = rows as [(typeof rows)[0], ...typeof rows]
  console.log(`${PAYMENTS} payments, each from its own payer; median of ${ROUNDS} rounds`)
  for (const { name, perSecond, gas } of rows)
    console.log(
      [
        name.padEnd(28),
        `${perSecond.toFixed(0)}/s`.padStart(8),
        `${(perSecond / single.perSecond).toFixed(1)}x`.padStart(7),
        `${gas.toFixed(0)} gas`.padStart(11),
        (gas / single.gas).toFixed(2).padStart(6),
      ].join('  '),
    )
} finally {
  await sandbox.close()
  rmSync(dataDir, { recursive: true, force: true })
}
