/** The networks we can be paid on, as data. A further EVM network with an EIP-3009 token is one more entry. */
import type { Network } from './payment.ts'

/** USDC of Base and Base Sepolia. The EIP-712 names differ: mixing them up makes every signature wrong. */
export const NETWORKS = {
  base: {
    name: 'base',
    caip2: 'eip155:8453',
    chainId: 8453,
    asset: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913',
    domain: { name: 'USD Coin', version: '2' },
  },
  'base-sepolia': {
    name: 'base-sepolia',
    caip2: 'eip155:84532',
    chainId: 84532,
    asset: '0x036CbD53842c5426634e7929541eC2318f3dCF7e',
    domain: { name: 'USDC', version: '2' },
  },
} as const satisfies Readonly<Record<'base' | 'base-sepolia', Network>>

/** The network called `id`, either by its x402 v1 name ("base") or by its CAIP-2 id ("eip155:8453"). */
export function findNetwork(networks: readonly Network[], id: unknown): Network | undefined {
  return networks.find(({ name, caip2 }) => id === name || id === caip2)
}
