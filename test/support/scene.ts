/** A chain settler on a real chain behind a proxy that can fail. Each test gets a new buyer, payTo and gas key. */
import type { PrivateKeyAccount } from 'viem/accounts'
import { createLog } from '../../gateway/observe/log.ts'
import type { DecodedPayment, Intent, Outcome, Settler } from '../../gateway/methods/payment-method.ts'
import type { PaymentRequirements } from '../../gateway/x402/payment-requirements.ts'
import type { Hex } from '../../gateway/config/networks.ts'
import { type ChainSettlerOptions, createChainSettler } from '../../gateway/methods/exact-evm/chain/chain-settler.ts'
import { startChain, type TestChain } from './chain.ts'
import { type Proxy, startProxy } from './proxy.ts'
import { newBuyer, newPayload, newRequirements, newSettleKey } from './settling.ts'

export interface Scene {
  chain: TestChain
  proxy: Proxy
  buyer: PrivateKeyAccount
  key: Hex
  requirements: PaymentRequirements
  /** Opens a settler with the gas key of the test. It closes when the test ends. */
  open(change?: Partial<ChainSettlerOptions>): Promise<Settler>
  pay(account?: PrivateKeyAccount): Promise<DecodedPayment>
  settle(settler: Settler, payload: DecodedPayment, wait?: 'confirmed' | 'submitted'): Promise<Outcome>
  /** Returns what payTo of this test has received, in atomic units. */
  received(): Promise<bigint>
}

/** Registers hooks in the suite it is called in. The fields are set once the hooks have run. */
export function useScene(): Scene {
  const settlers: Settler[] = []
  const scene = {
    async open(change = {}) {
      const { proxy, chain, key } = scene
      const log = createLog('silent')
      const options = { rpcUrl: proxy.url, key, network: chain.network, log, confirmSeconds: 10, ...change }
      const settler = await createChainSettler(options)
      settlers.push(settler)
      return settler
    },
    pay: (account = scene.buyer) => newPayload(scene.chain, account, scene.requirements),
    settle: (settler, payload, wait = 'confirmed') =>
      settler.settle(payload, scene.requirements, { ...recorder(), wait }),
    received: () => scene.chain.balanceOf(scene.requirements.payTo),
  } as Scene

  before(async function () {
    scene.chain = await startChain(this)
    scene.proxy = await startProxy(scene.chain.rpcUrl)
  })
  beforeEach(async () => {
    scene.requirements = newRequirements(scene.chain)
    scene.buyer = await newBuyer(scene.chain)
    scene.key = await newSettleKey(scene.chain)
  })
  afterEach(async () => {
    const { proxy, chain } = scene
    proxy.script(() => 'pass')
    await chain.rpc.call('evm_setAutomine', true)
    await chain.rpc.call('evm_mine')
    await Promise.all(settlers.splice(0).map((settler) => settler.close()))
  })
  after(async () => {
    await scene.proxy?.close()
    await scene.chain?.stop()
  })
  return scene
}

/** Creates a recorder that stores each intent and lets the settlement be sent. */
export function recorder(): { readonly intents: Intent[]; readonly record: (intent: Intent) => Promise<boolean> } {
  const intents: Intent[] = []
  return { intents, record: async (intent) => intents.push(intent) > 0 }
}

/** Returns the intent of a payment whose process died right after recording it. */
export async function crashed(scene: Scene, settler: Settler, payload: DecodedPayment): Promise<Intent> {
  const { intents, record } = recorder()
  const dying = settler.settle(payload, scene.requirements, {
    wait: 'confirmed',
    record: async (intent) => {
      await record(intent)
      throw new Error('The process was killed.')
    },
  })
  await dying.catch(() => {})
  return intents[0] as Intent
}

/** Waits until a condition is true; the timeout of the test ends the wait. */
export async function until(ready: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await ready())) await new Promise((wake) => setTimeout(wake, 50))
}
