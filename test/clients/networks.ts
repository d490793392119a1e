/** A gateway that takes payments on two local chains, as Base and Base Sepolia, and on a third network without a node. */
import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import type { Context } from 'mocha'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { readConfig } from '../../gateway/config/config.ts'
import { createGateway, type Gateway } from '../../gateway/compose.ts'
import { NETWORKS } from '../../gateway/config/networks.ts'
import { startChain, type TestChain } from '../support/chain.ts'
import { freePort } from '../support/gateway.ts'
import { type Proxy, startProxy } from '../support/proxy.ts'
import { SHOP } from '../support/sandbox.ts'

export type Name = 'base' | 'base-sepolia'

export interface TwoChainGateway {
  readonly gateway: Gateway
  readonly url: string
  readonly buyer: ReturnType<typeof privateKeyToAccount>
  readonly payees: Readonly<Record<Name, `0x${string}`>>
  readonly chains: Readonly<Record<Name, TestChain>>
  /** A proxy in front of each chain, which a test can take down. */
  readonly proxies: Readonly<Record<Name, Proxy>>
  /** Returns what the payees received since the last call, in atomic units. */
  received(): Promise<Readonly<Record<Name, bigint>>>
  close(): Promise<void>
}

const catalog = resolve(import.meta.dirname, '../../catalog')
export const OPERATOR_TOKEN = 'two-chains-operator'
/** Nothing listens on this port. */
const UNREACHABLE = 'http://127.0.0.1:9'

export async function openTwoChainGateway(context: Context): Promise<TwoChainGateway> {
  const chains = {
    base: await startChain(context, { network: NETWORKS.base }),
    'base-sepolia': await startChain(context, { network: NETWORKS['base-sepolia'] }),
  }
  const proxies = {
    base: await startProxy(chains.base.rpcUrl),
    'base-sepolia': await startProxy(chains['base-sepolia'].rpcUrl),
  }
  const buyer = privateKeyToAccount(generatePrivateKey())
  const settleKey = generatePrivateKey()
  for (const chain of Object.values(chains)) {
    await chain.mint(buyer.address, 1_000_000n)
    await chain.fund(privateKeyToAccount(settleKey).address)
  }
  const payees = {
    base: privateKeyToAccount(generatePrivateKey()).address,
    'base-sepolia': privateKeyToAccount(generatePrivateKey()).address,
  }
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-networks-'))
  cpSync(SHOP.CATALOG_DIR, join(folder, 'catalog'), { recursive: true })
  for (const file of ['documents.json', 'networks.json']) cpSync(join(catalog, file), join(folder, 'catalog', file))
  writeFileSync(join(folder, 'catalog', 'narrow.json'), JSON.stringify(NARROW))
  const config = readConfig({
    NETWORK: 'base base-sepolia arbitrum',
    PAY_TO: payees.base,
    PAY_TO_BASE_SEPOLIA: payees['base-sepolia'],
    SETTLE_KEY: settleKey,
    SETTLE_RPC_URL: proxies.base.url,
    SETTLE_RPC_URL_BASE_SEPOLIA: proxies['base-sepolia'].url,
    SETTLE_RPC_URL_ARBITRUM: UNREACHABLE,
    ALLOW_SAMPLE_SALES: 'true',
    OPERATOR_TOKEN,
    PORT: String(await freePort()),
    DATA_DIR: join(folder, 'data'),
    LOG_LEVEL: 'silent',
    ...SHOP,
    CATALOG_DIR: join(folder, 'catalog'),
  })
  const gateway = await createGateway(config)
  const url = await gateway.listen()
  const balances = async () => ({
    base: await chains.base.balanceOf(payees.base),
    'base-sepolia': await chains['base-sepolia'].balanceOf(payees['base-sepolia']),
  })
  let last = await balances()
  return {
    gateway,
    url,
    buyer,
    payees,
    chains,
    proxies,
    async received() {
      const before = last
      last = await balances()
      return { base: last.base - before.base, 'base-sepolia': last['base-sepolia'] - before['base-sepolia'] }
    },
    async close() {
      await gateway.close()
      for (const proxy of Object.values(proxies)) await proxy.close()
      for (const chain of Object.values(chains)) await chain.stop()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** A product that accepts payments on one network only. */
const NARROW = {
  product: 'narrow',
  title: 'Narrow',
  summary: 'Paid on one network only.',
  upstream: { url: UNREACHABLE },
  operations: {
    getNarrow: {
      route: 'GET /v1/narrow',
      summary: 'Paid on Base Sepolia.',
      price: '0.01',
      accepts: ['base-sepolia'],
      response: { type: 'object' },
    },
  },
}
