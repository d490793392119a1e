/** A chain settler on a real chain behind a proxy that can fail. Each test gets a new buyer, payTo and gas key. */
import type { PrivateKeyAccount } from 'viem/accounts'
import { createLog } from '../../gateway/observe/log.ts'
import type { DecodedPayment, Intent, Outcome, Settler } from '../../gateway/methods/payment-method.ts'
import type { PaymentRequirements } from '../../gateway/x402/payment-requirements.ts'
import type { Hex } from '../../gateway/config/networks.ts'
import { type ChainSettlerOptions, createChainSettler } from '../../gateway/methods/exact-evm/chain/chain-settler.ts'
import { startChain, type TestChain } from './chain.ts'
import { type Proxy, startProxy } from './proxy.ts'
import { newBuyer, newPayload, newRequirements, newSettleKey } from './payments.ts'

export interface SettlerFixture {
  chain: TestChain
  proxy: Proxy
  buyer: PrivateKeyAccount
  key: Hex
  requirements: PaymentRequirements
  /** Opens a settler with the gas key of the test. It closes when the test ends. */
  open(change?: Partial<ChainSettlerOptions>): Promise<Settler>
  /** Signs a payment; by the buyer of the test if no account is given. */
  newPayload(account?: PrivateKeyAccount): Promise<DecodedPayment>
  settle(settler: Settler, payload: DecodedPayment, wait?: 'confirmed' | 'submitted'): Promise<Outcome>
  /** Returns what payTo of this test has received, in atomic units. */
  received(): Promise<bigint>
}

/**
 * Anvil may hold back a transaction that arrives while it makes a block. The settler gets it mined after twice this time,
 * which must be less than a payment waits.
 */
const STUCK_MS = 3_000

/** Registers hooks in the suite it is called in. The fields are set once the hooks have run. */
export function useSettlerFixture(): SettlerFixture {
  const settlers: Settler[] = []
  const fixture = {
    async open(change = {}) {
      const { proxy, chain, key } = fixture
      const log = createLog('silent')
      const timing = { confirmSeconds: 10, stuckMs: STUCK_MS }
      const options = { rpcUrl: proxy.url, key, network: chain.network, log, ...timing, ...change }
      const settler = await createChainSettler(options)
      settlers.push(settler)
      return settler
    },
    newPayload: (account = fixture.buyer) => newPayload(fixture.chain, account, fixture.requirements),
    settle: (settler, payload, wait = 'confirmed') =>
      settler.settle(payload, fixture.requirements, { ...recorder(), wait }),
    received: () => fixture.chain.balanceOf(fixture.requirements.payTo),
  } as SettlerFixture

  before(async function () {
    fixture.chain = await startChain(this)
    fixture.proxy = await startProxy(fixture.chain.rpcUrl)
  })
  beforeEach(async () => {
    fixture.requirements = newRequirements(fixture.chain)
    fixture.buyer = await newBuyer(fixture.chain)
    fixture.key = await newSettleKey(fixture.chain)
  })
  afterEach(async () => {
    const { proxy, chain } = fixture
    proxy.script(() => 'pass')
    await chain.rpc.call('evm_setAutomine', true)
    await chain.rpc.call('evm_mine')
    await Promise.all(settlers.splice(0).map((settler) => settler.close()))
  })
  after(async () => {
    await fixture.proxy?.close()
    await fixture.chain?.stop()
  })
  return fixture
}

/** Creates a recorder that stores each intent and lets the settlement be sent. */
export function recorder(): { readonly intents: Intent[]; readonly record: (intent: Intent) => Promise<boolean> } {
  const intents: Intent[] = []
  return { intents, record: async (intent) => intents.push(intent) > 0 }
}

/** Returns the intent of a payment whose process died right after recording it. */
export async function intentBeforeCrash(
  fixture: SettlerFixture,
  settler: Settler,
  payload: DecodedPayment,
): Promise<Intent> {
  const { intents, record } = recorder()
  const settling = settler.settle(payload, fixture.requirements, {
    wait: 'confirmed',
    record: async (intent) => {
      await record(intent)
      throw new Error('The process was killed.')
    },
  })
  await settling.catch(() => {})
  return intents[0] as Intent
}
