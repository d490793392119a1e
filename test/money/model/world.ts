/** Everything that outlives a process: the clock, the chain, the journal, the buyers and their answers. */
import { createDigest } from '../../../gateway/methods/exact-evm/authorization-check.ts'
import { openJournal } from '../../../gateway/payments/journal/open-journal.ts'
import { NETWORKS, type Hex } from '../../../gateway/config/networks.ts'
import type { Answer, CallRequest } from '../../../gateway/calls/request-and-answer.ts'
import type { Journal } from '../../../gateway/payments/journal/journal.ts'
import { paymentKey, type PaymentKey } from '../../../gateway/methods/payment-method.ts'
import { createExactEvm } from '../../../gateway/methods/exact-evm/exact-evm.ts'
import { createRequirements } from '../../../gateway/x402/payment-requirements.ts'
import secp256k1 from 'secp256k1'
import { privateKeyToAccount } from 'viem/accounts'
import { PAY_TO } from '../../support/gateway.ts'
import { OPERATION } from '../../support/operation.ts'
import { type Chain, createChain, type Tx } from './chain.ts'
import { createSteps, type Process, type Steps } from './steps.ts'

export const NETWORK = NETWORKS['base-sepolia']
export const PRICE = 5_000n
const START = 1_790_000_000_000
/** How far the time of a block lags behind the clock of the gateway. */
const LAG_SECONDS = 4

const KEYS: readonly Hex[] = [`0x${'11'.repeat(32)}`, `0x${'22'.repeat(32)}`]
export const PAYERS = KEYS.map((key) => ({ key, address: privateKeyToAccount(key).address.toLowerCase() as Hex }))
const digestOf = createDigest(NETWORK)
const method = createExactEvm(NETWORK)
const accepted = method.acceptsV2(createRequirements(OPERATION, method, PAY_TO))

/** A signed authorization of a buyer. */
export interface Payment {
  readonly key: PaymentKey
  readonly payload: Readonly<Record<string, unknown>>
  readonly tx: Omit<Tx, 'hash'>
}

/** One gateway process of the simulation. */
export interface Gateway extends Process {
  /** True once it accepts calls. */
  open: boolean
  call(request: CallRequest): Promise<Answer>
  reconcile(atStart: boolean): Promise<unknown>
  /** Reads the transfers on the chain and records late ones, as reconciliation does. */
  watch(): Promise<void>
}

export interface World {
  /** Whether only our own transactions buy something (SETTLEMENT=strict). */
  readonly isStrict: boolean
  readonly steps: Steps
  readonly chain: Chain
  readonly journal: Journal
  /** The process that changed each row last. */
  readonly owners: Map<PaymentKey, string>
  /** Signed transactions by hash, as recorded in intents. */
  readonly sent: Map<Hex, Tx>
  /** Transactions accepted by a node that has not broadcast them yet. */
  readonly unbroadcast: Tx[]
  readonly gateways: Gateway[]
  now(): number
  advance(seconds: number): void
  living(): ReadonlySet<string>
  /** Starts a process, which first runs its recovery. */
  boot(): Gateway
  nextRun(): number
  newHash(): Hex
  sign(payer: number): Payment
  close(): Promise<void>
}

/** @param createGateway starts a process in this world */
export async function createWorld(
  createGateway: (world: World, id: string) => Gateway,
  onKill: (id: string) => void,
  isStrict = false,
): Promise<World> {
  let clock = START
  let [runs, hashes, nonces] = [0, 0, 0]
  const journal = await openJournal({ file: ':memory:', now: () => new Date(clock) })
  const steps = createSteps(({ id }) => onKill(id))
  const gateways: Gateway[] = []
  const hex = (value: number): Hex => `0x${value.toString(16).padStart(64, '0')}`
  const world: World = {
    isStrict,
    steps,
    journal,
    gateways,
    chain: createChain(() => Math.floor(clock / 1000) - LAG_SECONDS),
    owners: new Map(),
    sent: new Map(),
    unbroadcast: [],
    now: () => clock,
    advance(seconds) {
      clock += seconds * 1000
    },
    living: () => new Set(gateways.filter(({ dead }) => !dead).map(({ id }) => id)),
    boot() {
      const gateway = createGateway(world, `process-${gateways.length}`)
      gateways.push(gateway)
      return gateway
    },
    nextRun: () => (runs += 1),
    newHash: () => hex((hashes += 1)),
    sign(payer) {
      const { key, address: from } = PAYERS[payer] as (typeof PAYERS)[0]
      const validBefore = BigInt(Math.floor(clock / 1000) + 300)
      const nonce = hex((nonces += 1))
      const fields = { from, to: PAY_TO, value: PRICE, validAfter: 0n, validBefore, nonce }
      const { signature, recid } = secp256k1.ecdsaSign(digestOf(fields), Buffer.from(key.slice(2), 'hex'))
      const bytes = Buffer.concat([signature, Buffer.from([27 + recid])])
      const { to } = fields
      const numbers = { value: String(PRICE), validAfter: '0', validBefore: String(validBefore) }
      const payment = paymentKey(NETWORK, from, nonce)
      return {
        key: payment,
        payload: {
          x402Version: 2,
          accepted,
          payload: { signature: `0x${bytes.toString('hex')}`, authorization: { from, to, ...numbers, nonce } },
        },
        tx: { key: payment, payer: from, amount: PRICE, validBefore: Number(validBefore) },
      }
    },
    close: () => journal.close(),
  }
  return world
}
