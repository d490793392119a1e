/** A gateway on a local chain, with nodes or facilitators that can be made to fail. Used by the fault matrices. */
import type { Context } from 'mocha'
import type { LocalAccount } from 'viem'
import { createLog } from '../../gateway/observe/log.ts'
import type { Journal, PaymentRecord } from '../../gateway/payments/journal/journal.ts'
import type { PaymentState } from '../../gateway/payments/journal/payment-states.ts'
import type { Settler } from '../../gateway/methods/payment-method.ts'
import type { Hex, Network } from '../../gateway/config/networks.ts'
import type { Operation } from '../../gateway/plugin/catalog.ts'
import type { Issue } from '../../gateway/validation/issue.ts'
import { json, payment, send, type RequestOptions } from './agent.ts'
import { startChain, type TestChain } from './chain.ts'
import { openGateway, PAY_TO } from './gateway.ts'
import { type Proxy, startProxy } from './proxy.ts'
import { newBuyer } from './payments.ts'

export interface ChainGateway {
  readonly url: string
  readonly journal: Journal
  /** The operations of the catalog that is served, and what is wrong with its files. */
  operations(): readonly Operation[]
  issues(): readonly Issue[]
  readonly settler: Settler
  readonly chain: TestChain
  /** Two nodes of the chain, each of which can be made to fail. */
  readonly nodes: readonly [Proxy, Proxy]
  /** Creates a buyer; with one USDC if no balance is given. */
  newBuyer(balance?: bigint): Promise<LocalAccount>
  /** Signs a buyer's payment for a route. */
  sign(path: string, buyer: LocalAccount, request?: RequestOptions): Promise<SignedPayment>
  /** Returns what the recipient received since the last call, in atomic units. */
  received(): Promise<bigint>
  mine(blocks: number): Promise<void>
  close(): Promise<void>
}

export interface SignedPayment {
  readonly header: string
  readonly authorization: { readonly from: Hex; readonly nonce: Hex }
  readonly signature: Hex
  /** Sends the request that the payment was signed for. */
  pay(): Promise<Response>
  /** Returns its record in the journal. */
  record(): Promise<PaymentRecord>
  /** Returns the states of the payment in the journal, in order. */
  states(): Promise<readonly PaymentState[]>
}

export interface ChainGatewayOptions {
  /** Base Sepolia if absent. */
  readonly network?: Network
  /** Changes of the gateway's configuration. */
  readonly config?: Parameters<typeof openGateway>[0]
  /** The wall clock of the gateway; that of the machine if absent. */
  readonly now?: () => Date
}

/**
 * Starts a chain, two nodes and a gateway.
 * @param open creates the settler from the chain and its two nodes
 */
export async function openChainGateway(
  context: Context,
  open: (chain: TestChain, nodes: readonly [Proxy, Proxy]) => Promise<Settler> | Settler,
  { network, config = {}, now = () => new Date() }: ChainGatewayOptions = {},
): Promise<ChainGateway> {
  const chain = await startChain(context, network ? { network } : {})
  // The contracts are in the state of the first block. Further blocks let a reorganisation leave that block alone.
  for (let block = 0; block < 3; block++) await chain.rpc.call('evm_mine')
  const nodes = [await startProxy(chain.rpcUrl), await startProxy(chain.rpcUrl)] as const
  const settler = await open(chain, nodes)
  const settlement = { network: chain.network, payTo: PAY_TO, settler, sandbox: null, close: () => settler.close() }
  const overrides = { settlement, now, reconcileSeconds: 1, log: createLog('silent') }
  const testGateway = await openGateway(config, overrides)
  const { url } = testGateway
  const { journal } = testGateway.gateway
  const balance = (): Promise<bigint> => chain.balanceOf(PAY_TO)
  let last = await balance()
  return {
    url,
    journal,
    operations: () => [...testGateway.gateway.current.catalog.operations.values()],
    issues: () => testGateway.gateway.issues,
    settler,
    chain,
    nodes,
    newBuyer: (balance) => newBuyer(chain, balance),
    async sign(path, buyer, request = {}) {
      const header = await payment(`${url}${path}`, buyer, 2, request)
      const { payload } = JSON.parse(Buffer.from(header, 'base64').toString()) as {
        payload: { authorization: SignedPayment['authorization']; signature: Hex }
      }
      const { authorization, signature } = payload
      const { caip2, asset } = chain.network
      const key = `${caip2}/${asset}/${authorization.from}/${authorization.nonce}`.toLowerCase()
      return {
        header,
        authorization,
        signature,
        pay: () => send(`${url}${path}`, header, 2, request),
        record: async () => (await journal.find(key)) as PaymentRecord,
        states: async () => (await journal.events(key)).map(({ state }) => state),
      }
    },
    async received() {
      const before = last
      last = await balance()
      return last - before
    },
    async mine(blocks) {
      for (let block = 0; block < blocks; block++) await chain.rpc.call('evm_mine')
    },
    async close() {
      await testGateway.close()
      for (const node of nodes) await node.close()
      await chain.stop()
    },
  }
}

/** The status and the error code of a response; `ok` as the code of a 200. */
export async function outcomeOf(response: Response): Promise<readonly [status: number, code: unknown]> {
  return [response.status, response.status === 200 ? 'ok' : (await json(response))['code']]
}
